"""Three brokers that ask for certificates, passwords and rights: workers have those that are documented, and no others.

What a single such broker is tested for (`tests/kafka/test_secured.py`) is tried on three here, and two workers live
through the same as in `cluster_stories.py`. Events come from a principal that may write them and nothing else.
"""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from shoal.agents.kafka.topics import verify_topics
from tests.kafka.test_secured import (
    guarded,
    test_a_worker_without_the_right_to_its_group_ends_and_names_it,
    test_the_documented_rights_are_enough_and_each_of_them_is_missed,
    test_what_keeps_a_client_from_the_brokers_has_a_name,
)
from tests.long.cluster_stories import METRICS, expect_no_accusation, kill_the_leader, restart_one_after_the_other
from tests.support.acls import LITERAL, TOPIC, WRITE, Acl
from tests.support.cluster import Stream
from tests.support.people import visits
from tests.support.secured import Entrance, Guarded, SecuredCluster, by_certificate, by_scram
from tests.support.workers import Worker, shoal

__all__ = [
    "guarded",
    "test_a_worker_without_the_right_to_its_group_ends_and_names_it",
    "test_the_documented_rights_are_enough_and_each_of_them_is_missed",
    "test_what_keeps_a_client_from_the_brokers_has_a_name",
]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    with SecuredCluster(tmp_path_factory.mktemp("kafka")) as cluster:
        yield cluster


def test_workers_with_passwords_go_on_when_a_leader_and_a_worker_are_killed(
    secured: SecuredCluster, tmp_path: Path
) -> None:
    with guard(secured, tmp_path, by_scram) as shoals:
        # given workers with every documented right, which make their topics, and events
        secured.grant(shoals.acls.values())
        stream, workers = begin(shoals, by_scram)
        # when the broker that leads most and a worker are killed, and others take their places
        workers[1].kill()
        shoals.worker("another")
        kill_the_leader(secured)
        # then all ends as it would have without
        end(shoals, stream, [workers[0], shoals.workers[-1]])


def test_workers_with_certificates_go_on_when_every_broker_is_restarted(
    secured: SecuredCluster, tmp_path: Path
) -> None:
    with guard(secured, tmp_path, by_certificate) as shoals:
        # given topics that somebody else has made, workers without Create, and events
        make_topics(shoals)
        secured.grant(acl for name, acl in shoals.acls.items() if name != "APP.* Create")
        stream, workers = begin(shoals, by_certificate)
        # when each broker is restarted, so that every partition changes its leader
        restart_one_after_the_other(secured)
        # then all ends as it would have without
        end(shoals, stream, workers)


def test_a_certificate_without_rights_is_told_which_are_missing(secured: SecuredCluster, tmp_path: Path) -> None:
    with guard(secured, tmp_path, by_certificate, "stranger") as shoals:
        secured.grant(shoals.acls.values())
        make_topics(shoals)
        for refused in (shoal("check", shoals.config), shoal("worker", shoals.config)):
            assert refused.returncode == 1
            assert f"Kafka denies what a worker needs: Read on topic {shoals.topic()}" in refused.stderr


def guard(secured: SecuredCluster, folder: Path, entrance: Entrance, user: str = "worker") -> Guarded:
    section = entrance(secured, user)
    return Guarded(secured, folder, *METRICS, sources={"events": 4}, partitions=4, replication=3, **section)


def make_topics(shoals: Guarded) -> None:
    """As an administrator, who may do everything."""
    administrator = shoals.settings({"brokers": shoals.kafka.bootstrap, "partitions": 4, "replication": 3})
    asyncio.run(verify_topics(administrator, [shoals.topic()]))


def begin(shoals: Guarded, entrance: Entrance) -> tuple[Stream, list[Worker]]:
    """Two workers at work, and events from one who may write them and nothing else."""
    events = visits(6_000)
    shoals.oracle.run(events)
    workers = [shoals.worker(), shoals.worker("static")]
    shoals.wait_owned(4, 4, limit=300)
    check = shoal("check", shoals.config)
    assert check.returncode == 0, check.stderr
    shoals.kafka.grant([Acl(TOPIC, shoals.topic(), LITERAL, WRITE, "producer")])
    producer = shoals.settings(entrance(shoals.kafka, "producer")).connect("producer")
    stream = Stream(shoals.kafka, shoals.topic(), events, 4, seconds=40, hours=6, kept=2_000, **producer)
    shoals.wait_releases(20)
    return stream, workers


def end(shoals: Guarded, stream: Stream, workers: Sequence[Worker]) -> None:
    """Byte for byte what `shoal run` makes, by these same processes, and nobody was accused."""
    stream.join()
    shoals.expect_equality(300)
    assert all(worker.alive for worker in workers)
    expect_no_accusation(shoals.workers)
    shoals.stop_all()
