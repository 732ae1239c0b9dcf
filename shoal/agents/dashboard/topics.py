"""What is published, from the topics of releases and activations: committed records, without a consumer group.

Whoever reads needs no more than to read these two topics. A group's offsets are not looked at: how far workers are,
they say themselves.
"""

import asyncio
import time
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError as ClientError

from shoal.agents.audit.replay.scan import partition_counts
from shoal.agents.dashboard.live import Hub
from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.kafka.transactions import stop_quietly
from shoal.models.errors import KafkaError

RETRY = 2.0  # seconds
POLL = 200  # milliseconds
LOOK = 5.0  # seconds between two questions whether brokers answer
PATIENCE = 10.0  # seconds for an answer
RECORDS = 2_000  # of one poll: what is taken in before anybody else is answered
FETCH_BYTES = 1 << 20


class Reader:
    """Reads both topics from their beginning on, across outages of the brokers; nothing is read twice."""

    def __init__(self, hub: Hub, settings: KafkaSettings) -> None:
        self._hub, self._settings = hub, settings
        self._next: dict[TopicPartition, int] = {}

    async def run(self) -> None:
        """Read for ever."""
        while True:
            try:
                await self._read()
            except KafkaError as error:
                self._away(str(error))
            except (ClientError, OSError, TimeoutError, asyncio.CancelledError) as error:
                # A client whose connection breaks cancels what waits for it: that is none of ours.
                task = asyncio.current_task()
                if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                    raise
                self._silent()
            await asyncio.sleep(RETRY)

    def _silent(self) -> None:
        self._away(f"no broker of {self._settings.brokers} answers")

    def _away(self, why: str) -> None:
        self._hub.set("kafka", {**self._hub.status["kafka"], "why": why})

    async def _read(self) -> None:
        wanted = (self._settings.releases, self._settings.activations)
        counts = await partition_counts(self._settings, wanted)
        consumer = AIOKafkaConsumer(
            **self._settings.connect("dashboard"), isolation_level="read_committed", enable_auto_commit=False,
            auto_offset_reset="earliest", max_partition_fetch_bytes=FETCH_BYTES,
        )  # fmt: skip
        await consumer.start()
        try:
            places = [TopicPartition(topic, number) for topic in wanted for number in range(counts[topic])]
            consumer.assign(places)
            for place in places:
                if place in self._next:
                    consumer.seek(place, self._next[place])
            await self._follow(consumer, places)
        except (ClientError, OSError, TimeoutError):
            self._silent()  # at once: to stop a client that has lost its broker takes its time
        finally:
            await stop_quietly(consumer.stop)

    async def _follow(self, consumer: Any, places: list[TopicPartition]) -> None:
        ends = await asyncio.wait_for(consumer.end_offsets(places), PATIENCE)
        looked = time.monotonic()
        if not self._hub.status["kafka"]["reading"]:
            self._hub.set("kafka", {"why": None, "reading": False})
        while True:
            batches = await consumer.getmany(timeout_ms=POLL, max_records=RECORDS)
            reading = self._hub.status["kafka"]["reading"]
            for place, records in batches.items():
                self._next[place] = records[-1].offset + 1
                self._hub.take((record.value for record in records), quiet=reading)
            if reading and all([await consumer.position(place) >= end for place, end in ends.items()]):
                self._hub.is_read()
            await asyncio.sleep(0)
            if time.monotonic() - looked > LOOK:
                await asyncio.wait_for(consumer.end_offsets(places), PATIENCE)
                looked = time.monotonic()
