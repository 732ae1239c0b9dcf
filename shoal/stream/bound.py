"""Bound: events of one source partition in, capped and pseudonymous contributions out.

For each record `BoundPartition` decides, from the log alone, whether it is accepted (by its form only), what its
effective time is (`event_time.py`), and whether it counts (`mechanisms/*/accounts.py`). It keeps the accounts, the
partition's watermarks and the message numbers. Everything it does between two calls of `take` becomes one transaction.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from shoal.mechanisms.accounts import COUNTED, Accounts, Site
from shoal.models.errors import FailStop
from shoal.models.events import Refusal, parse
from shoal.models.losses import AcceptedLoss
from shoal.models.records import BEAT_HEADER, Message
from shoal.stream.contributions import Outgoing, Outlets, Waiting
from shoal.stream.deltas.restoring import Restoring
from shoal.stream.deltas.rolling import Rolling
from shoal.stream.deltas.writing import LogEnd
from shoal.stream.event_time import EventClock, beats_ahead, kept_of_beats, restore_clocks, time_in_headers
from shoal.stream.kernel.batches import Batches
from shoal.stream.kernel.known import unknown
from shoal.stream.kernel.reader import Kernel, kernel_of
from shoal.stream.machine import Record
from shoal.stream.source.beginnings import Beginnings, check_metrics
from shoal.stream.source.intake import Intake
from shoal.stream.source.letters import DeadLetters
from shoal.stream.state_mark import FORMAT, MARK, check_mark, lost, returned
from shoal.stream.topic import TopicPlan


@dataclass(slots=True)
class Bound:
    """The content of one transaction, which `take` hands out."""

    messages: list[tuple[int, Message]]  # contributions partition, message
    changelog: list[tuple[bytes, bytes | None]]
    dead_letters: list[bytes]
    next_offset: int
    events: int
    first_record: int  # the transaction's first record in the changelog
    needs: int  # the first record of the changelog that a successor needs after it
    cost: int  # the most bytes that the changelog could get, whatever the values


class BoundPartition:
    """The state of one source partition, and the content of its next transaction."""

    def __init__(
        self,
        plan: TopicPlan,
        partition: int,
        *,
        log_id: str = "",
        checks_partition: bool = True,
        durable: bool = True,
        kernel: Any = None,
    ) -> None:
        self.plan = plan
        self.partition = partition
        self.log_id = log_id
        self.next_offset: int | None = None
        self.counters: Counter[str] = Counter()  # functions of pattern: safe to show
        self._beginnings = Beginnings(plan)
        self._event_clocks = [EventClock(clock, in_file=not checks_partition) for clock in plan.clocks]
        self._kept: dict[str, int] = {}  # latest times of clocks that have no metric now
        self.beats_ahead = beats_ahead(plan.clocks)
        self._checks, self._durable = checks_partition, durable  # durable: a changelog is written
        self.kernel: Kernel | None = None
        self.unknown = unknown(plan, checks_partition=checks_partition)  # what the kernel lacks, by metric
        if kernel is not None and not self.unknown:
            self.kernel = kernel_of(kernel, plan, partition, checks_partition=checks_partition)
        self._outgoing, accounts = self._parts(self.kernel)
        if self.kernel is not None:
            self.kernel.begin(accounts)
        self._all_intakes = [Intake(metric, one) for metric, one in zip(plan.metrics, accounts, strict=True)]
        self._intakes = self._all_intakes  # of metrics that have begun
        self._log = LogEnd(Rolling([logged for one in accounts for logged in one.logged]))
        self._idle_wall: int | None = None
        self._ended = False
        self._letters = DeadLetters(plan, partition, self.counters)
        self._events = 0

    def _parts(self, kernel: Kernel | None) -> tuple[Outgoing, list[Accounts]]:
        """The outgoing messages and the accounts of each metric, both kept by the kernel if there is one."""
        waiting: Waiting = Outlets(self.plan) if kernel is None else kernel.queues
        accounts = []
        for metric, send in zip(self.plan.metrics, waiting.sends, strict=True):
            stores = None if kernel is None else kernel.stores_of(metric)
            site = Site(metric.label, send, self._is_home, self._durable, stores)
            accounts.append(metric.accounts(site))
        return Outgoing(self.plan, self.partition, waiting), accounts

    def _is_home(self, user: bytes) -> bool:
        """Whether a user belongs to this partition; in a file, which has no partitions, all do."""
        return not self._checks or self.plan.partition_of(user, self.plan.source_partitions) == self.partition

    # ---------------------------------------------------------------- state

    def start(self, offset: int) -> None:
        """Begin without state, at the partition's first offset."""
        self.next_offset = offset
        self._beginnings.begin_at(offset)
        self._find_begun()

    def lose(self, loss: AcceptedLoss) -> None:
        """Go on behind an accepted loss; called after a restoration."""
        self.next_offset = loss.place.next
        self._beginnings.lose(loss)
        self._outgoing.turn = self._beginnings.losses.turn
        self._find_begun()

    def restoring(self) -> Restoring:
        """The restoration, which takes the changelog record by record."""
        return Restoring(self._where(), self.accounts, self._check_mark, self._adopt)

    def restore(self, items: Mapping[bytes, bytes]) -> None:
        """Rebuild from a whole changelog at once: the last value of each key.

        Raises:
            FailStop: the state belongs to another log, names a metric that this configuration lacks, or lost accounts.
        """
        restoring = self.restoring()
        for key, value in items.items():
            restoring.take(key, value)
        restoring.done()

    def begin(self, mark: dict[str, Any]) -> None:
        """Begin where a mark says, without accounts: those of its metrics begin there, too."""
        self._adopt(mark, self._log)

    def _adopt(self, mark: dict[str, Any], log: LogEnd) -> None:
        self._log = log
        self.next_offset = mark["offset"]
        self._outgoing.numbers = mark["numbers"]
        self._beginnings.adopt(self._where(), mark)
        self._outgoing.turn = self._beginnings.losses.turn
        self._find_begun()
        self._kept = restore_clocks(self._event_clocks, mark)
        self._beginnings.note_reached(self._event_clocks, mark)
        self._check_accounts(mark)

    def _check_mark(self, mark: dict[str, Any]) -> None:
        check_mark(self._where(), mark, self.log_id)
        if len(mark["numbers"]) != self.plan.contributions_partitions:
            raise FailStop(
                f"{self._where()}: its state knows {len(mark['numbers'])} contributions partitions, there are "
                f"{self.plan.contributions_partitions}; the count is frozen for the life of an app"
            )
        check_metrics(self._where(), self.plan, mark)

    def _find_begun(self) -> None:
        begun = [self._beginnings.has_begun(intake.metric) for intake in self._all_intakes]
        self._intakes = [intake for intake, has_begun in zip(self._all_intakes, begun, strict=True) if has_begun]
        if self.kernel is not None:
            is_waiting = self._beginnings.losses.is_waiting
            self.kernel.activate([has_begun and not is_waiting for has_begun in begun])

    def _check_accounts(self, mark: dict[str, Any]) -> None:
        for intake in self._all_intakes:
            found, due = intake.accounts.sizes, mark["accounts"].get(intake.metric.label)
            if due is None and any(found):
                raise FailStop(returned(self._where(), intake.metric.label))
            if due is not None and found != due:
                raise FailStop(lost(self._where(), intake.metric.label, found, due))

    def count(self, metric: str, user: str = "", group: str | None = None) -> int | None:
        """The samples of a user that count against a metric's cap, in a group if it has any; None: no such account."""
        intakes = (intake for intake in self._intakes if intake.metric.name == metric)
        return next((intake.accounts.count(user.encode(), group) for intake in intakes), None)

    def watermark(self, clock: int) -> int | None:
        """The largest event time so far, of one clock."""
        return self._event_clocks[clock].latest

    @property
    def promises(self) -> list[int | None]:
        """The earliest effective time of later events, by clock; None of a clock that has had no event."""
        return [event_clock.promise for event_clock in self._event_clocks]

    @property
    def users(self) -> int:
        """The number of accounts: one for each metric, user and group, or for each metric, user and period."""
        return sum(intake.accounts.sizes[0] for intake in self._intakes)

    @property
    def accounts(self) -> list[Accounts]:
        """The accounts of each metric."""
        return [intake.accounts for intake in self._all_intakes]

    @property
    def read_by_kernel(self) -> int | None:
        """The number of records that the kernel has read; None if the partition does not use it."""
        return None if self.kernel is None else self.kernel.taken

    @property
    def backlog(self) -> int:
        """The number of records processed since the last `take`."""
        return self._events

    def _where(self) -> str:
        return f"topic {self.plan.topic}, partition {self.partition}"

    # ---------------------------------------------------------------- records in

    def process(self, records: Iterable[Record], end: int) -> None:
        """Process records in offset order; `end` is the offset after them."""
        batch = records if isinstance(records, list | Batches) else list(records)
        if self.kernel is None:
            self._read(batch)
        else:
            for part in batch.parts if isinstance(batch, Batches) else (batch,):
                self.kernel.read(part, self._event_clocks, self.counters, twin=self._read, refuse=self._refuse_one)
        self._events += len(batch)
        self._idle_wall = None
        self.next_offset = end

    def _read(self, records: Sequence[Record]) -> None:
        readers, losses = self._readers(), self._beginnings.losses
        for record in records:
            raw = record.value
            if raw is None:
                self._accept_clock(record)
                readers = self._readers()  # metrics may have begun
                continue
            if losses.is_waiting:
                continue
            event = parse(raw)
            if type(event) is Refusal:
                self._letters.refuse(self._intakes, event.reason, record)
                continue
            for clock, intakes in readers:
                effective = clock.effective(event, raw, record.timestamp)
                if type(effective) is Refusal:
                    self._letters.refuse(intakes, effective.reason, record)
                    continue
                for intake in intakes:
                    reason = intake.take_in(event, raw, clock.time, effective)
                    if reason is None:
                        continue
                    if reason in COUNTED:
                        self.counters[reason] += 1
                    else:
                        self._letters.refuse((intake,), reason, record)

    def _readers(self) -> list[tuple[EventClock, list[Intake]]]:
        """Each clock, with the intakes of the metrics that use it."""
        return [(p, [i for i in self._intakes if i.metric.clock == p.clock.index]) for p in self._event_clocks]

    def _accept_clock(self, record: Record) -> None:
        """Move the clocks by a record without a value, which is a dead letter if none of them takes it.

        Clocks of beats accept the same beats, so that all metrics' ticks have one order.
        """
        found = time_in_headers(record)
        if found is None:
            self._letters.refuse(self._intakes, "not-json", record)
            return
        header, time = found
        moves = [(self._move(clock, header, time, record.timestamp), intakes) for clock, intakes in self._readers()]
        refused = [(refusal.reason, intakes) for refusal, intakes in moves if refusal is not None]
        has_moved = len(refused) < len(moves)
        for reason, intakes in () if has_moved else refused:
            self._letters.refuse(intakes, reason, record)
        if header == BEAT_HEADER:
            beat = time if has_moved else None
            if self._beginnings.hear(beat, self._event_clocks, record.offset):
                self._find_begun()

    def _move(self, clock: EventClock, header: str, time: int, stamp: int) -> Refusal | None:
        if header != BEAT_HEADER:
            return clock.advance(time, stamp)
        return clock.beat(time, stamp, self.beats_ahead if clock.clock.beats else clock.clock.max_ahead)

    def _refuse_one(self, metric: int, reason: str, record: Record) -> None:
        self._letters.refuse((self._all_intakes[metric],), reason, record)

    def idle(self, wall: int) -> None:
        """Note that the source partition had no more records at wall time `wall` (milliseconds)."""
        if self.plan.heeds_idleness:
            self._idle_wall = wall

    def finish(self) -> None:
        """The input has ended: send what is kept for open slots."""
        self._ended = True

    # ---------------------------------------------------------------- a transaction out

    def take(self, wall: int) -> Bound | None:
        """Everything since the last call, or None; `wall` is written into the clock records."""
        if not (self._events or self._ended) and self._idle_wall is None:
            return None
        if self.next_offset is None:
            return None
        idle = self._idle_wall is not None
        for intake in self._intakes:
            intake.accounts.flush(self._event_clocks[intake.metric.clock].promise, idle=idle or self._ended)
        messages = self._outgoing.take(self.next_offset, wall, self.promises, idle=idle)
        changelog = self._changelog()
        bound = Bound(messages, changelog, self._letters.take(), self.next_offset, self._events, *self._log.span)
        self._idle_wall, self._ended, self._events = None, False, 0
        return bound

    def _changelog(self) -> list[tuple[bytes, bytes | None]]:
        for intake in self._intakes:
            intake.accounts.close(self._event_clocks[intake.metric.clock].promise)
        if self._durable:
            return self._log.write(self._mark())
        for logged in (logged for intake in self._intakes for logged in intake.accounts.logged):
            logged.changed()  # forget what changed, for no changelog is written
        return [(MARK, orjson.dumps(self._mark()))]

    def _mark(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "offset": self.next_offset,
            "log": self.log_id,
            "numbers": self._outgoing.numbers,
            "starts": self._beginnings.starts,
            "accounts": {intake.metric.label: intake.accounts.sizes for intake in self._all_intakes},
            "watermarks": self._kept | {one.clock.label: one.latest for one in self._event_clocks},
            **kept_of_beats(self._event_clocks),
            **self._beginnings.mark(),
        }
