"""k-ary counter with subtraction: prefixes by signed digits, so that a node may be added or taken away.

Guarantee    pure epsilon-DP for all releases together; inputs may react to them (docs/proofs/counters.md)
Relation     values: two streams differ in what one unit contributed; who contributes, and when, is public
Unit         its elements, wherever they lie, move by at most `width` grid steps in all
Sensitivity  L1, exact: width * h over the nodes; an element is in one node of each level 0 .. h - 1
Noise        discrete Laplace, scale b = width * h / epsilon, on every node; a function of key and node
Capacity     (k**h - 1) / 2 elements per tree; it is never extended, the next one starts a new tree, with new noise
Variance     of release t within a tree, in squared grid steps: (sum of |d_i|) * 2p / (1 - p)**2 with p = exp(-1 / b),
             for t = sum of d_i k**i, all d_i from -(k - 1) / 2 to (k - 1) / 2, k odd
Source       Andersson, Pagh, Steiner and Torkamani (2024), Count on Your Elders, arXiv 2408.07021
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from benchmarks.counters.kary import MOST
from benchmarks.counters.nodes import NodeTree
from shoal.mechanisms import check
from shoal.mechanisms.noise.keyed import MAX_INDEX

_ARITIES = range(3, 65, 2)  # to choose from; the best for long streams is 19


@dataclass(frozen=True)
class EldersTree(NodeTree):
    """Levels 0 .. h - 1 of a tree; nodes taken away may hold elements that are still to come.

    >>> tree = EldersTree(width=1, epsilon=Fraction(1), arity=3, height=3)
    >>> tree.size, list(tree.signed_nodes(8)), tree.nodes(8)  # 8 = 9 - 1: node 0 of level 2 less node 8 of level 0
    (13, [(2, 1), (24, -1)], 2)
    """

    arity: int
    height: int

    def __post_init__(self) -> None:
        NodeTree.__post_init__(self)
        check.positive(height=self.height)
        if self.arity < 3 or self.arity % 2 == 0:
            raise ValueError(f"arity must be an odd number from 3, not {self.arity}")
        check.below(MAX_INDEX, nodes=self.arity**self.height * self.height)

    @classmethod
    def best(cls, capacity: int, *, width: int, epsilon: Fraction) -> Self:
        """The tree for so many elements whose mean variance over them is least.

        >>> tree = EldersTree.best(2**16, width=1, epsilon=Fraction(1))
        >>> tree.arity, tree.height
        (21, 4)
        """
        check.positive(capacity=capacity)
        capacity = min(capacity, MOST)
        shapes = ((arity, _height_for(capacity, arity)) for arity in _ARITIES)
        return cls(width, epsilon, *min(shapes, key=lambda shape: shape[1] ** 2 * size_sum(capacity, *shape)))

    @property
    def levels(self) -> int:
        """One node of each level holds an element."""
        return self.height

    @property
    def size(self) -> int:
        """(k**h - 1) / 2: the largest number of h signed digits."""
        return int((self.arity**self.height - 1) // 2)

    def digits(self, t: int) -> list[int]:
        """The signed digits of t, lowest first."""
        half, digits = self.arity // 2, []
        for _ in range(self.height):
            digits.append((t + half) % self.arity - half)
            t = (t - digits[-1]) // self.arity
        return digits

    def signed_nodes(self, t: int) -> Iterator[tuple[int, int]]:
        """From the highest digit down: so many nodes to the right of the place reached, or to its left.

        Node q of level i has index q * h + i.
        """
        at = 0
        for level, digit in reversed(list(enumerate(self.digits(t)))):
            end = at + digit
            nodes, sign = (range(at, end), 1) if digit > 0 else (range(end, at), -1)
            yield from ((node * self.height + level, sign) for node in nodes)
            at = end * self.arity

    def holders(self, place: int) -> Iterator[int]:
        """One of each level."""
        return ((place - 1) // self.arity**level * self.height + level for level in range(self.height))

    def count(self, t: int) -> int:
        """Sum of the digits' sizes."""
        return sum(map(abs, self.digits(t)))


def _height_for(capacity: int, arity: int) -> int:
    height = 1
    while (arity**height - 1) // 2 < capacity:
        height += 1
    return height


def size_sum(t: int, arity: int, height: int) -> int:
    """Sum of the sizes of the signed digits of 1 .. t, without a loop over them.

    Digit i of s is digit 0 of q = floor((s + (k**i - 1) / 2) / k**i), which stays the same k**i times.

    >>> tree = EldersTree(1, Fraction(1), 5, 3)
    >>> size_sum(60, 5, 3) == sum(tree.count(s) for s in range(1, 61))
    True
    """
    total = 0
    for level in range(height):
        size = arity**level
        quotients, rest = divmod(t + 1 + (size - 1) // 2, size)
        full, part = divmod(quotients, arity)
        total += size * (full * (arity**2 - 1) // 4 + sum(_size(q, arity) for q in range(part)))
        total += rest * _size(part, arity)
    return total


def _size(q: int, arity: int) -> int:
    return min(q, arity - q)
