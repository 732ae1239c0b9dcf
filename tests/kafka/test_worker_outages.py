"""A broker or the audit log goes away under load and comes back; workers ride it out, and the log catches up."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.backends import mostly
from tests.support.deployment import Deployment
from tests.support.kafka import Kafka
from tests.support.people import visits
from tests.support.postgres import StoppablePostgres
from tests.support.tail import Tail
from tests.support.workers import shoal

METRICS = (
    {"name": "hourly"},
    {"name": "city", "group": "city", "every": "2h", "algorithm": "full", "epsilon": 400, "users": 20},
)


@pytest.fixture
def own_kafka() -> Iterator[Kafka]:
    """A broker that may be killed."""
    with Kafka() as broker:
        yield broker


@pytest.fixture
def own_postgres() -> Iterator[StoppablePostgres]:
    """A server that may be stopped."""
    with StoppablePostgres() as server:
        yield server


@mostly("kernel")
def test_workers_ride_out_a_broker_that_is_killed(own_kafka: Kafka, tmp_path: Path, backend: str) -> None:
    with Deployment(own_kafka, tmp_path, *METRICS, sources={"events": 4}, partitions=4) as shoals:
        # given two busy workers
        events = visits(30_000, step=10)
        shoals.oracle.run(events)
        first, second = shoals.worker(), shoals.worker("second")
        shoals.wait_owned(4, 4)
        with Tail(own_kafka, f"{shoals.app}.contributions") as tail:
            shoals.produce(events[:25_000])
            tail.wait_for(lambda _: True)
        # when the broker is killed in the middle of it, and one of them dies while it is away
        own_kafka.kill()
        first.wait_says("brokers_away")
        second.kill()
        third = shoals.worker("second")
        own_kafka.start()
        # then they go on by themselves, and nothing is missing
        shoals.produce(events[25_000:], end=True)
        shoals.expect_equality()
        assert first.alive
        assert third.alive
        shoals.stop_all()


def test_releases_flow_while_postgresql_is_down(kafka: Kafka, own_postgres: StoppablePostgres, tmp_path: Path) -> None:
    url = own_postgres.empty_database()
    with Deployment(kafka, tmp_path, *METRICS, sources={"events": 8}, partitions=8, url=url) as shoals:
        # given two workers under load, and a log that keeps up
        assert shoal("migrate", shoals.config).returncode == 0
        events = visits(8_000)
        shoals.oracle.run(events)
        first, second = shoals.worker(), shoals.worker()
        shoals.wait_owned(8, 8)
        feeding = shoals.produce_slowly(events, seconds=12)
        shoals.wait_releases(20)
        # when the database goes down, then releases flow on
        own_postgres.stop()
        second.wait_says("audit_log_away")
        shoals.wait_releases(len(shoals.releases()) + 20)
        # and through a takeover too
        first.stop()
        second.wait_owns(16)
        late = shoals.worker()
        feeding.join()
        shoals.wait_releases(len(shoals.oracle.releases()))
        # and when it is back, the log catches up, and a worker that waited for it joins
        own_postgres.start()
        shoals.expect_equality()
        assert len(second.said("audit_log_away")) == 1
        late.wait_owns(1)
        shoals.stop_all()


@pytest.mark.long
def test_releases_flow_while_sqlite_is_locked(kafka: Kafka, tmp_path: Path) -> None:
    with Deployment(kafka, tmp_path, *METRICS, sources={"events": 4}, partitions=4) as shoals:
        # given two workers under load
        events = visits(6_000)
        shoals.oracle.run(events)
        first, second = shoals.worker(), shoals.worker()
        shoals.wait_owned(4, 4)
        feeding = shoals.produce_slowly(events, seconds=10)
        shoals.wait_releases(20)
        # when another process does not let go of the log, and one of the workers dies
        with closing(sqlite3.connect(tmp_path / "shoal.db", isolation_level=None)) as greedy:
            greedy.execute("BEGIN IMMEDIATE")
            first.kill()
            late = shoals.worker()
            # then the other takes over, and releases flow on
            second.wait_owns(8)
            feeding.join()
            shoals.wait_releases(len(shoals.oracle.releases()))
            # and it leaves in time, though it cannot write what it has in hand; one that starts meanwhile waits
            second.stop()
            assert late.alive, late.text
        # and when the log is free, it catches up
        shoals.expect_equality()
        late.stop()
