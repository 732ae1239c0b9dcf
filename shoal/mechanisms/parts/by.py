"""The part `by`: the algorithm and its own parameters."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

Sigmas = tuple[Fraction | None, ...]  # one for each coordinate; None: only the range is known
Cap = int | Literal["median", "optimal"]


@dataclass(frozen=True, slots=True)
class Bars:
    """Confidence of accuracy bounds: failure probability, and number of noise intervals that hold jointly."""

    failure: Fraction  # probability that a bound fails
    simultaneous: int | None  # releases whose noise intervals hold together; None: each by itself


@dataclass(frozen=True, slots=True)
class FewUsersPrior:
    """Prior that the first users of a key choose privately."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Algorithm:
    """Algorithm of a metric; the fields are those that every algorithm has."""

    name: ClassVar[str]
    clamps: ClassVar[bool] = False  # whether estimates are clamped unless the configuration says otherwise
    bars: Bars
    users: int | None = None  # expected in a group; None: not stated

    def sigma(self, coordinate: int) -> Fraction | None:
        """Sigma of a coordinate; None if it has none."""
        sigmas: Sigmas = getattr(self, "sigmas", ())
        return sigmas[coordinate] if sigmas else None


@dataclass(frozen=True, slots=True, kw_only=True)
class OfMeans(Algorithm):
    """An algorithm of means without a decay."""

    withheld: bool = False  # whether releases count the samples that are left out


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharp(OfMeans):
    """Counters of least variance, for means and sums."""

    name = "sharp"
    clamps = True
    sigmas: Sigmas = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Naive(OfMeans):
    """One binary tree of clipped samples."""

    name = "naive"


@dataclass(frozen=True, slots=True, kw_only=True)
class AroundPrior(OfMeans):
    """An algorithm on blocks, which clips around a prior for each coordinate."""

    priors: tuple[Fraction, ...] | FewUsersPrior
    sigmas: Sigmas = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishful(AroundPrior):
    """One block of all samples of a unit (Algorithm 3 of George et al.)."""

    name = "wishful"


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleTree(AroundPrior):
    """Blocks in one counter (Algorithm 4 of George et al.)."""

    name = "single-tree"


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiTree(AroundPrior):
    """Blocks with one counter per level (Algorithm 5 of George et al.)."""

    name = "multi-tree"


@dataclass(frozen=True, slots=True, kw_only=True)
class Full(OfMeans):
    """Blocks whose centre is a private median."""

    name = "full"
    sigmas: Sigmas = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Patent(Algorithm):
    """The decayed sums of Bolot et al."""

    name = "patent"


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoSided(Algorithm):
    """Algorithm of relation add-remove: one counter for each side of the statistic, for a mean i and W - i."""

    name = "two-sided"
    clamps = True


@dataclass(frozen=True, slots=True, kw_only=True)
class OfCells(Algorithm):
    """An algorithm of a cell, which caps the samples of a user."""

    cap: Cap = "optimal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Best(OfCells):
    """The algorithm of least predicted error, by the counts of a cell."""

    name = "best"
    clamps = True
    spread_share: Fraction | None = None  # of epsilon, at most, that finds centre and spread; None: by counts alone
    prior: FewUsersPrior | None = None
    sigmas: Sigmas = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline(OfCells):
    """The mean of samples with noise for the whole range."""

    name = "baseline"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayAveraging(OfCells):
    """Means of arrays of users' samples."""

    name = "array-averaging"


@dataclass(frozen=True, slots=True, kw_only=True)
class Levy(OfCells):
    """Array means clipped to an interval that is found in private."""

    name = "levy"


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedQuantile(OfCells):
    """Array means clipped to private quantiles of fixed rank."""

    name = "fixed-quantile"


@dataclass(frozen=True, slots=True, kw_only=True)
class EpsilonQuantile(OfCells):
    """Array means clipped to private quantiles whose rank depends on epsilon."""

    name = "epsilon-quantile"


@dataclass(frozen=True, slots=True, kw_only=True)
class FewUsers(OfCells):
    """Means of few users with many samples each, by approximate differential privacy."""

    name = "few-users"
    clamps = True
    sigmas: Sigmas = ()
