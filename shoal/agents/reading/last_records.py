"""Where to begin so that the last records of each partition are read, and not all of its past.

Offsets count more than records: markers of transactions, records that were aborted, and those that nobody wants. So a
look back goes twice as far as the one before, until there are enough or the partition begins. What lies between two
looks is looked at once.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from aiokafka import TopicPartition

POLL = 200  # milliseconds
LOOK = 5.0  # seconds between two questions whether brokers answer
PATIENCE = 10.0  # seconds for an answer
RECORDS = 2_000  # of one poll
LEAST = 64  # offsets of the first look: a fetch brings as many at once


class Last(NamedTuple):
    """Which records are wanted of each partition: the last so many of a kind."""

    most: int
    is_wanted: Callable[[bytes | None], bool]


async def beginnings_of(consumer: Any, places: list[TopicPartition], last: Last) -> dict[TopicPartition, int]:
    """The offset in each partition from which on there are so many, or all that there are, up to its end now."""
    firsts = await asyncio.wait_for(consumer.beginning_offsets(places), PATIENCE)
    begins: dict[TopicPartition, int] = await asyncio.wait_for(consumer.end_offsets(places), PATIENCE)
    found, step = dict.fromkeys(places, 0), max(LEAST, 2 * last.most)
    while left := [place for place in places if found[place] < last.most and begins[place] > firsts[place]]:
        ends = {place: begins[place] for place in left}
        for place in left:
            begins[place] = max(firsts[place], ends[place] - step)
            consumer.seek(place, begins[place])
        await _count(consumer, ends, last, found)
        step *= 2
    return begins


async def _count(
    consumer: Any, ends: Mapping[TopicPartition, int], last: Last, found: dict[TopicPartition, int]
) -> None:
    """Read on to these ends, and count what is wanted."""
    looked = time.monotonic()
    while left := [place for place, end in ends.items() if await consumer.position(place) < end]:
        for place, records in (await consumer.getmany(*left, timeout_ms=POLL, max_records=RECORDS)).items():
            before = (record.value for record in records if record.offset < ends[place])
            found[place] += sum(map(last.is_wanted, before))
        if time.monotonic() - looked > LOOK:
            await asyncio.wait_for(consumer.end_offsets(left), PATIENCE)
            looked = time.monotonic()
