"""When a partition makes its transactions. What Kafka does with them is tested with brokers (`tests/kafka/`)."""

import asyncio
from dataclasses import replace
from typing import Any, NoReturn, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.agents.kafka.reachability import Reach
from shoal.agents.kafka.settings import BOUND, KafkaSettings
from shoal.agents.kafka.transactions import Writer
from shoal.agents.kafka.transport import Batch
from shoal.agents.worker import partition as worker_partition
from shoal.agents.worker.partition import FLUSHES, REST, Partition, Rests
from shoal.agents.worker.partition import SLICE as SLICES
from shoal.stream.file_run import Line
from shoal.stream.machine import Outbox, StagePartition
from tests.kafka.toy_machine import ToyBound
from tests.support.effort import examples

HOUR = 3600.0
SLICE = SLICES[0]
SETTINGS = KafkaSettings("localhost:1", "app", latency=HOUR, patience=HOUR)
PLACE = StagePartition(BOUND, "events", 0)


class Written(Writer):
    """Keeps what it is given to commit, and has no broker."""

    def __init__(self, settings: KafkaSettings) -> None:
        super().__init__(settings, PLACE, Reach(settings))
        self.covered: list[int] = []
        self.came = asyncio.Event()

    async def write(self, outbox: Outbox) -> None:
        self.covered.append(outbox.next_offset)
        self.came.set()


def hosted(settings: KafkaSettings, machine: type[ToyBound] = ToyBound) -> tuple[Partition, Written]:
    writer = Written(settings)
    partition = Partition(settings, PLACE, machine(PLACE, settings.contributions, 1), writer)
    partition.inbox.share = 1 << 30
    partition.begin(0, durable=False)
    partition.machine.start(0)
    return partition, writer


def batch(first: int, end: int, left: int = 0) -> Batch:
    return Batch(first, end, [Line(offset, b"1", timestamp=0) for offset in range(first, end)], left=left)


def test_what_is_processed_is_written_at_once_and_not_when_the_linger_ends() -> None:
    async def story() -> None:
        # given a partition that may gather for an hour
        partition, writer = hosted(SETTINGS)
        partition.run()
        # when so much comes that it is processed in several slices
        partition.accept(batch(0, 3 * SLICE))
        # then the end of the work wakes the transaction
        await asyncio.wait_for(_until(writer, 3 * SLICE), 60)
        assert partition.committed == 3 * SLICE
        await partition.close()

    asyncio.run(story())


def test_far_behind_a_transaction_is_made_when_it_is_large() -> None:
    async def story() -> None:
        # given a partition that is far behind, and nothing that ends its patience
        settings = replace(SETTINGS, max_records=2 * SLICE)
        partition, writer = hosted(settings)
        partition.run()
        # when less than a transaction came, it waits
        partition.accept(batch(0, SLICE, left=10 * SLICE))
        while partition.position < SLICE:
            await asyncio.sleep(0)
        assert not writer.covered
        # and when enough came, it is made
        partition.accept(batch(SLICE, 2 * SLICE, left=9 * SLICE))
        await asyncio.wait_for(_until(writer, 2 * SLICE), 60)
        assert writer.covered == [2 * SLICE]
        await partition.close()

    asyncio.run(story())


def test_a_partition_that_gathers_is_drained_without_waiting() -> None:
    async def story() -> None:
        # given a partition that gathers for an hour
        partition, writer = hosted(replace(SETTINGS, max_records=2 * SLICE))
        partition.run()
        partition.accept(batch(0, 10, left=10 * SLICE))
        while partition.position < 10:
            await asyncio.sleep(0)
        # when it is to go, then what it has is written first
        await asyncio.wait_for(partition.drain(), 60)
        assert writer.covered == [10]
        await partition.close()

    asyncio.run(story())


class Panic(BaseException):
    """As those of the kernel, no `Exception`."""


class Panicking(ToyBound):
    """Counts a batch in part, and fails."""

    def process(self, records: Any, end: int) -> None:
        super().process(records[:1], records[0].offset + 1)
        raise Panic


def test_a_panic_ends_the_worker_before_what_is_half_counted_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    ends: list[BaseException] = []

    def end(error: BaseException, _where: str) -> NoReturn:
        ends.append(error)
        raise asyncio.CancelledError  # nothing runs after the end of a process

    monkeypatch.setattr(worker_partition, "fail_stop", end)

    async def story() -> None:
        # given a partition that would write at once
        partition, writer = hosted(replace(SETTINGS, latency=0.0, patience=0.0), Panicking)
        # when its machine panics
        partition.run()
        partition.accept(batch(0, 10))
        await asyncio.wait(partition._tasks, return_when=asyncio.FIRST_COMPLETED)
        # then that is a failure as every other
        assert [type(error) for error in ends] == [Panic]
        assert not writer.covered

    asyncio.run(story())


class Clocks(ToyBound):
    """Never has what anybody waits for, until it is told."""

    is_awaited = False


def test_what_nobody_waits_for_is_written_when_the_patience_ends_or_something_else_is() -> None:
    async def story() -> None:
        # given a partition that may gather for an hour what nobody waits for
        partition, writer = hosted(SETTINGS, Clocks)
        partition.run()
        # when such comes, it is processed and not written
        partition.accept(batch(0, 10))
        while partition.position < 10:
            await asyncio.sleep(0)
        for _ in range(100):
            await asyncio.sleep(0)
        assert not writer.covered
        # and when something comes that somebody waits for, all of it is
        cast(Clocks, partition.machine).is_awaited = True
        partition.accept(batch(10, 20))
        await asyncio.wait_for(_until(writer, 20), 60)
        assert writer.covered == [20]
        await partition.close()

    asyncio.run(story())


async def _until(writer: Written, covered: int) -> None:
    while writer.covered[-1:] != [covered]:
        writer.came.clear()
        await writer.came.wait()


TIMES = st.floats(0, 100)


@examples(50)
@given(seconds=TIMES, busy=st.floats(0, 3), more=st.floats(0, 3))
def test_who_is_busier_rests_longer_between_transactions(seconds: float, busy: float, more: float) -> None:
    rest = rest_of([seconds] * FLUSHES, busy)
    assert REST[0] * seconds <= rest <= rest_of([seconds] * FLUSHES, busy + more) + 1e-9
    assert rest <= REST[1] * seconds + 1e-9


@examples(50)
@given(typical=TIMES, late=TIMES, busy=st.floats(0, 3), place=st.integers(0, FLUSHES - 1))
def test_a_flush_that_was_held_up_makes_nobody_rest_longer(
    typical: float, late: float, busy: float, place: int
) -> None:
    # given flushes of about the same duration, and one of any other
    flushes = [typical] * FLUSHES
    flushes[place] = late
    # then the rest after them is the same
    assert rest_of(flushes, busy) == rest_of([typical] * FLUSHES, busy)


def test_how_busy_a_worker_is_goes_by_what_it_did_of_late() -> None:
    # given a worker that was busy for long
    rests = Rests(0.0, 0.0)
    for number in range(1, 1000):
        rests.flushed(0.01, number / 100, number / 100)
    assert rests.pressure > 0.99
    # when it does nothing in the time between two transactions, it does not count as idle yet
    rests.flushed(0.01, 10.0, 9.99)
    assert rests.pressure > 0.9
    # and some seconds later it does
    rests.flushed(0.01, 15.0, 9.99)
    assert rests.pressure == 0.0


def rest_of(flushes: list[float], busy: float) -> float:
    """The rest after these flushes, if the processor was so busy all the time."""
    rests, now = Rests(0.0, 0.0), 0.0
    for seconds in flushes:
        now += 10.0
        rests.flushed(seconds, now, busy * now)
    return rests.next
