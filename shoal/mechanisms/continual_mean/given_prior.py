"""Blocks clipped around a prior that was given: what Algorithms 3, 4 and 5 have in common.

Guarantee    of the algorithm that builds it from intervals and counters (wishful.py, single_tree.py, multi_tree.py)
Prior        part of the configuration, hence public: a constant, or the output of an earlier private release whose
             epsilon is charged there; a prior computed from these very events without noise breaks the guarantee
Proof        docs/proofs/continual-mean.md
Source       George, Ramesh, Singh and Tyagi (2024), sections 3 and 4, appendix B
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from shoal.mechanisms.continual_mean.levels import BlockMean, LevelKeys
from shoal.mechanisms.continual_mean.mean import Headed
from shoal.mechanisms.counters.binary import BinaryCounter, BinaryTree
from shoal.mechanisms.decimals import ceiling, decimal, rounding_up
from shoal.mechanisms.error_bars import estimate
from shoal.mechanisms.statistic import Activation, Contribution, Estimate, LevelState


@dataclass(frozen=True, kw_only=True)
class GivenPrior(BlockMean):
    """All public parameters of a mean that clips around a given prior."""

    prior: Fraction

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.grid.low <= self.prior <= self.grid.high:
            raise ValueError("prior must lie in the range")

    def half_width(self, weight: int, projections: int) -> int:
        """D = ceil(spread * (sqrt(w / 2 * ln(2 n p / failure)) + w / sqrt(m))).

        The second term is w times what the prior may be off: 1 / sqrt(m) of the range, or 2 sigma / sqrt(m).
        """
        with rounding_up():
            off = decimal(weight) / decimal(self.max_contributions).sqrt()
            return ceiling(decimal(self.spread) * (self.deviation(weight, projections, self.failure) + off))

    def around(self, weight: int, half_width: int) -> tuple[int, int]:
        position = (self.prior - self.grid.low) / (self.grid.high - self.grid.low)
        return self.interval(weight, position, half_width)

    def clipped(
        self, key: bytes, group: bytes, coordinate: int, clips: Sequence[tuple[int, int]], trees: Sequence[BinaryTree]
    ) -> "ClippedReleaser":
        """The releaser with an interval per level, and a counter per level or one for all."""
        counters = [BinaryCounter(tree, LevelKeys(key, group, coordinate, i)) for i, tree in enumerate(trees)]
        return ClippedReleaser(self, clips, counters)


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
