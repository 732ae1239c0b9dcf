"""Where presence is protected, ticks close by beats: on Kafka as in a file that has them in the same places."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from shoal.models.records import BEAT_HEADER
from shoal.stream.partitioning import PARTITIONERS
from tests.support.audit import audit, replay
from tests.support.backends import mostly
from tests.support.deployment import Deployment
from tests.support.kafka import Kafka
from tests.support.people import START, visits
from tests.support.workers import PATIENCE, tails, wait_until

DAY = 86_400
PRESENT: dict[str, Any] = {
    "relation": "add-remove", "every": "6h", "lateness": "1h", "start": "2001-09-09", "end": "2001-09-16",
}  # fmt: skip
PER_SLOT = {key: value for key, value in PRESENT.items() if key != "every"} | {
    "statistic": "mean", "slot": "6h", "group": "city", "unit": "user",
}  # fmt: skip
METRICS: tuple[dict[str, Any], ...] = (
    PRESENT | {"name": "mean"},
    PRESENT | {"name": "city", "statistic": "sum", "group": "city", "groups": ["A", "B", "C", "Z"]},
    PRESENT | {"name": "clipped", "clip": {"share": "0.5", "epsilon": "0.4", "crossing": "0.2"}},
    PRESENT | {"name": "weekly", "every": "1d", "decay": {"kind": "window", "length": "3d"}, "late": "drop"},
    PER_SLOT | {"name": "place", "groups": ["A", "B"]},
)
# Of keys that nobody declared: 60 people in five cities are enough to find them, with so much epsilon.
FOUND: tuple[dict[str, Any], ...] = (
    PRESENT | {"name": "found", "group": "city", "epsilon": 30, "delta": 1e-6, "selection": {"epsilon": 20}},
    PRESENT | {"name": "fading", "group": "city", "epsilon": 30, "delta": 1e-6, "every": "1d", "statistic": "sum",
               "decay": {"kind": "window", "length": "3d"}, "selection": {"epsilon": 20}},
    PER_SLOT | {"name": "cell", "epsilon": 90, "delta": 1e-6, "max_groups": 24, "selection": {"epsilon": 80}},
)  # fmt: skip


def with_beats(events: list[bytes]) -> list[bytes]:
    """A beat after every 100 events, half an hour after the last of them."""
    found = []
    for number, raw in enumerate(events, 1):
        found.append(raw)
        if number % 100 == 0:
            moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(orjson.loads(raw)["at"] + 1800))
            found.append(orjson.dumps({"shoal-beat": moment}))
    return found


@mostly("kernel")
def test_kills_change_no_release_of_what_goes_by_beats(kafka: Kafka, tmp_path: Path, backend: str) -> None:
    with Deployment(kafka, tmp_path, *METRICS, sources={"events": 3}, partitions=3) as shoals:
        # given a week of events, with beats among them
        events = with_beats(visits(2_000, step=300))
        shoals.oracle.run(events)
        # when workers share the partitions, and one is killed while they come
        workers = [shoals.worker("a"), shoals.worker("b")]
        workers[0].wait_owns()
        feeding = shoals.produce_slowly(events, seconds=4)
        time.sleep(1.5)
        workers[0].kill()
        shoals.worker("a")
        feeding.join()
        # then the releases are those of the file run, at every step of every key
        shoals.expect_equality()
        assert len(shoals.oracle.releases()) == 28 * (6 + 2) + 7
        # and no transaction has releases of two times
        stamps = [record.timestamp for record in kafka.read_committed(f"{shoals.app}.releases")]
        assert min(stamps) >= (START - START % DAY) * 1000
        assert max(stamps) <= (START + 8 * DAY) * 1000
        shoals.stop_all()


@pytest.mark.parametrize(
    ("count", "kills"), [(1_500, 1), pytest.param(20_000, 5, marks=pytest.mark.long)], ids=["short", "long"]
)
def test_kills_change_no_key_that_is_found_and_audits_confirm_them(
    kafka: Kafka, tmp_path: Path, count: int, kills: int
) -> None:
    with Deployment(kafka, tmp_path, *FOUND, sources={"events": 2}, partitions=2, delta=1e-3) as shoals:
        # given a week of events, and what `shoal run` finds in them
        events = with_beats(visits(count, people=count // 25, step=400_000 / count))
        shoals.oracle.run(events)
        # when one of two workers is killed while they come, again and again
        workers = [shoals.worker("a"), shoals.worker("b")]
        workers[0].wait_owns()
        feeding = shoals.produce_slowly(events, seconds=3 * kills)
        for turn in range(kills):
            time.sleep(1.5)
            workers[turn % 2].kill()
            workers[turn % 2] = shoals.worker("ab"[turn % 2])
        feeding.join()
        # then the same keys are shown in the same steps, with the same releases
        shoals.expect_equality()
        assert len(shoals.oracle.releases()) > 50
        shown = [orjson.loads(one.value or b"") for one in kafka.read_committed(f"{shoals.app}.activations")]
        assert {one["group"] for one in shown if one["kind"] == "shown"} >= {"A", "B"}
        # and so are cells, in each slot anew, of which releases alone tell
        assert "cell" not in {one["metric"] for one in shown}
        cells = [one for one in map(orjson.loads, shoals.oracle.releases()) if one["metric"] == "cell"]
        assert len({one["at"] for one in cells}) > 10
        shoals.stop_all()
        # and audits confirm them, from SQL and topic, and from events and key
        assert audit("verify", shoals.config).ok
        assert replay(shoals.config).fields["confirmed"] == len(shoals.releases())


def test_a_beater_moves_the_clock_until_it_is_stopped(kafka: Kafka, tmp_path: Path) -> None:
    # given a metric that began a while ago, of which no event came
    begun = time.strftime("%Y-%m-%dT%H:00:00Z", time.gmtime(time.time() - 7200))
    metric = PRESENT | {"name": "m", "every": "1h", "start": begun, "lateness": "0s"}
    del metric["end"]
    with Deployment(kafka, tmp_path, metric, sources={"events": 2}, partitions=2) as shoals:
        shoals.worker()
        # when somebody beats
        command = [sys.executable, "-m", "shoal", "beat", str(shoals.config)]
        beater = subprocess.Popen([*command, "--every", "1s"], stderr=subprocess.PIPE, env=os.environ, text=True)
        try:
            # then the hours that are over are released, though nothing came
            shoals.wait_releases(2)
        finally:
            beater.send_signal(signal.SIGTERM)
            _, said = beater.communicate(timeout=30 * PATIENCE)
        assert (beater.returncode, said.splitlines()[-1]) == (0, "shoal: beats stopped")
        assert {orjson.loads(one)["seq"] for one in shoals.releases()} >= {1, 2}
        shoals.stop_all()


def test_a_metric_that_is_added_begins_at_a_beat_where_nothing_was_read_before_too(
    kafka: Kafka, tmp_path: Path
) -> None:
    counted = PRESENT | {"statistic": "sum", "range": [0, 1], "epsilon": 300, "max_contributions": 9} | {
        "lateness": "0s", "every": "1d",
    }  # fmt: skip
    first, later = counted | {"name": "first"}, counted | {"name": "later", "start": "2001-09-12"}
    with Deployment(kafka, tmp_path, first, sources={"events": 2}, partitions=1) as shoals:
        # given a worker that has read one partition, for the other has nothing
        shoals.produce(said(0, "2001-09-10T01", "2001-09-10T02"))
        shoals.end([0], at("2001-09-11"), header=BEAT_HEADER)
        worker, changelog = shoals.worker(), f"{shoals.app}.bound.{shoals.topic()}.changelog"
        worker.wait_owns()
        wait_until(lambda: kafka.read_committed(changelog), 60, lambda: tails(shoals.workers))
        worker.tell_to_stop()
        worker.ends_well()
        said_so = [*worker.said("owns"), *worker.said("stopped")]
        assert len(said_so) >= 2
        assert not any("seconds" in line for line in said_so), "how long it took tells how many events there are"
        # when a metric is added, and records of its time come before the first beat of it, and after
        shoals.metrics.append(shoals.metrics[0] | later)
        shoals.write_config()
        early = [event for partition in (0, 1) for event in said(partition, *["2001-09-12T01"] * 3)]
        after = [event for partition in (0, 1) for event in said(partition, *["2001-09-12T02"] * 4)]
        shoals.produce(early)
        shoals.end([0, 1], at("2001-09-12"), header=BEAT_HEADER)
        shoals.produce(after)
        shoals.end([0, 1], at("2001-09-13"), header=BEAT_HEADER)
        shoals.worker()
        shoals.wait_releases(5)
        # then those after it count, in either partition
        found = [orjson.loads(one) for one in shoals.releases()]
        counts = {(one["metric"], one["at"][:10]): round(one["value"]) for one in found}
        assert counts["later", "2001-09-13"] == len(after)
        assert counts["first", "2001-09-13"] == 2 + len(early) + len(after)
        shoals.stop_all()
        assert replay(shoals.config).fields["confirmed"] == len(found)


def at(day: str) -> int:
    return int(time.mktime(time.strptime(day, "%Y-%m-%d"))) - time.timezone


def said(partition: int, *hours: str) -> list[bytes]:
    """Events of somebody whose partition this is, of two."""
    who = next(name for name in map("u{}".format, range(99)) if PARTITIONERS["murmur2"](name.encode(), 2) == partition)
    return [orjson.dumps({"who": who, "x": 1, "at": f"{hour}:00:00Z"}) for hour in hours]
