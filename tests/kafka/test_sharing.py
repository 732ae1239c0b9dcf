"""Workers of two versions that share partitions by different rules refuse each other."""

import asyncio
from pathlib import Path

from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from tests.support.deployment import Deployment
from tests.support.kafka import Kafka


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
