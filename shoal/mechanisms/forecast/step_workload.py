"""Who contributes when to a sum, count or decayed mean, and which of the samples count under its settings."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from shoal.mechanisms.forecast.comparison import Outlook
from shoal.mechanisms.forecast.groups import GroupAhead, GroupsAhead, by_size, some
from shoal.mechanisms.forecast.observed import Observed, TooMuch
from shoal.mechanisms.forecast.plan import OF_FILE
from shoal.mechanisms.forecast.point import Point, spaced
from shoal.mechanisms.forecast.step_prospect import Counted, Expected, Flow, StepProspect, breadth, by_hand, prospect
from shoal.mechanisms.life import life_of
from shoal.mechanisms.linear.decay import span_of
from shoal.mechanisms.linear.statistic import LinearStatistic
from shoal.mechanisms.parts.at import Steps, Undecayed
from shoal.mechanisms.parts.by import Sharp
from shoal.mechanisms.parts.expect import expect
from shoal.mechanisms.parts.hides import Events
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.of import Count, PublicCount
from shoal.mechanisms.parts.variants import with_algorithm, with_samples
from shoal.mechanisms.workload import Stated, bias

REACH = 4  # windows or half-lives that the time has at least, where nothing says how long it will last
MOST_STEPS = 300_000  # of a file
NO_CAP = 1 << 20


class StepWorkload(NamedTuple):
    """A workload in numbers; the names are those of JSON."""

    users: int
    samples_per_user: float  # on average, over the whole time
    samples_per_unit: float  # of one whom the guarantee is for: a user, a user and period, an event
    steps: int
    pattern: str
    spread: Fraction  # part of the range that values are assumed to lie in
    group: str | None = None  # which one it is about, of a file
    of_groups: tuple[int, int] | None = None  # what it is one group of: how many groups, and users of them all


# -------------------------------------------------------------------- stated


@dataclass(frozen=True)
class Steady:
    """One group of stated users, who give their samples at constant rates."""

    stated: Stated
    work: StepWorkload

    @classmethod
    def of(cls, metric: Metric, stated: Stated) -> "Steady":
        """The workload with the metric's own cap, end and life for what was left open; no other setting moves it."""
        times, unit = expect(metric.at, Steps), metric.unit
        over = stated.over or _until_end(metric) or times.life or max(life_of(metric), REACH * span_of(times.decay))
        periods = 1.0 if unit.period is None else max(1.0, over / unit.period)
        samples = metric.samples * periods if stated.samples is None else stated.samples
        users, here, of_groups = stated.in_a_group(metric, samples)
        of_a_unit = 1.0 if unit.is_event else samples / periods
        steps = max(1, times.length.fits(over))
        return cls(stated, StepWorkload(users, here, of_a_unit, steps, stated.law, stated.spread, of_groups=of_groups))

    def flow(self, metric: Metric) -> Flow:
        unit, work = metric.unit, self.work
        over = metric.every.span(work.steps)
        periods = None if unit.period is None else max(1.0, over / unit.period)
        # The cap is one over all groups of a unit, which come evenly.
        groups = self.stated.groups_of_a_user(metric)
        cap = metric.samples if groups == 1 else metric.samples / groups
        pattern = self.stated.pattern(work.users, work.samples_per_user)
        limits = metric.hides.limits
        return Flow(pattern, work.steps, limits.of_a_user if isinstance(limits, Events) else cap, periods)


def _until_end(metric: Metric) -> int | None:
    """How long a metric lasts, of one that says from when to when."""
    return None if metric.start is None or metric.end is None else metric.end - metric.start


# -------------------------------------------------------------------- observed


class FileAccounts:
    """The events of a file in a metric's accounts, with any cap: by group and step, how many samples count."""

    def __init__(self, metric: Metric, observed: Observed) -> None:
        # The accounts ask for no mechanism, which might refuse a cap: they are those of a count.
        times = replace(expect(metric.at, Steps), decay=Undecayed(), life=None)
        self._metric = replace(with_algorithm(metric, Sharp), of=PublicCount(metric.fields), at=times)
        self._observed = observed
        self._counted: dict[int, dict[str | None, Counter[int]]] = {}
        self.groups = observed.by_group(with_samples(self._metric, NO_CAP))
        self.there = [sample for samples in self.groups.values() for sample in samples]

    def counted(self, cap: int, group: str | None) -> Counter[int]:
        if cap not in self._counted:
            counted: dict[str | None, Counter[int]] = {}
            accounted = self._observed.account(with_samples(self._metric, cap), self._observed.samples)
            for sample, reason in zip(self._observed.samples, accounted.reasons, strict=True):
                if reason is None:
                    counted.setdefault(sample.group, Counter())[self._metric.every.index(sample.effective)] += 1
            self._counted[cap] = counted
        return self._counted[cap].get(group, Counter())

    @cached_property
    def of_a_unit(self) -> float:
        """The number of samples of a unit in all groups, on average."""
        unit, there = self._metric.unit, self.there
        if unit.is_event:
            return 1.0
        units = {(sample.user, 0 if unit.length is None else unit.length.index(sample.effective)) for sample in there}
        return len(there) / len(units)


@dataclass(frozen=True)
class StepsOfFile:
    """One group of a file, from its first step to its last."""

    accounts: FileAccounts
    work: StepWorkload
    first: int
    there: Sequence[int]  # samples of each step
    others: Mapping[str, "StepsOfFile"] = field(default_factory=dict, repr=False)  # groups looked at, it among them

    @classmethod
    def of(cls, metric: Metric, observed: Observed) -> "StepsOfFile":
        """The largest group of the file.

        Raises:
            TooMuch: it has too many steps.
        """
        accounts = FileAccounts(metric, observed)
        names, users = by_size(accounts.groups), len({sample.user for sample in accounts.there})
        of_groups = None if metric.place is None else (len(names), users)
        groups = {name: cls._group(metric, accounts, name, of_groups) for name in some(names)}
        largest = groups[names[-1]]
        if largest.work.steps > MOST_STEPS:
            raise TooMuch(
                f"its events span {largest.work.steps} steps, and {MOST_STEPS} can be planned; give fewer events"
            )
        if metric.place is None:
            return largest
        others = {name or "": group for name, group in groups.items() if group.work.steps <= MOST_STEPS}
        return cls(accounts, largest.work, largest.first, largest.there, others)

    @classmethod
    def _group(
        cls, metric: Metric, accounts: FileAccounts, name: str | None, of_groups: tuple[int, int] | None
    ) -> "StepsOfFile":
        samples = accounts.groups[name]
        length = metric.every
        there = Counter(length.index(sample.effective) for sample in samples)
        first, steps = min(there), max(there) - min(there) + 1
        users = len({sample.user for sample in samples})
        work = StepWorkload(
            users, len(samples) / users, accounts.of_a_unit, steps, OF_FILE, Fraction(1), name, of_groups
        )
        return cls(accounts, work, first, _listed(there, first, min(steps, MOST_STEPS + 1)))

    def flow(self, metric: Metric) -> Counted:
        counted = self.accounts.counted(metric.samples, self.work.group)
        return Counted(_listed(counted, self.first, self.work.steps), self.there)


def _listed(counts: Counter[int], first: int, steps: int) -> list[int]:
    return [counts[first + step] for step in range(steps)]


# -------------------------------------------------------------------- what becomes of it


@dataclass(frozen=True)
class StepForecast:
    """A metric of steps over a workload, release by release."""

    metric: Metric
    work: StepWorkload
    ahead: StepProspect

    def point(self, tick: int) -> Point:
        """Release of step `tick`."""
        return self._point(tick, self.ahead.at(tick))

    def long_run(self) -> Point | None:
        """The mean over all releases long after the beginning; None if noise grows."""
        far = self.ahead.long_run()
        return None if far is None else self._point(None, far)

    def outlook(self) -> Outlook:
        """Some releases of the whole time."""
        points = tuple(map(self.point, spaced(self.work.steps)))
        return Outlook(self.metric, points, self.ahead.mechanism, long_run=self.long_run())

    def _point(self, t: int | None, expected: Expected) -> Point:
        at, part = (None, math.inf) if t is None else (self.metric.every.span(t), t / self.work.steps)
        left_out, moved = expected.left_out, self._bias(expected)
        return Point(at, expected.samples, left_out, expected.noise_sd, expected.half_interval, moved, part=part)

    def _bias(self, expected: Expected) -> float:
        """The bias of what is left out: a sum lacks it, others move as users who differ have shown."""
        spread = self.work.spread
        wide = breadth(self.ahead.statistic, spread)
        if wide is None:
            return -expected.left_out * expected.total * typical(self.metric, spread)
        return bias(expected.left_out, wide)


@dataclass(frozen=True)
class StepSource:
    """Forecasts of a metric of steps under any settings, over one workload."""

    over: Steady | StepsOfFile

    @classmethod
    def of(cls, metric: Metric, workload: Stated | Observed) -> "StepSource":
        """The workload with the metric's own settings for what was left open.

        Raises:
            TooMuch: a file has too many steps.
        """
        over = StepsOfFile if isinstance(workload, Observed) else Steady
        return cls(over.of(metric, workload))  # type: ignore[arg-type]

    def forecast(self, metric: Metric) -> StepForecast:
        return StepForecast(metric, self.over.work, prospect(LinearStatistic.of(metric), self.over.flow(metric)))

    def by_hand(self, metric: Metric) -> StepForecast:
        """The forecast with one draw of noise for each step."""
        return StepForecast(metric, self.over.work, by_hand(LinearStatistic.of(metric), self.over.flow(metric)))

    def outlook(self, metric: Metric) -> Outlook:
        return self.forecast(metric).outlook()

    def final(self, metric: Metric) -> Point:
        return self.forecast(metric).point(self.over.work.steps)

    def groups(self, metric: Metric) -> GroupsAhead | None:
        work, over = self.over.work, self.over
        if work.of_groups is None:
            return None
        if isinstance(over, Steady):
            group = GroupAhead.of(None, work.users, work.samples_per_user, self.final(metric))
            return GroupsAhead.alike(work.of_groups, group)
        looked_at = [
            GroupAhead.of(name, group.work.users, group.work.samples_per_user, StepSource(group).final(metric))
            for name, group in over.others.items()
        ]
        if breadth(LinearStatistic.of(metric)) is not None:
            return GroupsAhead.of(looked_at, *work.of_groups, work.group)
        # A sum's error is as large as it is beside the sum.
        return GroupsAhead.of(
            looked_at, *work.of_groups, work.group, lambda group: group.error / (group.users * group.samples_per_user)
        )


def typical(metric: Metric, spread: Fraction) -> float:
    """The mean size of values spread over the middle `spread` of the range; a count's are 1."""
    if isinstance(metric.of, PublicCount | Count):
        return 1.0
    low, high = map(float, metric.ranges[0])
    middle, half = (low + high) / 2, (high - low) / 2 * float(spread)
    low, high = middle - half, middle + half
    return abs(middle) if low * high >= 0 else (low**2 + high**2) / (2 * (high - low))
