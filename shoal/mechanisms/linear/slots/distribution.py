"""The distribution of a cell's samples over equal bins, and its quantiles: a tree of noisy counts, root included.

Sensitivity  a sample adds 1 to one node of each level of the tree, so a unit moves each level by m at most. Level i has
             the part q_i of epsilon, and all q_i add up to 1 at most
Noise        discrete Laplace, scale m / (q_i epsilon), on every node below the root. The root is their best estimate
Shares       c = P / N of a noisy prefix P and the noisy number N of all. With V the variance of N, P = k N + rest for
             a public k (a regression coefficient) and a rest of variance L that does not depend on N, so that to first
             order c has the variance ((k - c)**2 V + L) / N**2
Interval     Fieller's: all c with |P - c N| <= q sqrt((k - c)**2 V + L), about c on both sides alike
Proof        docs/proofs/two-sided.md, "Distributions of a slot"
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import ClassVar

import numpy as np

from shoal.mechanisms.bins.shares import check_bins, one_draw, told
from shoal.mechanisms.bins.tree import BinTree, Floats
from shoal.mechanisms.error_bars import COVERAGE, six_digits
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.linear.estimates import LEAST_COUNT
from shoal.mechanisms.linear.sides import Side
from shoal.mechanisms.statistic import PART_BITS, Contribution, Estimate

AWAY = one_draw(COVERAGE)


@dataclass(frozen=True, slots=True)
class Levels:
    """A side for each node of a tree over bins, level by level; each level has its share of epsilon, and one name.

    >>> sides = Levels(BinTree(4, (4,)))
    >>> sides.noised[0], sides.parts(6, [1, 0, 2, 3]), sides.whole((1, 0, 2, 3))
    (Side(draw=('slot', 'level 0', '0'), width=1, share=Fraction(1, 1)), (1, 0, 2, 3), (6, [1, 0, 2, 3]))
    """

    public: ClassVar[int] = 0
    packing: ClassVar[None] = None

    tree: BinTree

    @property
    def noised(self) -> tuple[Side, ...]:
        levels = enumerate(zip(self.tree.shares, self.tree.nodes, strict=True))
        return tuple(
            Side(("slot", f"level {level}", str(node)), 1, share)
            for level, (share, nodes) in levels
            for node in range(nodes)
        )

    def histogram(self, contributions: Iterable[Contribution]) -> list[int]:
        """The number of samples in each bin."""
        bins = [0] * self.tree.bins
        for one in contributions:
            if one.level:  # else who finds a cell, and is no sample
                bins[(one.level - 1 << PART_BITS) + one.number] += one.samples
        return bins

    def parts(self, samples: int, total: list[int]) -> tuple[int, ...]:
        return tuple(chain.from_iterable(self.tree.sums(total)))

    def whole(self, parts: tuple[int, ...]) -> tuple[int, list[int]]:
        bins = list(parts[-self.tree.bins :])
        return sum(bins), bins


@dataclass(frozen=True)
class LevelEstimates:
    """Estimates of a distribution from the noisy nodes of a tree."""

    tree: BinTree
    quantiles: tuple[Fraction, ...]
    grid: Grid
    scale: Fraction  # of a level that has all of epsilon

    def __post_init__(self) -> None:
        check_bins(self.tree.bins, self.quantiles, self.grid)

    @property
    def mechanism(self) -> str:
        return f"tree {'x'.join(map(str, self.tree.shape))}"

    @property
    def count_sd(self) -> float:
        """The standard deviation of the noise in the number of samples."""
        return float(np.sqrt(self.tree.total_variance)) * float(self.scale)

    def typical_sd(self, count: float) -> float:
        """The root mean square of the noise's deviation in the shares of a distribution of equal bins."""
        tree = self.tree
        shares = np.arange(1, tree.bins + 1) / tree.bins
        sd = self.share_sd(shares, tree.prefix_shares, tree.prefix_variances, count)
        return float(np.sqrt(np.mean(sd**2)))

    def share_sd(self, shares: Floats, known: Floats, left: Floats, count: float) -> Floats:
        """The standard deviations of the noise in shares of so many samples."""
        sd: Floats = np.sqrt((known - shares) ** 2 * self.tree.total_variance + left) * float(self.scale) / count
        return sd

    def estimate(self, noisy: Sequence[int]) -> Estimate:
        """The distribution of samples, from the noisy nodes level after level."""
        nodes, rest = list[Sequence[int]](), list(noisy)
        for size in self.tree.nodes:
            nodes.append(rest[:size])
            rest = rest[size:]
        bins = self.tree.estimate(nodes, None)
        count = float(np.cumsum(bins)[-1])
        counts = {"count": count, "count_sd": six_digits(self.count_sd)}
        if count < LEAST_COUNT * counts["count_sd"] or count <= 0:
            return Estimate(None, None, None, None, counts)
        histogram = bins / count
        cdf = np.cumsum(histogram)
        cdf[-1] = 1.0
        tree = self.tree
        parts = {
            "cdf": (cdf, tree.prefix_shares, tree.prefix_variances),
            "histogram": (histogram, tree.bin_shares, tree.bin_variances),
        }
        sd = {name: self.share_sd(*part, count) for name, part in parts.items()}
        far = {name: self._far(*part, count) for name, part in parts.items()}
        made = told(cdf, histogram, sd, AWAY, self.quantiles, self.grid)
        ends = told(cdf, histogram, far, 1.0, self.quantiles, self.grid)
        return Estimate(made.value, made.noise_sd, ends.low, ends.high, counts)

    def _far(self, shares: Floats, known: Floats, left: Floats, count: float) -> Floats:
        """How far the farther end of each share's interval is away.

        With a = q**2 V / N**2, which is below 1 where the count is told, the ends are the roots of
        (1 - a) c**2 - 2 (c~ - a k) c + c~**2 - a (k**2 + L / V).
        """
        total = self.tree.total_variance
        a = (AWAY * self.count_sd / count) ** 2
        middle = (shares - a * known) / (1 - a)
        root: Floats = np.sqrt(np.maximum(middle**2 - (shares**2 - a * (known**2 + left / total)) / (1 - a), 0.0))
        far: Floats = np.abs(middle - shares) + root
        return far
