"""Reads topics from beginning to end for the audit: committed records, in order, a batch at a time.

Nothing is written and no group is joined, so workers may run meanwhile. Fails with KafkaError if brokers do not answer
or a topic is missing.
"""

import asyncio
from bisect import bisect_left
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Self

from aiokafka import AIOKafkaConsumer, TopicPartition

from shoal.agents.kafka import fast_records
from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.kafka.topics import admin
from shoal.agents.kafka.transactions import stop_quietly
from shoal.models.errors import KafkaError
from shoal.stream.machine import Record

FETCH_BYTES = 4 << 20  # of one partition at once: some 40,000 contributions

# aiokafka's fetcher ignores being stopped while it changes partitions, and `stop` would then wait for its time limit.
SETTLE = 0.05


class Scan:
    """A read_committed consumer that reads one partition at a time."""

    def __init__(self, settings: KafkaSettings, batches: Mapping[str, Any] | None = None) -> None:
        """`batches`: topics that are read in whole batches, each with the kernel's class for them."""
        self._batches = batches or {}
        self._consumer = AIOKafkaConsumer(
            **settings.connect("audit"),
            isolation_level="read_committed",
            enable_auto_commit=False,
            auto_offset_reset="none",
            max_partition_fetch_bytes=FETCH_BYTES,
            fetch_max_wait_ms=10,  # a partition that was just assigned waits for the fetch before it
            **fast_records.consumer_arguments(self._batches),
        )

    async def __aenter__(self) -> Self:
        await self._consumer.start()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await asyncio.sleep(SETTLE)
        await stop_quietly(self._consumer.stop)

    async def stable_ends(self, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offsets that a read_committed reader can reach now."""
        ends: dict[TopicPartition, int] = await self._consumer.end_offsets(list(tps))
        return ends

    async def first_offsets(self, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        firsts: dict[TopicPartition, int] = await self._consumer.beginning_offsets(list(tps))
        return firsts

    async def read(self, tp: TopicPartition, first: int, end: int) -> AsyncIterator[Sequence[Record]]:
        """Batches of the committed records between two offsets; waits for transactions that are open in between."""
        if first < end:
            self._consumer.assign([tp])
            self._consumer.seek(tp, first)
        while first < end and await self._consumer.position(tp) < end:
            fetched: dict[TopicPartition, list[Any]] = await self._consumer.getmany(tp, timeout_ms=200)
            for found in fetched.values():
                records, _ = fast_records.records_of(found, self._batches.get(tp.topic))
                yield before(records, end)


def before(records: Sequence[Record], offset: int) -> Sequence[Record]:
    """Those of records in order that come before an offset."""
    if not records or records[-1].offset < offset:
        return records
    return records[: bisect_left(records, offset, key=attrgetter("offset"))]


async def committed(settings: KafkaSettings, topic: str) -> AsyncIterator[Sequence[Record]]:
    """All committed records of a topic as of now, partition by partition."""
    counts = await partition_counts(settings, [topic])
    async with Scan(settings) as scan:
        tps = [TopicPartition(topic, p) for p in range(counts[topic])]
        ends = await scan.stable_ends(tps)
        firsts = await scan.first_offsets(tps)
        for tp in tps:
            async for records in scan.read(tp, firsts[tp], ends[tp]):
                yield records


async def partition_counts(settings: KafkaSettings, needed: Collection[str]) -> dict[str, int]:
    """Partitions of every topic that the brokers have.

    Raises:
        KafkaError: brokers do not answer, or one of the needed topics is missing.
    """
    async with admin(settings) as client:
        topics = await client.describe_topics()
    counts = {topic["topic"]: len(topic["partitions"]) for topic in topics if not topic["error_code"]}
    missing = sorted(set(needed) - counts.keys())
    if missing:
        raise KafkaError(
            f"{settings.brokers}: no topic {', '.join(missing)}, or no right to see it; workers and `shoal topics` "
            "make topics, kafka-acls grants Describe and Read"
        )
    return counts
