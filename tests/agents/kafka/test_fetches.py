"""A worker's fetches wait for much or for a while, whatever transactions others have open."""

import asyncio
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from shoal.agents.kafka import fast_records
from shoal.agents.kafka.settings import KafkaSettings
from tests.kafka.kafka_tools import run
from tests.support.kafka import Kafka

SECONDS = 3.0
HELD_BACK = 3 << 20  # bytes in an open transaction, more than a fetch waits for


def test_an_open_transaction_neither_floods_fetches_nor_holds_back_other_partitions(kafka: Kafka) -> None:
    topic = kafka.create_topic(kafka.name("events"), 2)
    settings = KafkaSettings(kafka.bootstrap, "app", latency=1.0)

    async def story() -> tuple[int, bytes, bytes]:
        # given more bytes in an open transaction of one partition than a fetch waits for
        hanging = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap, transactional_id=kafka.name("hangs"))
        free = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap)
        consumer: Any = AIOKafkaConsumer(
            bootstrap_servers=kafka.bootstrap, isolation_level="read_committed", enable_auto_commit=False,
            **settings.fetching(), **fast_records.consumer_arguments({}),
        )  # fmt: skip
        async with hanging, free, consumer:
            async with hanging.transaction():
                for _ in range(HELD_BACK >> 19):
                    await hanging.send_and_wait(topic, bytes(1 << 19), partition=0)
                first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
                consumer.assign([first, second])
                await consumer.seek_to_beginning()
                # when it is read for a while
                answers = count_answers(consumer)
                await consumer.getmany(timeout_ms=int(SECONDS * 1000))
                # then fetches wait, and what comes elsewhere is read
                fetches = answers[0]
                await free.send_and_wait(topic, b"seen", partition=1)
                seen = await consumer.getone(second)
            held = await consumer.getone(first)
            return fetches, seen.value, held.value[:1]

    fetches, seen, held = run(asyncio.wait_for(story(), 120))
    assert fetches <= 2 * SECONDS / settings.fetch_wait
    assert (seen, held) == (b"seen", b"\0")


def count_answers(consumer: Any) -> list[int]:
    """A number that grows with each answer to a fetch."""
    answers, process = [0], consumer._fetcher._proc_fetch_request

    async def counted(*arguments: Any) -> Any:
        answers[0] += 1
        return await process(*arguments)

    consumer._fetcher._proc_fetch_request = counted
    return answers
