"""Counts, sums, means, variances and distributions that are sums of samples: a decayed sum for each side of a key.

A statistic is its sides (sides.py): what a sample adds to each, which of them are public, and how much noise the others
need. Under relation values the number of samples is public, and under add-remove it is as noisy as the rest.

Guarantee    that of the decayed sums, for all releases of all keys together: pure epsilon-DP; (epsilon, delta)-DP of
             Gaussian windows. Whatever is in the stream may react to releases. Finding keys that nobody declared, and
             choosing the range of a key's values (upper_end.py), has an epsilon of its own
Relation     values: two streams differ in the values of one unit; who contributes when, and in which key, is public.
             add-remove: all records of a unit are there, or none is
Unit         at most m samples, whatever keys and steps they are in: a user's, a user's of one period, or one event; of
             users one in each of K keys or, per step, m
Sensitivity  L1, exact: for one sample the sum over sides of |change| q / w is at most 1 (sides.py), so that all sides
             of all keys lose epsilon together, without a split: their noise is independent, and losses add up like the
             changes. Where widths differ between keys, each key's sums have noise for its own. L2, for Gaussian noise:
             the same number times the longest column of one sum's matrix
Noise        of the decayed sums, from subkeys of the key and side
Variance     public_estimates.py, estimates.py
Proof        docs/proofs/decay.md, docs/proofs/decayed-variance.md, docs/proofs/two-sided.md, docs/proofs/clip-range.md
Source       Bolot, Fawaz, Muthukrishnan, Nikolov and Taft (2013), for algorithm "patent"; Fitzsimons, Honaker, Shoemate
             and Singhal (2024) and Kulesza, Suresh and Wang (2024) for one release under add-remove
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar

from shoal.mechanisms import check
from shoal.mechanisms.bins.shares import BINS, check_bins
from shoal.mechanisms.counters.counter import Subkeys
from shoal.mechanisms.error_bars import COVERAGE, coverage_of
from shoal.mechanisms.grid import Grid, grid_of
from shoal.mechanisms.groups import IsHome, everywhere
from shoal.mechanisms.linear import bounding, distribution, estimates, public_estimates, words
from shoal.mechanisms.linear.came import NEWCOMERS, PARTS, ByPart
from shoal.mechanisms.linear.candidates import Candidates, keyed_words
from shoal.mechanisms.linear.clipped import ClippedReleaser
from shoal.mechanisms.linear.decay import decay_of, history_of
from shoal.mechanisms.linear.estimates import Sided
from shoal.mechanisms.linear.groups import FoundGroups, StepGroups
from shoal.mechanisms.linear.sides import (
    Nodes,
    Products,
    Samples,
    Side,
    Sides,
    Signed,
    ThreeSides,
    TwoSides,
    hidden_sides,
    sides_of_values,
)
from shoal.mechanisms.linear.sums import LinearSums, node_text
from shoal.mechanisms.noise.keyed import derive
from shoal.mechanisms.parts.at import Steps
from shoal.mechanisms.parts.by import Patent
from shoal.mechanisms.parts.expect import expect
from shoal.mechanisms.parts.hides import AddRemove
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.of import Distribution, Mean, Of, Sum, Variance, WithValues
from shoal.mechanisms.parts.per import One
from shoal.mechanisms.selection.first_crossing import FirstCrossing
from shoal.mechanisms.selection.upper_end import UpperEnd
from shoal.mechanisms.statistic import LEAST_EPSILON, NO_ESTIMATE, Estimate, OneByOne, OnGrid, Packing
from shoal.mechanisms.sums.decays import Decay, Listed, Window
from shoal.mechanisms.sums.gaussian_window import RootWindow
from shoal.mechanisms.sums.sums import DecayedSum

ONE = Grid(Fraction(0), Fraction(1), 2)  # of what has no range
BARS_KEPT = 1 << 14  # keys of a metric ask for the same ones

Estimator = Callable[[Sequence[int], tuple[float, ...], Mapping[str, Any]], Estimate | None]


def step_draws(key: bytes, group: bytes, side: Side) -> Subkeys:
    """Subkeys of the draws of one side of a key, by the number that its sum gives each."""
    purpose, *names = side.draw
    return partial(derive, key, group, "tree", purpose, 0, 0, *names)


@dataclass(frozen=True, kw_only=True)
class LinearStatistic(OnGrid):
    """All public parameters of a statistic that is a sum of samples.

    >>> from shoal.mechanisms.statistic import Contribution
    >>> grid = Grid(Fraction(0), Fraction(8), 8)
    >>> sure = LinearStatistic(statistic=Mean, sides=TwoSides(8), decay=Window(9), grid=grid, epsilon=10**9)
    >>> releaser = sure.releaser(bytes(32), b"")
    >>> _, _ = releaser.add(Contribution(0, "", 0, 0, samples=4, total=12)), releaser.close()
    >>> released = releaser.estimate()
    >>> released.value, released.counts
    (3.0, {'count': 4.0, 'count_sd': 0.0})
    """

    statistic: type[Of]
    sides: Sides
    decay: Decay
    algorithm: str = "sharp"
    grid: Grid = ONE
    epsilon: Fraction = Fraction(0)  # 0 of an exact count alone
    delta: Fraction = Fraction(0)
    max_contributions: int = 1  # m: of a unit, in all keys together
    clamps: bool = False  # what is published lies between known ends
    coverage: float = COVERAGE  # of the noise interval of each sum
    quantiles: tuple[Fraction, ...] = ()  # of a distribution
    max_gap: int = 1  # of relation values: steps without a sample in which a key is still released
    groups: tuple[str, ...] | None = ("",)  # of add-remove, as all that follows: declared keys; None: they are found
    first: int = 0  # number of the first step
    end: int | None = None  # of the step after the last one
    selection: FirstCrossing | None = None  # of keys that nobody declared
    clip: UpperEnd | None = None  # of each key's range, chosen in private; None: it is that of the grid
    draws: Callable[[bytes, bytes, Side], Subkeys] = field(default=step_draws, repr=False)
    _under: dict[int, "LinearStatistic"] = field(default_factory=dict, init=False, repr=False, compare=False)
    _bars: dict[int, tuple[float, ...]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check.positive(max_contributions=self.max_contributions)
        if self.is_exact:
            return
        check.positive(epsilon=self.epsilon)
        if self.epsilon < LEAST_EPSILON:
            raise ValueError(f"epsilon must be at least {LEAST_EPSILON}: below it the noise is beyond all numbers")
        if isinstance(self.sides, Products):
            if self.delta:
                raise ValueError("delta must be 0: the bound that both sums share holds for pure noise")
            _ = self.grid.squares  # what it refuses, it refuses now
        if isinstance(self.sides, Nodes):
            check_bins(self.sides.tree.bins, self.quantiles, self.grid)
        _ = self.history  # what it refuses, it refuses now

    # ---------------------------------------------------------------- sums

    @property
    def packing(self) -> Packing | None:
        return self.sides.packing

    @property
    def is_exact(self) -> bool:
        """Whether no side has noise, which costs nothing."""
        return not self.sides.noised

    @cached_property
    def decayed(self) -> tuple[DecayedSum, ...]:
        """The decayed sum of each noised side; of an exact count one whose weights alone are used."""
        noised = self.sides.noised or (Side((), self.grid.steps),)
        made = {side[1:]: self.made(side.width, side.share) for side in noised}
        return tuple(made[side[1:]] for side in noised)

    def made(self, width: int, share: Fraction) -> DecayedSum:
        """The decayed sum of a side with this width and share of epsilon."""
        width, epsilon = self.max_contributions * width, (Fraction(self.epsilon) or Fraction(1)) * share
        if self.algorithm == Patent.name:
            return self.decay.patent(width, epsilon)
        return self.decay.sharp(width, epsilon, Fraction(self.delta))

    @property
    def sums(self) -> DecayedSum:
        """The decayed sum of the first noised side."""
        return self.decayed[0]

    @cached_property
    def mechanism(self) -> str:
        """The name that a release gives the mechanism that made it."""
        return "exact" if self.is_exact else self.sums.mechanism

    @property
    def rho(self) -> Fraction | None:
        return sums.tree.rho if isinstance(sums := self.sums, RootWindow) else None

    def chosen(self) -> list[str]:
        """The decayed sums that were chosen, as the digest of the parameters has them, and the tree over bins.

        They are chosen by floats: another machine that chose others would draw other noise under the same names. With a
        clip range that is chosen: how, and all sums.
        """
        shapes = [sums.shape() for sums in self.decayed]
        if self.clip is not None:
            under = (self.under(rung) for rung in range(len(self.clip.ladder.rungs)))
            shapes = [self.clip.shape(), *(statistic.sums.shape() for statistic in under)]
        tree = ["x".join(map(str, self.sides.tree.shape))] if isinstance(self.sides, Nodes) else []
        return [self.mechanism, hashlib.sha256(", ".join(shapes).encode()).hexdigest(), *tree]

    # ---------------------------------------------------------------- a clip range that is chosen

    def upper_end(self, rung: int) -> Fraction:
        """The upper end of the range under a rung."""
        return self.under(rung).grid.high

    def under(self, rung: int) -> "LinearStatistic":
        """The statistic with the range that ends at a rung: it has the same grid points, as far as they go."""
        made = self._under.get(rung)
        if made is None and self.clip is not None:
            grid, steps = self.grid, self.clip.ladder.rungs[rung]
            high = grid.low + (grid.high - grid.low) * steps / grid.steps
            made = self._under[rung] = replace(self, grid=Grid(grid.low, high, steps), sides=TwoSides(steps), clip=None)
        assert made is not None  # noqa: S101
        return made

    def counters(self, rung: int, key: bytes, group: bytes) -> "LinearReleaser":
        """A key's counters under a rung."""
        return LinearReleaser(self.under(rung), key, group)

    def without_counters(self) -> Estimate:
        """Estimate before a range is chosen: a mean lies anywhere in the range, and nothing is said of a sum."""
        is_mean, details = self.statistic is Mean, {"mechanism": self.mechanism, "clip": None}
        low, high = (float(self.grid.low), float(self.grid.high)) if is_mean else (None, None)
        return Estimate(None, None, low, high, {"count": None, "count_sd": None}, details)

    # ---------------------------------------------------------------- time

    @cached_property
    def history(self) -> int:
        """The steps before a key's first release that are given to its sums one by one; 0: all at once, as one step."""
        return 0 if self.sides.public else history_of(self.decay)

    @property
    def rest(self) -> int:
        """Steps of silence after which a key rests: `max_gap`, but never while a window of time still holds any."""
        if self.of_updates or not isinstance(self.decay, Window | Listed):
            return self.max_gap
        return max(self.max_gap, self.decay.length)

    @property
    def of_updates(self) -> bool:
        """Whether steps without a sample take no part in the sums: each release repeats the one before."""
        return isinstance(self.decay, Window) and self.decay.of_updates

    # ---------------------------------------------------------------- of a metric's parts

    apart: ClassVar[bool] = False
    shared: ClassVar[bool] = False

    accounts = staticmethod(bounding.accounts_of)

    @classmethod
    def clauses(cls, metric: Metric, loss: str) -> Iterator[str]:
        return words.clauses(metric, loss, cls.of(metric).decayed)

    @classmethod
    def of(cls, metric: Metric) -> "LinearStatistic":
        what, selection = metric.of, bounding.selection_of(metric)
        grid = grid_of(what.values) if isinstance(what, WithValues) else ONE
        sides, hidden = sides_of_values(type(what), grid), dict[str, Any]()
        if isinstance(metric.hides, AddRemove):
            length, end = metric.every, metric.hides.end
            bins, quantiles = (what.bins, what.quantiles) if isinstance(what, Distribution) else (BINS, ())
            grid, sides = hidden_sides(type(what), grid, bins)
            hidden = {
                "quantiles": quantiles,
                "groups": ("",) if isinstance(metric.per, One) else bounding.declared_of(metric),
                "first": length.index(metric.hides.start),
                "end": None if end is None else length.index(end),
                "selection": selection,
                "clip": bounding.clip_of(metric),
            }
        made = cls(
            statistic=type(what),
            sides=sides,
            decay=decay_of(metric),
            algorithm=metric.by.name,
            grid=grid,
            epsilon=metric.budget.left,
            delta=metric.budget.delta if selection is None else Fraction(0),  # else it is spent on finding keys
            max_contributions=bounding.unit_samples(metric),
            clamps=isinstance(what, Mean | Variance) and what.clamp,
            coverage=coverage_of(metric.by.bars.simultaneous, max(1, len(sides.noised))),
            max_gap=expect(metric.at, Steps).rest or 1,
            **hidden,
        )
        for sums in set(made.decayed):  # whatever they refuse, they refuse now
            sums.noise_sd(1)
        return made

    # ---------------------------------------------------------------- a release

    def in_groups(self, key: bytes, is_home: IsHome = everywhere) -> StepGroups:
        """All keys of the metric in a partition."""
        make = partial(self.releaser, key)
        if self.sides.public:
            return StepGroups(make, rest=self.rest)
        if self.selection is not None:
            form = None if self.clip is None else ByPart()
            candidates = Candidates(self.selection, keyed_words(key), self.first, self.history, form)
            return FoundGroups(make, candidates, self.selection.epsilon, self.first, self.end)
        names = sorted(name for name in self.groups or () if is_home(name))
        return StepGroups(make, names, self.first, self.end)

    def bounder(self) -> OneByOne:
        if self.clip is not None:
            return OneByOne(self.max_contributions, parts=PARTS)
        return OneByOne(self.max_contributions, parts=1 if self.selection is None else 1 + NEWCOMERS)

    def releaser(self, key: bytes, group: bytes) -> Any:
        """A `LinearReleaser`; with a clip range that is chosen a `ClippedReleaser`."""
        if self.clip is None:
            return LinearReleaser(self, key, group)
        words = partial(keyed_words(key), group.decode())
        return ClippedReleaser(self, self.clip, words, key, group)

    def bars(self, t: int) -> tuple[float, ...]:
        """Standard deviation of the noise in release t and the quantile of its size.

        Under relation values of each sum, in the units of what is summed; under add-remove of any side, in grid steps.
        """
        bars = self._bars.get(t)
        if bars is None:
            if len(self._bars) >= BARS_KEPT:
                self._bars.clear()
            found = [(one.noise_sd(t), one.noise_quantile(t, self.coverage)) for one in self.decayed[:2]]
            if self.sides.public:
                grids = (self.grid, self.grid.squares) if len(found) > 1 else (self.grid,)
                bars = tuple(grid.width_value(bar) for grid, pair in zip(grids, found, strict=True) for bar in pair)
            else:
                bars = found[0]
            self._bars[t] = bars
        return bars

    @cached_property
    def estimate(self) -> Estimator:
        """Estimate of what all sides released, with bars and further details; None for a quotient of nothing.

        Sides and bars are in the order of `sides` and `bars`, in units of 1 / `denominator`.
        """
        grid, parts = self.grid, self.sums.denominator
        ends = (float(grid.low), float(grid.high)) if self.clamps else None
        match self.sides:
            case Samples(public=1):
                return partial(public_estimates.count, parts)
            case Products():
                return partial(public_estimates.mean_and_variance, grid, parts, ends, self.coverage)
            case sides if sides.public and self.statistic is Sum:
                return partial(public_estimates.total, grid, parts)
            case sides if sides.public:
                return partial(public_estimates.mean, grid, parts, ends)
        return self._of_hidden

    def _of_hidden(self, released: Sequence[int], bars: tuple[float, ...], details: Mapping[str, Any]) -> Estimate:
        """The estimate where the number of samples has noise, too."""
        sides: Any = self.sides
        sided = Sided(released, self.sums.denominator, sides.width, *bars)
        return replace(self._from_sides(sided), details=details)

    def _from_sides(self, sided: Sided) -> Estimate:
        grid = self.grid
        match self.sides:
            case Samples():
                return estimates.count(sided)
            case Signed():
                return estimates.signed_sum(grid, sided)
            case Nodes(tree=tree):
                return distribution.estimate(tree, grid, self.quantiles, sided)
            case ThreeSides(places=places):
                return estimates.mean_and_variance(grid, places, sided, clamps=self.clamps)
        if self.statistic is Sum:
            return estimates.sum_of_range(grid, sided)
        return estimates.mean(grid, TwoSides.places, sided, clamps=self.clamps)


class LinearReleaser(LinearSums):
    """One key's releases, step by step.

    >>> from shoal.mechanisms.parts.of import PublicCount
    >>> from shoal.mechanisms.statistic import Contribution
    >>> count = LinearStatistic(statistic=PublicCount, sides=Samples(public=1), decay=Window(2), max_contributions=9)
    >>> releaser = count.releaser(bytes(32), b"")
    >>> for samples in (3, 4, 0):
    ...     _, _ = releaser.add(Contribution(0, "", 0, 0, samples, 0)), releaser.close()
    ...     print(releaser.estimate().value)
    3
    7
    4
    """

    __slots__ = ("_has_nodes", "_of")

    def __init__(self, of: LinearStatistic, key: bytes, group: bytes) -> None:
        public = [of.sums.counts()] * of.sides.public
        sides = zip(of.sides.noised, of.decayed, strict=False)
        noised = [sums.summer(of.draws(key, group, side)) for side, sums in sides]
        super().__init__(of.sides, (*public, *noised), of.history, of_updates=of.of_updates)
        self._of, self._has_nodes = of, bool(public) and len(noised) < 2 and hasattr(self.summers[-1], "released")

    def estimate(self) -> Estimate:
        """The release of the last complete step; without a value for a quotient of nothing.

        Under relation values with the noised sums, in grid steps, from which the sum over any window is added up.
        """
        of, last = self._of, self.summers[-1]
        details: dict[str, Any] = {"mechanism": of.mechanism}
        if self._has_nodes:
            details["nodes"] = [node_text(node) for node in last.released]  # type: ignore[attr-defined]
        estimate = of.estimate(self.released, of.bars(last.t), details)
        return replace(NO_ESTIMATE, details={"mechanism": of.mechanism}) if estimate is None else estimate
