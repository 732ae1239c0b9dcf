"""The sharp mean through the stages, with users who have so many events that blocks pay."""

import random

import orjson
import pytest

from shoal.models.records import Message
from tests.stream.simulation import Cluster, config, event, run_file

CFG = config(
    {"algorithm": "sharp", "epsilon": 700, "max_contributions": 1024, "users": 8, "horizon": "22000s", "grid": 2**20},
    {"algorithm": "sharp", "epsilon": 80, "max_contributions": 40, "every": "3s", "users": None},
)
# Three users with 200 events each, which become 67 contributions, then three more.
EVENTS = [event(f"u{n // 200}", n * 37 % 100 / 100, 100 + n // 20) for n in range(600)] + [
    event(f"u{3 + n % 3}", n * 61 % 100 / 100, 130 + n // 20) for n in range(600)
]


@pytest.fixture(scope="module")
def expected() -> list[bytes]:
    return run_file(CFG, EVENTS)


@pytest.mark.parametrize(("sources", "homes"), [(1, 1), (3, 2), (8, 3)])
def test_any_interleaving_and_any_crash_gives_the_releases_of_the_file_run(expected, sources, homes):
    cluster, chance = Cluster(CFG, sources, homes), random.Random(sources)
    cluster.produce(EVENTS)
    cluster.end(b"2000-01-01T00:00:00Z")
    for _ in range(60):
        where, amount = chance.randrange(24), chance.randrange(1, 60)
        action = chance.choice(["bound", "bound", "release", "crash_bound", "crash_release"])
        match action:
            case "bound":
                cluster.bound(where % sources, amount)
            case "release":
                cluster.release(where % homes, amount, steps=amount)
            case "crash_bound":
                cluster.crash_bound(where % sources)
            case "crash_release":
                cluster.crash_release(where % homes)
    cluster.drain()
    assert cluster.releases() == expected


def test_those_releases_say_something(expected):
    """Before it begins to count, it publishes the middle of the range; later, with blocks, what three users have."""
    first, *_, last = [one for one in map(orjson.loads, expected) if one["metric"] == "m0"]
    assert (first["value"], first["samples"]) == (0.5, 0)
    assert last["samples"] > 600
    assert last["value"] == pytest.approx(0.495, abs=4 * last["noise_sd"] + 0.05)


def test_a_tick_of_many_events_is_a_row_for_each_bucket_and_level():
    events = [event(f"u{n}", n % 5 / 5, 100) for n in range(300)]
    cluster = Cluster(CFG, 1, 1)
    cluster.produce(events)
    cluster.bound(0, 1000)
    (line,) = cluster.homes[0].log
    (rows, _) = Message.decode(line.value or b"").contributions.values()
    assert len(rows) == 5
    assert sum(row[4] for row in rows) == 300
    assert {row[1] for row in rows} == {""}
