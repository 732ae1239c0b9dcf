"""Workers that come and go share the work on a real broker: each gets its part of the events and of the releases."""

import asyncio
from pathlib import Path

from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from tests.support.deployment import Deployment
from tests.support.kafka import Kafka
from tests.support.people import visits
from tests.support.workers import Worker, tails, wait_until


def wait_shared(workers: list[Worker], each: int) -> None:
    """Until each works on so many partitions of the sources and as many of the contributions."""

    def shared() -> bool:
        assert all(worker.alive for worker in workers), tails(workers)
        return all(len(worker.places(stage)) == each for worker in workers for stage in ("bound", "release"))

    wait_until(shared, 90, lambda: tails(workers))


def test_every_worker_gets_its_part_of_events_and_releases(kafka: Kafka, tmp_path: Path) -> None:
    with Deployment(kafka, tmp_path, sources={"events": 4}, partitions=4) as shoals:
        events = visits(600)
        shoals.oracle.run(events)
        # given one worker, then two, then four: each has its part, those that were there first included
        workers = [shoals.worker("first")]
        wait_shared(workers, 4)
        shoals.produce(events[:200])
        workers.append(shoals.worker())
        wait_shared(workers, 2)
        workers += [shoals.worker(), shoals.worker()]
        wait_shared(workers, 1)
        # when one is killed and started again under its name, it has its part again, and nobody else anything new
        owned = [worker.said("owns") for worker in workers[1:]]
        workers[0].kill()
        workers[0] = shoals.worker("first")
        wait_shared(workers, 1)
        assert [worker.said("owns") for worker in workers[1:]] == owned
        shoals.produce(events[200:400])
        # and when two leave, the others share what they had
        workers.pop().stop()
        workers.pop().stop()
        wait_shared(workers, 2)
        shoals.produce(events[400:], end=True)
        # then it is all as one would have done it
        shoals.expect_equality()
        shoals.stop_all()


def test_a_worker_beside_those_of_another_version_says_what_to_do(kafka: Kafka, tmp_path: Path) -> None:
    async def refused() -> tuple[int, str]:
        async with AIOKafkaConsumer(
            shoals.topic(),
            bootstrap_servers=kafka.bootstrap,
            group_id=shoals.app,
            partition_assignment_strategy=[StickyPartitionAssignor],
        ) as older:
            while not older.assignment():
                await asyncio.sleep(0.05)
            worker = shoals.worker()
            return await asyncio.to_thread(worker.exit_status), worker.last_word

    with Deployment(kafka, tmp_path) as shoals:
        status, word = asyncio.run(refused())
        assert status == 1
        assert f"consumer group {shoals.app}: its workers share partitions by another rule" in word
        assert "stop all workers first" in word
