"""Bound: one source partition's events in, capped and pseudonymous contributions out.

`BoundPartition` decides, record by record and from the log alone: whether the record is accepted (by form only), its
effective time (`event_time.py`), whether its unit's cap is reached, and which blocks close (`intake.py`,
`step_intake.py`). It keeps accounts, the partition's watermarks and the message numbers. Everything it does between two
calls of `take` becomes one transaction.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from shoal.models.config.reading import NEWEST
from shoal.models.errors import FailStop
from shoal.models.events import Refused, parse
from shoal.models.records import CLOCK_HEADER, Message, dead_letter_bytes
from shoal.models.times import time_of_text, valid
from shoal.stream.contributions import Outgoing
from shoal.stream.event_time import Progress
from shoal.stream.intake import Intake
from shoal.stream.intakes import intake_of
from shoal.stream.state_mark import FORMAT, MARK, REMEDY, check_mark, format_of, lacks
from shoal.stream.topic import TopicPlan

DROPPED = (
    50_000  # records of closed periods that one transaction drops; more where it writes more, else they would pile up
)


class Record(Protocol):
    """What is used of a Kafka record."""

    @property
    def key(self) -> bytes | None:
        """The record key; that of a contributions message names the source partition that sent it."""
        ...

    @property
    def value(self) -> bytes | None:
        """The event; None with a clock header."""
        ...

    @property
    def offset(self) -> int:
        """Its place in its partition."""
        ...

    @property
    def timestamp(self) -> int:
        """Milliseconds since the epoch; -1 for none."""
        ...

    @property
    def headers(self) -> Iterable[tuple[str, bytes]]:
        """Names and values."""
        ...


@dataclass(slots=True)
class Bound:
    """One transaction's worth: what `take` hands out."""

    messages: list[tuple[int, Message]]  # contributions partition, message
    changelog: list[tuple[bytes, bytes | None]]
    dead_letters: list[bytes]
    next_offset: int
    events: int


class BoundPartition:
    """The state of one source partition, and what it has not yet handed out."""

    def __init__(
        self,
        plan: TopicPlan,
        partition: int,
        *,
        log_id: str = "",
        checks_partition: bool = True,
        durable: bool = True,
    ) -> None:
        self.plan = plan
        self.partition = partition
        self.log_id = log_id
        self.next_offset: int | None = None
        self.counters: Counter[str] = Counter()  # functions of pattern: safe to show
        self.counted = False  # whether it was restored from a state that names its topic, as all do since format 2
        self._durable = durable  # False: nobody asks for the changelog
        self._starts: dict[str, int] = {}
        self._outgoing = Outgoing(plan, partition)
        self._progress = [Progress(clock) for clock in plan.clocks]
        outlets = self._outgoing.outlets
        self._intakes = [
            intake_of(
                plan, metric, partition, outlet, self.counters, self._progress[metric.clock], checks=checks_partition
            )
            for metric, outlet in zip(plan.metrics, outlets, strict=True)
        ]
        self._idle_wall: int | None = None
        self._ended = False
        self._dead: list[bytes] = []
        self._events = 0

    # ---------------------------------------------------------------- state

    def start(self, offset: int) -> None:
        """Begin without state, at the partition's first offset."""
        self.next_offset = offset
        self._starts = {metric.label: offset for metric in self.plan.metrics}

    def restore(self, items: Mapping[bytes, bytes]) -> None:
        """Rebuild from the changelog's last values.

        Raises:
            FailStop: the state belongs to another log, names a metric that this configuration lacks, or lost accounts.
        """
        raw_mark = items.get(MARK)
        if raw_mark is None:
            if items:
                raise FailStop(
                    f"{self._where()}: its changelog has accounts but no mark, which is written last; {REMEDY}"
                )
            return
        mark = orjson.loads(raw_mark)
        self._check_mark(mark)
        self.next_offset = mark["offset"]
        self._outgoing.numbers = mark["numbers"]
        self._starts = {metric.label: mark["starts"].get(metric.label, mark["offset"]) for metric in self.plan.metrics}
        for progress in self._progress:
            progress.latest = mark["watermarks"].get(progress.clock.label)
        self._restore_accounts(items)
        self._check_accounts(mark.get("accounts", {}))

    def _check_mark(self, mark: dict[str, Any]) -> None:
        check_mark(self._where(), mark, self.log_id)
        self.counted = format_of(mark) > 1
        if len(mark["numbers"]) != self.plan.contributions_partitions:
            raise FailStop(
                f"{self._where()}: its state knows {len(mark['numbers'])} contributions partitions, there are "
                f"{self.plan.contributions_partitions}; the count is frozen for the life of an app"
            )
        known = {metric.label for metric in self.plan.metrics} | self.plan.retired
        for label in mark["starts"]:
            if label not in known:
                raise FailStop(lacks(self._where(), f"metric {label}"))

    def _restore_accounts(self, items: Mapping[bytes, bytes]) -> None:
        homes: dict[bytes, dict[bytes, int]] = {}
        kept: dict[bytes, dict[bytes, bytes]] = {}
        for intake in self._intakes:
            homes[intake.tag], homes[intake.groups_tag] = intake.accounts, intake.groups
            kept[intake.samples_tag] = intake.samples
        from_bytes = int.from_bytes
        tag, home, samples = MARK, None, None
        for key, value in items.items():
            if not key.startswith(tag):  # keys with one tag follow one another
                tag = key[: key.index(b"\x00") + 1]
                home, samples = homes.get(tag), kept.get(tag)
            if home is not None:
                home[key[len(tag) :]] = from_bytes(value, "big")
            elif samples is not None:  # else: the mark, or of a retired metric
                samples[key[len(tag) :]] = value
        for intake in self._intakes:
            intake.restored()

    def _check_accounts(self, expected: dict[str, list[int]]) -> None:
        for intake in self._intakes:
            found, due = intake.sizes, expected.get(intake.metric.label)
            if due is not None and found != due:
                raise FailStop(
                    f"{self._where()}: its changelog has {found[0]} accounts of metric {intake.metric.label} where "
                    f"{due[0]} are due ({found[1:]} and {due[1:]} of users' groups and open slots); users would start "
                    f"again at count 0: {REMEDY}"
                )

    def count(self, metric: str, user: str = "", group: str | None = None) -> int | None:
        """Samples that a user has against a metric's cap now, in a group if need be; None: there is no such account."""
        intakes = (intake for intake in self._intakes if intake.metric.name == metric)
        return next((intake.count(user.encode(), group) for intake in intakes), None)

    def watermark(self, clock: int) -> int | None:
        """The largest event time so far, of one clock."""
        return self._progress[clock].latest

    @property
    def users(self) -> int:
        """Accounts held: (metric, user, group) triples; of what has a step (metric, user, period)."""
        return sum(intake.sizes[0] for intake in self._intakes)

    @property
    def backlog(self) -> int:
        """Records processed since the last `take`."""
        return self._events

    def _where(self) -> str:
        return f"topic {self.plan.topic}, partition {self.partition}"

    # ---------------------------------------------------------------- records in

    def process(self, records: Iterable[Record], end: int) -> None:
        """Take in records in offset order; `end` is the offset after them."""
        everyone = [(p, [i for i in self._intakes if i.metric.clock == p.clock.index]) for p in self._progress]
        oldest = min(progress.clock.reading for progress in self._progress)
        count = 0
        for record in records:
            count += 1
            raw = record.value
            if raw is None:
                self._accept_clock(record)
                continue
            readers = everyone
            event: dict[str, Any] | None
            try:
                event = parse(raw, oldest)
            except Exception as error:
                readers = [(p, intakes) for p, intakes in everyone if p.clock.reading != oldest]
                event = self._parse_newer(raw, record, _reason(error), oldest)
            if event is None:
                continue
            for progress, intakes in readers:
                try:
                    effective = progress.effective(event, raw, record.timestamp)
                except Refused as refused:
                    self._refuse(intakes, refused, record)
                    continue
                for intake in intakes:
                    try:
                        intake.take_in(event, raw, effective)
                    except Refused as refused:
                        self._refuse((intake,), refused, record)
        self._events += count
        self._idle_wall = None
        self.next_offset = end

    def _parse_newer(self, raw: bytes, record: Record, refused: Refused, oldest: int) -> dict[str, Any] | None:
        """The event of a record that the oldest reading refuses, where metrics of a newer one can read it."""
        self._refuse([one for one in self._intakes if one.metric.section.reading == oldest], refused, record)
        newer = [one for one in self._intakes if one.metric.section.reading != oldest]
        try:
            return parse(raw, NEWEST) if newer else None
        except Exception as error:
            self._refuse(newer, _reason(error), record)
            return None

    def _accept_clock(self, record: Record) -> None:
        """A record with header `shoal-clock` and null value moves this partition's clocks and is nothing else."""
        for name, value in record.headers or ():
            if name == CLOCK_HEADER:
                time = time_of_text(value.decode("ascii", "replace"))
                if time is not None and valid(time) is not None:
                    for progress in self._progress:
                        progress.advance(time)
                    return
        self._refuse(self._intakes, Refused("not-json"), record)

    def _refuse(self, intakes: Iterable[Intake], refused: Refused, record: Record) -> None:
        for intake in intakes:
            name = intake.metric.name
            self.counters[f"dead_letters.{name}.{refused.reason}"] += 1
            if self.plan.dead_letters:
                letter = dead_letter_bytes(
                    refused.reason, name, self.plan.topic, self.partition, record.offset, record.value
                )
                self._dead.append(letter)

    def idle(self, wall: int) -> None:
        """The source partition had nothing more at wall time `wall` (milliseconds)."""
        if self.plan.has_ticks:
            self._idle_wall = wall

    def finish(self) -> None:
        """The input has ended: what is kept for open slots goes out."""
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
            intake.flush(self._progress[intake.metric.clock].promise, idle=idle or self._ended)
        promises = [progress.promise for progress in self._progress]
        messages = self._outgoing.take(self.next_offset, wall, promises, idle=idle)
        bound = Bound(messages, self._changelog(), self._dead, self.next_offset, self._events)
        self._idle_wall, self._ended, self._dead, self._events = None, False, [], 0
        return bound

    def _changelog(self) -> list[tuple[bytes, bytes | None]]:
        entries: list[tuple[bytes, bytes | None]] = []
        for intake in self._intakes:
            if self._durable:
                entries += intake.take_changes()
            else:
                intake.forget_changes()
        entries += self._closed(max(DROPPED, 2 * len(entries)))
        entries.append((MARK, self._mark()))
        return entries

    def _closed(self, most: int) -> list[tuple[bytes, bytes | None]]:
        """Close what can count no event any more; so many tombstones of it at most, in this transaction."""
        tombstones: list[tuple[bytes, bytes | None]] = []
        for intake in self._intakes:
            intake.close(self._progress[intake.metric.clock].promise)
            if self._durable:
                tombstones += intake.drop(most - len(tombstones))
            else:
                intake.forget_closed()
        return tombstones

    def _mark(self) -> bytes:
        return orjson.dumps(
            {
                "format": FORMAT,
                "offset": self.next_offset,
                "log": self.log_id,
                "numbers": self._outgoing.numbers,
                "starts": self._starts,
                "accounts": {intake.metric.label: intake.sizes for intake in self._intakes},
                "watermarks": {progress.clock.label: progress.latest for progress in self._progress},
            }
        )


def _reason(error: Exception) -> Refused:
    """Bad input is never an exception here, whatever a parser makes of it."""
    return error if isinstance(error, Refused) else Refused("error")
