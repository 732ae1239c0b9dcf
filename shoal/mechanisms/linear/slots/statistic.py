"""Means, variances and distributions of each cell of a slot, which protect presence: noisy sides of its samples.

    statistic            what a sample, of grid index i in 0 .. W, adds to each side     width
    slot-mean            i and W - i                                                     W
    slot-mean-variance   (W - i)**2, 2 i (W - i) and i**2                                W**2
    slot-distribution    1 to a node of each level of a tree over bins (distribution.py)

Guarantee    declared cells: pure epsilon-DP for all releases of all cells and slots together, of each unit. Cells that
             nobody declared: (epsilon, delta)-DP, of which finding them has a part of epsilon and all of delta
Relation     add-remove: all records of a unit are there, or none is
Unit         at most m samples, whatever cells and slots they are in: of a user in one slot, in one period, or for ever
Sensitivity  L1, exact: a sample's parts add up to the width, so a unit moves all sides of all cells of all its slots by
             m * width at most, together. Longer units need no share of epsilon for a slot: the cap is over all of them
Noise        discrete Laplace, scale m * width / epsilon, a draw of its own for each side, cell and slot
Cells        declared ones are released in every slot, whatever comes. Others by first crossing at a single look, in
             each slot anew; a unit comes with the weight w_j to the j-th cell of a slot that it is in, in all its slots
             together, and all w_j add up to 1 at most
Variance     2 scale**2 a side, at most; of count and mean: estimates.py
Proof        docs/proofs/two-sided.md, "Slots", and first-crossing.md, "One look"
Source       Fitzsimons, Honaker, Shoemate and Singhal (2024) and Kulesza, Suresh and Wang (2024) for one release
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar

from shoal.mechanisms import check
from shoal.mechanisms.bins.shares import BINS, QUANTILES
from shoal.mechanisms.error_bars import noise_quantile, noise_sd
from shoal.mechanisms.grid import Grid, grid_of
from shoal.mechanisms.groups import Closed, IsHome, NoneHidden, NothingKept, Rows, everywhere
from shoal.mechanisms.linear import estimates
from shoal.mechanisms.linear.bounding import declared_of
from shoal.mechanisms.linear.came import NEWCOMERS
from shoal.mechanisms.linear.candidates import WORDS, weight_of
from shoal.mechanisms.linear.estimates import Sided
from shoal.mechanisms.linear.groups import DeclaredGroups
from shoal.mechanisms.linear.sides import ThreeSides, TwoSides
from shoal.mechanisms.linear.slots import bounding, words
from shoal.mechanisms.linear.slots.distribution import Distribution
from shoal.mechanisms.moments import Moments
from shoal.mechanisms.noise.keyed import Bits, derive
from shoal.mechanisms.noise.laplace import DiscreteLaplace
from shoal.mechanisms.parts import of as statistics
from shoal.mechanisms.parts.by import TwoSided as ByTwoSided
from shoal.mechanisms.parts.expect import expect
from shoal.mechanisms.parts.hides import AddRemove
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.per import One
from shoal.mechanisms.selection.first_crossing import FirstCrossing
from shoal.mechanisms.statistic import (
    LEAST_EPSILON,
    PART_BITS,
    Activation,
    Contribution,
    Estimate,
    OneByOne,
    OnGrid,
)

Of = statistics.Mean | statistics.MeanVariance | statistics.Distribution


@dataclass(frozen=True, kw_only=True)
class SidedSlots(OnGrid):
    """All public parameters of a statistic per slot that protects presence."""

    statistic: type[Of]
    algorithm: str = ByTwoSided.name
    grid: Grid
    epsilon: Fraction  # of what is released; finding cells has its own
    max_contributions: int = 1  # m: of a unit, in all its slots and cells together
    clamps: bool = True
    bins: int = BINS  # of a distribution, as the quantiles are
    quantiles: tuple[Fraction, ...] = QUANTILES
    groups: tuple[str, ...] | None = ("",)  # declared cells; None: they are found
    first: int = 0  # number of the first slot
    end: int | None = None  # of the slot after the last one
    selection: FirstCrossing | None = None  # of cells that nobody declared

    def __post_init__(self) -> None:
        check.positive(max_contributions=self.max_contributions, epsilon=self.epsilon)
        if self.epsilon < LEAST_EPSILON:
            raise ValueError(f"epsilon must be at least {LEAST_EPSILON}: below it the noise is beyond all numbers")
        _ = self.distribution, self.grid.squares if self.packing else None  # what they refuse, they refuse now

    # ---------------------------------------------------------------- of a metric's parts

    apart: ClassVar[bool] = False  # delta of several units is that of a group, which is never too little
    shared: ClassVar[bool] = False

    @classmethod
    def clauses(cls, metric: Metric, loss: str) -> Iterator[str]:
        return words.clauses(metric, loss, cls.of(metric).count_sd)

    accounts = staticmethod(bounding.accounts_of)

    @classmethod
    def of(cls, metric: Metric) -> "SidedSlots":
        what = expect(metric.of, statistics.Mean, statistics.MeanVariance, statistics.Distribution)
        hides, length = expect(metric.hides, AddRemove), metric.every
        bins: dict[str, Any] = (
            {"bins": what.bins, "quantiles": what.quantiles} if isinstance(what, statistics.Distribution) else {}
        )
        return cls(
            statistic=type(what),
            grid=grid_of(what.values),
            epsilon=metric.budget.left,
            max_contributions=metric.samples,
            clamps=what.clamp,
            groups=("",) if isinstance(metric.per, One) else declared_of(metric),
            first=length.index(hides.start),
            end=None if hides.end is None else length.index(hides.end),
            selection=bounding.selection_of(metric),
            **bins,
        )

    # ---------------------------------------------------------------- what it is

    @property
    def packing(self) -> Moments | None:
        return Moments(self.grid.steps) if self.statistic is statistics.MeanVariance else None

    @cached_property
    def distribution(self) -> Distribution | None:
        """What is told of samples by bins; None of a mean."""
        if self.statistic is not statistics.Distribution:
            return None
        return Distribution(self.bins, self.quantiles, self.grid, self.max_contributions / self.epsilon)

    @cached_property
    def sides(self) -> TwoSides | ThreeSides:
        return (ThreeSides if self.statistic is statistics.MeanVariance else TwoSides)(self.grid.steps)

    @property
    def scale(self) -> Fraction:
        """The scale of each side's noise."""
        return self.max_contributions * self.sides.width / self.epsilon

    @cached_property
    def mechanism(self) -> str:
        """The name that a release gives the mechanism that made it."""
        return f"{len(self.sides.noised)} sides" if self.distribution is None else self.distribution.mechanism

    @property
    def count_sd(self) -> float:
        """The standard deviation of the noise in a cell's number of samples."""
        if self.distribution is not None:
            return self.distribution.count_sd
        return noise_sd(((self.scale, len(self.sides.noised)),)) / self.sides.width

    def bounder(self) -> OneByOne:
        parts = 1 if self.distribution is None else min(self.bins, 1 << PART_BITS)
        return OneByOne(self.max_contributions, parts=parts if self.selection is None else max(parts, 1 + NEWCOMERS))

    def in_groups(self, key: bytes, is_home: IsHome = everywhere) -> "DeclaredGroups | FoundCells":
        if self.selection is not None:
            return FoundCells(self, self.selection, key)
        names = sorted(name for name in self.groups or () if is_home(name))
        return DeclaredGroups(partial(DeclaredCell, self, key), names, self.first, self.end)

    # ---------------------------------------------------------------- a release

    def released(self, key: bytes, cell: bytes, slot: int, contributions: Iterable[Contribution]) -> Estimate:
        """A cell's release of a slot, whatever came."""
        return self.estimate(self.noisy_sides(key, cell, slot, contributions))

    def noisy_sides(self, key: bytes, cell: bytes, slot: int, contributions: Iterable[Contribution]) -> list[int]:
        """All that a release tells of what came."""
        sides = self._sums(contributions) if self.distribution is None else self.distribution.levels(contributions)
        return [noisy for side, scale, sums in sides for noisy in self.noisy(key, cell, slot, side, scale, sums)]

    def _sums(self, contributions: Iterable[Contribution]) -> list[tuple[str, Fraction, list[int]]]:
        """The name of each side, the scale of its noise, and its sum."""
        sums = [0] * len(self.sides.noised)
        for contribution in contributions:
            if contribution.number != NEWCOMERS:  # who finds a cell, and is no sample
                parts = self.sides.parts(contribution.samples, contribution.total)
                sums = [a + b for a, b in zip(sums, parts, strict=True)]
        return [(side.draw[1], self.scale, [total]) for side, total in zip(self.sides.noised, sums, strict=True)]

    def noisy(self, key: bytes, cell: bytes, slot: int, side: str, scale: Fraction, sums: list[int]) -> list[int]:
        """The sums of one side of a cell in a slot, each with noise of its own."""
        noise = DiscreteLaplace(scale, derive(key, cell, "side", "slot", 0, 0, slot, side))
        return [total + noise.draw(index) for index, total in enumerate(sums)]

    def estimate(self, noisy: list[int]) -> Estimate:
        """The estimate from the noisy sides of a cell."""
        if self.distribution is not None:
            return replace(self.distribution.estimate(noisy), details={"mechanism": self.mechanism})
        law = ((self.scale, 1),)
        sided = Sided(noisy, 1, self.sides.width, noise_sd(law), noise_quantile(law))
        make = estimates.mean if self.statistic is statistics.Mean else estimates.mean_and_variance
        made = make(self.grid, self.sides.places, sided, clamps=self.clamps)
        return replace(made, details={"mechanism": self.mechanism})


class DeclaredCell:
    """One declared cell, slot after slot: nothing but the number of the slot outlives it."""

    __slots__ = ("_cell", "_key", "_open", "_slot", "_statistic")

    def __init__(self, statistic: SidedSlots, key: bytes, cell: bytes) -> None:
        self._statistic, self._key, self._cell = statistic, key, cell
        self._slot = statistic.first - 1  # the last complete one
        self._open: list[Contribution] = []

    def add(self, contribution: Contribution) -> tuple[Activation, ...]:
        self._open.append(contribution)
        return ()

    def close(self, tick: int | None = None) -> tuple[Activation, ...]:
        self._slot += 1
        return ()

    def estimate(self) -> Estimate:
        """The release of the slot that was closed last."""
        came, self._open = self._open, []
        return self._statistic.released(self._key, self._cell, self._slot, came)

    @property
    def kept(self) -> Mapping[tuple[int, str], Contribution]:
        return {}

    def take_changes(self) -> tuple[list[Contribution], list[tuple[int, str]]]:
        return [], []

    def head(self) -> list[Any]:
        return [self._slot]

    def restore(self, head: list[Any], kept: Iterable[Contribution]) -> None:
        (self._slot,) = head


class FoundCells(NothingKept, NoneHidden):
    """Cells that nobody declared, found in each slot anew. Nothing of one slot outlives it, shown or not."""

    def __init__(self, statistic: SidedSlots, selection: FirstCrossing, key: bytes) -> None:
        self._statistic, self._selection, self._key = statistic, selection, key

    def due(self) -> int | None:
        """Always None: a cell without a unit is never shown."""
        return None

    def close(self, tick: int, rows: Rows, after: str | None = None) -> Iterator[Closed | None]:
        """The cells of a slot that are shown; of the others nobody is to know."""
        for cell, contributions in rows:
            if not self.is_shown(cell, tick, contributions):
                yield Closed(cell, None, is_published=False, is_hidden=True)
                continue
            yield Closed(cell, self._statistic.released(self._key, cell.encode(), tick, contributions))

    def is_shown(self, cell: str, slot: int, contributions: Iterable[Contribution]) -> bool:
        """Whether the units that came to a cell in a slot outnumber its noisy threshold.

        Bins of a distribution have levels above 0, and one of them the number of newcomers.
        """
        weight = sum(weight_of(one.total) for one in contributions if one.number == NEWCOMERS and not one.level)
        words = partial(self._words, cell.encode(), slot)
        return weight > 0 and self._selection.showing(1, weight, partial(words, "rho"), words("cross")) is not None

    def _words(self, cell: bytes, slot: int, name: str) -> Iterator[int]:
        return Bits(derive(self._key, cell, name, "slot", 0, 0, slot), WORDS).draw(0)
