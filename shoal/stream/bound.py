"""Bound: one source partition's events in, capped and pseudonymous contributions out.

`BoundPartition` decides, record by record and from the log alone: whether the record is accepted (by form only), its
effective time, whether its user's cap is reached, and which blocks close. It keeps one account per metric, user and
group, the partition's watermarks and the message numbers. Everything it does between two calls of `take` becomes one
transaction.

    W         = watermark before the record - lateness
    effective = max(event time, W);  event time < W is late: folded, or dropped under `late = "drop"`
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from shoal.mechanisms.statistic import COUNT_MASK
from shoal.models.errors import FailStop
from shoal.models.events import MISSING, Refused, parse, read_group, read_time, read_user
from shoal.models.records import CLOCK_HEADER, Message, dead_letter_bytes
from shoal.models.times import time_of_text, valid
from shoal.stream.outgoing import Outgoing
from shoal.stream.plan import Clock, Metric, TopicPlan

ACCOUNT_BYTES = 16
MARK = b"\x00mark"
TIME_CACHE = 100_000


class Record(Protocol):
    """What is used of a Kafka record."""

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
        self._checks_partition = checks_partition
        self._durable = durable  # False: nobody asks for the changelog
        self._accounts: list[dict[bytes, int]] = [{} for _ in plan.metrics]
        self._groups: list[dict[bytes, int]] = [{} for _ in plan.metrics]
        self._starts: dict[str, int] = {}
        self._watermarks: list[int | None] = [None] * len(plan.clocks)
        self._outgoing = Outgoing(plan, partition)
        self._idle_wall: int | None = None
        self._times: dict[str | int, int] = {}
        self._clear()

    def _clear(self) -> None:
        self._touched: list[dict[bytes, int]] = [{} for _ in self.plan.metrics]
        self._touched_groups: list[dict[bytes, int]] = [{} for _ in self.plan.metrics]
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
            FailStop: the state belongs to another log, or names a metric that this configuration lacks.
        """
        raw_mark = items.get(MARK)
        if raw_mark is None:
            if items:
                raise FailStop(f"{self._where()}: the changelog has accounts but no mark; it was tampered with")
            return
        mark = orjson.loads(raw_mark)
        self._check_mark(mark)
        self.next_offset = mark["offset"]
        self._outgoing.numbers = mark["numbers"]
        self._starts = {metric.label: mark["starts"].get(metric.label, mark["offset"]) for metric in self.plan.metrics}
        for index, clock in enumerate(self.plan.clocks):
            self._watermarks[index] = mark["watermarks"].get(clock.label)
        self._restore_accounts(items)

    def _check_mark(self, mark: dict[str, Any]) -> None:
        if mark["log"] != self.log_id:
            raise FailStop(
                f"{self._where()}: its state belongs to audit log {mark['log']}, the configured one is {self.log_id}; "
                "restore [audit] url, or start a new app with new metric versions"
            )
        if len(mark["numbers"]) != self.plan.contributions_partitions:
            raise FailStop(
                f"{self._where()}: its state knows {len(mark['numbers'])} contributions partitions, there are "
                f"{self.plan.contributions_partitions}; the count is frozen for the life of an app"
            )
        known = {metric.label for metric in self.plan.metrics} | self.plan.retired
        for label in mark["starts"]:
            if label not in known:
                raise FailStop(
                    f"{self._where()}: its state has metric {label}, which this configuration lacks; "
                    "run the configuration that has it, or retire the metric"
                )

    def _restore_accounts(self, items: Mapping[bytes, bytes]) -> None:
        homes: dict[bytes, dict[bytes, int]] = {}
        for index, metric in enumerate(self.plan.metrics):
            homes[b"a" + metric.label.encode()] = self._accounts[index]
            homes[b"g" + metric.label.encode()] = self._groups[index]
        from_bytes = int.from_bytes
        for key, value in items.items():
            tag, _, rest = key.partition(b"\x00")
            home = homes.get(tag)
            if home is not None:  # else: the mark, or of a retired metric
                home[rest] = from_bytes(value, "big")

    def lookup(self, key: bytes) -> bytes | None:
        """The present value of a changelog key of an account."""
        tag, _, rest = key.partition(b"\x00")
        for metric in self.plan.metrics:
            if tag == b"a" + metric.label.encode() and rest in self._accounts[metric.index]:
                return self._accounts[metric.index][rest].to_bytes(ACCOUNT_BYTES, "big")
        return None

    def watermark(self, clock: int) -> int | None:
        """The largest event time so far, of one clock."""
        return self._watermarks[clock]

    @property
    def users(self) -> int:
        """Accounts held: (metric, user, group) triples."""
        return sum(map(len, self._accounts))

    @property
    def backlog(self) -> int:
        """Records processed since the last `take`."""
        return self._events

    def _where(self) -> str:
        return f"topic {self.plan.topic}, partition {self.partition}"

    # ---------------------------------------------------------------- records in

    def process(self, records: Iterable[Record], end: int) -> None:
        """Take in records in offset order; `end` is the offset after them."""
        clocks, metrics = self.plan.clocks, self.plan.metrics
        time_of, take_in = self._effective_time, self._take_in
        count = 0
        for record in records:
            count += 1
            raw = record.value
            if raw is None:
                self._accept_clock(record)
                continue
            try:
                event = parse(raw)
            except Refused as refused:
                self._refuse_all(refused, record)
                continue
            except Exception:
                self._refuse_all(Refused("error"), record)
                continue
            times = [time_of(clock, event, raw, record) for clock in clocks]
            for metric in metrics:
                try:
                    take_in(metric, event, raw, times[metric.clock])
                except Refused as refused:
                    self._refuse(metric, refused, record)
        self._events += count
        self._idle_wall = None
        self.next_offset = end

    def _effective_time(self, clock: Clock, event: dict[str, Any], raw: bytes, record: Record) -> int | Refused:
        """A record's effective time, or why it has none. A valid time moves the clock, whatever becomes of the rest."""
        try:
            time = self._event_time(clock, event, raw, record)
        except Refused as refused:
            return refused
        except Exception:
            return Refused("error")
        progress = self._watermarks[clock.index]
        if progress is None or time > progress:
            self._watermarks[clock.index] = time
            return time
        horizon = progress - clock.lateness
        if time >= horizon:
            return time
        return Refused("late") if clock.drops_late else horizon

    def _event_time(self, clock: Clock, event: dict[str, Any], raw: bytes, record: Record) -> int:
        stamp = record.timestamp
        if clock.get is None or clock.path is None:
            return stamp * 1000
        found = clock.get(event)
        remembers = found.__class__ is str or found.__class__ is int  # neighbours often share their time
        time = self._times.get(found) if remembers else None
        if time is None:
            time = read_time(found, raw, clock.path)
            if remembers:
                if len(self._times) >= TIME_CACHE:
                    self._times.clear()
                self._times[found] = time
        if time - stamp * 1000 > clock.max_ahead and stamp >= 0:  # a file's lines have no stamp
            progress = self._watermarks[clock.index]
            if progress is None or time > progress + clock.max_ahead:
                raise Refused("too-far-ahead")
        return time

    def _take_in(self, metric: Metric, event: dict[str, Any], raw: bytes, effective: int | Refused) -> None:
        """Read a metric's sample, add it to its account, and send on the block that it closes.

        Raises:
            Refused: the metric cannot use the record; nothing was touched.
        """
        if isinstance(effective, Refused):
            raise effective
        try:
            user = key = read_user(metric.get_user(event), raw, metric.section.user)
            group = None
            if metric.get_group is not None:
                group = read_group(metric.get_group(event), raw, metric.section.group or "")
                key = len(user).to_bytes(2, "big") + user + group.encode()
            found = metric.get_value(event)
            kind = found.__class__
            if kind is not float and kind is not int:
                raise Refused("no-value" if found is MISSING else "bad-value")
            value = metric.clip(found)
        except Refused:
            raise
        except Exception:  # what breaks the reader is bad input too: no record may stop the stream
            raise Refused("error") from None
        index = metric.index
        accounts = self._accounts[index]
        account = accounts.get(key)
        if account is None:
            if self._checks_partition and not self._belongs_here(user):
                raise Refused("wrong-partition")
            if group is not None and not self._admit_group(metric, user):
                self.counters["groups_left_out"] += 1
                return
            account = 0
        elif account & COUNT_MASK >= metric.max_contributions:
            self.counters["over_cap"] += 1
            return
        account, block = metric.add(account, value)
        accounts[key] = self._touched[index][key] = account
        if block is not None:
            self._outgoing.add(metric, group, effective, user, block)

    def _belongs_here(self, user: bytes) -> bool:
        return self.plan.partition_of(user, self.plan.source_partitions) == self.partition

    def _admit_group(self, metric: Metric, user: bytes) -> bool:
        groups = self._groups[metric.index]
        count = groups.get(user, 0)
        if count >= metric.section.max_groups_per_user:
            return False
        groups[user] = self._touched_groups[metric.index][user] = count + 1
        return True

    def _accept_clock(self, record: Record) -> None:
        """A record with header `shoal-clock` and null value moves this partition's clocks and is nothing else."""
        for name, value in record.headers or ():
            if name == CLOCK_HEADER:
                time = time_of_text(value.decode("ascii", "replace"))
                if time is not None and valid(time) is not None:
                    for clock in self.plan.clocks:
                        latest = self._watermarks[clock.index]
                        promised = time + clock.lateness  # as if an event that late had come: the clock is then `time`
                        self._watermarks[clock.index] = promised if latest is None else max(latest, promised)
                    return
        self._refuse_all(Refused("not-json"), record)

    def _refuse_all(self, refused: Refused, record: Record) -> None:
        for metric in self.plan.metrics:
            self._refuse(metric, refused, record)

    def _refuse(self, metric: Metric, refused: Refused, record: Record) -> None:
        self.counters[f"dead_letters.{metric.name}.{refused.reason}"] += 1
        if self.plan.dead_letters:
            self._dead.append(
                dead_letter_bytes(
                    refused.reason, metric.name, self.plan.topic, self.partition, record.offset, record.value
                )
            )

    def idle(self, wall: int) -> None:
        """The source partition had nothing more at wall time `wall` (milliseconds)."""
        if self.plan.has_ticks:
            self._idle_wall = wall

    # ---------------------------------------------------------------- a transaction out

    def take(self, wall: int) -> Bound | None:
        """Everything since the last call, or None; `wall` is written into the clock records."""
        if not self._events and self._idle_wall is None:
            return None
        if self.next_offset is None:
            return None
        idle = self._idle_wall is not None
        messages = self._outgoing.take(self.next_offset, wall, self._clocks(), idle=idle)
        changelog = self._changelog() if self._durable else []
        bound = Bound(messages, changelog, self._dead, self.next_offset, self._events)
        self._idle_wall = None
        self._clear()
        return bound

    def _clocks(self) -> list[int | None]:
        """What may be promised, per clock: no later event of this partition will have an earlier effective time."""
        return [
            None if latest is None else latest - clock.lateness
            for clock, latest in zip(self.plan.clocks, self._watermarks, strict=True)
        ]

    def _changelog(self) -> list[tuple[bytes, bytes | None]]:
        entries: list[tuple[bytes, bytes | None]] = []
        for metric in self.plan.metrics:
            tag = b"a" + metric.label.encode() + b"\x00"
            entries += [(tag + key, a.to_bytes(ACCOUNT_BYTES, "big")) for key, a in self._touched[metric.index].items()]
            tag = b"g" + metric.label.encode() + b"\x00"
            entries += [(tag + user, n.to_bytes(4, "big")) for user, n in self._touched_groups[metric.index].items()]
        entries.append((MARK, self._mark()))
        return entries

    def _mark(self) -> bytes:
        return orjson.dumps(
            {
                "offset": self.next_offset,
                "log": self.log_id,
                "numbers": self._outgoing.numbers,
                "starts": self._starts,
                "watermarks": {clock.label: self._watermarks[clock.index] for clock in self.plan.clocks},
            }
        )
