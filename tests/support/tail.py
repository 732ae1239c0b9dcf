"""Watches topics while they are written, so that a test can strike at a moment of the log."""

import asyncio
import threading
from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple, Self

from aiokafka import AIOKafkaConsumer, TopicPartition

from tests.support.kafka import Brokers
from tests.support.workers import PATIENCE, wait_until


class Seen(NamedTuple):
    topic: str
    partition: int
    offset: int
    value: bytes | None


class Tail:
    """A read_committed consumer in a thread; `seen` grows as records become visible."""

    def __init__(self, kafka: Brokers, *topics: str) -> None:
        self.seen: list[Seen] = []
        self._bootstrap, self._topics = kafka.bootstrap, topics
        self._looked = 0
        self._ready, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="tail")

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(20 * PATIENCE)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()

    def wait_for(self, moment: Callable[[Seen], bool], limit: float = 90.0, else_say: Callable[[], str] = str) -> None:
        """Return at the moment that a record shows, one that was not looked at before."""

        def look() -> bool:
            while self._looked < len(self.seen):
                self._looked += 1
                if moment(self.seen[self._looked - 1]):
                    return True
            return False

        wait_until(look, limit, else_say, every=0.001)

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
