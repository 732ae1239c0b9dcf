"""Release: one partition of the contributions topic in, private releases out, as a function of messages and key.

`ReleasePartition` accepts messages in sequence only, lets contributions wait for their tick, closes it once the clock
has passed its end, and gives them to the group's releaser in canonical order (`every = "contribution"`: in log order).

What is due is a function of the state, so any transaction may end between two groups, and a successor goes on with the
rest before it reads another message. What a release was made of waits in the changelog until it is released. A slot is
computed as a whole from rows under the metric's own key, which wait until its last cell is released.
"""

import hashlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any

import orjson

from shoal.mechanisms.groups import Closed
from shoal.mechanisms.kinds import kind_of
from shoal.mechanisms.parts.lengths import INSTANT
from shoal.mechanisms.statistic import Contribution
from shoal.models.digests import FIRST
from shoal.models.errors import FailStop
from shoal.models.records import Message, Partial, Row
from shoal.stream.clock import Clocks
from shoal.stream.contributions import by_tick
from shoal.stream.foreign_records import Strays, read_message
from shoal.stream.group import GroupState, Released, group_name, label_of, new_release
from shoal.stream.guard import Guard, Published, PublishedBefore, check_last
from shoal.stream.machine import Record
from shoal.stream.pieces import Made, Pieces
from shoal.stream.release_state import (
    ReleaseChangelog,
    Restored,
    changes_of,
    hidden_entries,
    kept_entries,
    reached_entries,
)
from shoal.stream.state_mark import closed_tick, lacks
from shoal.stream.table.inventory import Entry
from shoal.stream.tick_queue import Closing, Waiting
from shoal.stream.topic import Metric, TopicPlan, check_beginnings

MAX_LEAD = 200_000  # contributions that may wait for the slowest source before the others are held back


class ReleasePartition:
    """The state of one contributions partition, and what it has not yet handed out."""

    def __init__(
        self,
        plans: Iterable[TopicPlan],
        partition: int,
        *,
        idle_after: int,
        log_id: str = "",
        published: Published | None = None,
        published_before: PublishedBefore | None = None,
        durable: bool = True,
        former: Mapping[str, int] | None = None,  # partitions of topics whose metrics are all retired
    ) -> None:
        self.partition = partition
        self.log_id = log_id
        self.next_offset: int | None = None
        self.counters: Counter[str] = Counter()  # functions of pattern: safe to show
        self.strays = Strays()
        self.published_count = 0  # releases of this partition so far, and their chain: in every record's header
        self.published_chain = FIRST
        self._guard = Guard(published, published_before)
        self._durable = durable  # False: nobody asks for the changelog
        plans = tuple(plans)
        self._retired = frozenset().union(*(plan.retired for plan in plans)) if plans else frozenset()
        topics = {plan.topic: plan.source_partitions for plan in plans} | dict(former or {})
        self._clocks = Clocks(topics, idle_after, {plan.topic: plan.beats for plan in plans if plan.beats})
        self._metrics = {metric.label: (plan, metric) for plan in plans for metric in plan.metrics}
        self.heard = {plan.topic for plan in plans if partition in plan.hearing}  # topics whose clocks come here
        self._slotted = {plan.topic for plan, metric in self._metrics.values() if kind_of(metric.parts).shared}
        self._clock_of: dict[str, int] = {}  # label -> the clock it has acted upon; never goes back
        self._groups: dict[str, GroupState] = {}
        self._waiting = Waiting({label: metric.bounder.parts for label, (_, metric) in self._metrics.items()})
        self._groups_of = {
            label: metric.groups(partial(plan.is_home, partition, metric.name))
            for label, (plan, metric) in self._metrics.items()
        }
        self._closings = {
            label: Closing(label, metric.length or INSTANT, self._groups_of[label], self._waiting, alone=metric.alone)
            for label, (_, metric) in self._metrics.items()
        }
        self._changelog = ReleaseChangelog(self._where(), log_id)
        self._inbox: deque[Record] = deque()
        self._inbox_end: int | None = None
        self._due: set[str] = set()
        self.protects_presence = any(plan.protects_presence for plan in plans)
        self._pieces = Pieces(self._write, alone=self.protects_presence)

    # ---------------------------------------------------------------- state

    def start(self, offset: int) -> None:
        """Begin without state, at the partition's first offset."""
        self.next_offset = offset

    def restore(self, items: Mapping[bytes, bytes]) -> None:
        """Rebuild from the changelog's last values; what its clocks make due is done first.

        Raises:
            FailStop: the state is not complete, of another log, or names a metric that this configuration lacks.
        """
        if (found := self._changelog.read(items)) is None:
            return
        mark = found.mark
        self.published_count = mark["count"]
        self.published_chain = bytes.fromhex(mark["chain"])
        for topic, clocks in mark["clocks"].items():
            self._clocks.of(topic, self._where()).load(clocks, self._where())
        self._clock_of = {label: clock for label, clock in mark["acted"].items() if label in self._metrics}
        check_beginnings(self._where(), (metric for _, metric in self._metrics.values()), self._clock_of)
        self._restore_groups(found)
        self.next_offset = mark["offset"]
        self._due = {label for label in self._metrics if self._closings[label].due() is not None}
        self._advance()  # clocks that go by beats and are new are known now, not with the next contribution

    def _restore_groups(self, found: Restored) -> None:
        for label, value in found.reached:
            if self._metric(label) is not None:  # what a closing has reached stays in the changelog after it
                self._closings[label].reached = orjson.loads(value)
        for key, name, value in found.waiting:
            if (metric := self._metric(key)) is not None:
                self._waiting.restore(metric.label, name, value)
        for key, tick, value in found.hidden:
            if (metric := self._metric(key)) is not None:
                self._groups_of[metric.label].restore_hidden(group_name(key), tick, value)
        for key, head in found.heads.items():
            if (state := self._group(key, group_name(key))) is None:
                continue
            state.restore(head, found.kept.get(key, ()))
            state.written = found.sums[key]
            self._guard.restored(state.metric.label, state.group or "", state.seq)

    def held(self, metric: str, group: str | None = None, level: int | None = None) -> dict[str, Any] | None:
        """What a group has released last and what its releaser holds, or one level of it; None: there is no such."""
        label = next((label for label, (_, one) in self._metrics.items() if one.name == metric), None)
        if (state := self._groups.get(f"{label}|{group or ''}")) is None:
            return None
        return state.head() if level is None else state.level(level)

    def _group(self, key: str, group: str) -> GroupState | None:
        """The state of a group by its key and name, made on first sight; None for a retired metric."""
        state = self._groups.get(key)
        if state is None and (metric := self._metric(key)) is not None:
            state = self._groups[key] = GroupState(metric, group or None, self._groups_of[metric.label])
        return state

    def _metric(self, key: str) -> Metric | None:
        """The metric of a group; None for a retired one."""
        label = label_of(key)
        if label in self._metrics:
            return self._metrics[label][1]
        if label in self._retired:
            return None
        raise FailStop(lacks(self._where(), f"metric {label}"))

    def heads(self) -> Iterator[tuple[Metric, str, int, bytes]]:
        """Of every group: metric, group ("" without one), last seq and chain."""
        for state in self._groups.values():
            yield state.metric, state.group or "", state.seq, state.chain

    def check_last(self, headers: Mapping[str, bytes] | None) -> None:
        """Hold the last committed release of this partition against the state, before anything is published.

        Raises:
            FailStop: they differ: a topic was re-created, truncated, or written by somebody else.
        """
        check_last(self.partition, self.published_count, self.published_chain, headers)

    @property
    def backlog(self) -> int:
        """Messages and closed groups to `take`: none while nobody can take them, all once it must wait."""
        made = self._pieces.size
        if not self.withheld:
            return made
        return 0 if self._has_room() else made + len(self._inbox)

    @property
    def withheld(self) -> set[str]:
        """Labels of metrics that keep the next transaction back, until all that is published is made again."""
        return self._guard.withheld

    def ahead(self) -> Iterator[tuple[str, int]]:
        """(topic, source partition) that should be held back, for too many contributions wait here."""
        if self._waiting.count > MAX_LEAD and not self.withheld:  # what waits for others must not hold them up
            for topic in self._clocks.keys() & self.heard:
                yield from ((topic, partition) for partition in self._clocks[topic].ahead())

    def _where(self) -> str:
        return f"contributions partition {self.partition}"

    # ---------------------------------------------------------------- messages in

    def process(self, records: Iterable[Record], end: int) -> None:
        """Queue records in offset order; `work` until not `pending`."""
        self._inbox.extend(records)
        self._inbox_end = end

    def pending(self) -> bool:
        """Whether `work` has something to do."""
        if self.withheld and not self._has_room():
            return False  # working on would only make more of what is withheld
        return bool(self._inbox or self._due or self._inbox_end is not None)

    def _has_room(self) -> bool:
        """Whether a transaction may grow. What is withheld may, for what it waits for can be behind it."""
        return self._guard.goes_on(self._pieces.closed) if self.withheld else self._pieces.has_room

    def work(self, enough: Callable[[], bool] = lambda: False) -> None:
        """Close what is due, then read on, until there is `enough` or a transaction is full."""
        while self._has_room() and not enough():
            if self._due:
                if self._close(min(self._due, key=lambda label: (self._closings[label].rank, label)), enough):
                    return
            elif self._inbox:
                record = self._inbox.popleft()
                if message := read_message(record, self._where(), self.strays):
                    self.receive(message, record.offset)
                self._pieces.made.events += 1
                self.next_offset = record.offset + 1
            else:
                if self._inbox_end is not None:
                    self.next_offset, self._inbox_end = self._inbox_end, None
                return

    def receive(self, message: Message, offset: int = -1) -> None:
        """Take in one message: its contributions first, then its clock.

        Raises:
            FailStop: a message is missing before this one, or this configuration lacks its topic or a metric in it.
        """
        where = f"{self._where()}, offset {offset}"
        clocks = self._clocks.of(message.topic, where)
        for key in (*message.contributions, *message.partials):
            self._metric(key)  # before anything of the message counts
        source = clocks.sources[message.partition]
        if not source.follows(message, where, waits=message.topic in self._slotted):
            self.counters["repeated_messages"] += 1
            return
        for key, rows in message.contributions.items():
            self._contribute(key, rows)
        for key, partials in message.partials.items():
            self._add_partials(key, partials)
        clocks.hear(message)
        if message.watermarks is not None:
            self._advance(message.topic)

    def _contribute(self, key: str, rows: list[Row]) -> None:
        if (metric := self._metric(key)) is None:
            return
        if metric.length is None:
            for row in rows:
                for closed in self._groups_of[metric.label].close(row[0], [(group_name(key), [Contribution(*row)])]):
                    if closed is not None:
                        self._complete(key, closed, row[0])
            return
        for tick, run in by_tick(rows, metric.length):
            opened = self._open_tick(metric, tick, (row[4] for row in run))
            if opened is not None:
                self._waiting.add(metric.label, key, opened, run)

    def _add_partials(self, key: str, partials: list[Partial]) -> None:
        if (metric := self._metric(key)) is None:
            return
        for start, flat in partials:
            opened = self._open_tick(metric, (metric.length or INSTANT).index(start), islice(flat, 1, None, 3))
            if opened is not None:
                self._waiting.add_cells(metric.label, key, opened, flat)

    def _open_tick(self, metric: Metric, tick: int, samples: Iterable[int]) -> int | None:
        """The tick; if it is past, as its partition was held to be idle, the one that is open now.

        None where each unit has releases of its own: there it would move those of two units.

        Raises:
            FailStop: it is past, and its clock goes by beats, which let no partition pass.
        """
        acted = self._clock_of.get(metric.label)
        now = None if acted is None else (metric.length or INSTANT).index(acted)
        if now is None or tick >= now:
            return tick
        if metric.parts.protects_presence:
            raise FailStop(closed_tick(self._where(), metric.label))
        self.counters["woke_late"] += sum(samples)  # not rows: how many parts a tick has may depend on values
        return None if kind_of(metric.parts).apart else now

    def _advance(self, topic: str = "") -> None:
        """Note which metrics the topic's clocks have made due, and beats of any topic."""
        for label, (plan, metric) in self._metrics.items():
            said = plan.clocks[metric.clock]
            if metric.length is None or not (said.beats or plan.topic == topic):
                continue
            clock = self._clocks.reached(plan.topic, said.label, beats=said.beats)
            if clock is not None and clock > self._clock_of.get(label, clock - 1):
                self._clock_of[label] = clock
                self._due.add(label)

    def finish(self, end: int) -> None:
        """The input has ended, and every tick until then is due."""
        for label, (_, metric) in self._metrics.items():
            if metric.length is not None:
                self._clock_of[label] = max(self._clock_of.get(label, end), end)
                self._due.add(label)

    def clock_of(self, label: str) -> int | None:
        """How far a metric's releases are complete: no later release will be `at` or before this time."""
        return self._clock_of.get(label)

    # ---------------------------------------------------------------- ticks out

    def _close(self, label: str, enough: Callable[[], bool]) -> bool:
        """Close groups of the metric's earliest due tick, or find that none is due; whether that is enough for now."""
        closing, clock = self._closings[label], self._clock_of.get(label)
        if not closing.is_open and closing.is_due(clock):
            self._pieces.before_closing()
        while (going_on := closing.go_on(clock)) is not None:
            at, closed = going_on
            if closed is not None:
                self._complete(f"{label}|{closed.group}", closed, at)
            self._pieces.after_closing(is_open=closing.is_open)
            if not closing.is_open or not self._has_room() or enough():
                return closing.is_open
        self._due.discard(label)
        return False

    def _complete(self, key: str, closed: Closed, at: int) -> None:
        """Note that a group of a tick is complete, and publish what it releases."""
        self._pieces.made.closed += 1
        if closed.is_hidden or (state := self._group(key, closed.group)) is None:
            return
        self._pieces.made.changed[key] = state
        if closed.is_published:
            self._publish(state, closed, at)

    def _publish(self, state: GroupState, closed: Closed, at: int) -> None:
        """The group's next release, and what its tick activated."""
        made, activations = self._pieces.made, state.activated(closed.activations, at) if closed.activations else []
        made.activations += activations
        release = state.next_release(closed.estimate, at)
        self._guard.check(state, release, activations)
        count = self.published_count = self.published_count + 1
        digest = hashlib.sha256(self.published_chain + release)
        self.published_chain = digest.digest()
        headers = (("n", b"%d" % count), ("chain", digest.hexdigest().encode()))
        made.releases.append(new_release((at, state.metric.name, closed.group, state.seq, release, headers)))

    # ---------------------------------------------------------------- a transaction out

    def take(self) -> Released | None:
        """Everything since the last call, or the next complete piece of it; None if there is none."""
        released = None if self.withheld else self._pieces.take()
        if released is not None:
            self._guard.taken()
        return released

    def _write(self, made: Made) -> Released | None:
        if self.next_offset is None or not (made.events or made.closed or self._waiting.has_dropped):
            return None
        return Released(made.releases, made.activations, self._entries(made), self.next_offset, made.events)

    def _entries(self, made: Made) -> list[Entry]:
        """What became of the state. What came and went since the last transaction was never in it, and stays out."""
        changes, hidden = changes_of(self._groups_of), hidden_entries(self._groups_of)
        if not self._durable:
            self._waiting.forget_dropped()
            return []
        entries = self._waiting.take_changes()
        entries += kept_entries(changes, made.changed) + reached_entries(self._closings)
        return self._changelog.write(entries, hidden, made.changed.items(), self._mark())

    def _mark(self) -> dict[str, Any]:
        return {
            "offset": self.next_offset,
            "log": self.log_id,
            "count": self.published_count,
            "chain": self.published_chain.hex(),
            "clocks": {topic: clocks.dump() for topic, clocks in self._clocks.items()},
            "acted": self._clock_of,
        }
