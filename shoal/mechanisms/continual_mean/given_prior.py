"""Blocks clipped around a prior: what Algorithms 3, 4 and 5 have in common.

Guarantee    of the algorithm that builds it from intervals and counters (wishful.py, single_tree.py, multi_tree.py)
Prior        given: part of the configuration, hence public: a constant, or the output of an earlier private release
             whose epsilon is charged there; a prior computed from these very events without noise breaks the guarantee.
             Or none: then few users choose it (few_users_prior.py), which is part of this guarantee and of its charge
Proof        docs/proofs/continual-mean.md
Source       George, Ramesh, Singh and Tyagi (2024), sections 3 and 4, appendix B
"""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any

from shoal.mechanisms import check
from shoal.mechanisms.continual_mean import blocks
from shoal.mechanisms.continual_mean.few_users_prior import SHARE, FewUsers, FewUsersReleaser
from shoal.mechanisms.continual_mean.levels import BlockMean, LevelKeys
from shoal.mechanisms.continual_mean.mean import Headed
from shoal.mechanisms.counters.binary import BinaryCounter, BinaryTree
from shoal.mechanisms.decimals import ceiling, decimal, rounding_up
from shoal.mechanisms.error_bars import Law, estimate
from shoal.mechanisms.groups import NoisedByCounters
from shoal.mechanisms.noise.keyed import derive
from shoal.mechanisms.statistic import Activation, Contribution, Estimate, LevelState
from shoal.mechanisms.workload import Pattern

EARLIER = 2  # levels below the last that closes: few users choose a prior with a quarter of the samples of a whole user


@dataclass(frozen=True, kw_only=True)
class GivenPrior(BlockMean):
    """All public parameters of a mean that clips around a prior."""

    prior: Fraction | None = None  # None: few users choose it
    delta: Fraction = Fraction(0)  # of that choice, in all groups together

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.prior is None:
            check.probability(delta=self.delta)
        elif not self.grid.low <= self.prior <= self.grid.high:
            raise ValueError("prior must lie in the range")

    @property
    def weights(self) -> tuple[int, ...]:
        """The number of samples in a block of each level."""
        return tuple(map(blocks.weight, range(self.top + 1)))

    @abstractmethod
    def trees_of(self, widths: Sequence[int]) -> Sequence[BinaryTree]:
        """A counter for each level, or one for all, where a block of each level may move by its width."""

    @property
    def counters_epsilon(self) -> Fraction:
        """What the choice of a prior leaves of a group's epsilon."""
        return self.group_epsilon * (1 - SHARE) if self.prior is None else self.group_epsilon

    # ---------------------------------------------------------------- intervals

    @cached_property
    def few(self) -> FewUsers:
        """How few users choose a prior that is not given."""
        given = list(accumulate(self.weights))
        level = max(0, sum(samples <= self.max_contributions for samples in given) - 1 - EARLIER)
        epsilon, delta = self.group_epsilon * SHARE, self.delta / self.groups
        ends = self.margin, self.margin + self.grid.steps
        return FewUsers(level, given[level], self.spread / 2, epsilon, delta, self._failure, ends)

    @property
    def _failure(self) -> Fraction:
        """Of blocks that are cut off; where the prior is chosen, that may fail in two ways more."""
        return Fraction(self.failure) / 3 if self.prior is None else self.failure

    def half_width(self, weight: int, projections: int) -> int:
        """D = ceil(spread * sqrt(w / 2 * ln(2 n p / failure)) + w * what the prior may be off).

        That is 1 / sqrt(m) of the range, or 2 sigma / sqrt(m); of few users' prior it is R + r0.
        """
        with rounding_up():
            scattered, spread = self.deviation(weight, projections, self._failure), decimal(self.spread)
            if self.prior is None:
                return ceiling(spread * scattered + weight * self.few.off)
            return ceiling(spread * (scattered + decimal(weight) / decimal(self.max_contributions).sqrt()))

    @cached_property
    def half_widths(self) -> tuple[int, ...]:
        return tuple(self.half_width(weight, self.projections) for weight in self.weights)

    @property
    def widest(self) -> tuple[int, ...]:
        """What a block of each level may move where nothing is clipped."""
        return tuple(weight * self.sample_grid.steps for weight in self.weights)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """What a block of each level may move. The paper's interval may be wider than any block; few users' is not."""
        clipped = tuple(2 * half for half in self.half_widths)
        return tuple(map(min, clipped, self.widest)) if self.prior is None else clipped

    @cached_property
    def trees(self) -> Sequence[BinaryTree]:
        return self.trees_of(self.widths)

    def around(self, position: Fraction) -> list[tuple[int, int]]:
        """The interval of each level around a position in the range."""
        return [
            self.interval(weight, position, half) for weight, half in zip(self.weights, self.half_widths, strict=True)
        ]

    def around_point(self, point: int) -> list[tuple[int, int]]:
        """The interval of each level around a chosen point, or all that a block may be where that is no wider."""
        clips = self.around(Fraction(point - self.margin, self.grid.steps))
        limits = zip(clips, self.widths, self.widest, strict=True)
        return [clip if width < widest else (0, widest) for clip, width, widest in limits]

    # ---------------------------------------------------------------- releases

    def counted(self, pattern: Pattern, tau: float) -> tuple[int, Law]:
        closed = self.closed(pattern, tau)
        if self.prior is None and closed[self.few.level] < self.few.users:
            return 0, ()
        samples = sum(weight * count for weight, count in zip(self.weights, closed, strict=False))
        counts = closed if len(self.trees) > 1 else [sum(closed)]
        scales = (tree.scales(count) for tree, count in zip(self.trees, counts, strict=False))
        return samples, tuple(scale for each in scales for scale in each)

    def releaser(self, key: bytes, group: bytes, coordinate: int = 0) -> NoisedByCounters:
        def clipped(clips: Sequence[tuple[int, int]], trees: Sequence[BinaryTree]) -> ClippedReleaser:
            counters = [BinaryCounter(tree, LevelKeys(key, group, coordinate, i)) for i, tree in enumerate(trees)]
            return ClippedReleaser(self, clips, counters)

        def open_at(point: int | None) -> ClippedReleaser:
            if point is None:
                return clipped([(0, width) for width in self.widest], self.trees_of(self.widest))
            return clipped(self.around_point(point), self.trees)

        if self.prior is not None:
            position = (self.prior - self.grid.low) / (self.grid.high - self.grid.low)
            return clipped(self.around(position), self.trees)
        subkey = derive(key, group, "few-users-prior", "mean", coordinate, 0, 0)
        return FewUsersReleaser(self.few, self.sample_grid, len(self.weights), open_at, subkey)


class ClippedReleaser(Headed):
    """Counts and clipped sums, per counter, and how many samples they hold."""

    __slots__ = ("_clips", "_counters", "_counts", "_mean", "_samples", "_sums")

    def __init__(
        self, mean: GivenPrior, clips: Sequence[tuple[int, int]], counters: Sequence[BinaryCounter[BinaryTree]]
    ) -> None:
        self._mean, self._clips, self._counters = mean, clips, counters
        self._counts = [0] * len(counters)
        self._sums = [0] * len(counters)
        self._samples = 0

    def add(self, contribution: Contribution) -> tuple[Activation, ...]:
        level, total = contribution.level, contribution.total
        low, high = self._clips[level]
        counter = level if len(self._counters) > 1 else 0
        self._counts[counter] += 1
        self._sums[counter] += low if total < low else high if total > high else total
        self._samples += contribution.samples
        return ()

    def ahead(self, contributions: Sequence[Contribution]) -> Iterable[tuple[BinaryCounter[Any], int]]:
        counts = list(self._counts)
        for contribution in contributions:
            counts[contribution.level if len(counts) > 1 else 0] += 1
        return zip(self._counters, counts, strict=True)

    def estimate(self) -> Estimate | None:
        if not self._samples:
            return None
        total = sum(self._sums)
        scales: list[tuple[Fraction, int]] = []
        for counter, count in zip(self._counters, self._counts, strict=True):
            total += counter.noise(count)
            scales += counter.tree.scales(count)
        mean = self._mean
        return estimate(mean.sample_grid, total, self._samples, tuple(scales), mean.ends, mean.coverage)

    @property
    def levels(self) -> list[LevelState]:
        """The state of each counter: there is one for each level, or one for all levels."""
        return [LevelState(elements, total, 0) for elements, total in zip(self._counts, self._sums, strict=True)]

    def head(self) -> list[Any]:
        """[samples, elements per counter, clipped sums per counter]."""
        return [self._samples, list(self._counts), list(self._sums)]

    def restore(self, head: list[Any], kept: Iterable[Contribution]) -> None:
        samples, counts, sums = head
        self._samples = int(samples)
        self._counts, self._sums = [int(count) for count in counts], [int(total) for total in sums]
