"""k-ary counter: a prefix is cut into the fewest whole nodes of a complete k-ary tree.

Guarantee    pure epsilon-DP for all releases together; inputs may react to them (docs/proofs/counters.md)
Relation     values: two streams differ in what one unit contributed; who contributes, and when, is public
Unit         its elements, wherever they lie, move by at most `width` grid steps in all
Sensitivity  L1, exact: width * h over the nodes; an element is in one node of each level 0 .. h - 1
Noise        discrete Laplace, scale b = width * h / epsilon, on every node; a function of key and node
Capacity     k**h elements per tree; it is never extended, the next element starts a new one, with new noise
Variance     of release t within a tree, in squared grid steps: (sum of t's h digits to base k) * 2p / (1 - p)**2 with
             p = exp(-1 / b); the first digit of k**h counts as k
Source       Chan, Shi and Song (2011) for k = 2; Qardaji, Yang and Li (2013) for larger k
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from benchmarks.counters.nodes import NodeTree
from shoal.mechanisms import check
from shoal.mechanisms.noise.keyed import MAX_INDEX

MOST = 1 << 40  # elements that a tree is made for; whoever expects more gets several
_ARITIES = range(2, 65)  # to choose from; (k - 1) / log(k)**3 is least near 17


@dataclass(frozen=True)
class KaryTree(NodeTree):
    """Levels 0 .. h - 1 of the tree; nobody needs its root.

    >>> tree = KaryTree(width=1, epsilon=Fraction(1), arity=10, height=4)
    >>> tree.size, tree.scale, tree.nodes(4321), tree.nodes(10_000)
    (10000, Fraction(4, 1), 10, 10)
    """

    arity: int
    height: int

    def __post_init__(self) -> None:
        NodeTree.__post_init__(self)
        check.positive(height=self.height)
        if self.arity < 2:
            raise ValueError(f"arity must be at least 2, not {self.arity}")
        check.below(MAX_INDEX, nodes=self.size * self.height)

    @classmethod
    def best(cls, capacity: int, *, width: int, epsilon: Fraction) -> Self:
        """The tree for so many elements whose mean variance over them is least.

        >>> tree = KaryTree.best(2**20, width=1, epsilon=Fraction(1))
        >>> tree.arity, tree.height
        (16, 5)
        """
        check.positive(capacity=capacity)
        capacity = min(capacity, MOST)
        shapes = ((arity, height_for(capacity, arity)) for arity in _ARITIES)
        return cls(width, epsilon, *min(shapes, key=lambda shape: shape[1] ** 2 * digit_sum(capacity, *shape)))

    @property
    def levels(self) -> int:
        """One node of each level holds an element."""
        return self.height

    @property
    def size(self) -> int:
        """k**h."""
        return int(self.arity**self.height)

    def signed_nodes(self, t: int) -> Iterator[tuple[int, int]]:
        """As many nodes of each level as the digit says; node q of level i has index q * h + i."""
        at = 0
        for level in range(self.height - 1, -1, -1):
            end = t // self.arity**level
            yield from ((node * self.height + level, 1) for node in range(at, end))
            at = end * self.arity

    def holders(self, place: int) -> Iterator[int]:
        """One of each level."""
        return ((place - 1) // self.arity**level * self.height + level for level in range(self.height))

    def count(self, t: int) -> int:
        """Sum of the digits; the first has no bound."""
        first, rest = divmod(t, self.size // self.arity)
        digits = first
        while rest:
            rest, digit = divmod(rest, self.arity)
            digits += digit
        return digits


def height_for(capacity: int, arity: int) -> int:
    """The least h with k**h >= capacity."""
    height = 1
    while arity**height < capacity:
        height += 1
    return height


def digit_sum(t: int, arity: int, height: int) -> int:
    """Sum of the digits of 1 .. t to a base, the first of `height` digits having no bound; without a loop over them.

    >>> digit_sum(250, arity=10, height=2) == sum(s // 10 + s % 10 for s in range(1, 251))
    True
    """
    first: int = arity ** (height - 1)
    return sum(level_sum(t, arity, level) for level in range(height - 1)) + _sum_of_quotients(t, first)


def level_sum(t: int, arity: int, level: int) -> int:
    """Sum of digit `level` of 1 .. t."""
    size: int = arity**level
    full, rest = divmod(t + 1, size * arity)
    return full * size * (arity * (arity - 1) // 2) + _sum_of_quotients(rest - 1, size)


def _sum_of_quotients(t: int, size: int) -> int:
    """Sum of s // size over s = 0 .. t."""
    digit, part = divmod(t + 1, size)
    return size * (digit * (digit - 1) // 2) + digit * part
