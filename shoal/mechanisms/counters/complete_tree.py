"""Complete k-ary trees whose nodes are all noisy: where the nodes are, and what an estimate from them must tell.

Index        of nodes: breadth first from the root, 0, each level from the left
Estimates    of a prefix of the leaves are linear in the nodes and unbiased: L R = A, with R the 0/1 matrix of which
             node holds which leaf. How good they are is the sum of the squared coefficients, a row of L
Whole trees  the sum of all leaves may be estimated from the upper levels alone (`upper`, u of them below the root): a
             few draws, and a variance that is larger by a factor of less than 1 / (1 - k**-(u + 1))
Proof        docs/proofs/blue.md
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

Draws = NDArray[np.int64] | NDArray[np.object_]
Coefficients = tuple[tuple[Fraction, int], ...]  # (|coefficient| of a draw, how many draws have it)
Draw = Callable[[int, int], Draws]  # first node, count -> their draws
SEGMENT = 1 << 8  # leaves of a subtree whose draws are kept together, at most: thousands of trees are open at a time
_PIECE = 1 << 16  # draws that are added up at a time
_UPPER = 16  # leaves of the part that stands for a whole tree, at least: for k = 10 it has 100, and costs 0.1 %


class Prefixes(Protocol):
    """The noise of every prefix of one tree."""

    def numerator(self, t: int) -> int:
        """(L z)_t times the tree's denominator."""
        ...


@dataclass(frozen=True)
class Complete(ABC):
    """The shape of a tree; a subclass says how it estimates prefixes."""

    arity: int  # k, at least 2
    height: int  # h: the root's; a leaf has 0

    @cached_property
    def leaves(self) -> int:
        """The number of leaves, k**h."""
        return self.sizes[-1]

    @cached_property
    def nodes(self) -> int:
        return self.ratios[-1]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of leaves under a node of each height i."""
        return tuple(self.arity**i for i in range(self.height + 1))

    @cached_property
    def ratios(self) -> tuple[int, ...]:
        """lambda_i = 1 + k + ... + k**i, which is also how many nodes a subtree of height i has."""
        return tuple((self.arity ** (i + 1) - 1) // (self.arity - 1) for i in range(self.height + 1))

    def first(self, height: int) -> int:
        """The index of the leftmost node of this height."""
        return self.ratios[self.height - height - 1] if height < self.height else 0

    @cached_property
    def upper(self) -> Self:
        """The upper part, whose estimate of the sum of all leaves stands for the tree once it is full."""
        fits = (h for h in range(self.height) if self.sizes[h] >= _UPPER)
        return type(self)(self.arity, next(fits, self.height))

    @property
    def total_squares(self) -> Fraction:
        """The sum of the squared coefficients in the best estimate of the sum of all leaves: k**h / lambda_h."""
        return Fraction(self.leaves, self.nodes)

    def total_coefficients(self) -> Coefficients:
        """The coefficients of the draws in that estimate: k**i / lambda_h at height i."""
        return tuple((Fraction(self.sizes[i], self.nodes), self.sizes[self.height - i]) for i in range(self.height + 1))

    def total_numerator(self, draws: Draws) -> int:
        """The noise in that estimate, times lambda_h."""
        values = draws.tolist()
        return sum(
            self.sizes[i] * sum(values[self.first(i) : self.first(i) + self.sizes[self.height - i]])
            for i in range(self.height + 1)
        )

    @property
    @abstractmethod
    def denominator(self) -> int:
        """The common denominator of all coefficients of a prefix."""

    @abstractmethod
    def squares(self, t: int) -> Fraction:
        """The sum of the squared coefficients of prefix t."""

    @abstractmethod
    def sum_squares(self, t: int) -> Fraction:
        """The sum of the squared coefficients of prefixes 1 .. t, without a loop over them."""

    @abstractmethod
    def coefficients(self, t: int) -> Coefficients:
        """The coefficients of the draws in the noise of prefix t; only those that are not 0."""

    @abstractmethod
    def prefixes(self, draw: Draw) -> Prefixes:
        """The noise of every prefix, from the draws of all nodes: `draw(first, count)`."""


class NodeSums:
    """Sums over consecutive nodes, children of one parent, of U_i = k**i z + (U_{i-1} of the children).

    A large tree is cut into subtrees of at most `SEGMENT` leaves. Above them all U are kept; below, only the draws of
    the subtree that was asked for last, which are drawn again when another takes its place. So the memory is a number
    for each subtree and for each node of one of them.
    """

    __slots__ = ("_cut", "_draw", "_lower", "_tree", "_upper")

    def __init__(self, tree: Complete, draw: Draw) -> None:
        self._tree, self._draw = tree, draw
        self._cut = max(i for i, size in enumerate(tree.sizes) if size <= SEGMENT)  # height of the subtrees
        self._lower: tuple[int, list[Draws]] = 0, self._segment(0)
        self._upper: list[Draws] = []  # from the height of the subtrees on
        if self._cut < tree.height:
            levels = [self._drawn(i, 0, tree.sizes[tree.height - i]) for i in range(self._cut + 1, tree.height + 1)]
            self._upper = _running(levels, tree.arity, tree.sizes[self._cut + 1 :], self._totals())

    @property
    def root(self) -> int:
        return self.between(self._tree.height, 0, 1)

    def between(self, height: int, start: int, end: int) -> int:
        """The sum over nodes start .. end - 1 of this height."""
        if self._upper and height >= self._cut:
            sums = self._upper[height - self._cut]
            return int(sums[end]) - int(sums[start])
        number, first = divmod(start, self._tree.sizes[self._cut - height])
        if number != self._lower[0]:
            self._lower = number, self._segment(number)
        sums = self._lower[1][height]
        return int(sums[first + end - start]) - int(sums[first])

    def _drawn(self, height: int, first: int, count: int) -> Draws:
        return self._draw(self._tree.first(height) + first, count)

    def _segment(self, number: int) -> list[Draws]:
        """Running sums over the nodes of each height in one subtree."""
        sizes = self._tree.sizes[: self._cut + 1]
        levels = [self._drawn(i, number * sizes[self._cut - i], sizes[self._cut - i]) for i in range(self._cut + 1)]
        return _running(levels, self._tree.arity, sizes)

    def _totals(self) -> Draws:
        """U of every subtree's root, drawn piece by piece within each height."""
        tree, cut = self._tree, self._cut
        totals = np.zeros(tree.sizes[tree.height - cut], dtype=np.object_)
        for i in range(cut + 1):
            inside = tree.sizes[cut - i]  # nodes of this height in a subtree
            for first in range(0, len(totals), max(1, _PIECE // inside)):
                some = totals[first : first + max(1, _PIECE // inside)]
                draws = self._drawn(i, first * inside, len(some) * inside)
                some += _wide(draws, inside).reshape(-1, inside).sum(axis=1).astype(np.object_) * tree.sizes[i]
        return _narrow(totals)


def _running(levels: Sequence[Draws], arity: int, sizes: Sequence[int], below: Draws | None = None) -> list[Draws]:
    """The running sums of U for each height, from the draws of its nodes; `below` holds the U of the height below."""
    running = [] if below is None else [_accumulated(below)]
    terms = (len(levels) + 1) * sizes[-1]  # |U_i| <= (i + 1) k**i largest, and as many of a height as leaves allow
    for draws, size in zip(levels, sizes, strict=True):
        totals: Draws = _wide(draws, terms) * size
        if below is not None:
            totals = totals + below.reshape(-1, arity).sum(axis=1)
        running.append(_accumulated(totals))
        below = totals
    return running


def _accumulated(totals: Draws) -> Draws:
    return np.concatenate((totals[:1] * 0, np.cumsum(totals)))


def _narrow(totals: Draws) -> Draws:
    """The totals as machine integers, for they are kept, if all their sums are far from the largest of them."""
    largest = max(int(totals.max()), -int(totals.min()))
    return totals.astype(np.int64) if largest * len(totals) < 1 << 61 else totals


def _wide(draws: Draws, terms: int) -> Draws:
    """The draws in a type that can hold a sum of `terms` of them."""
    largest = max(int(draws.max()), -int(draws.min()))
    return draws.astype(np.object_) if largest * terms >= 1 << 62 else draws
