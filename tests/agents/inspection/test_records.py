"""`shoal check` looks at records of the source topics: their keys, their form, and transactions that hide them."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiokafka import AIOKafkaProducer
from typer.testing import CliRunner

from shoal.agents.cli.main import app
from shoal.agents.inspection.records import SAMPLE, Sampler
from shoal.models.framings import framing_of
from shoal.stream.file_run import Line
from shoal.stream.partitioning import PARTITIONERS
from tests.stream.simulation import config
from tests.support.deployment import Deployment
from tests.support.kafka import Kafka, Record
from tests.support.people import START, visits

PARTITIONS = 4
ADD_REMOVE = {
    "statistic": "count", "every": "1h", "relation": "add-remove", "start": "2001-09-09", "value": None, "range": None,
}  # fmt: skip


def checked(shoals: Deployment) -> tuple[list[dict[str, str]], list[str]]:
    """The lines of section `records`, and all warnings."""
    ran = CliRunner().invoke(app, ["check", str(shoals.config), "--json"])
    shown: dict[str, Any] = orjson.loads(ran.stdout)
    (found,) = (section["lines"] for section in shown["sections"] if section["name"] == "records")
    return found, shown["warnings"]


def spread(events: list[bytes]) -> list[Record]:
    """Without keys, in all partitions in turn."""
    return [Record(None, raw, None, number % PARTITIONS) for number, raw in enumerate(events)]


def misplaced_in(events: list[bytes]) -> Counter[int]:
    homes = [PARTITIONERS["murmur2"](json.loads(raw)["who"].encode(), PARTITIONS) for raw in events]
    return Counter(number % PARTITIONS for number, home in enumerate(homes) if home != number % PARTITIONS)


@pytest.mark.parametrize("metric", [{}, ADD_REMOVE], ids=["values", "add-remove"])
def test_a_check_says_that_records_are_keyed_by_something_else(kafka: Kafka, tmp_path: Path, metric: Any) -> None:
    given = {name: value for name, value in metric.items() if value is not None}
    with Deployment(kafka, tmp_path, given, sources={"events": PARTITIONS}) as shoals:
        if metric:
            for name in ("value", "range"):
                shoals.metrics[0].pop(name, None)
            shoals.write_config()
        shoals.make_topics()
        topic = shoals.topic()
        # given a topic without records
        (line,), warnings = checked(shoals)
        text = f"{topic}: 0 records looked at, 0 have a user, 0 are not in the user's partition"
        assert line == {"state": "ok", "text": text}
        # when records without a key come
        events = visits(4 * SAMPLE)
        kafka.produce(topic, spread(events))
        (line,), warnings = checked(shoals)
        assert line["state"] == "warning"
        share = 100 * misplaced_in(events)[0] // SAMPLE
        assert line["text"].startswith(f"{share} % of {topic}[0], ")
        assert " and a large part of 1 others are keyed by something else than who" in line["text"]
        assert line["text"].endswith(f"({misplaced_in(events).total():,} of them have no key)")
        assert line["remedy"].startswith("have producers key records by who with partitioner murmur2")
        assert f"{line['text']}; {line['remedy']}" in warnings


def test_a_check_names_an_open_transaction_and_framings(kafka: Kafka, tmp_path: Path) -> None:
    with Deployment(kafka, tmp_path, sources={"events": 1}) as shoals:
        shoals.make_topics()
        topic = shoals.topic()
        # given a framed record, and a transaction whose last record was sent two minutes ago
        kafka.produce(topic, [Record(b"p1", b"\0\0\0\0\7" + visits(1)[0], None, 0)])

        async def hang() -> tuple[list[dict[str, str]], list[str]]:
            async with AIOKafkaProducer(
                bootstrap_servers=kafka.bootstrap, transactional_id=kafka.name("hangs")
            ) as producer:
                await producer.begin_transaction()
                stamp = 1000 * (START - 120)
                await producer.send_and_wait(topic, b"{}", partition=0, timestamp_ms=stamp)
                said = await asyncio.to_thread(checked, shoals)
                await producer.abort_transaction()
                return said

        # then both are said, each with what to do
        (framed, opened), warnings = asyncio.run(hang())
        assert framed["text"].startswith(
            f"{topic}: 1 of 1 records are not JSON but JSON behind the framing of a schema"
        )
        assert framed["remedy"].startswith("take the framing off")
        assert opened["text"].startswith(f"{topic}[0]: a transaction of producer id ")
        assert f"--topic {topic} --partition 0 --start-offset 1." in opened["remedy"]
        assert len(warnings) >= 2


def test_a_sample_counts_records_that_have_a_user() -> None:
    cfg = config({"every": "10s"})
    sampler = Sampler(cfg, "events", PARTITIONS)
    home = PARTITIONERS["murmur2"](b"a", PARTITIONS)
    event, avro = b'{"u":"a","x":1,"t":1}', b"\0\0\0\0\1\2a"
    for raw in (event, None, b"{", b"[]", b'{"u":1.5}', b"{}", avro):
        sampler.look(home, Line(0, raw))
    sampler.look((home + 1) % PARTITIONS, Line(1, event))
    sample = sampler.sample
    assert (sample.seen, sample.broken, sample.keyless) == (7, 2, 1)
    assert (sample.records.total(), sample.misplaced.total()) == (2, 1)
    assert sample.framed == {framing_of(avro): 1}
    assert sample.wrong("events") == {}
