"""Means, sums and counts that protect presence: two decayed sums for each key.

    P       the decayed sum of grid indices i, with noise       mean    low + (high - low) P / (P + Q)
    Q       that of steps - i, with noise of its own            count   (P + Q) / steps

Guarantee    epsilon for counters; what finds keys that nobody declared has a part of its own
Relation     add-remove: all records of a unit are there, or none is
Unit         at most m samples, whatever keys and steps they are in
Sensitivity  L1, exact: a sample adds i to one sum and steps - i to the other, which is `steps` whatever i is; so a
             unit moves both sums of all keys by at most m * steps together, and each has all of epsilon
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar, Literal

from shoal.mechanisms.accounts import Site
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.groups import IsHome, everywhere
from shoal.mechanisms.noise.keyed import derive
from shoal.mechanisms.spec import ADD_REMOVE, Spec
from shoal.mechanisms.statistic import Bounder, Estimate
from shoal.mechanisms.stepped.keys import decay_of
from shoal.mechanisms.stepped.statistic import SteppedStatistic
from shoal.mechanisms.sums.sums import DecayedSum
from shoal.mechanisms.two_sided import keys, words
from shoal.mechanisms.two_sided.accounts import EventAccounts, UnitAccounts
from shoal.mechanisms.two_sided.groups import DeclaredGroups
from shoal.mechanisms.two_sided.releaser import TwoSums

Name = Literal["mean", "sum", "count"]
ONE = Grid(Fraction(0), Fraction(1), 2)
SIDES = ("p", "q")
LEAST_COUNT = 3  # standard deviations below which nothing is said of a mean


@dataclass(frozen=True, kw_only=True)
class TwoSided(SteppedStatistic):
    """All public parameters of a mean, sum or count that protects presence."""

    statistic: Name
    grid: Grid = ONE
    groups: tuple[str, ...] | None = ("",)  # declared keys; None: they are found
    first: int = 0  # number of the first step
    end: int | None = None  # of the step after the last one

    statistics: ClassVar[tuple[str, ...]] = keys.STATISTICS
    algorithms: ClassVar[tuple[str, ...]] = (keys.TWO_SIDED,)
    relation: ClassVar[str] = ADD_REMOVE

    takes, check = staticmethod(keys.takes), staticmethod(keys.check)

    @staticmethod
    def is_clamped(spec: Spec) -> bool:
        return spec.statistic == "mean"

    @staticmethod
    def defaults(statistic: str) -> dict[str, Any]:
        return {"algorithm": keys.TWO_SIDED}

    @classmethod
    def clauses(cls, spec: Spec, loss: str) -> Iterator[str]:
        return words.clauses(spec, loss, cls.of(spec))

    @staticmethod
    def accounts(spec: Spec, bounder: Bounder, site: Site) -> EventAccounts | UnitAccounts:  # type: ignore[override]
        rule = keys.rule_of(spec)
        return (EventAccounts if spec.privacy_unit.is_event else UnitAccounts)(rule, site)

    @classmethod
    def of(cls, spec: Spec) -> "TwoSided":
        step = spec.cadence or 1
        return cls(
            statistic=spec.statistic,  # type: ignore[arg-type]  # one of them: the keys were checked
            decay=decay_of(spec),
            epsilon=spec.epsilon - keys.selection_epsilon(spec),
            delta=Fraction(0),
            max_contributions=spec.contribution_limit,
            grid=ONE if spec.statistic == "count" else Grid(*spec.ranges[0], spec.grid),
            clamps=cls.is_clamped(spec),
            groups=("",) if spec.group is None else spec.groups,
            first=(spec.start or 0) // step,
            end=None if spec.end is None else spec.end // step,
        )

    @cached_property
    def sums(self) -> DecayedSum:
        """One of the two sums of a key."""
        return self.made(self.max_contributions * self.grid.steps, self.epsilon)

    @property
    def decayed(self) -> tuple[DecayedSum, ...]:
        return (self.sums, self.sums)

    @property
    def sum_grids(self) -> tuple[Grid, ...]:
        return (self.grid, self.grid)

    def breadth(self, spread: Fraction = Fraction(1)) -> float | None:
        return float((self.grid.high - self.grid.low) * spread) if self.statistic == "mean" else None

    def noise_of(self, sd: float, half: float | None, n: float) -> tuple[float | None, float | None]:
        return sd, half

    def in_groups(self, key: bytes, is_home: IsHome = everywhere) -> DeclaredGroups:  # type: ignore[override]
        names = sorted(name for name in self.groups or () if is_home(name))
        return DeclaredGroups(partial(self.releaser, key), names, self.first, self.end)

    def releaser(self, key: bytes, group: bytes) -> "TwoSidedReleaser":
        return TwoSidedReleaser(self, key, group)

    def estimate(self, noisy: list[int], bars: tuple[float, ...]) -> Estimate:
        p, q = (number / self.sums.denominator for number in noisy)
        count, sd = (p + q) / self.grid.steps, bars[0]
        return Estimate(count, sd, None, None, {"count": count, "count_sd": sd}, {"mechanism": self.mechanism})


class TwoSidedReleaser(TwoSums):
    """One key's sums."""

    __slots__ = ("_statistic",)

    def __init__(self, statistic: TwoSided, key: bytes, group: bytes) -> None:
        def subkey(side: str, number: int) -> bytes:
            return derive(key, group, "tree", "step", 0, 0, side, number)

        summers = [statistic.sums.summer(partial(subkey, side)) for side in SIDES]
        super().__init__(summers, statistic.grid.steps)
        self._statistic = statistic

    def estimate(self) -> Estimate:
        """The release of the last complete step."""
        return self._statistic.estimate(self.noisy, self._statistic.bars(self.t))
