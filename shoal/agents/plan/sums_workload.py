"""Who contributes when to a sum, count or decayed mean: as stated, or as counted in a file of events.

A file is read for its pattern alone: users, times, groups; values take no part. Its events come in the order of their
times: what `lateness` does to late ones is left out.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Protocol

import numpy as np

from shoal.agents.plan.groups import by_size, some
from shoal.agents.plan.observed import Event, read_groups
from shoal.agents.plan.workload import YEAR, Stated
from shoal.mechanisms.decayed_sum.forecast import Counted, Flow
from shoal.mechanisms.workload import Pattern
from shoal.models.config.file import Config
from shoal.models.config.metric import MetricSection
from shoal.models.errors import InputError

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
    group: str | None = None  # which one it is about, of a file
    of_groups: tuple[int, int] | None = None  # what it is one group of: how many groups, and users of them all


class Source(Protocol):
    """Where a workload comes from."""

    def settled(self, section: MetricSection) -> StepWorkload:
        """In numbers, with the metric's own settings where it leaves something open."""
        ...

    def flow(self, section: MetricSection, work: StepWorkload) -> Flow | Counted:
        """Samples over time, and which of them count under these settings."""
        ...

    @property
    def others(self) -> Mapping[str, "Source"]:
        """Groups of a file that are looked at, by name; none where they are alike, or there are none."""
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
        one = replace(stated, samples=samples).in_a_group(section)
        return StepWorkload(
            one.users, one.samples or 0.0, of_a_unit, steps * step, steps, pattern, stated.spread,
            of_groups=one.of_groups,
        )  # fmt: skip

    def flow(self, section: MetricSection, work: StepWorkload) -> Flow:
        """In closed form."""
        pattern = (Pattern.skewed if self.stated.skewed else Pattern.even)(work.users, work.samples)
        unit = section.of
        periods = None if unit.period is None else max(1.0, work.over / unit.period)
        # The cap is one over all groups of a unit, which come evenly.
        groups = self.stated.groups_of_a_user(section)
        cap = section.cap if groups == 1 else section.cap / groups
        return Flow(pattern, work.steps, None if unit.is_event else cap, periods)

    @property
    def others(self) -> Mapping[str, Source]:
        """No other groups: a stated workload describes one group, and all groups are like it."""
        return {}


@dataclass(frozen=True)
class File:
    """A workload that was counted: of one group, by step."""

    work: StepWorkload
    ranks: Sequence[tuple[int, int]]  # of each sample: its step, and its number among those of its unit
    others: Mapping[str, Source] = field(default_factory=dict, repr=False)  # groups that are looked at, it among them
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
    names, ranks = by_size(groups), _ranks(section, groups)
    users = len({event.user for events in groups.values() for event in events})
    whole = StepWorkload(
        users, 0.0, _of_a_unit(section, groups), 0, 0, "that of the file", Fraction(1), private=False,
        of_groups=None if section.group is None else (len(groups), users),
    )  # fmt: skip
    found = {name: _file(section, name, groups[name], ranks[name], whole) for name in some(names)}
    largest = found.pop(names[-1])
    if largest.work.steps > MOST_STEPS:
        spanned = f"{path}: its events span {largest.work.steps} steps"
        raise InputError(f"{spanned}, and {MOST_STEPS} can be planned; give fewer events")
    if section.group is None:
        return largest
    others = {name: one for name, one in found.items() if one.work.steps <= MOST_STEPS}
    return replace(largest, others={**others, names[-1]: largest})


def _ranks(section: MetricSection, groups: Mapping[str, Sequence[Event]]) -> dict[str, list[tuple[int, int]]]:
    """By group, of each sample: its step, and its number among those of its unit, whatever groups they are in."""
    step, unit = section.cadence or 1, section.of
    units: dict[tuple[int, int], int] = defaultdict(int)
    ranks: dict[str, list[tuple[int, int]]] = defaultdict(list)
    named = ((event.at, name, event.user) for name, events in groups.items() for event in events)
    for at, name, user in sorted(named, key=lambda one: one[0]):
        one = user, 0 if unit.period is None else at // unit.period
        units[one] += 1
        ranks[name].append((at // step, units[one]))
    return ranks


def _of_a_unit(section: MetricSection, groups: Mapping[str, Sequence[Event]]) -> float:
    """Samples of a unit, on average, in all groups."""
    unit, events = section.of, [event for events in groups.values() for event in events]
    if unit.is_event:
        return 1.0
    return len(events) / len({(one.user, 0 if unit.period is None else one.at // unit.period) for one in events})


def _file(
    section: MetricSection, name: str, events: Sequence[Event], ranks: Sequence[tuple[int, int]], whole: StepWorkload
) -> File:
    """One group, from its first step to its last."""
    step, users = section.cadence or 1, len({event.user for event in events})
    first, steps = ranks[0][0], ranks[-1][0] - ranks[0][0] + 1
    work = replace(
        whole, users=users, samples=len(ranks) / users, over=steps * step, steps=steps,
        group=None if section.group is None else name,
    )  # fmt: skip
    return File(work, [(at - first, rank) for at, rank in ranks])
