"""Hosts one machine: gives it batches, takes its outboxes, and commits them one after the other.

Each partition has two tasks. One processes batches, in slices, so that the event loop stays responsive. The other
flushes, so that processing continues while a commit is in flight. The state is then ahead of what is committed. That is
sound only because the state is never used after a failure: if a transaction is given up, the partition drops its state,
and every other failure ends the worker.
"""

import asyncio
import contextlib
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable

from aiokafka.errors import ProducerFenced

from shoal.agents.kafka.fail_stop import ORDERLY, fail_stop
from shoal.agents.kafka.fast_records import memory_of
from shoal.agents.kafka.settings import RELEASE, KafkaSettings
from shoal.agents.kafka.transactions import TransactionGivenUp, Trimmer, Writer
from shoal.agents.kafka.transport import Batch
from shoal.agents.worker.inbox import Inbox
from shoal.stream.machine import Machine, Outbox, StagePartition

SLICE = 2_000, 16_000  # records that are processed before other tasks may run, least and most
SLICE_SECONDS = 0.004  # that a slice should take, within a factor of two; the twin takes 10 to 20 ms for the least
WORK_SECONDS = 0.01  # of a machine's own work before other tasks may run
UNFLUSHED = 2  # bytes that may be processed and not taken, as a multiple of the inbox's share
MOST_RESTS = 4  # longest pause between two urgent transactions, as a multiple of `settings.rest`
REST = 1.0, 4.0  # pause between two flushes, as a multiple of a flush: if the processor has time to spare, and if not
SPARE = 0.5  # share of busy time up to which the processor has time to spare
BUSY_OVER = 1.0  # seconds over which the share of busy time is averaged, for it differs much between transactions
FLUSHES = 9  # whose median duration counts, so that a single flush that was held up does not delay the next one


class Partition:
    """One machine, its producer, and their offsets."""

    def __init__(self, settings: KafkaSettings, partition: StagePartition, machine: Machine, writer: Writer) -> None:
        self.settings, self.partition, self.machine, self.writer = settings, partition, machine, writer
        self.trimmer = Trimmer(writer, hides_presence=settings.hides_presence)
        self.position = 0  # the offset after the last record that the machine was given
        self.committed = 0  # the offset after the last record that a transaction covers
        self.durable = False  # whether its changelog holds a state
        self.generation = 0  # the group's last generation in which this partition was known to be ours
        self.events = 0
        self.transactions = 0
        self.on_low: Callable[[], None] = lambda: None  # called when the inbox has room again
        self.on_lost: Callable[[str], None] = lambda reason: None  # called when it must be taken over anew
        self.on_committed: Callable[[Outbox, float], None] = lambda outbox, seconds: None
        self.lost = False
        self.inbox = Inbox()
        self.most = settings.max_unflushed  # records that may be processed and not taken
        self._slice = SLICE[0]
        self._left = 0  # offsets in the topic after the last batch, when that was fetched
        self._unflushed = 0  # bytes of messages that were processed and not taken
        self._arrived, self._changed, self._room = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._rests = Rests(time.monotonic(), time.process_time())
        self._closing = False
        self._tasks: list[asyncio.Task[None]] = []
        self._parting: asyncio.Task[None] | None = None

    def begin(self, position: int, *, durable: bool) -> None:
        """Use the restored and admitted machine from this offset on; `durable`: there is a state in Kafka."""
        self.position = self.committed = position
        self.durable = durable

    def run(self) -> None:
        """Process and flush until `drain` is called."""
        if not self._tasks and not self.lost:
            self._closing = False
            self._tasks = [asyncio.create_task(self._guard(loop)) for loop in (self._process, self._flush)]

    async def _guard(self, loop: Callable[[], Awaitable[object]]) -> None:
        try:
            await loop()
        except ORDERLY:
            raise
        except BaseException as error:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        """Lose the partition if a transaction was given up, or if the first one was fenced; else end the worker.

        If the first transaction is fenced, somebody came after our takeover: another owner, or an old request of our
        own that a broker had kept. The group knows which. If a later one is fenced, there is another owner, whom a new
        takeover would disturb.
        """
        is_first = isinstance(error, ProducerFenced) and not self.transactions
        if not is_first and not isinstance(error, TransactionGivenUp):
            fail_stop(error, f"{self.partition} at offset {self.position}")
        if not self.lost:
            self.lost = self._closing = True
            self.inbox.clear()
            self._wake()
            self._parting = asyncio.create_task(self.writer.give_up())
            self.on_lost(f"{self.partition}: fenced at its first transaction" if is_first else str(error))

    def _wake(self) -> None:
        for event in (self._arrived, self._changed, self._room):
            event.set()

    # -- records in

    @property
    def expected(self) -> int:
        """The offset at which the next batch must begin."""
        return self.inbox.last.end if self.inbox else self.position

    @property
    def processed(self) -> int:
        """The offset after the last record that is processed; what release has only queued is not."""
        if self.partition.stage == RELEASE and (offset := self.machine.next_offset) is not None:
            return offset
        return self.position

    @property
    def quiet(self) -> bool:
        """Whether all that arrived is processed."""
        return not self.inbox and not self.machine.pending()

    def accept(self, batch: Batch) -> None:
        self.inbox.add(batch)
        self._left = batch.left
        self._arrived.set()

    def idle(self, wall_ms: int) -> None:
        """Tell the machine that its partition has nothing more to read."""
        self.machine.idle(wall_ms)
        self.wake()

    def wake(self) -> None:
        """Look again whether there is work to do or a transaction to make; what the machine waits for may have come."""
        self._changed.set()
        self._arrived.set()

    async def _process(self) -> None:
        while not self._closing:
            if self.machine.pending():
                await self._work()
            elif self.inbox:
                await self._digest(self.inbox.first)
            else:
                self._arrived.clear()
                await self._arrived.wait()

    async def _digest(self, batch: Batch) -> None:
        """Process one batch in slices; the inbox holds it until its last slice."""
        records, first = batch.records, 0
        while first < len(records):
            part = records[first : first + self._slice]
            first += self._slice
            last = first >= len(records)
            end = batch.end if last else part[-1].offset + 1
            if last:
                self.inbox.take()
            began = time.perf_counter()
            self.machine.process(part, end)
            self._slice = next_slice(self._slice, time.perf_counter() - began)
            self.position = end
            if self.partition.stage == RELEASE:
                self._unflushed += memory_of(part)
            await self._work()  # before waiting for room: what is not worked on cannot be taken, so no room would come
            await self._breathe()
            if self._closing:
                break
        self.inbox.done()
        if self.inbox.low:
            self.on_low()

    async def _work(self) -> None:
        while self.machine.pending() and not self._closing:
            self.machine.work(after(WORK_SECONDS))
            await self._breathe()

    async def _breathe(self) -> None:
        """Let other tasks run, and wait while too much is processed and not taken."""
        self._changed.set()
        await asyncio.sleep(0)
        while self._has(self.most, UNFLUSHED * self.inbox.share) and not self._closing:
            self._room.clear()
            await self._room.wait()

    def _has(self, records: int, memory: int) -> bool:
        """Whether this much is processed and not taken: as many records or, if messages are large, as many bytes."""
        backlog = self.machine.backlog
        return backlog >= records or (0 < memory <= self._unflushed and backlog > 0)

    @property
    def _is_large(self) -> bool:
        """Whether the next transaction is large enough."""
        most = min(self.settings.max_records, self.most // 2)
        return self._has(most, self.inbox.share)

    @property
    def _is_far_behind(self) -> bool:
        """Whether so many records are left in the topic that they fill more than one transaction."""
        return self._left >= self.settings.max_records

    # -- transactions out

    async def _flush(self) -> None:
        earliest = 0.0
        while not self._closing:
            await self._changed.wait()
            await self._linger(earliest)
            began, is_urgent = time.monotonic(), self.machine.is_awaited
            if await self._commit_all():
                ended = time.monotonic()
                self._rests.flushed(ended - began, ended, time.process_time())
                if is_urgent:  # what nobody waited for, and is there only if events came, delays nothing
                    earliest = ended + self._pause

    async def _linger(self, earliest: float) -> None:
        """Wait until the next transaction is due or large enough; an urgent one is not due before `earliest`."""
        began = time.monotonic()
        while not self._closing and not self._is_large:
            now, due = time.monotonic(), self._due(began, earliest)
            if now >= due:
                return
            self._changed.clear()  # no change is missed, since a transaction follows in any case
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(due - now):
                    await self._changed.wait()

    def _due(self, began: float, earliest: float) -> float:
        """When to flush what has been gathered since `began`: soon where others wait for it, else later.

        A transaction for which nobody waits can gather for long. Only a successor misses it: it reads again what the
        transaction would have covered. Where presence is protected no time depends on how many events came.
        """
        if self._is_far_behind and not self.settings.hides_presence:
            return began + self.settings.patience
        if not self.machine.is_awaited:
            return began + self.settings.gather
        if self.quiet or self.settings.hides_presence:
            return earliest
        return max(earliest, began + self._rests.pressure * self.settings.rest)

    @property
    def _pause(self) -> float:
        """Time between two urgent transactions: longer under load, unless presence is protected."""
        rest = self.settings.rest
        return rest if self.settings.hides_presence else max(rest, min(self._rests.next, MOST_RESTS * rest))

    async def _commit_all(self) -> bool:
        """Commit what there is, until the next transaction would be small; return whether there was anything."""
        self._changed.clear()
        before = self.transactions
        while (outbox := self.machine.outbox()) is not None:
            self._unflushed = 0
            self._room.set()
            await self._commit(outbox)
            more = self.machine.has_complete or self._is_large
            if not self._closing and not more:
                break
        else:
            return self.transactions > before
        self._changed.set()  # there may be more: look again
        return True

    async def _commit(self, outbox: Outbox) -> None:
        began = time.monotonic()
        await self.writer.write(outbox)
        self.trimmer.committed(outbox)
        self.on_committed(outbox, time.monotonic() - began)
        self.committed, self.durable = outbox.next_offset, True
        self.events += outbox.events
        self.transactions += 1
        self._room.set()

    # -- the end

    async def drain(self) -> None:
        """Stop processing after the present slice, commit what is processed, and drop what is only queued."""
        self._closing = True
        self._wake()
        for task in self._tasks:
            await task
        self._tasks = []
        self.inbox.clear()
        if not self.lost:
            await self._guard(self._commit_all)

    async def close(self) -> None:
        await self.drain()
        await self.trimmer.stop()
        await self.writer.stop()


class Rests:
    """How long to gather records after a flush, given how long flushes take and how busy the processor is.

    Transactions cost processor time, here and on the brokers, and waiting for more records costs latency. So a worker
    with time to spare makes short transactions, and one without makes few. Slow brokers get fewer of them, too.
    """

    def __init__(self, now: float, worked: float) -> None:
        """`now`: in seconds, and so much of the processor's time was taken so far."""
        self.busy = 1.0  # share of the processor's time, of late; a worker begins with what came before it
        self._last, self._worked = now, worked
        self._flushes: deque[float] = deque(maxlen=FLUSHES)

    def flushed(self, seconds: float, now: float, worked: float) -> None:
        """Note a flush that took so long."""
        passed = max(now - self._last, 1e-6)
        self.busy += (1.0 - math.exp(-passed / BUSY_OVER)) * ((worked - self._worked) / passed - self.busy)
        self._last, self._worked = now, worked
        self._flushes.append(seconds)

    @property
    def pressure(self) -> float:
        """0 while the processor has time to spare, and 1 when it has none."""
        return min(1.0, max(0.0, (self.busy - SPARE) / (1.0 - SPARE)))

    @property
    def next(self) -> float:
        """Seconds to gather records before the next flush; at least one flush must have been noted."""
        least, most = REST
        typical = sorted(self._flushes)[len(self._flushes) // 2]
        return typical * (least + self.pressure * (most - least))


def next_slice(size: int, seconds: float) -> int:
    """How many records to process at once, after this many took this long.

    >>> [next_slice(4_000, seconds) for seconds in (0.001, 0.005, 0.01)]
    [8000, 4000, 2000]
    >>> next_slice(2_000, 1.0), next_slice(16_000, 0.0)
    (2000, 16000)
    """
    least, most = SLICE
    if seconds < SLICE_SECONDS / 2:
        return min(most, 2 * size)
    return max(least, size // 2) if seconds > 2 * SLICE_SECONDS else size


def after(seconds: float) -> Callable[[], bool]:
    """A function that tells whether this much time has passed since `after` was called."""
    until = time.perf_counter() + seconds
    return lambda: time.perf_counter() >= until
