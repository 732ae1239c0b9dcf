"""Topics of different sizes, silent partitions and late events: the log decides, never a worker's clock."""

import json
import time
from collections import Counter
from pathlib import Path

import numpy as np
import orjson

from shoal.models.records import BEAT_HEADER
from shoal.models.times import iso
from shoal.stream.partitioning import PARTITIONERS
from tests.support.backends import mostly
from tests.support.deployment import Deployment
from tests.support.kafka import Kafka, Record
from tests.support.people import START, visits
from tests.support.workers import Worker, wait_until

FAR = 4_000_000_000  # seconds: 2096
HOUR = 3600


@mostly("kernel")
def test_two_topics_of_different_sizes_and_many_metrics(kafka: Kafka, tmp_path: Path, backend: str) -> None:
    metrics = (
        {"name": "hourly"},
        {"name": "daily-city", "group": "city", "every": "1d"},
        {"name": "clicks", "topic": "clicks", "user": "person.id", "value": "ms", "time": "when", "every": "30m"},
        {"name": "pages", "topic": "clicks", "user": "person.id", "value": "ms", "time": "when", "group": "page",
         "max_groups": 2, "algorithm": "full", "epsilon": 500, "every": "2h"},
    )  # fmt: skip
    with Deployment(kafka, tmp_path, *metrics, sources={"events": 5, "clicks": 2}, partitions=3) as shoals:
        # given visits, and clicks in a form of their own
        events = visits(2_000)
        clicks = [
            orjson.dumps({"person": {"id": seen["who"]}, "when": seen["at"] * 1000, "ms": seen["x"], "page": n % 3})
            for n, seen in enumerate(map(orjson.loads, visits(1_500, seed=2)))
        ]
        shoals.oracle.run(events)
        shoals.oracle.run(clicks, "clicks")
        # when two workers share five, two and three partitions
        shoals.worker()
        shoals.worker()
        shoals.produce(clicks, "clicks", end=True)
        shoals.produce(events, end=True)
        # then each metric has the releases that a file of its topic yields
        shoals.expect_equality()
        assert {orjson.loads(release)["metric"] for release in shoals.releases()} == {m["name"] for m in metrics}
        shoals.stop_all()


def test_a_partition_without_events_holds_up_no_release(kafka: Kafka, tmp_path: Path) -> None:
    home = PARTITIONERS["murmur2"]
    with Deployment(kafka, tmp_path, {"group": "city"}, partitions=2, idle_after="2s") as shoals:
        # given people of whom some live in partition 3, and have nothing to say for a long time
        events = visits(1_600)
        late_risers = [home(orjson.loads(event)["who"].encode(), 4) == 3 for event in events]
        early = [event for event, late in zip(events[:1_000], late_risers, strict=False) if not late]
        rest = events[1_000:]
        assert any(late_risers[1_000:])
        shoals.oracle.run(early, "events", until_end=False)
        # when the others' events come, and no end
        shoals.worker("one")
        shoals.produce(early)
        # then all ticks but the open one are released
        shoals.wait_releases(len(shoals.oracle.releases()))
        assert shoals.releases() == shoals.oracle.releases()
        # and when partition 3 wakes up, after a crash too, its events count as in a file
        shoals.workers[0].kill()
        shoals.worker("one")
        shoals.oracle.forget()
        shoals.oracle.run([*early, *rest])
        shoals.produce(rest, end=True)
        shoals.expect_equality()
        shoals.stop_all()


def test_late_events_are_folded_or_dropped_as_in_a_file(kafka: Kafka, tmp_path: Path) -> None:
    metrics = (
        {"name": "fold", "lateness": "10m"},
        {"name": "drop", "lateness": "10m", "late": "drop"},
        {"name": "strict", "late": "drop", "every": "contribution"},
    )
    # given events out of order, by an hour at times, in one partition
    events = visits(2_000)
    order = np.argsort(np.arange(2_000) + np.random.default_rng(5).exponential(10, 2_000))
    events = [events[n] for n in order]
    with Deployment(kafka, tmp_path, *metrics, sources={"events": 1}, partitions=3) as shoals:
        shoals.oracle.run(events)
        # when workers take turns on it
        shoals.worker()
        shoals.worker()
        shoals.produce(events, end=True)
        # then the same ones are late, and the same releases come out
        shoals.expect_equality()
        ours = {(letter["metric"], letter["offset"], letter["reason"]) for letter in shoals.dead_letters()}
        files = {(letter["metric"], letter["offset"], letter["reason"]) for letter in shoals.oracle.dead_letters()}
        assert ours == files
        assert {metric for metric, _, _ in ours} == {"drop", "strict"}
        shoals.stop_all()


def test_a_tick_is_closed_by_clock_records_alone(kafka: Kafka, tmp_path: Path) -> None:
    with Deployment(kafka, tmp_path, partitions=2) as shoals:
        # given events of one tick, and no end
        events = [orjson.dumps({"who": f"p{n}", "at": START, "x": n}) for n in range(50)]
        shoals.oracle.run(events)
        shoals.worker()
        shoals.produce(events)
        shoals.workers[0].wait_owns(6)
        assert shoals.releases() == []
        # when all partitions but one have a clock record, and then the last
        shoals.end([0, 1, 3], START + 7200)
        assert shoals.releases() == []
        shoals.end([2], START + 7200)
        # then the tick closes
        shoals.expect_equality()
        shoals.stop_all()


@mostly("kernel")
def test_no_jump_and_no_ramp_closes_a_tick_further_ahead_than_an_hour(
    kafka: Kafka, tmp_path: Path, backend: str
) -> None:
    with Deployment(kafka, tmp_path, sources={"events": 1}, partitions=2) as shoals:
        # given true events, and at their end a ramp of events 50 minutes apart, sent in one moment: 100 days
        events = visits(1_000)
        at = orjson.loads(events[499])["at"]
        ramp = [orjson.dumps({"who": "p1", "at": at + 3000 * n, "x": 1}) for n in range(1, 2881)]
        shoals.oracle.run([*events[:500], ramp[0], *events[500:]])
        worker = shoals.worker()
        worker.wait_owns(3)
        shoals.produce(events[:500])
        kafka.produce(shoals.topic(), [Record(b"", value, at * 1000, 0) for value in ramp])
        # and a clock record and a beat of 2096
        shoals.end([0], FAR)
        shoals.end([0], FAR, header=BEAT_HEADER)
        wait_until(lambda: len(shoals.dead_letters()) >= len(ramp) + 1, 90, lambda: worker.text[-2000:], every=1)
        # then nothing is released that is more than an hour ahead, and what is further ahead is a dead letter
        last = max(orjson.loads(release)["at"] for release in shoals.releases())
        assert last <= iso((at + HOUR) * 10**6)
        assert Counter(letter["reason"] for letter in shoals.dead_letters()) == {"too-far-ahead": len(ramp) + 1}
        # and true events that come later are released as in a file without what was refused
        shoals.produce(events[500:], end=True)
        shoals.expect_equality()
        assert times_ahead(worker) == []
        # and an event that is ahead of the broker's time is named
        offset = kafka.length(shoals.topic())
        early = orjson.dumps({"who": "p1", "at": int(time.time()) + 49 * 60, "x": 1})
        kafka.produce(shoals.topic(), [Record(b"", early, None, 0)])
        wait_until(lambda: times_ahead(worker) != [], 60, lambda: worker.text[-2000:])
        (said,) = times_ahead(worker)
        assert said["metric"] == "m0"
        assert f"topic {shoals.topic()}, partition 0, offset {offset}; set its producer's clock right" in said["reason"]
        shoals.stop_all()


def times_ahead(worker: Worker) -> list[dict[str, str]]:
    """What a worker's log says of event time that is ahead."""
    lines = (line for line in worker.text.splitlines() if '"event_time_ahead"' in line)
    return [json.loads(line) for line in lines]
