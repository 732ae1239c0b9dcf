"""What operators do to a running app, at length: rights taken away, group offsets set. `make test-operators`."""

import asyncio
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from tests.kafka.test_secured import guarded, secured
from tests.support.deployment import Deployment
from tests.support.kafka import Kafka
from tests.support.people import visits
from tests.support.secured import Guarded
from tests.support.workers import Worker

__all__ = ["guarded", "secured"]  # fixtures

REVOKED = {
    "group Read": "Kafka denies Read on group {app}",
    "APP.* Write": "Kafka denies Read or Write on topic {app}.",
    "transactional id Write": "Kafka denies Write on transactional id {app}.",
}


@pytest.mark.parametrize(("right", "sentence"), REVOKED.items(), ids=REVOKED)
def test_a_right_that_is_taken_from_a_running_worker_is_named(guarded: Guarded, right: str, sentence: str) -> None:
    # given a worker at work, under TLS and with a password
    worker = guarded.worker()
    worker.wait_owns(4)
    guarded.send(0, 50)
    worker.wait(lambda: guarded.kafka.length(f"{guarded.app}.contributions") > 0)
    # when a right is taken away, then it ends with the right's name, and does not call it a bug
    guarded.kafka.revoke([guarded.acls[right]])
    _feed_until_it_ends(guarded, worker)
    assert worker.exit_status() == 1
    assert sentence.format(app=guarded.app) in worker.last_word
    assert "bug" not in worker.text


def _feed_until_it_ends(guarded: Guarded, worker: Worker) -> None:
    """Where it has nothing to write, it notices nothing."""
    for number in range(1, 60):
        if not worker.alive:
            return
        guarded.send(100 * number, 100 * number + 50)
        try:
            worker.process.wait(1.0)
        except subprocess.TimeoutExpired:  # it goes on
            continue


@pytest.fixture
def kafka() -> Iterator[Kafka]:
    with Kafka() as broker:
        yield broker


async def set_offsets(shoals: Deployment, *, to_end: bool) -> None:
    """As kafka-consumer-groups --reset-offsets does, for the topics that the audit log is made of."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=shoals.kafka.bootstrap, group_id=shoals.app, enable_auto_commit=False, client_id="operator"
    )
    await consumer.start()
    try:
        topics = (f"{shoals.app}.releases", f"{shoals.app}.activations")
        places = [TopicPartition(topic, partition) for topic in topics for partition in range(2)]
        consumer.assign(places)
        bounds = await (consumer.end_offsets(places) if to_end else consumer.beginning_offsets(places))
        await consumer.commit(bounds)
    finally:
        await consumer.stop()


def test_a_log_whose_group_was_set_past_it_comes_back_from_the_beginning(kafka: Kafka, tmp_path: Path) -> None:
    with Deployment(kafka, tmp_path, {"group": "city"}, sources={"events": 2}, partitions=2) as shoals:
        events = visits(3_000)
        shoals.oracle.run(events)
        # given releases that the log has not got yet, for somebody else holds it
        worker = shoals.worker()
        worker.wait_owns(4)
        shoals.produce(events[:500])
        shoals.wait_releases(5)
        with closing(sqlite3.connect(tmp_path / "shoal.db", isolation_level=None)) as greedy:
            greedy.execute("BEGIN IMMEDIATE")
            shoals.produce(events[500:1_500])
            shoals.wait_releases(20)
            worker.wait_says("audit_log_away")
            worker.kill()
        # when the group is set to the end, as if that were where the log is
        asyncio.run(wait_empty_and_set(shoals, to_end=True))
        second = shoals.worker()
        shoals.produce(events[1_500:], end=True)
        # then the log says that releases are missing, and waits
        second.wait(lambda: [line for line in second.said("alarm") if line["kind"] == "missing_release"])
        second.stop()
        # and what docs/guides/backup-and-restore.md says brings it back: all workers stopped, to the beginning, start
        asyncio.run(wait_empty_and_set(shoals, to_end=False))
        third = shoals.worker()
        shoals.expect_equality()
        assert not third.said("alarm")
        shoals.stop_all()


async def wait_empty_and_set(shoals: Deployment, *, to_end: bool) -> None:
    """Offsets can be set when the group has no member any more; a killed one counts for a session."""
    for _ in range(60):
        try:
            return await set_offsets(shoals, to_end=to_end)
        except Exception:  # the group still has a member
            await asyncio.sleep(1)
    raise AssertionError("the group is not empty")
