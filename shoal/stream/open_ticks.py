"""Open ticks, for monitoring: how far a metric's releases are complete, and which partitions its next tick needs.

All of it is a function of the clocks, which are pattern.
"""

from collections.abc import Iterator
from typing import NamedTuple

from shoal.stream.release import ReleasePartition


class OpenTick(NamedTuple):
    """Where one metric stands in one contributions partition."""

    metric: str  # its name
    topic: str
    every: int  # length of its ticks in microseconds
    reached: int | None  # no later release will be `at` or before this time, in microseconds
    step: int | None  # number of the tick that is open
    waits_for: tuple[int, ...]  # source partitions without which it cannot close, though others have passed its end
    without_beats: tuple[int, ...]  # those that had none, where its clock goes by them
    others: tuple[tuple[str, int], ...] = ()  # topics and partitions elsewhere whose beats it waits for, too

    @property
    def places(self) -> tuple[tuple[str, int], ...]:
        """Topics and partitions that it waits for."""
        return (*((self.topic, number) for number in self.waits_for), *self.others)


def open_ticks(release: ReleasePartition) -> Iterator[OpenTick]:
    """Of every metric that has ticks."""
    for label, (plan, metric) in release._metrics.items():
        if metric.every is None:
            continue
        reached = release.clock_of(label)
        step = None if reached is None else reached // metric.every
        end = None if step is None else (step + 1) * metric.every
        clock, clocks = plan.clocks[metric.clock], release._clocks
        marks = clocks.marks(plan.topic, clock.label, beats=clock.beats)
        behind, unheard, others = held_up_by(marks, end), tuple[int, ...](), tuple[tuple[str, int], ...]()
        if clock.beats:
            if step is not None:
                reached = step * metric.every  # within a step, clocks are told with contributions, if there are any
            unheard = tuple(index for index, mark in enumerate(marks) if mark is None)
            if has_passed(marks, end):
                others = tuple(clocks.hold_up(plan.topic, None if end is None else end + clock.lateness))
        yield OpenTick(metric.section.name, plan.topic, metric.every, reached, step, behind, unheard, others)


def has_passed(marks: list[int | None], end: int | None) -> bool:
    """Whether a partition has passed the end of a tick; without an end, whether one has said anything."""
    said = [mark for mark in marks if mark is not None]
    return bool(said) and (end is None or max(said) >= end)


def held_up_by(marks: list[int | None], end: int | None) -> tuple[int, ...]:
    """Partitions that have not passed the end of a tick which another has passed; without an end, any word will do."""
    if not has_passed(marks, end):
        return ()
    return tuple(index for index, mark in enumerate(marks) if mark is None or (end is not None and mark < end))
