"""A worker that ends by itself, or is told to stop, leaves its group: nobody waits for the end of its session."""

from pathlib import Path

import pytest

from tests.support.deployment import Deployment
from tests.support.kafka import Kafka
from tests.support.people import visits
from tests.support.workers import Worker, shoal

METRICS = ({"name": "spend"}, {"name": "city", "group": "city"})


def stopped(worker: Worker, shoals: Deployment) -> int:
    worker.tell_to_stop()
    return worker.exit_status()


def ended_by_the_watch(worker: Worker, shoals: Deployment) -> int:
    assert shoal("budget", shoals.config, "--retire", "city").returncode == 0
    return worker.exit_status()


ENDS = {"told to stop": (stopped, 0), "ended by the watch of the ledger": (ended_by_the_watch, 1)}


@pytest.mark.parametrize("end", ENDS, ids=str)
def test_a_worker_that_ends_is_out_of_its_group_before_its_process_is_gone(
    kafka: Kafka, tmp_path: Path, end: str
) -> None:
    with Deployment(kafka, tmp_path, *METRICS, sources={"events": 2}, partitions=2) as shoals:
        worker = shoals.worker()
        worker.wait_owns(4)
        shoals.produce(visits(200))
        shoals.wait_releases(1)
        assert len(shoals.members()) == 1
        act, status = ENDS[end]
        assert act(worker, shoals) == status
        # then the broker knows at once: a session would last ten seconds more
        assert shoals.members() == []


@pytest.mark.parametrize("end", ENDS, ids=str)
def test_a_worker_with_a_name_of_its_own_keeps_its_place_for_its_next_start(
    kafka: Kafka, tmp_path: Path, end: str
) -> None:
    with Deployment(kafka, tmp_path, *METRICS, sources={"events": 2}, partitions=2) as shoals:
        worker = shoals.worker("first")
        worker.wait_owns(4)
        act, status = ENDS[end]
        assert act(worker, shoals) == status
        # unless its session has expired meanwhile, on a slow machine
        assert [name.partition("-")[0] for name in shoals.members()] in (["first"], [])
        assert not worker.said("left_without_goodbye")
