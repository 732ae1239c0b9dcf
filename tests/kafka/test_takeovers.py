"""Partitions move between workers, willingly or not; no release is lost, doubled or changed on the way."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from shoal.agents.kafka.settings import BOUND, KafkaSettings
from shoal.agents.kafka.topics import admin
from shoal.agents.misplaced import Place
from shoal.agents.open_transactions import OpenTransaction, open_transactions
from tests.support.backends import mostly
from tests.support.deployment import Deployment
from tests.support.kafka import Kafka
from tests.support.people import visits
from tests.support.workers import Worker, shoal, tails, wait_shared, wait_until

METRICS = (
    {"name": "hourly"},
    {"name": "city", "group": "city", "every": "2h", "algorithm": "full", "epsilon": 400, "users": 20},
)


@mostly("kernel")
@pytest.mark.parametrize(
    "instances",
    [pytest.param((None, None), id="dynamic", marks=pytest.mark.long), pytest.param(("one", "two"), id="static")],
)
def test_a_worker_frozen_in_the_midst_of_its_work_is_fenced(
    kafka: Kafka, tmp_path: Path, instances: tuple[str | None, str | None], backend: str
) -> None:
    with Deployment(kafka, tmp_path, *METRICS, sources={"events": 4}, partitions=4) as shoals:
        # given two workers, of which one stops dead within a transaction, for longer than its Kafka session lasts
        events = visits(40_000, step=5)
        shoals.oracle.run(events)
        workers = [shoals.worker(instance) for instance in instances]
        shoals.wait_owned(4, 4)
        zombie, heir = sorted(workers, key=lambda worker: -len(worker.partitions("bound")))
        sent = freeze_in_a_transaction(shoals, zombie, events[:-100])
        heir.wait_owns(8)
        shoals.produce(events[sent:], end=True)
        shoals.wait_releases(len(shoals.oracle.releases()))
        # when it wakes up, then it is fenced and ends with a line that says so, or it hears first that it is out,
        # and joins again
        said = len(zombie.said("owns"))
        zombie.thaw()
        wait_until(lambda: not zombie.alive or len(zombie.said("owns")) > said, 90, lambda: tails(workers))
        if not zombie.alive:
            assert zombie.exit_status() == 1
            assert "fenced; another worker owns it now" in zombie.last_word
            assert zombie.last_word.startswith("shoal: ")
        # and the partitions that it had went on without its last words
        shoals.expect_equality()
        shoals.stop_all()


def freeze_in_a_transaction(shoals: Deployment, worker: Worker, events: Sequence[bytes]) -> int:
    """Send events until the worker is frozen with a transaction of bound open; how many were sent."""
    settings = KafkaSettings(shoals.kafka.bootstrap, shoals.app)
    changelog = settings.changelog(BOUND, shoals.topic())
    places = [(changelog, number) for number in worker.partitions("bound")]
    for sent in range(2_000, len(events), 2_000):
        shoals.produce(events[sent - 2_000 : sent])
        for _ in range(20):
            worker.freeze()
            if asyncio.run(opened(settings, places)):
                time.sleep(1)  # that of which the end was sent is over by then
                if asyncio.run(opened(settings, places)):
                    return sent
            worker.thaw()
            time.sleep(0.02)
    raise AssertionError("the worker was never met in a transaction")


async def opened(settings: KafkaSettings, places: Sequence[Place]) -> list[OpenTransaction]:
    async with admin(settings) as client:
        return await open_transactions(client, places)


@mostly("python")
def test_a_worker_frozen_in_idleness_works_from_its_heirs_state(kafka: Kafka, tmp_path: Path, backend: str) -> None:
    with Deployment(kafka, tmp_path, *METRICS, sources={"events": 4}, partitions=4) as shoals:
        # given two workers that have done what there was, of whom one stops dead and is replaced by the other
        events = visits(2_000)
        sleeper, heir = shoals.worker(), shoals.worker()
        shoals.wait_owned(4, 4)
        shoals.produce(events[:1_000])
        shoals.wait_releases(10)
        time.sleep(1)
        sleeper.freeze()
        heir.wait_owns(8)
        shoals.produce(events[1_000:1_500])
        shoals.wait_releases(len(shoals.releases()) + 10)
        # when it wakes up: it has nothing to say that could be fenced, and joins again, or is fenced
        said = len(sleeper.said("owns"))
        sleeper.thaw()
        wait_until(lambda: not sleeper.alive or len(sleeper.said("owns")) > said, 90, lambda: tails(shoals.workers))
        shoals.oracle.run(events)
        shoals.produce(events[1_500:], end=True)
        # then it goes on from where the heir was, not from where it stood itself
        shoals.expect_equality()
        shoals.stop_all()


@mostly("kernel")
def test_partitions_move_before_their_first_event(kafka: Kafka, tmp_path: Path, backend: str) -> None:
    # An offset in the group says that a state must be there: workers that had nothing to do must not leave one.
    with Deployment(kafka, tmp_path, *METRICS, sources={"events": 4}, partitions=4) as shoals:
        # given a worker that owned everything and read nothing
        first = shoals.worker()
        first.wait_owns(8)
        # when others take over, and then the events come
        second = shoals.worker()
        second.wait_owns(1)
        first.stop()
        second.wait_owns(8)
        events = visits(500)
        shoals.oracle.run(events)
        shoals.produce(events, end=True)
        # then they are there from the first to the last
        shoals.expect_equality()
        second.stop()


@pytest.mark.long
@mostly("kernel")
def test_workers_come_and_go_over_eight_by_eight_partitions(kafka: Kafka, tmp_path: Path, backend: str) -> None:
    with Deployment(kafka, tmp_path, *METRICS, sources={"events": 8}, partitions=8) as shoals:
        # given events that keep coming, and one worker, then two, then three, who have an equal part of everything
        events = visits(8_000)
        shoals.oracle.run(events)
        first = shoals.worker()
        first.wait_owns(16)
        feeding = shoals.produce_slowly(events[:3_000], seconds=6, end=False)
        second, third = shoals.worker("second"), shoals.worker()
        wait_shared([first, second, third], {2, 3})
        shoals.wait_releases(20)
        feeding.join()
        # when two of them are told to stop, then each leaves in good time, while events come of which releases are due
        released = len(shoals.releases())
        feeding = shoals.produce_slowly(events[3_000:5_500], seconds=5, end=False)
        second.stop()
        shoals.wait_releases(released + 20)
        wait_shared([first, third], {4})
        feeding.join()
        feeding = shoals.produce_slowly(events[5_500:], seconds=5)
        first.stop()
        # and the last one has everything, and all is as it would have been
        third.wait_owns(16)
        feeding.join()
        shoals.expect_equality()
        # until a metric is retired under it: it ends by itself, and says why
        assert shoal("budget", shoals.config, "--retire", "city").returncode == 0
        assert third.exit_status() == 1
        assert 'metric "city" version 1 is retired in the ledger and still here' in third.last_word
