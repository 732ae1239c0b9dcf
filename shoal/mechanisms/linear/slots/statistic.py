"""Means, variances and distributions of each cell of a slot, which protect presence: noisy sides of its samples.

Each slot is one step, and a cell lives for that step: nothing of it is in another slot.

Guarantee    declared cells: pure epsilon-DP for all releases of all cells and slots together, of each unit. Cells that
             nobody declared: (epsilon, delta)-DP, of which finding them has a part of epsilon and all of delta
Relation     add-remove: all records of a unit are there, or none is
Unit         at most m samples, whatever cells and slots they are in: of a user in one slot, in one period, or for ever
Sensitivity  that of its sides (sides.py, distribution.py), over all cells of all slots of a unit together. Longer units
             need no share of epsilon for a slot: the cap is over all of them
Noise        discrete Laplace, scale m w / (q epsilon), a draw of its own for each side, cell and slot
Cells        declared ones are released in every slot, whatever comes. Others by first crossing at a single look, in
             each slot anew; a unit comes with the weight w_j to the j-th cell of a slot that it is in, in all its slots
             together, and all w_j add up to 1 at most
Variance     2 scale**2 a side, at most; of count and mean: estimates.py
Proof        docs/proofs/two-sided.md, "Slots", and first-crossing.md, "One look"
Source       Fitzsimons, Honaker, Shoemate and Singhal (2024) and Kulesza, Suresh and Wang (2024) for one release
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import groupby, islice
from typing import Any

from shoal.mechanisms.bins.shares import BINS, QUANTILES
from shoal.mechanisms.bins.tree import tree_for
from shoal.mechanisms.counters.counter import Subkeys
from shoal.mechanisms.error_bars import noise_sd
from shoal.mechanisms.grid import Grid, grid_of
from shoal.mechanisms.groups import Closed, IsHome, Rows, SlotGroups, everywhere
from shoal.mechanisms.linear.bounding import declared_of
from shoal.mechanisms.linear.came import NEWCOMERS
from shoal.mechanisms.linear.candidates import WORDS, weight_of
from shoal.mechanisms.linear.groups import StepGroups
from shoal.mechanisms.linear.sides import Side, Sides, hidden_sides
from shoal.mechanisms.linear.slots import bounding, words
from shoal.mechanisms.linear.slots.distribution import LevelEstimates, Levels
from shoal.mechanisms.linear.statistic import Estimator, LinearStatistic
from shoal.mechanisms.noise.keyed import Bits, derive
from shoal.mechanisms.noise.laplace import DiscreteLaplace
from shoal.mechanisms.parts import of as statistics
from shoal.mechanisms.parts.by import TwoSided
from shoal.mechanisms.parts.expect import expect
from shoal.mechanisms.parts.hides import AddRemove
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.per import One
from shoal.mechanisms.selection.first_crossing import FirstCrossing
from shoal.mechanisms.statistic import PART_BITS, Activation, Contribution, Estimate, OneByOne
from shoal.mechanisms.sums.decays import Decay, Window

Of = statistics.Mean | statistics.Variance | statistics.Distribution


def slot_draws(key: bytes, cell: bytes, side: Side) -> Subkeys:
    """Subkeys of the draws of one side of a cell, by the number of the slot."""
    name = side.draw[1]
    return lambda slot: derive(key, cell, "side", "slot", 0, 0, slot, name)


def slot_sides(statistic: type[Of], grid: Grid, bins: int = BINS) -> Sides:
    """Sides of a statistic in one slot."""
    return Levels(tree_for(bins)) if statistic is statistics.Distribution else hidden_sides(statistic, grid)[1]


@dataclass(frozen=True, kw_only=True)
class LinearSlots(LinearStatistic):
    """All public parameters of a statistic per slot that protects presence."""

    decay: Decay = Window(1)
    algorithm: str = TwoSided.name
    clamps: bool = True
    quantiles: tuple[Fraction, ...] = QUANTILES
    draws: Any = field(default=slot_draws, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.of_levels, self.grid.squares if self.packing else None  # what they refuse, they refuse now

    # ---------------------------------------------------------------- of a metric's parts

    accounts = staticmethod(bounding.accounts_of)

    @classmethod
    def clauses(cls, metric: Metric, loss: str) -> Iterator[str]:
        return words.clauses(metric, loss, cls.of(metric).count_sd)

    @classmethod
    def of(cls, metric: Metric) -> "LinearSlots":
        what = expect(metric.of, statistics.Mean, statistics.Variance, statistics.Distribution)
        hides, length, grid = expect(metric.hides, AddRemove), metric.every, grid_of(what.values)
        bins, quantiles = (
            (what.bins, what.quantiles) if isinstance(what, statistics.Distribution) else (BINS, QUANTILES)
        )
        return cls(
            statistic=type(what),
            sides=slot_sides(type(what), grid, bins),
            grid=grid,
            epsilon=metric.budget.left,
            max_contributions=metric.samples,
            clamps=what.clamp,
            quantiles=quantiles,
            groups=("",) if isinstance(metric.per, One) else declared_of(metric),
            first=length.index(hides.start),
            end=None if hides.end is None else length.index(hides.end),
            selection=bounding.selection_of(metric),
        )

    # ---------------------------------------------------------------- what it is

    @cached_property
    def of_levels(self) -> LevelEstimates | None:
        """Estimates from the levels of a tree over bins; None for a mean."""
        if not isinstance(self.sides, Levels):
            return None
        return LevelEstimates(self.sides.tree, self.quantiles, self.grid, self.max_contributions / self.epsilon)

    @cached_property
    def mechanism(self) -> str:
        """The name that a release gives the mechanism that made it."""
        return f"{len(self.sides.noised)} sides" if self.of_levels is None else self.of_levels.mechanism

    def chosen(self) -> None:  # type: ignore[override]
        """Always None: no float chooses anything."""

    @property
    def count_sd(self) -> float:
        """The standard deviation of the noise in a cell's number of samples."""
        if self.of_levels is not None:
            return self.of_levels.count_sd
        return noise_sd(((self._named[0][1], len(self.sides.noised)),)) / self.sums.width * self.max_contributions

    @cached_property
    def _named(self) -> tuple[tuple[Side, Fraction, int], ...]:
        """Sides that draw under one name: the first of them, the scale of their noise, and how many they are."""
        pairs = zip(self.sides.noised, self.decayed, strict=True)
        found = [list(those) for _, those in groupby(pairs, key=lambda pair: pair[0].draw[:2])]
        return tuple((those[0][0], those[0][1].width / those[0][1].epsilon, len(those)) for those in found)

    def bounder(self) -> OneByOne:
        parts = 1 if self.of_levels is None else min(self.of_levels.tree.bins, 1 << PART_BITS)
        return OneByOne(self.max_contributions, parts=parts if self.selection is None else max(parts, 1 + NEWCOMERS))

    def in_groups(self, key: bytes, is_home: IsHome = everywhere) -> Any:
        """Cells of the metric in a partition."""
        if self.selection is not None:
            return SlotGroups(partial(self._find, self.selection, key))
        names = sorted(name for name in self.groups or () if is_home(name))
        return StepGroups(partial(DeclaredCell, self, key), names, self.first, self.end)

    # ---------------------------------------------------------------- a release

    def released(self, key: bytes, cell: bytes, slot: int, contributions: Iterable[Contribution]) -> Estimate:
        """A cell's release of a slot, whatever came."""
        noisy = self.noisy_sides(key, cell, slot, contributions)
        made = self.estimate(noisy, self.bars(1), {"mechanism": self.mechanism})
        assert made is not None  # noqa: S101
        return made

    def noisy_sides(self, key: bytes, cell: bytes, slot: int, contributions: Iterable[Contribution]) -> list[int]:
        """All that a release tells of what came."""
        return self.noisy(key, cell, slot, self.exact(contributions))

    def exact(self, contributions: Iterable[Contribution]) -> Iterable[int]:
        """The sum of each side."""
        if isinstance(self.sides, Levels):
            return self.sides.parts(0, self.sides.histogram(contributions))
        sums = [0] * len(self.sides.noised)
        for contribution in contributions:
            if contribution.number != NEWCOMERS:  # who finds a cell, and is no sample
                parts = self.sides.parts(contribution.samples, contribution.total)
                sums = [a + b for a, b in zip(sums, parts, strict=True)]
        return sums

    def noisy(self, key: bytes, cell: bytes, slot: int, sums: Iterable[int]) -> list[int]:
        """The sums of all sides of a cell in a slot, each with noise of its own."""
        found, rest = list[int](), iter(sums)
        for side, scale, count in self._named:
            noise = DiscreteLaplace(scale, self.draws(key, cell, side)(slot))
            found += [total + noise.draw(index) for index, total in enumerate(islice(rest, count))]
        return found

    @cached_property
    def estimate(self) -> Estimator:
        """The estimate from the noisy sides of a cell."""
        of_levels = self.of_levels
        if of_levels is None:
            return self._of_hidden
        return lambda released, bars, details: replace(of_levels.estimate(released), details=details)

    # ---------------------------------------------------------------- cells that nobody declared

    def _find(
        self, selection: FirstCrossing, key: bytes, slot: int, rows: Rows, after: str | None
    ) -> Iterator[Closed | None]:
        """The cells of a slot that are shown; of the others nobody is to know."""
        for cell, contributions in rows:
            if not self.is_shown(selection, key, cell, slot, contributions):
                yield Closed(cell, None, is_published=False, is_hidden=True)
                continue
            yield Closed(cell, self.released(key, cell.encode(), slot, contributions))

    def is_shown(
        self, selection: FirstCrossing, key: bytes, cell: str, slot: int, contributions: Iterable[Contribution]
    ) -> bool:
        """Whether the units that came to a cell in a slot outnumber its noisy threshold.

        Bins of a distribution have levels above 0, and one of them the number of newcomers.
        """
        weight = sum(weight_of(one.total) for one in contributions if one.number == NEWCOMERS and not one.level)
        words = partial(slot_words, key, cell.encode(), slot)
        return weight > 0 and selection.showing(1, weight, partial(words, "rho"), words("cross")) is not None


def slot_words(key: bytes, cell: bytes, slot: int, name: str) -> Iterator[int]:
    """The words of a draw that finds a cell in a slot."""
    return Bits(derive(key, cell, name, "slot", 0, 0, slot), WORDS).draw(0)


class DeclaredCell:
    """One declared cell, slot after slot: nothing but the number of the slot outlives it."""

    __slots__ = ("_cell", "_key", "_open", "_slot", "_statistic")

    def __init__(self, statistic: LinearSlots, key: bytes, cell: bytes) -> None:
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
