"""Means, sums, counts, users and distributions that protect presence: decayed sums of each side of a key's samples.

    statistic       what a sample, of grid index i in 0 .. W, adds to each decayed sum                     width
    mean            i and W - i                                                                            W
    sum             the same, if the range ends at 0; else its value in steps of the larger end over W     W
    count, users    1                                                                                      1
    mean-variance   (W - i)**2, 2 i (W - i) and i**2                                                       W**2
    distribution    1 to a node of each of h levels of a tree over bins (distribution.py)                  h

Guarantee    pure epsilon-DP for all releases of all keys together; a window with Gaussian noise (epsilon, delta)-DP.
             Whatever is in the stream may react to releases. What finds keys that nobody declared has its own epsilon
Relation     add-remove: all records of a unit are there, or none is
Unit         at most m samples, whatever keys and steps they are in; of users one in each of K keys or, per step, m
             The range that a key's values are clipped to has its own as well, where it is chosen (upper_end.py)
Sensitivity  L1, exact: a sample's parts add up to the width, whatever i is (sides.py); so a unit moves all sums of all
             keys by m * width at most, together, and each of them has all of epsilon. Where widths differ between keys,
             each key's sums have noise for its own: a unit loses epsilon / m by each sample, wherever it is.
             L2, for Gaussian noise: the same number times the longest column of one sum's matrix
Noise        of the decayed sums, each from subkeys of its key and side
Variance     of count, sum and mean: estimates.py
Proof        docs/proofs/two-sided.md, docs/proofs/clip-range.md
Source       Fitzsimons, Honaker, Shoemate and Singhal (2024) and Kulesza, Suresh and Wang (2024) for one release
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

from shoal.mechanisms.bins.shares import BINS, check_bins
from shoal.mechanisms.bins.tree import even_tree
from shoal.mechanisms.grid import Grid, grid_of
from shoal.mechanisms.groups import IsHome, everywhere
from shoal.mechanisms.linear import bounding, distribution, estimates, presence_words
from shoal.mechanisms.linear.came import NEWCOMERS, PARTS, ByPart
from shoal.mechanisms.linear.candidates import Candidates, keyed_words
from shoal.mechanisms.linear.clipped import ClippedReleaser
from shoal.mechanisms.linear.decay import decay_of
from shoal.mechanisms.linear.estimates import Sided
from shoal.mechanisms.linear.groups import DeclaredGroups, FoundGroups
from shoal.mechanisms.linear.sides import HiddenSides, InBins, Nodes, Samples, Signed, ThreeSides, TwoSides, signed_grid
from shoal.mechanisms.linear.stepped import SteppedStatistic
from shoal.mechanisms.linear.sums import LinearSums
from shoal.mechanisms.noise.keyed import derive
from shoal.mechanisms.parts.by import TwoSided as ByTwoSided
from shoal.mechanisms.parts.expect import expect
from shoal.mechanisms.parts.hides import AddRemove
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.of import Count, Distribution, Mean, MeanVariance, Of, Sum, Users, WithValues
from shoal.mechanisms.parts.per import One
from shoal.mechanisms.selection.first_crossing import FirstCrossing
from shoal.mechanisms.selection.upper_end import UpperEnd
from shoal.mechanisms.statistic import Estimate, OneByOne, Packing
from shoal.mechanisms.sums.decays import Exponential, Forward, Listed, Polynomial, Undecayed, Window
from shoal.mechanisms.sums.sums import DecayedSum

Counted = Count | Users
ONE = Grid(Fraction(0), Fraction(1), 2)  # of what has no range
EVERY = 1 << 60  # steps: all there are
_FORGOTTEN = 20  # binary places: a step whose weight is 0 in them is no part of a key's past


@dataclass(frozen=True, kw_only=True)
class TwoSided(SteppedStatistic):
    """All public parameters of a statistic that protects presence.

    >>> from shoal.mechanisms.statistic import Contribution
    >>> sure = TwoSided(statistic=Mean, decay=Undecayed(), grid=Grid(Fraction(0), Fraction(8), 8), epsilon=10**9)
    >>> releaser = sure.releaser(bytes(32), b"")
    >>> _, _ = releaser.add(Contribution(0, "", 0, 0, samples=4, total=12)), releaser.close()
    >>> released = releaser.estimate()
    >>> released.value, released.counts
    (3.0, {'count': 4.0, 'count_sd': 0.0})
    """

    statistic: type[Of]
    algorithm: str = ByTwoSided.name
    grid: Grid = ONE
    groups: tuple[str, ...] | None = ("",)  # declared keys; None: they are found
    first: int = 0  # number of the first step
    end: int | None = None  # of the step after the last one
    selection: FirstCrossing | None = None  # of keys that nobody declared
    clip: UpperEnd | None = None  # of each key's range, chosen in private; None: it is that of the grid
    _under: dict[int, "TwoSided"] = field(default_factory=dict, init=False, repr=False, compare=False)
    bins: int = BINS  # of a distribution
    quantiles: tuple[Fraction, ...] = ()  # of a distribution

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.statistic is Distribution:
            check_bins(self.bins, self.quantiles, self.grid)
        _ = self.sample_grid, self.history  # what they refuse, they refuse now

    # ---------------------------------------------------------------- sides

    @cached_property
    def _signed(self) -> tuple[Grid, Signed] | None:
        """The grid and side of a sum whose range does not end at 0."""
        ends_at_zero = not self.grid.low * self.grid.high
        if self.statistic is not Sum or ends_at_zero:
            return None
        return signed_grid(self.grid.low, self.grid.high, self.grid.steps)

    @property
    def sample_grid(self) -> Grid:
        return self.grid if self._signed is None else self._signed[0]

    @property
    def packing(self) -> Packing | None:
        return self.sides.packing

    @cached_property
    def sides(self) -> HiddenSides:
        if issubclass(self.statistic, Counted):
            return Samples()
        if self.statistic is Distribution:
            return Nodes(even_tree(self.bins), InBins(self.grid, self.bins))
        if self.statistic is MeanVariance:
            return ThreeSides(self.grid.steps)
        return TwoSides(self.grid.steps) if self._signed is None else self._signed[1]

    @cached_property
    def sums(self) -> DecayedSum:
        """The decayed sum of each side."""
        return self.made(self.max_contributions * self.sides.width, Fraction(self.epsilon))

    def made(self, width: int, epsilon: Fraction) -> DecayedSum:
        return self.decay.sharp(width, epsilon, Fraction(self.delta))

    @property
    def decayed(self) -> tuple[DecayedSum, ...]:
        return (self.sums,) * len(self.sides.noised)

    @cached_property
    def _grid_of_one(self) -> Grid:
        """The grid of a sum that has one side; a step of it is what the side counts in."""
        return Grid(Fraction(0), max(abs(self.grid.low), abs(self.grid.high)), self.grid.steps)

    # ---------------------------------------------------------------- a clip range that is chosen

    def upper_end(self, rung: int) -> Fraction:
        """The upper end of the range under a rung."""
        return self.under(rung).grid.high

    def under(self, rung: int) -> "TwoSided":
        """The statistic with the range that ends at a rung: it has the same grid points, as far as they go."""
        made = self._under.get(rung)
        if made is None and self.clip is not None:
            grid, steps = self.grid, self.clip.ladder.rungs[rung]
            high = grid.low + (grid.high - grid.low) * steps / grid.steps
            made = self._under[rung] = replace(self, grid=Grid(grid.low, high, steps), clip=None)
        assert made is not None  # noqa: S101
        return made

    def counters(self, rung: int, key: bytes, group: bytes) -> "TwoSidedReleaser":
        """A key's counters under a rung."""
        return TwoSidedReleaser(self.under(rung), key, group)

    def without_counters(self) -> Estimate:
        """What is released before a range is chosen: that a mean lies in all of the range, and nothing of a sum."""
        is_mean, details = self.statistic is Mean, {"mechanism": self.mechanism, "clip": None}
        low, high = (float(self.grid.low), float(self.grid.high)) if is_mean else (None, None)
        return Estimate(None, None, low, high, {"count": None, "count_sd": None}, details)

    def chosen(self) -> list[str]:
        """Of a distribution also the tree over its bins; with a clip range that is chosen, how, and all sums."""
        if isinstance(self.sides, Nodes):
            return [*super().chosen(), "x".join(map(str, self.sides.tree.shape))]
        if self.clip is None:
            return super().chosen()
        shapes = [self.under(rung).sums.shape() for rung in range(len(self.clip.ladder.rungs))]
        said = ", ".join([self.clip.shape(), *shapes])
        return [self.mechanism, hashlib.sha256(said.encode()).hexdigest()]

    # ---------------------------------------------------------------- a key's past

    @cached_property
    def history(self) -> int:
        """The steps before a key's first release that are given to its sums one by one; 0: all at once, as one step.

        What is older weighs nothing, or less than a millionth. All of a past may come as one step only where a sum does
        not forget: elsewhere it would get one age.
        """
        match self.decay:
            case Undecayed():
                return 0
            case Window(length=length, of_updates=False):
                return length
            case Listed():
                return self.decay.length
            case Exponential(alpha=alpha):
                rate = -math.log1p(-float(1 - alpha)) / math.log(2)
                return min(math.ceil(_FORGOTTEN / rate), EVERY)
            case Polynomial(exponent=exponent):
                return min(math.ceil(2 ** (_FORGOTTEN / float(exponent))), EVERY)
            case Forward():
                return EVERY
        raise ValueError("this decay tells when somebody contributes; use a window, or none")

    # ---------------------------------------------------------------- of a metric's parts

    @classmethod
    def clauses(cls, metric: Metric, loss: str) -> Iterator[str]:
        return presence_words.clauses(metric, loss, cls.of(metric))

    accounts = staticmethod(bounding.accounts_of)

    @classmethod
    def of(cls, metric: Metric) -> "TwoSided":
        what, hides, length = metric.of, expect(metric.hides, AddRemove), metric.every
        selection = bounding.selection_of(metric)
        bins: dict[str, Any] = (
            {"bins": what.bins, "quantiles": what.quantiles} if isinstance(what, Distribution) else {}
        )
        made = cls(
            statistic=type(what),
            decay=decay_of(metric),
            epsilon=metric.budget.left,
            delta=metric.budget.delta if selection is None else Fraction(0),  # else it is spent on finding keys
            max_contributions=bounding.unit_samples(metric),
            grid=grid_of(what.values) if isinstance(what, WithValues) else ONE,
            clamps=isinstance(what, Mean | MeanVariance) and what.clamp,
            groups=("",) if isinstance(metric.per, One) else bounding.declared_of(metric),
            first=length.index(hides.start),
            end=None if hides.end is None else length.index(hides.end),
            selection=selection,
            clip=bounding.clip_of(metric),
            **bins,
        )
        made.sums.noise_sd(1)  # whatever it refuses, it refuses now
        return made

    # ---------------------------------------------------------------- a release

    def in_groups(self, key: bytes, is_home: IsHome = everywhere) -> DeclaredGroups:  # type: ignore[override]
        make = partial(self.releaser, key)
        if self.selection is not None:
            form = None if self.clip is None else ByPart()
            candidates = Candidates(self.selection, keyed_words(key), self.first, self.history, form)
            return FoundGroups(make, candidates, self.selection.epsilon, self.first, self.end)
        names = sorted(name for name in self.groups or () if is_home(name))
        return DeclaredGroups(make, names, self.first, self.end)

    def bounder(self) -> OneByOne:
        if self.clip is not None:
            return OneByOne(self.max_contributions, parts=PARTS)
        return OneByOne(self.max_contributions, parts=1 if self.selection is None else 1 + NEWCOMERS)

    def releaser(self, key: bytes, group: bytes) -> Any:
        """A `TwoSidedReleaser`; with a clip range that is chosen a `ClippedReleaser`."""
        if self.clip is None:
            return TwoSidedReleaser(self, key, group)
        words = partial(keyed_words(key), group.decode())
        return ClippedReleaser(self, self.clip, words, key, group)

    def estimate(self, noisy: Sequence[int], t: int) -> Estimate:
        """The estimate from the noisy sides of release t."""
        sums, grid = self.sums, self.grid
        sided = Sided(
            noisy, sums.denominator, self.sides.width, sums.noise_sd(t), sums.noise_quantile(t, self.coverage)
        )
        match self.sides:
            case Samples():
                return estimates.count(sided)
            case Signed():
                return estimates.signed_sum(self._grid_of_one, sided)
            case Nodes(tree=tree):
                return distribution.estimate(tree, grid, self.quantiles, sided)
            case ThreeSides(places=places):
                return estimates.mean_and_variance(grid, places, sided, clamps=self.clamps)
        if self.statistic is Sum:
            return estimates.sum_of_range(grid, sided)
        return estimates.mean(grid, TwoSides.places, sided, clamps=self.clamps)


class TwoSidedReleaser(LinearSums):
    """One key's releases."""

    __slots__ = ("_statistic",)

    def __init__(self, statistic: TwoSided, key: bytes, group: bytes) -> None:
        summers = [statistic.sums.summer(SideKeys(key, group, side)) for (_, side), *_ in statistic.sides.noised]
        super().__init__(statistic.sides, summers, statistic.history)
        self._statistic = statistic

    def estimate(self) -> Estimate:
        """The release of the last complete step."""
        made, mechanism = self._statistic.estimate(self.released, self.t), self._statistic.mechanism
        return replace(made, details={"mechanism": mechanism})


class SideKeys:
    """The subkeys of the draws of one side of a key, by the number that its sums give each."""

    __slots__ = ("_group", "_key", "_side")

    def __init__(self, key: bytes, group: bytes, side: str) -> None:
        self._key, self._group, self._side = key, group, side

    def __call__(self, number: int) -> bytes:
        return derive(self._key, self._group, "tree", "step", 0, 0, self._side, number)
