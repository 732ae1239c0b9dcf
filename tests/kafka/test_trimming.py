"""Bound's changelog on a real broker: what nobody needs is deleted, and a takeover after it finds everything."""

import asyncio
import json
from functools import partial
from pathlib import Path

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.records_to_delete import RecordsToDelete

from shoal.stream.deltas.record import PREFIX
from shoal.stream.state_mark import MARK
from tests.support.backends import mostly
from tests.support.deployment import Deployment
from tests.support.kafka import Kafka
from tests.support.people import visits
from tests.support.workers import Worker, wait_until


def first_offset(kafka: Kafka, topic: str) -> int:
    """The first record that is left in partition 0, of whatever transaction."""
    return min(record.offset for record in kafka.read_committed(topic))


async def delete(kafka: Kafka, topic: str, before: int) -> None:
    client = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    await client.start()
    try:
        await client.delete_records({TopicPartition(topic, 0): RecordsToDelete(before_offset=before)})
    finally:
        await client.close()


def deploy(kafka: Kafka, folder: Path) -> Deployment:
    """Each bit of the events ends a tick: a transaction for which no release waits may stay open for ten seconds."""
    metric = {"group": "city", "every": "1m"}
    return Deployment(kafka, folder, metric, sources={"events": 1}, partitions=2, latency="100ms")


@pytest.mark.slow
@mostly("kernel")
def test_what_nobody_needs_is_deleted_and_takeovers_find_the_rest(kafka: Kafka, tmp_path: Path, backend: str) -> None:
    events = visits(4_000)
    with deploy(kafka, tmp_path) as shoals:
        changelog = f"{shoals.app}.bound.{shoals.topic()}.changelog"

        def feed(first: int, last: int, step: int) -> Worker:
            """A worker that takes in events bit by bit."""
            worker = shoals.worker()
            worker.wait_owns(3)
            for part in range(first, last, step):
                shoals.produce(events[part : part + step], end=part + step == len(events))
                wait_until(partial(is_read, kafka, changelog, part + step), 60, lambda: worker.text)
            return worker

        # given a worker that made many transactions, then the changelog's beginning is gone
        feeding = feed(0, 3_000, 20)
        wait_until(lambda: first_offset(kafka, changelog) > 0, 60, lambda: feeding.text)
        # when it is killed, and the next one, too, then releases are those of the file run
        feeding.kill()
        feed(3_000, 3_500, 100).kill()
        feed(3_500, 4_000, 250)
        shoals.oracle.run(events)
        shoals.expect_equality()
        shoals.stop_all()
        # and when more is deleted than that, the next worker refuses
        needed = [record for record in kafka.read_committed(changelog) if (record.key or b"").startswith(PREFIX)]
        asyncio.run(delete(kafka, changelog, needed[-1].offset + 1))
        refused = shoals.worker()
        assert refused.exit_status() == 1, refused.text[-3000:]
        assert "users would start again at count 0" in refused.last_word


def is_read(kafka: Kafka, changelog: str, events: int) -> bool:
    """Whether the last mark says that so many events are in the state."""
    marks = [record for record in kafka.read_committed(changelog) if record.key == MARK]
    return bool(marks) and int(json.loads(marks[-1].value or b"{}")["offset"]) >= events
