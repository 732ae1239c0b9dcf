"""Bad input is a dead letter with its reason and origin; the stream goes on, and nobody else's release changes."""

import json
from collections import Counter
from pathlib import Path

import orjson

from shoal.stream.partitioning import PARTITIONERS
from tests.support.backends import mostly
from tests.support.deployment import Deployment
from tests.support.kafka import Kafka, Record
from tests.support.people import START, visits

FAR = 4_000_000_000  # seconds: 2096
NOW = b'"at":%d' % START  # replaced by the time of its neighbour: none is late
LONG, TOO_LONG = "é" * 128, "é" * 128 + "x"  # 256 and 257 bytes


def event(who: object = "bad", at: object = START, x: object = 1, **more: object) -> bytes:
    return orjson.dumps({"who": who, "at": at, "x": x, "city": "A", **more})


def raw(x: str) -> bytes:
    return event().replace(b'"x":1', b'"x":' + x.encode())


def without(name: str) -> bytes:
    return orjson.dumps({key: value for key, value in orjson.loads(event()).items() if key != name})


BAD = [
    (b"", "not-json"),
    (None, "not-json"),
    (b"hello", "not-json"),
    (b'{"who":', "not-json"),
    (b"\x00\xff\xfe\x80", "not-json"),
    (raw("NaN"), "bad-value"),
    (raw("Infinity"), "bad-value"),
    (b"[1, 2]", "not-json-object"),
    (b"7", "not-json-object"),
    (without("who"), "no-user"),
    (without("x"), "no-value"),
    (without("at"), "no-time"),
    (without("city"), "no-group"),
    (event(who=""), "bad-user"),
    (event(who=TOO_LONG), "bad-user"),
    (event(who=1.5), "bad-user"),
    (event(who=None), "bad-user"),
    (event(x=None), "bad-value"),
    (event(x="7"), "bad-value"),
    (event(x=True), "bad-value"),
    (event(x=[1]), "bad-value"),
    (event(at="yesterday"), "bad-time"),
    (event(at="2001-02-30"), "bad-time"),
    (event().replace(NOW, b'"at":1e400'), "bad-time"),
    (event(at=None), "bad-time"),
    (event(at=FAR), "too-far-ahead"),
    (event(who="elsewhere"), "wrong-partition"),
]
GOOD = [event(who=LONG), raw("1e400"), raw("-1e400"), raw("1e-400"), event(x=-5), raw("1" + "0" * 30), event(who=17)]


def partition_of(value: bytes | None, reason: str | None) -> int:
    if value is None or reason not in (None, "wrong-partition"):
        return 0
    home = PARTITIONERS["murmur2"](str(json.loads(value)["who"]).encode(), 2)
    return home if reason is None else 1 - home


@mostly("kernel")
def test_bad_input_is_a_dead_letter_and_changes_no_release(kafka: Kafka, tmp_path: Path, backend: str) -> None:
    metric = {"name": "city", "group": "city"}
    with Deployment(kafka, tmp_path, metric, sources={"events": 2}, partitions=2) as shoals:
        # given good events, and bad ones among them, each in the partition of its user, or of somebody
        good = visits(600)
        stream: list[tuple[bytes | None, str | None]] = []
        others = [*BAD, *((value, None) for value in GOOD)]
        for number, value in enumerate(good[:300]):
            stream.append((value, None))
            if number % 5 == 0 and others:
                other, reason = others.pop()
                stream.append((other and other.replace(NOW, b'"at":%d' % orjson.loads(value)["at"]), reason))
        assert not others
        records = [Record(b"", value, None, partition_of(value, reason)) for value, reason in stream]
        accepted = [value for value, reason in stream if value is not None and reason is None]
        seen: Counter[int | None] = Counter()
        expected = set()
        for record, (_, reason) in zip(records, stream, strict=True):
            if reason is not None:
                expected.add((reason, "city", shoals.topic(), record.partition, seen[record.partition]))
            seen[record.partition] += 1
        shoals.oracle.run([*accepted, *good[300:]])
        # when a worker reads them all
        shoals.worker()
        kafka.produce(shoals.topic(), records)
        shoals.produce(good[300:], end=True)
        # then the releases are those of the good ones
        shoals.expect_equality()
        # and each bad one is a dead letter that says why, and where it came from
        letters = shoals.dead_letters()
        found = {
            tuple(letter[name] for name in ("reason", "metric", "topic", "partition", "offset")) for letter in letters
        }
        assert found == expected
        assert len(letters) == len(expected)
        shoals.stop_all()
