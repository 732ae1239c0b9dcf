"""A tree over the bins of a histogram: how noisy each node is, and the best estimate of every prefix from all nodes.

Levels 1 .. h lie below a root that is known exactly; all nodes of a level have as many children, but for those at the
right edge, where there are no more bins. Level i may use a part q_i of epsilon, so its noise has a scale proportional
to 1 / q_i, and prefixes cut into whole nodes have a mean variance proportional to the sum of (n_i - 1) / q_i**2. That
is least for q_i proportional to (n_i - 1)**(1/3), where it is

    (sum of (n_i - 1)**(1/3))**3

times the squared sensitivity. The best estimate from all nodes is used: for 64 bins it has a third of that variance.

Floats   used only on noised numbers and on public variances: sums and products in a fixed order, the same everywhere
Proof    docs/proofs/distribution.md
Source   Hay, Rastogi, Miklau and Suciu (2010); Qardaji, Yang and Li (2013)
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from shoal.mechanisms import check
from shoal.mechanisms.decimals import power

Floats = NDArray[np.float64]
Shape = tuple[int, ...]
_FINE = 1 << 40  # shares are multiples of 1 / this


def branching(bins: int) -> Shape:
    """n_1 .. n_h, the root's first: the shape for `bins` bins or slightly more that makes that number least.

    >>> [branching(bins) for bins in (5, 61, 64, 256, 4096)]
    [(5,), (7, 9), (8, 8), (16, 16), (16, 16, 16)]
    """
    return min(shapes(bins), key=lambda shape: (float(f"{prefix_variance(shape):.9g}"), math.prod(shape), shape))


def shapes(bins: int, least: int = 2) -> Iterator[Shape]:
    """All shapes whose numbers ascend and cover the bins, and whose last number is no larger than it must be."""
    yield (bins,)
    for children in range(least, math.isqrt(bins) + 1):
        yield from ((children, *rest) for rest in shapes(-(-bins // children), children))


def prefix_variance(shape: Shape) -> float:
    """(sum of (n_i - 1)**(1/3))**3.

    >>> [round(prefix_variance(shape)) for shape in ((2,) * 6, (8, 8), (32, 32), (16, 16, 16, 16))]
    [216, 56, 248, 960]
    """
    return math.fsum(math.cbrt(children - 1) for children in shape) ** 3


@lru_cache(maxsize=64)
def tree_for(bins: int) -> "BinTree":
    """The tree for this many bins; its costly properties are computed once."""
    return BinTree(bins, branching(bins))


@dataclass(frozen=True)
class BinTree:
    """The levels, from below the root to the bins. Variances are those of noise of scale 1 / q_i.

    >>> tree = BinTree(6, (2, 4))
    >>> tree.nodes, [round(float(share), 3) for share in tree.shares]
    ((2, 6), [0.409, 0.591])
    """

    bins: int
    shape: Shape

    def __post_init__(self) -> None:
        check.positive(bins=self.bins - 1)
        if math.prod(self.shape) < self.bins or min(self.shape) < 2:
            raise ValueError(f"a tree of shape {self.shape} has no place for {self.bins} bins")

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of bins below a node of each level."""
        return tuple(math.prod(self.shape[level:]) for level in range(1, len(self.shape) + 1))

    @cached_property
    def nodes(self) -> tuple[int, ...]:
        """The number of nodes of each level that hold a bin."""
        return tuple(-(-self.bins // size) for size in self.sizes)

    @cached_property
    def shares(self) -> tuple[Fraction, ...]:
        """q_i, rounded down: they sum to at most 1."""
        roots = [power(children - 1, Fraction(1, 3)) if children > 2 else Fraction(1) for children in self.shape]
        return tuple(Fraction(math.floor(root / sum(roots) * _FINE), _FINE) for root in roots)

    def sums(self, histogram: Sequence[int]) -> list[list[int]]:
        """The exact sums of the nodes, by level."""
        running = list(accumulate(histogram, initial=0))
        return [
            [running[min(start + size, self.bins)] - running[start] for start in range(0, self.bins, size)]
            for size in self.sizes
        ]

    @cached_property
    def own(self) -> list[Floats]:
        """The variance of each node's own noise, by level; 0 for entries beyond the bins, which hold exactly 0."""
        levels = []
        for level, share in enumerate(self.shares):
            variances = np.zeros(math.prod(self.shape[: level + 1]))
            variances[: self.nodes[level]] = float(2 / share**2)
            levels.append(variances)
        return levels

    @cached_property
    def below(self) -> list[Floats]:
        """The variance of each node's best estimate from itself and all nodes below it, by level."""
        levels = [self.own[-1]]
        for own, children in zip(self.own[-2::-1], self.shape[:0:-1], strict=True):
            others = _child_sums(levels[0], children)
            levels.insert(0, own * others / _not_zero(own + others))
        return levels

    @cached_property
    def upward(self) -> list[Floats]:
        """The part by which each node's own sum moves toward that of its children, by level but the last."""
        return [(own - below) / _not_zero(own) for own, below in zip(self.own[:-1], self.below[:-1], strict=True)]

    @cached_property
    def downward(self) -> list[Floats]:
        """The part of its parent's correction that each node takes, by level: by its variance."""
        return [
            variances / np.repeat(_not_zero(_child_sums(variances, children)), children)
            for variances, children in zip(self.below, self.shape, strict=True)
        ]

    def estimate(self, noised: Sequence[Sequence[int]], total: int | None = None) -> Floats:
        """The best linear unbiased estimate of each bin, from the noised sums of all nodes, and of the exact total.

        Where no total is known it is the sum of the best estimates of the first level's nodes.
        """
        values = [_padded(sums, len(own)) for sums, own in zip(noised, self.own, strict=True)]
        for level in range(len(values) - 2, -1, -1):
            others = _child_sums(values[level + 1], self.shape[level + 1])
            values[level] += self.upward[level] * (others - values[level])
        corrected: Floats = _child_sums(values[0], self.shape[0]) if total is None else np.array([float(total)])
        for nodes, downward, children in zip(values, self.downward, self.shape, strict=True):
            corrected = nodes + downward * np.repeat(corrected - _child_sums(nodes, children), children)
        return corrected[: self.bins]

    @cached_property
    def total_variance(self) -> float:
        """The variance of the estimated total, where it is not known."""
        return float(_child_sums(self.below[0], self.shape[0])[0])

    @cached_property
    def bin_shares(self) -> Floats:
        """What each bin's estimate takes of a correction of the total."""
        taken: Floats = np.ones(1)
        for downward, children in zip(self.downward, self.shape, strict=True):
            taken = downward * np.repeat(taken, children)
        return taken[: self.bins]

    @cached_property
    def bin_variances(self) -> Floats:
        """The variance of each bin's estimate, given the total.

        Given its parent, a node has variance v (1 - v / V), where V is that of all siblings together.
        """
        variances: Floats = np.zeros(1)
        for below, downward, children in zip(self.below, self.downward, self.shape, strict=True):
            variances = below * (1 - downward) + downward * downward * np.repeat(variances, children)
        return variances[: self.bins]

    @cached_property
    def prefix_shares(self) -> Floats:
        """What each estimated sum of the first 1 .. bins bins takes of a correction of the total."""
        return self._prefixes[0]

    @cached_property
    def prefix_variances(self) -> Floats:
        """The variance of each such sum, given the total: that of all bins is then known."""
        return self._prefixes[1]

    @cached_property
    def _prefixes(self) -> tuple[Floats, Floats]:
        """Shares and variances of prefixes.

        It follows the path to the prefix's end, upward. Of the prefix within a node, given that node's own sum, `known`
        is how much of it follows from the sum (a regression coefficient) and `left` the variance that remains.
        """
        end = np.arange(1, self.bins + 1)
        known: Floats = np.zeros(self.bins)
        left: Floats = np.zeros(self.bins)
        for below, size, children in zip(self.below[::-1], self.sizes[::-1], self.shape[::-1], strict=True):
            running = np.concatenate((np.zeros(1), np.cumsum(below)))
            node = end // size
            first = node // children * children  # of the siblings; beyond the last node where the prefix is everything
            variance, siblings = np.append(below, np.zeros(children))[node], _from_to(running, first, first + children)
            before = _from_to(running, first, node)
            covariance = before + known * variance
            left = left + before + known * known * variance - covariance * covariance / _not_zero(siblings)
            known = covariance / _not_zero(siblings)
        known[-1], left[-1] = 1.0, 0.0
        return known, left


@dataclass(frozen=True)
class EvenTree(BinTree):
    """A tree whose nodes are all equally noisy, with variance 1, and whose total is not known.

    >>> tree = even_tree(64)
    >>> tree.shape, round(tree.total_variance, 1), round(float(np.mean(tree.prefix_variances)), 1)
    ((8, 8), 7.1, 2.4)
    """

    @cached_property
    def own(self) -> list[Floats]:
        levels = []
        for level, nodes in enumerate(self.nodes):
            variances = np.zeros(math.prod(self.shape[: level + 1]))
            variances[:nodes] = 1.0
            levels.append(variances)
        return levels


@lru_cache(maxsize=64)
def even_tree(bins: int) -> EvenTree:
    """The tree for this many bins that makes the variance of prefixes cut into whole nodes least.

    Each of its h levels has noise of a scale proportional to h: that variance is proportional to h**2 times the sum of
    n_i - 1.
    """

    def score(shape: Shape) -> int:
        return len(shape) ** 2 * sum(children - 1 for children in shape)

    return EvenTree(bins, min(shapes(bins), key=lambda shape: (score(shape), math.prod(shape), shape)))


def _from_to(running: Floats, start: NDArray[np.int64], end: NDArray[np.int64]) -> Floats:
    """Sums over index ranges, cut at the last index, from running sums."""
    last = len(running) - 1
    sums: Floats = running[np.minimum(end, last)] - running[np.minimum(start, last)]
    return sums


def _child_sums(values: Floats, children: int) -> Floats:
    """Sums over the children of each parent, added one after the other: the same numbers on every machine."""
    rows = values.reshape(-1, children)
    sums = rows[:, 0].copy()
    for child in range(1, children):
        sums += rows[:, child]
    return sums


def _not_zero(values: Floats) -> Floats:
    """The values with 1 in place of 0, so that 0 can be divided by them."""
    return np.where(values == 0, 1.0, values)


def _padded(sums: Sequence[int], places: int) -> Floats:
    padded = np.zeros(places)
    padded[: len(sums)] = [float(number) for number in sums]
    return padded
