"""Hosts one machine: gives it batches, takes its outboxes, and commits them one after the other.

Each partition has two tasks: one processes, in slices, so that the event loop stays responsive; one flushes, so that
processing goes on while a commit is in flight. State is then ahead of what is committed. That is sound only because no
failure leaves it in use: a transaction that was given up costs the partition its state, and every other failure ends
the worker.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable

from aiokafka.errors import ProducerFenced

from shoal.agents.kafka.fail_stop import fail_stop
from shoal.agents.kafka.fast_records import memory_of
from shoal.agents.kafka.settings import RELEASE, KafkaSettings
from shoal.agents.kafka.transactions import TransactionGivenUp, Trimmer, Writer
from shoal.agents.kafka.transport import Batch
from shoal.agents.worker.inbox import Inbox
from shoal.stream.machine import Machine, Outbox, StagePartition

SLICE = 2_000  # records between two breaths of the event loop: some 10 to 20 ms
WORK_SECONDS = 0.01  # between two breaths, too
UNFLUSHED = 2  # times the share of what waits: what may be processed and not taken
REST = 1.0, 4.0  # times a flush's duration until the next begins: while the processor has time, and when it has none
SPARE = 0.5  # so busy, a processor has time to spare


class Partition:
    """One machine, its producer, and their offsets."""

    def __init__(self, settings: KafkaSettings, partition: StagePartition, machine: Machine, writer: Writer) -> None:
        self.settings, self.partition, self.machine, self.writer = settings, partition, machine, writer
        self.trimmer = Trimmer(writer)
        self.position = 0  # up to where the machine was given records
        self.committed = 0  # up to where a transaction covers them
        self.durable = False  # whether its changelog holds a state
        self.generation = 0  # of the group, the last in which this partition was known to be ours
        self.events = 0
        self.transactions = 0
        self.on_low: Callable[[], None] = lambda: None  # the inbox has room again
        self.on_lost: Callable[[str], None] = lambda reason: None  # it must be taken over anew
        self.on_committed: Callable[[Outbox, float], None] = lambda outbox, seconds: None
        self.lost = False
        self.inbox = Inbox()
        self.most = settings.max_unflushed  # records that may be processed and not taken
        self._left = 0  # offsets that came after what was fetched last
        self._unflushed = 0  # bytes of messages that were processed and are not taken
        self._arrived, self._changed, self._room = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._closing = False
        self._tasks: list[asyncio.Task[None]] = []
        self._parting: asyncio.Task[None] | None = None

    def begin(self, position: int, *, durable: bool) -> None:
        """Take the restored and admitted machine into use at this offset; `durable`: from a state in Kafka."""
        self.position = self.committed = position
        self.durable = durable

    def run(self) -> None:
        """Process and flush until `drain` is called."""
        if not self._tasks and not self.lost:
            self._closing = False
            self._tasks = [asyncio.create_task(self._guard(loop)) for loop in (self._process, self._flush)]

    async def _guard(self, loop: Callable[[], Awaitable[None]]) -> None:
        try:
            await loop()
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Lose the partition if its transaction was given up, or was fenced before any other; else end the worker.

        Fenced at the first transaction, a takeover was overtaken, by another owner or by an old request of our own that
        a broker had kept: the group knows. Later, there is another owner, who must not be disturbed again.
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
        """Look again whether there is work or a transaction to make: what the machine waits for may have come."""
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
        """Process one batch in slices; the queue loses it when its last record is in the state."""
        records, process = batch.records, self.machine.process
        for first in range(0, len(records), SLICE):
            part = records[first : first + SLICE]
            last = first + SLICE >= len(records)
            end = batch.end if last else part[-1].offset + 1
            if last:
                self.inbox.take()
            process(part, end)
            self.position = end
            if self.partition.stage == RELEASE:
                self._unflushed += memory_of(part)
            await self._work()  # first: what is not worked on cannot be taken, and would be waited for in vain
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
        """Let other tasks run, and wait while too much is not yet taken."""
        self._changed.set()
        await asyncio.sleep(0)
        while self._has(self.most, UNFLUSHED * self.inbox.share) and not self._closing:
            self._room.clear()
            await self._room.wait()

    def _has(self, records: int, memory: int) -> bool:
        """Whether so much can be taken: so many records or, where messages are few and large, so many bytes."""
        backlog = self.machine.backlog
        return backlog >= records or (0 < memory <= self._unflushed and backlog > 0)

    @property
    def _is_large(self) -> bool:
        """Whether a transaction need not gather more."""
        most = min(self.settings.max_records, self.most // 2)
        return self._has(most, self.inbox.share)

    @property
    def _is_far_behind(self) -> bool:
        """Whether there is more than one transaction to come."""
        return self._left >= self.settings.max_records

    # -- transactions out

    async def _flush(self) -> None:
        earliest, last, worked = 0.0, time.monotonic(), time.process_time()
        while not self._closing:
            await self._changed.wait()
            await self._linger(earliest)
            began = time.monotonic()
            await self._commit_all()
            ended, work = time.monotonic(), time.process_time()
            busy = (work - worked) / max(ended - last, 1e-6)
            earliest = ended + min(rest_after(ended - began, busy), self.settings.linger)
            last, worked = ended, work

    async def _linger(self, earliest: float) -> None:
        """Flush at once when input is drained and the last flush was cheap; gather records otherwise."""
        began = time.monotonic()
        while not self._closing and not self._is_large:
            now = time.monotonic()
            if self._is_far_behind:
                due = began + self.settings.patience
            else:
                due = earliest if self.quiet else began + self.settings.linger
            if now >= due:
                return
            self._changed.clear()  # nothing is lost: a transaction follows in any case
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(due - now):
                    await self._changed.wait()

    async def _commit_all(self) -> None:
        self._changed.clear()
        while (outbox := self.machine.outbox()) is not None:
            self._unflushed = 0
            self._room.set()
            await self._commit(outbox)
            more = self.machine.has_complete or self._is_large
            if not self._closing and not more:
                break
        else:
            return
        self._changed.set()  # there may be more: look again

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
        """Stop processing after the present slice, commit what is processed, forget what is only queued."""
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


def rest_after(seconds: float, busy: float) -> float:
    """How long to gather records after a flush of so many seconds, by the share of time that the processor was busy.

    Transactions cost processor time, here and on the brokers, and waiting for more costs latency: a worker with time to
    spare makes short ones, and one without makes few. Brokers that are slow have fewer of them, too.

    >>> [rest_after(0.01, busy) for busy in (0.0, 0.5, 0.75, 1.0, 1.6)]
    [0.01, 0.01, 0.025, 0.04, 0.04]
    """
    least, most = REST
    share = min(1.0, max(0.0, (busy - SPARE) / (1.0 - SPARE)))
    return seconds * (least + share * (most - least))


def after(seconds: float) -> Callable[[], bool]:
    """A function that tells whether this much time has passed since now."""
    until = time.perf_counter() + seconds
    return lambda: time.perf_counter() >= until
