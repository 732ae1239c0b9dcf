"""What a statistic that is released at every step is made of: sums of samples, which may forget, in every group.

Unit         at most m samples, whatever groups and steps they are in: a user's, a user's of one period, or one event
Groups       a unit's samples move all groups' sums together by at most m times what one moves, so that groups share
             epsilon without a split: noise of different groups is independent, and losses add up like the changes
Noise        of the decayed sums, from subkeys of the group
"""

import hashlib
from abc import abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import ClassVar

from shoal.mechanisms import check
from shoal.mechanisms.error_bars import COVERAGE
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.groups import IsHome, everywhere
from shoal.mechanisms.linear import words
from shoal.mechanisms.linear.groups import StepGroups
from shoal.mechanisms.overall_accounts import accounts_of_values
from shoal.mechanisms.statistic import LEAST_EPSILON, OneByOne, OnGrid, Releaser
from shoal.mechanisms.sums.decays import Decay, Listed, Window
from shoal.mechanisms.sums.gaussian_window import RootWindow
from shoal.mechanisms.sums.sums import DecayedSum

BARS_KEPT = 1 << 14  # groups of a metric ask for the same ones


@dataclass(frozen=True, kw_only=True)
class SteppedStatistic(OnGrid):
    """All public parameters of a statistic that is released at every step."""

    decay: Decay
    algorithm: str = "sharp"
    grid: Grid
    epsilon: Fraction
    delta: Fraction = Fraction(0)
    max_contributions: int = 1  # m: of a unit, in all groups together
    clamps: bool = False  # what is published lies between known ends
    max_gap: int = 1  # steps without a sample in which a group is released all the same
    coverage: float = COVERAGE  # of the noise interval of each sum
    _bars: dict[int, tuple[float, ...]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check.positive(max_contributions=self.max_contributions, epsilon=self.epsilon)
        if self.epsilon < LEAST_EPSILON:
            raise ValueError(f"epsilon must be at least {LEAST_EPSILON}: below it the noise is beyond all numbers")

    @property
    @abstractmethod
    def decayed(self) -> tuple[DecayedSum, ...]:
        """The decayed sums that a group consists of."""

    def made(self, width: int, epsilon: Fraction) -> DecayedSum:
        """The decayed sum of this width and epsilon."""
        if self.algorithm == "patent":
            return self.decay.patent(width, epsilon)
        return self.decay.sharp(width, epsilon, Fraction(self.delta))

    @property
    def mechanism(self) -> str:
        """The name that a release gives the mechanism that made it."""
        return self.decayed[0].mechanism

    @property
    def rho(self) -> Fraction | None:
        return sums.tree.rho if isinstance(sums := self.decayed[0], RootWindow) else None

    def bars(self, t: int) -> tuple[float, ...]:
        """Standard deviation of the noise in each sum of release t and the quantile of its size, in the units of what
        is summed.
        """
        bars = self._bars.get(t)
        if bars is None:
            if len(self._bars) >= BARS_KEPT:
                self._bars.clear()
            bars = self._bars[t] = tuple(
                grid.width_value(bar)
                for grid, one in zip(self.sum_grids, self.decayed, strict=True)
                for bar in (one.noise_sd(t), one.noise_quantile(t, self.coverage))
            )
        return bars

    @property
    def sum_grids(self) -> tuple[Grid, ...]:
        """The grid of each sum: what a step of it is worth."""
        return (self.grid,)

    # ---------------------------------------------------------------- of a metric's parts

    apart: ClassVar[bool] = False
    shared: ClassVar[bool] = False

    accounts = staticmethod(accounts_of_values)
    clauses = staticmethod(words.clauses)

    # ---------------------------------------------------------------- what it is

    def chosen(self) -> list[str]:
        """The decayed sums that were chosen, as the digest of the parameters has them.

        They are chosen by floats: another machine that chose others would draw other noise under the same names.
        """
        shapes = ", ".join(sums.shape() for sums in self.decayed)
        return [self.mechanism, hashlib.sha256(shapes.encode()).hexdigest()]

    @property
    def rest(self) -> int:
        """Steps of silence after which a group rests: `max_gap`, but never while a window of time still holds any."""
        if self.of_updates or not isinstance(self.decay, Window | Listed):
            return self.max_gap
        return max(self.max_gap, self.decay.length)

    @property
    def of_updates(self) -> bool:
        """Whether steps without a sample take no part in the sums: each release repeats the one before."""
        return isinstance(self.decay, Window) and self.decay.of_updates

    def bounder(self) -> OneByOne:
        return OneByOne(self.max_contributions)

    def in_groups(self, key: bytes, is_home: IsHome = everywhere) -> StepGroups:
        return StepGroups(partial(self.releaser, key), self.rest)

    @abstractmethod
    def releaser(self, key: bytes, group: bytes) -> Releaser:
        """What becomes of one group's contributions, with noise from the metric's key."""


class PlannedStatistic(SteppedStatistic):
    """One whose error is planned from rates of samples, which are public."""

    ends: ClassVar[str] = "range"  # what `breadth` is the width of

    @property
    def is_exact(self) -> bool:
        """Whether it has no noise and costs nothing."""
        return False

    @abstractmethod
    def breadth(self, spread: Fraction = Fraction(1)) -> float | None:
        """The width of what values lie in if samples lie in this part of the range; None: they grow with samples."""

    @abstractmethod
    def noise_of(self, sd: float, half: float | None, n: float) -> tuple[float | None, float | None]:
        """The noise of a release from `n` samples, given that of the first sum in units of the range; None: none."""

    def noise_words(self, name: str) -> str:
        """What planned noise is measured in."""
        return f"in units of {name}"
