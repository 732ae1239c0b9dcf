"""Smooth binary counter: a binary tree of which only leaves with as many zeros as the others are used.

Guarantee    pure epsilon-DP for all releases together; inputs may react to them (docs/proofs/counters.md)
Relation     values: two streams differ in what one unit contributed; who contributes, and when, is public
Unit         its elements, wherever they lie, move by at most `width` grid steps in all
Sensitivity  L1, exact: width * z over the nodes; an element is in one left child for each of its leaf's z zeros
Noise        discrete Laplace, scale b = width * z / epsilon, on every left child; a function of key and node
Capacity     C(z + w, z) - 1 elements per tree; it is never extended, the next one starts a new tree, with new noise
Variance     in squared grid steps: w * 2p / (1 - p)**2 with p = exp(-1 / b), the same for every release of a tree
Source       Andersson and Pagh (2023), A Smooth Binary Mechanism, arXiv 2306.09666, for z = w
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Self

from benchmarks.counters.kary import MOST
from benchmarks.counters.nodes import NodeTree
from shoal.mechanisms import check

_DEEPEST = 48  # z + w, so that the nodes can be numbered


@dataclass(frozen=True)
class SmoothTree(NodeTree):
    """A tree of height z + w; element t is at leaf t - 1 of those with z zeros and w ones, in order.

    >>> tree = SmoothTree(width=1, epsilon=Fraction(1), zeros=2, ones=3)
    >>> tree.size, tree.scale, f"{tree.leaf(0):05b}", f"{tree.leaf(9):05b}", tree.nodes(9)
    (9, Fraction(2, 1), '00111', '11100', 3)
    """

    zeros: int
    ones: int

    def __post_init__(self) -> None:
        NodeTree.__post_init__(self)
        check.positive(zeros=self.zeros, ones=self.ones)
        check.below(_DEEPEST + 1, height=self.zeros + self.ones)

    @classmethod
    def best(cls, capacity: int, *, width: int, epsilon: Fraction) -> Self:
        """The tree for so many elements whose variance is least: fewer zeros, which all pay for, than ones.

        >>> tree = SmoothTree.best(2**20, width=1, epsilon=Fraction(1))
        >>> tree.zeros, tree.ones
        (6, 27)
        """
        check.positive(capacity=capacity)
        capacity = min(capacity, MOST)
        shapes = ((z, w) for z in range(1, _DEEPEST) for w in range(1, _DEEPEST + 1 - z) if comb(z + w, z) > capacity)
        return cls(width, epsilon, *min(shapes, key=lambda shape: (shape[0] ** 2 * shape[1], shape)))

    @property
    def levels(self) -> int:
        """An element is in the left children on the way to its leaf."""
        return self.zeros

    @property
    def size(self) -> int:
        """Leaves in use, but for the last: the prefix before it is the whole."""
        return comb(self.zeros + self.ones, self.zeros) - 1

    def leaf(self, rank: int) -> int:
        """The number with z + w bits, w of them ones, that `rank` others are less than."""
        leaf, ones = 0, self.ones
        for bits in range(self.zeros + self.ones - 1, -1, -1):
            smaller = comb(bits, ones)  # those that go on with a zero
            if rank >= smaller:
                rank, ones, leaf = rank - smaller, ones - 1, leaf | 1 << bits
        return leaf

    def _nodes(self, leaf: int, bit: int) -> Iterator[int]:
        """The left children where the way to the leaf has this bit, by their parents' numbers; the root's is 1."""
        height = self.zeros + self.ones
        return ((1 << height - 1 - at) + (leaf >> at + 1) for at in range(height - 1, -1, -1) if leaf >> at & 1 == bit)

    def signed_nodes(self, t: int) -> Iterator[tuple[int, int]]:
        """Everything to the left of the leaf of element t + 1: one left child for each one."""
        return ((node, 1) for node in self._nodes(self.leaf(t), 1) if t)

    def holders(self, place: int) -> Iterator[int]:
        """One left child for each zero."""
        return self._nodes(self.leaf(place - 1), 0)

    def count(self, t: int) -> int:
        """The number of ones, whatever t is."""
        return self.ones if t else 0
