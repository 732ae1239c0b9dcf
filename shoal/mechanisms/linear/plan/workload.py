"""Who contributes when to a sum, count or decayed mean, and which of the samples count under its settings."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

from shoal.mechanisms.group_outlook import by_size, some
from shoal.mechanisms.life import life_of
from shoal.mechanisms.linear.decay import span_of
from shoal.mechanisms.linear.plan.forecast import Counted, Flow
from shoal.mechanisms.observed import NOT_THERE, Observed, Sample, TooMuch
from shoal.mechanisms.parts.at import Steps, Undecayed
from shoal.mechanisms.parts.by import Sharp
from shoal.mechanisms.parts.expect import expect
from shoal.mechanisms.parts.hides import Events
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.of import PublicCount
from shoal.mechanisms.parts.variants import with_algorithm, with_samples
from shoal.mechanisms.workload import Stated

REACH = 4  # windows or half-lives that the time has at least, where nothing says how long it will last
MOST_STEPS = 300_000  # of a file
NO_CAP = 1 << 20


@dataclass(frozen=True, slots=True)
class StepWorkload:
    """A workload in numbers."""

    users: int
    samples: float  # of a user, on average, over the whole time
    of_a_unit: float  # of one whom the guarantee is for: a user, a user and period, an event
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
        pattern = self.stated.pattern(work.users, work.samples)
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
        reasons = observed.account(with_samples(self._metric, NO_CAP), observed.samples).reasons
        self.there = [
            sample for sample, reason in zip(observed.samples, reasons, strict=True) if reason not in NOT_THERE
        ]

    @cached_property
    def groups(self) -> Mapping[str | None, Sequence[Sample]]:
        """The samples that would count if there were no cap."""
        groups: dict[str | None, list[Sample]] = {}
        for sample in self.there:
            groups.setdefault(sample.group, []).append(sample)
        return groups

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
            users, len(samples) / users, accounts.of_a_unit, steps, "that of the file", Fraction(1), name, of_groups
        )
        return cls(accounts, work, first, _listed(there, first, min(steps, MOST_STEPS + 1)))

    def flow(self, metric: Metric) -> Counted:
        counted = self.accounts.counted(metric.samples, self.work.group)
        return Counted(_listed(counted, self.first, self.work.steps), self.there)


def _listed(counts: Counter[int], first: int, steps: int) -> list[int]:
    return [counts[first + step] for step in range(steps)]


Source = Steady | StepsOfFile
