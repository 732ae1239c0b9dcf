"""The stream's partitions as the Kafka layer hosts them: their outputs become records of topics.

bound    of a source partition:  contributions, dead letters, changelog
release  of a contributions partition:  releases, activations, changelog
"""

import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.misplaced import Placement
from shoal.stream.bound import Bound, BoundPartition
from shoal.stream.machine import LastValues, LogSpan, Outbox, Record
from shoal.stream.release import ReleasePartition
from shoal.stream.topic import TopicPlan

AHEAD_MS = 50 * 60 * 1000  # more than a beat may be ahead, and less than brokers allow by default, an hour


class IdleSaid(NamedTuple):
    """The last idle record of a source partition: its wall time in ms, and the offset up to which all was read."""

    wall: int
    offset: int


class BoundMachine(BoundPartition):
    """The bound stage of one source partition."""

    def __init__(
        self, settings: KafkaSettings, plan: TopicPlan, partition: int, *, log_id: str = "", kernel: Any = None
    ) -> None:
        super().__init__(plan, partition, log_id=log_id, kernel=kernel)
        self.idle_said: IdleSaid | None = None
        self.placement = Placement()
        self.clock_wall: int | None = None  # when a clock of this partition last entered a new step
        self._steps: list[list[int] | None] = []
        self._moved: dict[int, range] = {}  # by clock: offsets of the slice that moved it last
        self._settings = settings
        self._source = f"{plan.topic}|{partition}".encode()

    @property
    def cadence(self) -> int | None:
        """The finest cadence in microseconds of what waits for idle partitions; None if nothing does."""
        clocks = (clock for clock in self.plan.clocks if not clock.beats)
        return min((length.microseconds for clock in clocks for length in clock.cadences), default=None)

    @property
    def has_complete(self) -> bool:
        """A transaction may always have more events."""
        return False

    @property
    def is_awaited(self) -> bool:
        """Whether release waits: for a clock in a new step, events of a metric without ticks, or an idle record."""
        at_once = self.plan.has_immediate and self.backlog > 0
        return at_once or self._idle_wall is not None or self._outgoing.would_speak(self.promises)

    def pending(self) -> bool:
        """An event's work is done when it is processed."""
        return False

    def work(self, enough: Callable[[], bool]) -> None:
        """Do nothing: no work waits, as `pending` says."""

    def process(self, records: Iterable[Record], end: int) -> None:
        """Process a slice of records; note which clocks it moves, and how many of its records are misplaced."""
        first, before = self.next_offset or 0, [self.watermark(clock.index) for clock in self.plan.clocks]
        backlog = self.backlog
        super().process(records, end)
        self.placement.take_in(self.backlog - backlog, self.counters)
        for clock, latest in enumerate(before):
            if self.watermark(clock) != latest:
                self._moved[clock] = range(first, end)

    def moved_by(self, clock: int) -> range:
        """Offsets of the records of which one moved a clock last; from 0 on if that was before the takeover."""
        return self._moved.get(clock, range(self.next_offset or 0))

    def outbox(self) -> Outbox | None:
        """The next transaction: changed accounts, messages, dead letters."""
        wall = int(time.time() * 1000)
        bound = self.take(wall)
        if bound is None:
            return None
        self._remember(bound, wall)
        span = LogSpan(bound.first_record, bound.needs, bound.cost)
        outbox = Outbox(bound.next_offset, bound.changelog, events=bound.events, log=span)
        for home, message in bound.messages:
            target = (self._settings.contributions, home)
            outbox.records.setdefault(target, []).append((self._source, message.encode(), []))
        if bound.dead_letters:
            target = self._settings.dead_letter_home(self.partition)
            outbox.records[target] = [(self._source, letter, []) for letter in bound.dead_letters]
        return outbox

    def _remember(self, bound: Bound, wall: int) -> None:
        """Note which steps the clocks have entered, and whether the partition was declared idle."""
        last = bound.messages[-1][1] if bound.messages else None
        if last is None or last.watermarks is None:
            return
        if last.idle:
            self.idle_said = IdleSaid(wall, bound.next_offset)
        if bound.events:
            reached = ((clock, last.watermarks[clock.label]) for clock in self.plan.clocks)
            steps = [
                None if mark is None else [length.index(mark) for length in clock.cadences] for clock, mark in reached
            ]
            if steps != self._steps:
                self._steps, self.clock_wall = steps, wall

    def look_up(self, key: tuple[Any, ...]) -> int | None:
        """A user's number of samples, by (metric, user) or (metric, user, group or cell)."""
        return self.count(*key)


def stamp_of(at: int, now: int) -> int:
    """The timestamp, in milliseconds, of the records of a transaction with releases `at` this time.

    It is that time and not the time of writing, which depends on load. It may lie in the future, after a beat that is
    ahead, by half an hour at most. If clocks are so wrong that it lies an hour ahead, which brokers refuse, the records
    have the time of writing.

    >>> stamp_of(5_000_000, now=7_000), stamp_of(9_000_000, now=7_000), stamp_of(-1, now=7_000)
    (5000, 9000, 0)
    >>> stamp_of(3_600_000_000, now=7_000)
    7000
    """
    stamp = max(0, at // 1000)
    return stamp if stamp <= now + AHEAD_MS else now


class ReleaseMachine(ReleasePartition):
    """The release stage of one contributions partition."""

    def __init__(self, settings: KafkaSettings, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._settings = settings

    @property
    def has_complete(self) -> bool:
        """Whether a transaction waits that has one tick alone, or must come before such a one."""
        return self._pieces.has_complete and not self.withheld

    @property
    def is_awaited(self) -> bool:
        """Whether something is to be published. Most partitions hear of clocks alone most of the time."""
        made = self._pieces.made
        return bool(made.releases or made.activations) or self._pieces.has_complete

    def restoring(self) -> LastValues:
        """The restoration, which takes the last value of each key of the changelog."""
        return LastValues(self.restore)

    def idle(self, wall_ms: int) -> None:
        """Clocks come with the messages; silence means nothing."""

    def outbox(self) -> Outbox | None:
        """The next transaction: releases to the partition of the same number, activations, changed state."""
        released = self.take()
        if released is None:
            return None
        outbox = Outbox(released.next_offset, released.changelog, events=released.events)
        if released.releases:
            outbox.records[self._settings.releases, self.partition] = [
                (release.record_key, release.value, list(release.headers)) for release in released.releases
            ]
        if released.activations:
            outbox.records[self._settings.activations, self.partition] = [
                (activated.record_key, activated.value, []) for activated in released.activations
            ]
        if self.protects_presence and released.releases:
            outbox.stamp = stamp_of(released.releases[0].at, int(time.time() * 1000))
        return outbox

    def look_up(self, key: tuple[Any, ...]) -> dict[str, Any] | None:
        """A group's head, by (metric, group), or one level of it, by (metric, group, level)."""
        return self.held(*key)
