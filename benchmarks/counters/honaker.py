"""Binary tree with bottom-up estimates: each node is estimated from its own draw and from all below it.

Guarantee    pure epsilon-DP for all releases together; inputs may react to them (docs/proofs/counters.md)
Relation     values: two streams differ in what one unit contributed; who contributes, and when, is public
Unit         its elements, wherever they lie, move by at most `width` grid steps in all
Sensitivity  L1, exact: width * levels over the nodes of a tree in which every element is in `levels` nodes
Noise        discrete Laplace, scale b = width * levels / epsilon, on every node; a function of key and node. Prefixes
             are exact fractions, rounded once
Capacity     none: a full tree is followed by a new one (epoch), with new noise, and is from then on one number
Variance     of release t, in squared grid steps: sum over t's digits d_i, to base k, of d_i k**i / lambda_i * v(b) with
             lambda_i = 1 + k + ... + k**i, v(b) = 2p / (1 - p)**2, p = exp(-1 / b); past trees as in tree_row.py
Source       Honaker (2015), Efficient Use of Differentially Private Binary Trees, estimate from below
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Self

from benchmarks.counters.kary import level_sum
from shoal.mechanisms import check
from shoal.mechanisms.counters.complete_tree import Complete, Draw, NodeSums, Numerators
from shoal.mechanisms.counters.tree_row import Rows, Stretch, best_shape, check_shape


class BottomUp(Complete):
    """A tree whose prefixes are cut into whole nodes, each estimated from the subtree below it.

    >>> tree = BottomUp(arity=2, height=2)
    >>> tree.numerators(3), tree.denominator  # one leaf, and a node of two: two thirds its own draw, one the leaves'
    ({21: 1, 7: 2, 14: 1}, 21)
    >>> tree.squares(3)
    Fraction(5, 3)
    """

    @cached_property
    def denominator(self) -> int:
        """Of every coefficient of a prefix."""
        return math.lcm(*self.ratios)

    def digits(self, t: int) -> list[int]:
        """How many nodes of height i prefix t is cut into."""
        return [t % (size * self.arity) // size for size in self.sizes]

    def squares(self, t: int) -> Fraction:
        """Sum of the squared coefficients of prefix t."""
        return self._weighted(self.digits(t))

    def sum_squares(self, t: int) -> Fraction:
        """Sum of the squared coefficients of the prefixes 1 .. t, without a loop over them."""
        return self._weighted([level_sum(t, self.arity, i) for i in range(self.height + 1)])

    def _weighted(self, counts: list[int]) -> Fraction:
        terms = zip(counts, self.sizes, self.ratios, strict=True)
        return sum((Fraction(count * size, ratio) for count, size, ratio in terms), start=Fraction(0))

    def numerators(self, t: int) -> Numerators:
        """Of the coefficients of the draws in prefix t: k**j / lambda_i at height j below a node of height i."""
        found: Numerators = {}
        for i, digit in enumerate(self.digits(t)):
            for j in range(i + 1 if digit else 0):
                numerator = self.sizes[j] * (self.denominator // self.ratios[i])
                found[numerator] = found.get(numerator, 0) + digit * self.sizes[i - j]
        return found

    def prefixes(self, draw: Draw) -> "BottomUpPrefixes":
        """The noise of every prefix, from the draws of all nodes."""
        return BottomUpPrefixes(self, draw)


class BottomUpPrefixes:
    """The noise of every prefix of one tree; memory: that of `NodeSums`."""

    __slots__ = ("_sums", "_tree")

    def __init__(self, tree: BottomUp, draw: Draw) -> None:
        self._tree = tree
        self._sums = NodeSums(tree, draw)

    def numerator(self, t: int) -> int:
        """(L z)_t times the tree's denominator."""
        tree, noise = self._tree, 0
        for i, digit in enumerate(tree.digits(t)):
            if digit:
                end = t // tree.sizes[i]
                inside = self._sums.root if i == tree.height else self._sums.between(i, end - digit, end)
                noise += inside * (tree.denominator // tree.ratios[i])
        return noise


@dataclass(frozen=True)
class HonakerTree(Rows):
    """Trees of one height, each element being in `levels` nodes.

    >>> tree = HonakerTree.best(1023, width=1, epsilon=Fraction(1))
    >>> tree.arity, tree.levels, round(tree.mean_variance(1023))
    (2, 8, 506)
    """

    levels: int
    arity: int = 2

    def __post_init__(self) -> None:
        Rows.__post_init__(self)
        check_shape(self.arity, self.levels)

    @classmethod
    def best(cls, horizon: int, *, width: int, epsilon: Fraction, arity: int = 2) -> Self:
        """The tree whose mean variance over the first `horizon` releases is least."""
        check.positive(horizon=horizon)
        _, levels = best_shape(BottomUp, (arity, arity + 1), horizon)
        return cls(width, epsilon, levels, arity)

    @cached_property
    def stretches(self) -> tuple[Stretch, ...]:
        """The same tree for ever."""
        return (Stretch(BottomUp(self.arity, self.levels - 1), None),)
