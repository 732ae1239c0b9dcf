"""Who contributes when to a sum, count or decayed mean, and which of the samples count under its settings."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from shoal.mechanisms.group_outlook import by_size, some
from shoal.mechanisms.life import life_of
from shoal.mechanisms.observed import NOT_THERE, Observed, Sample, TooMuch
from shoal.mechanisms.plan import Spec, varied
from shoal.mechanisms.stepped.forecast import Counted, Flow
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
    def of(cls, spec: Spec, stated: Stated) -> "Steady":
        """The workload with the metric's own cap, end and life for what was left open; no other setting moves it."""
        step, unit = spec.cadence, spec.privacy_unit
        reach = REACH * (spec.decay_or_none.length or spec.decay_or_none.half_life or 0)
        over = stated.over or _until_end(spec) or spec.life or max(life_of(spec), reach)
        periods = 1.0 if unit.period is None else max(1.0, over / unit.period)
        samples = spec.contribution_limit * periods if stated.samples is None else stated.samples
        users, here, of_groups = stated.in_a_group(spec, samples)
        of_a_unit = 1.0 if unit.is_event else samples / periods
        steps = max(1, over // step)
        return cls(stated, StepWorkload(users, here, of_a_unit, steps, stated.law, stated.spread, of_groups=of_groups))

    def flow(self, spec: Spec) -> Flow:
        unit, work = spec.privacy_unit, self.work
        periods = None if unit.period is None else max(1.0, work.steps * spec.cadence / unit.period)
        # The cap is one over all groups of a unit, which come evenly.
        groups = self.stated.groups_of_a_user(spec)
        cap = spec.contribution_limit if groups == 1 else spec.contribution_limit / groups
        pattern = self.stated.pattern(work.users, work.samples)
        return Flow(pattern, work.steps, spec.max_events_per_user if unit.is_event else cap, periods)


def _until_end(spec: Spec) -> int | None:
    """How long a metric lasts, of one that says from when to when."""
    return None if spec.start is None or spec.end is None else int(spec.end - spec.start)


# -------------------------------------------------------------------- observed


class FileAccounts:
    """The events of a file in a metric's accounts, with any cap: by group and step, how many samples count."""

    def __init__(self, spec: Spec, observed: Observed) -> None:
        # The accounts ask for no mechanism, which might refuse a cap: they are those of a count.
        self._spec = varied(spec, statistic="count", algorithm="sharp", decay=None, life=None)
        self._observed = observed
        self._counted: dict[int | None, dict[str | None, Counter[int]]] = {}
        cap = None if spec.max_contributions is None else NO_CAP
        reasons = observed.account(varied(self._spec, max_contributions=cap), observed.samples).reasons
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

    def counted(self, cap: int | None, group: str | None) -> Counter[int]:
        if cap not in self._counted:
            counted: dict[str | None, Counter[int]] = {}
            accounted = self._observed.account(varied(self._spec, max_contributions=cap), self._observed.samples)
            for sample, reason in zip(self._observed.samples, accounted.reasons, strict=True):
                if reason is None:
                    counted.setdefault(sample.group, Counter())[sample.effective // self._spec.cadence] += 1
            self._counted[cap] = counted
        return self._counted[cap].get(group, Counter())

    @cached_property
    def of_a_unit(self) -> float:
        """The number of samples of a unit in all groups, on average."""
        unit, there = self._spec.privacy_unit, self.there
        if unit.is_event:
            return 1.0
        units = {(sample.user, 0 if unit.period is None else sample.effective // unit.period) for sample in there}
        return len(there) / len(units)


@dataclass(frozen=True)
class Steps:
    """One group of a file, from its first step to its last."""

    accounts: FileAccounts
    work: StepWorkload
    first: int
    there: Sequence[int]  # samples of each step
    others: Mapping[str, "Steps"] = field(default_factory=dict, repr=False)  # groups looked at, it among them

    @classmethod
    def of(cls, spec: Spec, observed: Observed) -> "Steps":
        """The largest group of the file.

        Raises:
            TooMuch: it has too many steps.
        """
        accounts = FileAccounts(spec, observed)
        names, users = by_size(accounts.groups), len({sample.user for sample in accounts.there})
        of_groups = None if spec.group is None else (len(names), users)
        groups = {name: cls._group(spec, accounts, name, of_groups) for name in some(names)}
        largest = groups[names[-1]]
        if largest.work.steps > MOST_STEPS:
            raise TooMuch(
                f"its events span {largest.work.steps} steps, and {MOST_STEPS} can be planned; give fewer events"
            )
        if spec.group is None:
            return largest
        others = {name or "": group for name, group in groups.items() if group.work.steps <= MOST_STEPS}
        return cls(accounts, largest.work, largest.first, largest.there, others)

    @classmethod
    def _group(cls, spec: Spec, accounts: FileAccounts, name: str | None, of_groups: tuple[int, int] | None) -> "Steps":
        samples = accounts.groups[name]
        there = Counter(sample.effective // spec.cadence for sample in samples)
        first, steps = min(there), max(there) - min(there) + 1
        users = len({sample.user for sample in samples})
        work = StepWorkload(
            users, len(samples) / users, accounts.of_a_unit, steps, "that of the file", Fraction(1), name, of_groups
        )
        return cls(accounts, work, first, _listed(there, first, min(steps, MOST_STEPS + 1)))

    def flow(self, spec: Spec) -> Counted:
        counted = self.accounts.counted(spec.max_contributions, self.work.group)
        return Counted(_listed(counted, self.first, self.work.steps), self.there)


def _listed(counts: Counter[int], first: int, steps: int) -> list[int]:
    return [counts[first + step] for step in range(steps)]


Source = Steady | Steps
