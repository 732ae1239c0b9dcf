"""The sharp mean through the stages, with users who have so many events that blocks pay."""

import random

import orjson
import pytest

from shoal.models.records import Message
from shoal.stream.file_run import FileRun, Line
from shoal.stream.topic import plan_topic
from tests.stream.simulation import SECRET, Cluster, config, event, rows_of

CFG = config(
    {"algorithm": "sharp", "epsilon": 700, "max_contributions": 1024, "users": 8, "every": "1s", "life": "2200s",
     "grid": 2**20},
    {"algorithm": "sharp", "epsilon": 80, "max_contributions": 40, "every": "3s", "users": None, "life": "300s"},
    {"algorithm": "sharp", "epsilon": 1400, "max_contributions": 1024, "users": 8, "every": "1s", "life": "2200s",
     "value": ("x", "y"), "range": ((0, 1), (-5, 5)), "grid": 2**20},
    {"algorithm": "sharp", "epsilon": 700, "max_contributions": 150, "users": 8, "every": "1s", "life": "200s",
     "sigma": "0.02", "grid": 2**20},
)  # fmt: skip
# Three users with 200 events each, which become 68 contributions, then three more.
EVENTS = [event(f"u{n // 200}", n * 37 % 101 / 100, 100 + n // 5, y=n % 13 % 5) for n in range(600)] + [
    event(f"u{3 + n % 3}", n * 61 % 100 / 100, 220 + n // 5, y=n % 17 % 5) for n in range(600)
]


@pytest.fixture(scope="module")
def outputs():
    plan = plan_topic(CFG, "events", SECRET, source_partitions=1, contributions_partitions=1)
    return list(FileRun(plan).outputs(Line(offset, raw) for offset, raw in enumerate(EVENTS)))


@pytest.fixture(scope="module")
def expected(outputs) -> list[bytes]:
    return [release.value for output in outputs for release in output.releases]


@pytest.mark.parametrize(("sources", "homes"), [(1, 1), (3, 2), (8, 3)])
def test_any_interleaving_and_any_crash_gives_the_releases_of_the_file_run(expected, sources, homes):
    cluster, chance = Cluster(CFG, sources, homes), random.Random(sources)
    cluster.produce(EVENTS)
    cluster.end(b"2000-01-01T00:00:00Z")
    for _ in range(60):
        where, amount = chance.randrange(24), chance.randrange(1, 60)
        action = chance.choice(["bound", "bound", "release", "crash_bound", "crash_release"])
        cluster.act(action, where, amount)
    cluster.drain()
    assert cluster.releases() == expected


def test_those_releases_say_something(expected):
    """Before it begins to count, it publishes the middle of the range; later, with blocks, what three users have."""
    first, *_, last = [one for one in map(orjson.loads, expected) if one["metric"] == "m0"]
    assert (first["value"], first["samples"]) == (0.5, 0)
    assert last["samples"] > 600
    assert last["value"] == pytest.approx(0.495, abs=4 * last["noise_sd"] + 0.05)


def test_blocks_wait_and_octaves_open_on_the_way(outputs):
    """What the law above is worth: it meets a clip range of first blocks, and later ones of two octaves."""
    found = [orjson.loads(one) for output in outputs for one in output.activations]
    levels = {name: [one["level"] for one in found if one["metric"] == name] for name in ("m0", "m1", "m2")}
    assert levels == {"m0": [7, 10, 12], "m1": [0], "m2": [7, 10, 12]}
    begun, *opened = [one["at"] for one in found if one["metric"] == "m0"]
    assert all(at > begun for at in opened)


def test_a_tick_of_many_events_is_a_row_for_each_bucket_and_level():
    events = [event(f"u{n}", n % 5 / 5, 100) for n in range(300)]
    cluster = Cluster(CFG, 1, 1)
    cluster.produce(events)
    cluster.bound(0, 1000)
    (line,) = cluster.homes[0].log
    rows = [row for key, row in rows_of(Message.decode(line.value or b"")) if key == "m0/1|"]
    assert len(rows) == 5
    assert sum(row[4] for row in rows) == 300
    assert {row[1] for row in rows} == {""}
