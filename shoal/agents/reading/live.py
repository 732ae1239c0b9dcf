"""What is published, from the topics of releases and activations: committed records, without a consumer group.

The page, `shoal tail` and `shoal.read(..., follow=True)` read it. Whoever reads needs no more than to read these
topics. A group's offsets are not looked at: how far workers are, they say themselves.
"""

import asyncio
import time
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError as ClientError

from shoal.agents.audit.replay.scan import partition_counts
from shoal.agents.kafka.client_errors import NotConnected, explain
from shoal.agents.kafka.reachability import BrokersNotReady
from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.kafka.transactions import stop_quietly
from shoal.agents.reading.last_records import LOOK, PATIENCE, POLL, RECORDS, Last, beginnings_of
from shoal.models.errors import KafkaError

RETRY = 2.0  # seconds
FETCH_BYTES = 1 << 20


class Audience(Protocol):
    """Who is told what was read. What its methods raise ends the reading, unless it is an error of Kafka's client."""

    def take(self, records: Iterable[bytes | None], *, quiet: bool = False) -> None:
        """Take in what was published; `quiet` while all of the past is read."""

    def is_read(self) -> None:
        """All that was there at first has been read; said once."""

    def away(self, why: str, *, passes: bool) -> None:
        """Nothing can be read now; `passes` where brokers are away or busy, and nothing is to be corrected."""

    def back(self) -> None:
        """Brokers answer, and reading goes on where it was."""


class Reader:
    """Reads topics from their beginning on, across outages of the brokers; nothing is told twice."""

    def __init__(
        self,
        audience: Audience,
        settings: KafkaSettings,
        topics: Sequence[str] = (),
        name: str = "dashboard",
        last: Last | None = None,
    ) -> None:
        """`last`: of what is there at first only so much of each partition; None: all of it."""
        self._audience, self._settings, self._name = audience, settings, name
        self._topics = tuple(topics) or (settings.releases, settings.activations)
        self._last = last
        self._next: dict[TopicPartition, int] = {}
        self._is_read = False

    async def run(self) -> None:
        """Read until the task is cancelled, or the audience raises; outages are waited for."""
        while True:
            try:
                await self._read()
            except KafkaError as error:
                passes = isinstance(error, BrokersNotReady) or (isinstance(error, NotConnected) and error.away)
                self._audience.away(str(error), passes=passes)
            except (ClientError, OSError, TimeoutError, asyncio.CancelledError) as error:
                # A client whose connection breaks cancels what waits for it: that is none of ours.
                task = asyncio.current_task()
                if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                    raise
                self._failed(error)
            await asyncio.sleep(RETRY)

    def _failed(self, error: BaseException) -> None:
        meaning = explain(error)
        why = f"no broker of {self._settings.brokers} answers" if meaning is None else meaning
        self._audience.away(why, passes=meaning is None)

    async def _read(self) -> None:
        counts = await partition_counts(self._settings, self._topics)
        consumer = AIOKafkaConsumer(
            **self._settings.connect(self._name), isolation_level="read_committed", enable_auto_commit=False,
            auto_offset_reset="earliest", max_partition_fetch_bytes=FETCH_BYTES,
        )  # fmt: skip
        await consumer.start()
        try:
            places = [TopicPartition(topic, number) for topic in self._topics for number in range(counts[topic])]
            consumer.assign(places)
            if self._last is not None and not self._next:
                self._next = await beginnings_of(consumer, places, self._last)
            for place in places:
                if place in self._next:
                    consumer.seek(place, self._next[place])
            await self._follow(consumer, places)
        except (ClientError, OSError, TimeoutError) as error:
            self._failed(error)  # at once: to stop a client that has lost its broker takes its time
        finally:
            await stop_quietly(consumer.stop)

    async def _follow(self, consumer: Any, places: list[TopicPartition]) -> None:
        ends = await asyncio.wait_for(consumer.end_offsets(places), PATIENCE)
        looked = time.monotonic()
        if self._is_read:
            self._audience.back()
        while True:
            batches = await consumer.getmany(timeout_ms=POLL, max_records=RECORDS)
            for place, records in batches.items():
                self._next[place] = records[-1].offset + 1
                self._audience.take((record.value for record in records), quiet=not self._is_read)
            if not self._is_read and all([await consumer.position(place) >= end for place, end in ends.items()]):
                self._is_read = True
                self._audience.is_read()
            await asyncio.sleep(0)
            if time.monotonic() - looked > LOOK:
                await asyncio.wait_for(consumer.end_offsets(places), PATIENCE)
                looked = time.monotonic()
