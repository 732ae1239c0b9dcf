"""Open ticks, for monitoring: how far a metric's releases are complete, and which partitions its next tick waits for.

Everything here is a function of the clocks, which are pattern.
"""

from collections.abc import Iterator
from typing import NamedTuple

from shoal.mechanisms.parts.lengths import Even
from shoal.stream.release import ReleasePartition


class OpenTick(NamedTuple):
    """Where one metric stands in one contributions partition."""

    metric: str  # its name
    topic: str
    length: Even  # of its ticks
    reached: int | None  # no later release will be `at` or before this time, in microseconds
    step: int | None  # number of the tick that is open
    waits_for: tuple[int, ...]  # source partitions that it waits for, though others have passed its end
    without_beats: tuple[int, ...]  # source partitions that had no beat yet, if its clock goes by beats
    others: tuple[tuple[str, int], ...] = ()  # partitions of other topics whose beats it waits for, too

    @property
    def places(self) -> tuple[tuple[str, int], ...]:
        """Topics and partitions that it waits for."""
        return (*((self.topic, number) for number in self.waits_for), *self.others)


def open_ticks(release: ReleasePartition) -> Iterator[OpenTick]:
    """The open tick of every metric that has ticks and whose topic's clocks come here."""
    for label, (plan, metric) in release._metrics.items():
        length = metric.length
        if length is None or plan.topic not in release.heard:
            continue
        reached = release.clock_of(label)
        step = None if reached is None else length.index(reached)
        end = None if step is None else length.end(step)
        clock, clocks = plan.clocks[metric.clock], release._clocks
        marks = clocks.marks(plan.topic, clock.label, beats=clock.beats)
        behind, unheard, others = held_up_by(marks, end), tuple[int, ...](), tuple[tuple[str, int], ...]()
        if clock.beats:
            if step is not None:
                reached = length.start(step)  # within a step only contributions bring clocks, and would tell of events
            unheard = tuple(index for index, mark in enumerate(marks) if mark is None)
            if has_passed(marks, end):
                others = tuple(clocks.hold_up(plan.topic, None if end is None else end + clock.lateness))
        yield OpenTick(metric.name, plan.topic, length, reached, step, behind, unheard, others)


def has_passed(marks: list[int | None], end: int | None) -> bool:
    """Whether any partition has passed the end of a tick; if there is no end yet, whether any has a clock."""
    said = [mark for mark in marks if mark is not None]
    return bool(said) and (end is None or max(said) >= end)


def held_up_by(marks: list[int | None], end: int | None) -> tuple[int, ...]:
    """Partitions that have not passed a tick's end though another has; while there is no end, those without a clock."""
    if not has_passed(marks, end):
        return ()
    return tuple(index for index, mark in enumerate(marks) if mark is None or (end is not None and mark < end))
