"""Every algorithm of a mean without decay is a class of public parameters, known to configurations by a name."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import ClassVar

from shoal.mechanisms import check
from shoal.mechanisms.continual_mean.forecast import Expected, Prospect, expected
from shoal.mechanisms.error_bars import COVERAGE, Law
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.groups import DrawnTogether, IsHome, NoisedByCounters, everywhere
from shoal.mechanisms.statistic import (
    COUNT_MASK,
    LEAST_EPSILON,
    Activation,
    Bounder,
    Contribution,
    Estimate,
    OnGrid,
)
from shoal.mechanisms.workload import Pattern


@dataclass(frozen=True, kw_only=True)
class MeanParameters(OnGrid):
    """All public parameters of a private mean; an algorithm is a subclass."""

    name: ClassVar[str]  # by which configurations know it

    grid: Grid
    epsilon: Fraction  # for everything one unit meets in the metric, all its groups together
    max_contributions: int  # m: per unit and group
    users: int  # n: expected; tunes accuracy, never the guarantee
    groups: int = 1  # G: of one unit
    failure: Fraction = Fraction(1, 1000)  # probability that an accuracy bound does not hold
    clamps: bool = False  # what is published lies between bounds that are known for the mean
    coverage: float = COVERAGE  # of a noise interval
    noise_kind: str | None = None  # the kind that was chosen, as releases name it; None where delta leaves no choice
    rho: Fraction | None = None  # for all groups together, where noise is Gaussian: then it is spent, and not epsilon

    def __post_init__(self) -> None:
        check.positive(
            epsilon=self.epsilon, max_contributions=self.max_contributions, users=self.users, groups=self.groups
        )
        if self.epsilon < LEAST_EPSILON:
            raise ValueError(f"epsilon must be at least {LEAST_EPSILON}: below it the noise is beyond all numbers")
        check.below(COUNT_MASK, max_contributions=self.max_contributions)
        check.probability(failure=self.failure)
        if self.rho is not None:
            check.positive(rho=self.rho)

    @property
    def group_epsilon(self) -> Fraction:
        """The epsilon that each group may use; exact, so the shares never exceed the whole."""
        return Fraction(self.epsilon) / self.groups

    @property
    def group_rho(self) -> Fraction | None:
        """The rho that each group may use, exactly; None where noise is not Gaussian."""
        return None if self.rho is None else self.rho / self.groups

    @property
    def late_variance(self) -> float:
        """Variance of the noise of the last sum expected, by which noise of a kind is chosen."""
        raise TypeError(f"{type(self).__name__} has noise of one kind")

    def chosen(self) -> list[str] | None:
        return None if self.noise_kind is None else [self.noise_kind]

    @cached_property
    def ends(self) -> tuple[float, float] | None:
        """The bounds that the mean is clamped to; None if it is not."""
        return (float(self.grid.low), float(self.grid.high)) if self.clamps else None

    @abstractmethod
    def bounder(self) -> Bounder:
        """The unit's side of the algorithm."""

    def named(self, found: Estimate) -> Estimate:
        """The release with the kind of noise, where that was chosen."""
        return found if self.noise_kind is None else replace(found, details={"mechanism": self.noise_kind})

    def counted(self, pattern: Pattern, tau: float) -> tuple[int, Law]:
        """The samples that count when the part tau of the time is over, and the law of the noise of their sum."""
        raise TypeError(f"{type(self).__name__} is not planned here")

    def latest(self, ticks: int) -> int:
        """Latest tick at which a group that has waited `ticks` ticks begins: `ticks`, for a mean that does not wait."""
        return ticks

    def prospect(self, pattern: Pattern, releases: int | None, spread: Fraction = Fraction(1)) -> Prospect:
        """The releases to come over a pattern.

        releases: over the whole time, evenly; None: one per contribution. spread: part of the range that values lie in.
        """
        return Counted(self, pattern)

    def in_groups(self, key: bytes, is_home: IsHome = everywhere) -> DrawnTogether:
        return DrawnTogether(partial(self.releaser, key))

    @abstractmethod
    def releaser(self, key: bytes, group: bytes, coordinate: int = 0) -> NoisedByCounters:
        """The statistic's side in one group, with noise from the metric's key, of its own for each coordinate."""


@dataclass(frozen=True)
class Counted:
    """The releases to come of any algorithm but sharp: its trees at the counts of the pattern."""

    mean: MeanParameters
    pattern: Pattern

    def at(self, tau: float) -> Expected:
        samples, scales = self.mean.counted(self.pattern, tau)
        return expected(self.mean.grid, samples, self.pattern.samples(None, tau), scales, self.mean.coverage)

    def likely(self, tau: float) -> None:
        """Always None: chance has no part in it."""


class Headed:
    """A releaser that has nothing to activate, and whose head is all of its state."""

    __slots__ = ()

    def close(self, tick: int | None = None) -> tuple[Activation, ...]:
        return ()

    @property
    def kept(self) -> Mapping[tuple[int, str], Contribution]:
        return {}

    def take_changes(self) -> tuple[list[Contribution], list[tuple[int, str]]]:
        return [], []
