"""Who contributes when to a sum, count or decayed mean: as stated, or as counted in a file of events.

A file is read for its pattern alone: users, times, groups; values take no part. Its events come in the order of their
times: what `lateness` does to late ones is left out.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

import numpy as np

from shoal.agents.planning_stated import YEAR, Stated
from shoal.agents.planning_values import read_groups
from shoal.mechanisms.planning import Pattern
from shoal.mechanisms.planning_steps import Counted, Flow
from shoal.models.config import Config
from shoal.models.errors import InputError
from shoal.models.metric import MetricSection

REACH = 4  # windows or half-lives that the time has at least, where nothing says how long it will last
MOST_STEPS = 300_000  # of a file


@dataclass(frozen=True, slots=True)
class StepWorkload:
    """A workload in numbers."""

    users: int
    samples: float  # of a user, on average, over the whole time
    of_a_unit: float  # of one whom the guarantee is for: a user, a user and period, an event
    over: int  # microseconds
    steps: int
    pattern: str
    spread: Fraction  # part of the range that values are assumed to lie in
    private: bool = True


class Source(Protocol):
    """Where a workload comes from."""

    def settled(self, section: MetricSection) -> StepWorkload:
        """In numbers, with the metric's own settings where it leaves something open."""
        ...

    def flow(self, section: MetricSection, work: StepWorkload) -> Flow | Counted:
        """Samples over time, and which of them count under these settings."""
        ...


@dataclass(frozen=True)
class Steady:
    """A workload that is stated: all users give their samples at constant rates."""

    stated: Stated

    def settled(self, section: MetricSection) -> StepWorkload:
        """With the metric's own cap and horizon."""
        stated, step, said = self.stated, section.cadence or 1, section.forgets
        reach = REACH * (said.length or said.half_life or 0)
        over = stated.over or section.horizon or max(YEAR * step, reach)
        steps = max(1, over // step)
        periods = 1.0 if section.of.period is None else max(1.0, over / section.of.period)
        samples = section.cap * periods if stated.samples is None else stated.samples
        of_a_unit = 1.0 if section.of.is_event else samples / periods
        pattern = "skewed" if stated.skewed else "even"
        return StepWorkload(stated.users, samples, of_a_unit, steps * step, steps, pattern, stated.spread)

    def flow(self, section: MetricSection, work: StepWorkload) -> Flow:
        """In closed form."""
        pattern = (Pattern.skewed if self.stated.skewed else Pattern.even)(work.users, work.samples)
        unit = section.of
        periods = None if unit.period is None else max(1.0, work.over / unit.period)
        return Flow(pattern, work.steps, None if unit.is_event else section.cap, periods)


@dataclass(frozen=True)
class File:
    """A workload that was counted: of the largest group, by step."""

    work: StepWorkload
    ranks: Sequence[tuple[int, int]]  # of each sample: its step, and its number among those of its unit
    _found: dict[int | None, Counted] = field(default_factory=dict, repr=False)  # by cap

    def settled(self, section: MetricSection) -> StepWorkload:
        """The file leaves nothing open."""
        return self.work

    def flow(self, section: MetricSection, work: StepWorkload) -> Counted:
        """What the cap lets through."""
        if section.max_contributions not in self._found:
            steps, ranks = np.array(self.ranks).T
            counts = steps if section.of.is_event else steps[ranks <= section.cap]
            of_each = [np.bincount(kept, minlength=work.steps).tolist() for kept in (counts, steps)]
            self._found[section.max_contributions] = Counted(*of_each)
        return self._found[section.max_contributions]


def read_file(config: Config, section: MetricSection, path: str, on_bytes: Callable[[int], None]) -> File:
    """The workload of a file.

    Raises:
        InputError: the file cannot be read, has no event for the metric, or too many steps.
        ConfigError: the metric takes its time from Kafka's records.
    """
    groups = read_groups(config, section, path, on_bytes)
    largest = max(groups, key=lambda name: len(groups[name]))
    step, unit = section.cadence or 1, section.of
    times = [event.at // step for event in groups[largest]]
    first, steps = min(times), max(times) - min(times) + 1
    if steps > MOST_STEPS:
        raise InputError(f"{path}: its events span {steps} steps, and {MOST_STEPS} can be planned; give fewer events")
    units: dict[tuple[int, int], int] = defaultdict(int)  # a unit's samples count whatever group they are in
    ranks = []
    named = ((event.at, name, event) for name, events in groups.items() for event in events)
    for at, name, event in sorted(named, key=lambda one: one[0]):
        one = event.user, 0 if unit.period is None else at // unit.period
        units[one] += 1
        if name == largest:
            ranks.append((at // step - first, units[one]))
    users = len({event.user for event in groups[largest]})
    of_a_unit = 1.0 if unit.is_event else sum(units.values()) / len(units)
    work = StepWorkload(
        users, len(ranks) / users, of_a_unit, steps * step, steps, "that of the file", Fraction(1), private=False
    )
    return File(work, ranks)
