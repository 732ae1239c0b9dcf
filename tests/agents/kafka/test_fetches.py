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
                sent = note_fetches(consumer)
                await consumer.getmany(timeout_ms=int(SECONDS * 1000))
                # then fetches wait, and what comes elsewhere is read
                fetches = len(sent)
                await free.send_and_wait(topic, b"seen", partition=1)
                seen = await consumer.getone(second)
            held = await consumer.getone(first)
            return fetches, seen.value, held.value[:1]

    fetches, seen, held = run(asyncio.wait_for(story(), 120))
    assert fetches <= 2 * SECONDS / settings.fetch_wait
    assert (seen, held) == (b"seen", b"\0")


def test_a_partition_that_was_held_back_wakes_who_waits(kafka: Kafka) -> None:
    topic = kafka.create_topic(kafka.name("events"), 2)
    held, other = TopicPartition(topic, 0), TopicPartition(topic, 1)

    async def story() -> list[bytes]:
        free = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap)
        consumer: Any = AIOKafkaConsumer(
            bootstrap_servers=kafka.bootstrap, enable_auto_commit=False, fetch_max_wait_ms=600_000,
            request_timeout_ms=700_000, **fast_records.consumer_arguments({}),
        )  # fmt: skip
        async with free, consumer:
            # given a fetch of both partitions that waits
            consumer.assign([held, other])
            await consumer.seek_to_beginning()
            fetches = note_fetches(consumer)
            while fetches[-1:] != [{0, 1}]:
                for tp in (held, other):
                    await free.send_and_wait(topic, b"before", partition=tp.partition)
                while await consumer.getmany(timeout_ms=500):
                    pass
            # and a record that comes while its partition is held back, so that the next fetch is of the other alone
            active = {held, other}  # as Faust keeps it: changed in place
            reading = asyncio.create_task(consumer._fetcher.fetched_records(active, timeout=600))
            await asyncio.sleep(0)
            consumer.pause(held)
            active.discard(held)
            await free.send_and_wait(topic, b"seen", partition=0)
            while fetches[-1] != {1}:
                await asyncio.sleep(0.05)
            # when it is no longer held back
            consumer.resume(held)
            active.add(held)
            fast_records.look_again(consumer)
            # then its record is handed out, though that fetch still waits
            return [record.value for record in (await reading)[held]]

    assert run(asyncio.wait_for(story(), 120)) == [b"seen"]


def note_fetches(consumer: Any) -> list[set[int]]:
    """A list that gets the partitions of each fetch that is sent."""
    fetches: list[set[int]] = []
    process = consumer._fetcher._proc_fetch_request

    async def noted(assignment: Any, node: int, request: Any) -> Any:
        fetches.append({partition for _, parts in request._topics for partition, *_ in parts})
        return await process(assignment, node, request)

    consumer._fetcher._proc_fetch_request = noted
    return fetches
