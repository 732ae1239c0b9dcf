"""Reads what a takeover needs from Kafka: changelogs, bounds, the last record of an output, the group's offsets.

The old owners are fenced already, so a changelog is read exactly up to the end. A changelog whose end is
not stable or whose beginning is gone is a fail-stop, if a second look finds the same (`takeover.py`). If brokers go
away meanwhile they are waited for, and reading starts over.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import OffsetOutOfRangeError

from shoal.agents.kafka import fast_records
from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.kafka.transactions import stop_quietly
from shoal.models.errors import FailStop
from shoal.stream.machine import Record

STABLE_LIMIT = 10.0  # seconds for a fenced transaction's markers to show; they are there at once as a rule
# Bytes of a partition in one fetch. What is fetched stands in memory some four times, as bytes of the socket, of an
# answer, of partitions and of records; two partitions at once keep two processors busy.
FETCH_BYTES = 2 << 20
Take = Callable[[bytes | None, bytes | None, int], None]
FIRST_LOOK_BACK = 2  # a commit marker follows the last record of a transaction


class Reader:
    """Two consumers without a group: one sees what is committed, the other all that is in the log."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._committed = self._consumer("restore", "read_committed")
        self._all = self._consumer("bounds", "read_uncommitted")

    def _consumer(self, name: str, isolation: str) -> AIOKafkaConsumer:
        s = self._settings
        return AIOKafkaConsumer(
            **s.connect(name),
            isolation_level=isolation,
            enable_auto_commit=False,
            auto_offset_reset="none",
            max_partition_fetch_bytes=FETCH_BYTES,
            fetch_max_bytes=2 * FETCH_BYTES,
            fetch_max_wait_ms=50,
            **fast_records.consumer_arguments(),
        )

    async def __aenter__(self) -> Self:
        await asyncio.gather(self._committed.start(), self._all.start())
        return self

    async def __aexit__(self, *exception: object) -> None:
        await asyncio.gather(stop_quietly(self._committed.stop), stop_quietly(self._all.stop))

    async def bounds(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
        """First offset and high watermark of each partition."""
        wanted = list(partitions)
        if not wanted:
            return {}
        first, last = await asyncio.gather(self._all.beginning_offsets(wanted), self._all.end_offsets(wanted))
        return {tp: (first[tp], last[tp]) for tp in wanted}

    async def stable_bounds(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
        """The same for partitions that nobody may write to now; waits until no transaction is open in them."""
        wanted = list(partitions)
        deadline = time.monotonic() + STABLE_LIMIT
        while True:
            ends = await self.bounds(wanted)
            moving = await self._open(ends)
            if not moving:
                return ends
            if time.monotonic() > deadline:
                names = ", ".join(f"{tp.topic}[{tp.partition}]" for tp in moving)
                raise FailStop(f"{names}: a transaction of an unknown producer is open; only shoal may write there")
            await asyncio.sleep(0.05)

    async def committed_bounds(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
        """First offset of each partition, and up to where everything is committed or aborted."""
        wanted = list(partitions)
        first, last = await asyncio.gather(self._all.beginning_offsets(wanted), self._committed.end_offsets(wanted))
        return {tp: (first[tp], last[tp]) for tp in wanted}

    async def with_open_transactions(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Those of the partitions in which somebody's transaction has no end."""
        return await self._open(await self.bounds(partitions))

    async def _open(self, bounds: dict[TopicPartition, tuple[int, int]]) -> list[TopicPartition]:
        stable = await self._committed.end_offsets(list(bounds)) if bounds else {}
        return [tp for tp, (_, end) in bounds.items() if stable[tp] != end]

    async def load(self, bounds: dict[TopicPartition, tuple[int, int]], take: Mapping[TopicPartition, Take]) -> None:
        """Give each partition's records to its function: key, value and offset.

        Functions run in threads: those of several partitions beside one another, and beside the next fetch, as far as
        they leave Python's lock to others. One partition's function is never called twice at a time.
        """
        todo = {tp for tp, (first, end) in bounds.items() if first < end}
        if not todo:
            return
        self._committed.assign(list(todo))
        for tp in todo:
            self._committed.seek(tp, bounds[tp][0])
        while todo:
            try:
                fetched: dict[TopicPartition, list[Any]] = await self._committed.getmany(*todo, timeout_ms=200)
            except OffsetOutOfRangeError as error:  # an owner before had the beginning deleted: look again
                raise TimeoutError("a changelog lost its beginning while it was read") from error
            await give_all((take[tp], records, bounds[tp][1]) for tp, records in fetched.items())
            for tp in list(todo):
                if await self._committed.position(tp) >= bounds[tp][1]:  # the position passes markers and holes too
                    todo.discard(tp)

    async def last_committed(self, tp: TopicPartition, bounds: tuple[int, int]) -> Record | None:
        """The last committed record of a partition whose end is stable."""
        first, end = bounds
        back = FIRST_LOOK_BACK
        while first < end:
            start = max(first, end - back)
            records = await self._between(tp, start, end)
            if records:
                return records[-1]
            if start == first:
                return None
            back *= 8
        return None

    async def first_value(self, tp: TopicPartition, bounds: tuple[int, int], key: bytes) -> bytes | None:
        """The value of the first committed record with this key, among those that one fetch brings."""
        first, end = bounds
        self._committed.assign([tp])
        self._committed.seek(tp, first)
        while await self._committed.position(tp) < end:
            if fetched := (await self._committed.getmany(tp, timeout_ms=200)).get(tp):
                return next((record.value for record in fetched if record.key == key), None)
        return None

    async def last_values(
        self, tp: TopicPartition, bounds: tuple[int, int], keys: frozenset[bytes]
    ) -> dict[bytes, bytes | None]:
        """Last committed value of each key, for keys that have one; `bounds` end where nothing is open."""
        first, end = bounds
        back = FIRST_LOOK_BACK
        while True:
            start = max(first, end - back)
            found: dict[bytes, bytes | None] = {}
            for record in await self._between(tp, start, end):
                if record.key in keys:
                    found[record.key] = record.value
            if found.keys() == keys or start == first:
                return found
            back *= 8

    async def oldest_age_ms(self, tp: TopicPartition) -> int | None:
        """Age of the first record by its own timestamp; None if the partition is empty."""
        first, end = (await self.bounds([tp]))[tp]
        self._all.assign([tp])
        self._all.seek(tp, first)
        while await self._all.position(tp) < end:
            for records in (await self._all.getmany(tp, timeout_ms=200, max_records=1)).values():
                return int(time.time() * 1000) - int(records[0].timestamp)
        return None

    async def _between(self, tp: TopicPartition, start: int, end: int) -> list[Record]:
        """The committed records between two offsets."""
        if start >= end:
            return []
        self._committed.assign([tp])
        self._committed.seek(tp, start)
        records: list[Record] = []
        while await self._committed.position(tp) < end:
            fetched = await self._committed.getmany(tp, timeout_ms=200)
            records += [record for record in fetched.get(tp, ()) if record.offset < end]
        return records


def _give(take: Take, records: list[Any], end: int) -> None:
    """Give records up to the end: what came after it is another owner's, and other bounds do not know of it."""
    for record in records:
        if record.offset >= end:
            return
        take(record.key, record.value, record.offset)


async def give_all(given: Iterable[tuple[Take, list[Any], int]]) -> None:
    """Give records up to an end to each function, in a thread of its own.

    If one of them fails, its exception comes when the last one has ended: none goes on behind it.
    """
    calls = (asyncio.to_thread(_give, *one) for one in given)
    for error in await asyncio.gather(*calls, return_exceptions=True):
        if error is not None:
            raise error


async def group_offsets(settings: KafkaSettings, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
    """What the app's group has committed for these partitions, asked without joining it; None: nothing."""
    wanted = list(tps)
    consumer = AIOKafkaConsumer(group_id=settings.app, enable_auto_commit=False, **settings.connect("group"))
    await consumer.start()
    try:
        consumer.assign(wanted)
        return {tp: await consumer.committed(tp) for tp in wanted}
    finally:
        await consumer.stop()
