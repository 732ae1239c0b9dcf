"""Thousands of damaged and hostile records: the worker goes on, and none pushes a release beyond what stamps allow.

`SHOAL_TEST_EFFORT` says how many: 2,000 in each topic in `make test-long`.
"""

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from shoal.models.records import BEAT_HEADER, CLOCK_HEADER
from shoal.models.times import iso
from shoal.stream.partitioning import PARTITIONERS
from tests.support.audit import replay
from tests.support.backends import mostly
from tests.support.deployment import Deployment
from tests.support.effort import tries
from tests.support.kafka import Kafka, Record
from tests.support.workers import wait_until

SECOND, HOUR, DAY = 10**6, 3600, 86_400
PARTITIONS = 2
# Who stamps the records of a topic, and by how many seconds a stamp may be ahead of the broker's time.
BY_BROKERS = {"retention.ms": "-1", "message.timestamp.type": "LogAppendTime"}, 0
BY_PRODUCERS = {"retention.ms": "-1", "message.timestamp.after.max.ms": str(HOUR * 1000)}, HOUR
TOPICS = {"stamped": BY_BROKERS, "dated": BY_PRODUCERS}
KINDS: tuple[dict[str, Any], ...] = (
    {"every": "1h", "group": "city"},
    {"statistic": "sum", "every": "10m", "max_gap": 6, "late": "drop"},
    {"statistic": "mean", "slot": "1h", "unit": "user", "max_slots": 100},
)
METRICS = [
    {"name": f"{topic}-{number}", "topic": topic} | kind for topic in TOPICS for number, kind in enumerate(KINDS)
]
NUMBERS = [
    b"1e",
    b"-",
    b"00",
    b"1e99999",
    b"-1e400",
    b"0." + b"3" * 3000,
    b"[",
    b'{"a":',
    b'"7"',
    b"null",
    b"NaN",
    b"9" * 400,
]
TIMES = [
    0,
    1e400,
    -1,
    "",
    "now",
    "2099-01-01",
    "9999-12-31T23:59:59Z",
    4_070_908_800,
    4_070_908_800_000,
    2**63,
    [],
    None,
]
HEADERS = [
    b"", b"\xff\xfe", b"garbage", b"9" * 10_000, b"2099-01-01T00:00:00Z", b"0001-01-01T00:00:00Z", b"4070908800",
]  # fmt: skip


def event(user: int, at: float, x: float = 1) -> bytes:
    return orjson.dumps({"who": f"p{user}", "at": at, "x": x, "city": "ABC"[user % 3]})


def home(user: int) -> int:
    return PARTITIONERS["murmur2"](f"p{user}".encode(), PARTITIONS)


def stream(draw: random.Random, count: int, now: int) -> Iterator[Record]:
    """As many good records as damaged ones; time goes from two days ago to now, and some of it is far ahead."""
    for number in range(count):
        user, at = draw.randrange(40), now - 2 * DAY + 2 * DAY * number // count
        yield Record(b"k", event(user, at, draw.randrange(100)), None, home(user))
        yield damaged(draw, event(user, at), user, now)


def damaged(draw: random.Random, raw: bytes, user: int, now: int) -> Record:
    """A record whose bytes, numbers, time, stamp, headers or key are not as they should be."""
    place, partition, ahead = draw.randrange(len(raw)), home(user), draw.choice([60, 1800, 3500, 3700, 7000, 10**9])
    stamp = (now + draw.choice([-3 * DAY, 0, 1800, HOUR - 60])) * 1000
    match draw.randrange(11):
        case 0:
            return Record(b"k", raw[:place] + bytes([draw.randrange(256)]) + raw[place + 1 :], None, partition)
        case 1:
            return Record(b"k", raw[:place], None, partition)
        case 2:
            return Record(b"k", draw.randbytes(draw.randrange(200)), None, partition)
        case 3:
            return Record(b"k", raw[:place] + raw[draw.randrange(len(raw)) :], None, partition)
        case 4:
            return Record(b"k", raw.replace(b'"x":1', b'"x":' + draw.choice(NUMBERS)), None, partition)
        case 5:
            return Record(b"k", draw.choice([b"[", b'{"a":']) * draw.choice([5, 300, 30_000]), None, partition)
        case 6:
            name = draw.choice([CLOCK_HEADER, BEAT_HEADER, "x", ""])
            time_of_header = draw.choice([*HEADERS, iso((now + ahead) * SECOND).encode()])
            value = draw.choice([None, raw])
            return Record(b"", value, stamp, partition, ((name, time_of_header),) * draw.choice([1, 3, 50]))
        case 7:
            return Record(draw.choice([b"", b"k" * 100_000]), None, stamp, partition)
        case 8:
            return Record(b"k", event(user, now + ahead), stamp, partition)
        case 9:
            return Record(b"k", orjson.dumps({"who": f"p{user}", "at": draw.choice(TIMES), "x": 1}), stamp, partition)
        case _:
            return Record(draw.randbytes(30), raw, stamp, 1 - partition)


def latest(shoals: Deployment) -> dict[str, str]:
    """The time of the last release of each topic's metrics."""
    found: dict[str, str] = {}
    for release in map(orjson.loads, shoals.releases()):
        topic = release["metric"].partition("-")[0]
        found[topic] = max(found.get(topic, ""), release["at"])
    return found


@mostly("kernel")
def test_no_damaged_record_ends_a_worker_or_pushes_a_release_beyond_the_stamps(
    kafka: Kafka, tmp_path: Path, backend: str
) -> None:
    with Deployment(kafka, tmp_path, *METRICS, sources={"none": 1}, partitions=2) as shoals:
        for topic, (settings, _) in TOPICS.items():
            kafka.create_topic(shoals.topic(topic), PARTITIONS, settings)
        # given good records with a damaged one after each, and at the end of each partition one that is no JSON
        draw, now = random.Random(5), int(time.time())
        worker = shoals.worker()
        worker.wait_owns(2 * PARTITIONS + 2)
        for topic in TOPICS:
            last = [Record(b"", b"the end", None, partition) for partition in range(PARTITIONS)]
            kafka.produce(shoals.topic(topic), [*stream(draw, tries(400), now), *last])
        # when a worker has read them all
        ends = {(shoals.topic(topic), partition) for topic in TOPICS for partition in range(PARTITIONS)}
        wait_until(lambda: ended(shoals) == ends, 120, lambda: worker.text[-3000:], every=1)
        # then it releases, and nothing later than a stamp may be, plus max_ahead
        due = iso((now - 3 * HOUR) * SECOND)
        wait_until(
            lambda: all(latest(shoals).get(topic, "") > due for topic in TOPICS), 120, lambda: worker.text[-3000:]
        )
        for topic, (_, stamp_ahead) in TOPICS.items():
            assert latest(shoals)[topic] <= iso((int(time.time()) + stamp_ahead + HOUR) * SECOND)
        # and it lives, has no bug to report, and what it published can be made again
        assert worker.alive
        shoals.stop_all()
        for word in ("bug", "Traceback", "fail_stop", "Error"):
            assert word not in worker.text, worker.text[-3000:]
        assert replay(shoals.config).ok


def ended(shoals: Deployment) -> set[tuple[str, int]]:
    """Partitions of which the last record is among the dead letters."""
    return {(one["topic"], one["partition"]) for one in shoals.dead_letters() if one["record"] == "the end"}
