"""Watches topics while they are written, so that a test can strike at a moment of the log."""

import asyncio
import threading
from types import TracebackType
from typing import NamedTuple, Self

from aiokafka import AIOKafkaConsumer, TopicPartition

from tests.support.kafka import Kafka


class Seen(NamedTuple):
    topic: str
    partition: int
    offset: int
    value: bytes | None


class Tail:
    """A read_committed consumer in a thread; `seen` grows as records become visible."""

    def __init__(self, kafka: Kafka, *topics: str) -> None:
        self.seen: list[Seen] = []
        self._bootstrap, self._topics = kafka.bootstrap, topics
        self._ready, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="tail")

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(20)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()

    async def _run(self) -> None:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self._bootstrap, isolation_level="read_committed", auto_offset_reset="earliest",
            enable_auto_commit=False, fetch_max_wait_ms=10,
        )  # fmt: skip
        await consumer.start()
        try:
            for topic in self._topics:
                await consumer._client.add_topic(topic)
            found = [TopicPartition(topic, p) for topic in self._topics for p in consumer.partitions_for_topic(topic)]
            consumer.assign(found)
            self._ready.set()
            while not self._stop.is_set():
                for tp, records in (await consumer.getmany(timeout_ms=50)).items():
                    self.seen += [Seen(tp.topic, tp.partition, record.offset, record.value) for record in records]
        finally:
            await consumer.stop()
