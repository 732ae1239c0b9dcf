"""Complete k-ary trees whose nodes are all noisy: where the nodes are, and what an estimate from them must tell.

Index        of nodes: breadth first from the root, 0, each level from the left
Estimates    of a prefix of the leaves are linear in the nodes and unbiased: L R = A, with R the 0/1 matrix of which
             node holds which leaf. How good they are is the sum of the squared coefficients, a row of L
Whole trees  the sum of all leaves may be estimated from the upper levels alone (`upper`, u of them below the root): a
             few draws, and a variance that is larger by a factor of less than 1 / (1 - k**-(u + 1))
Proof        docs/proofs/blue.md
"""

from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

Draws = NDArray[np.int64] | NDArray[np.object_]
Coefficients = tuple[tuple[Fraction, int], ...]  # (|coefficient| of a draw, how many draws have it)
Numerators = dict[int, int]  # |coefficient| of a draw times a common denominator -> how many draws have it
Draw = Callable[[int, int], Draws]  # first node, count -> their draws
Path = Sequence[int]
FEW = 100  # draws: below that, one by one is faster
_PIECE = 1 << 16  # leaves whose draws are added up at a time
_PATHS = 2  # that are kept
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
    def numerators(self, t: int) -> Numerators:
        """Coefficients of the draws in the noise of prefix t, times the tree's denominator; none is 0."""

    @abstractmethod
    def prefixes(self, draw: Draw) -> Prefixes:
        """The noise of every prefix, from the draws of all nodes: `draw(first, count)`."""


class NodeSums:
    """Sums over consecutive nodes, children of one parent, of U_i = k**i z + (U_{i-1} of the children).

    Thousands of trees are open at a time. So a tree keeps k + 1 numbers of each height: the running sums over the
    children of the nodes on the way to one leaf, and, for windows, to another. What is below a node is drawn again when
    the way comes to it: once for each height in all.
    """

    __slots__ = ("_draw", "_paths", "_tree", "root")

    def __init__(self, tree: Complete, draw: Draw) -> None:
        self._tree, self._draw = tree, draw
        below = self._inside(tree.height - 1, 0) if tree.height else []
        own: int = draw(0, 1).tolist()[0]
        self.root: int = own * tree.leaves + (below[-1][-1] if below else 0)
        self._paths: tuple[Path, ...] = (_path([0] * tree.height, below),)

    def between(self, height: int, start: int, end: int) -> int:
        """The sum over nodes start .. end - 1 of this height, which is below the root."""
        arity = self._tree.arity
        parent, first = divmod(start, arity)
        path, at = self._paths[0], height * (arity + 2)
        if path[at] != parent:
            path = self._along(height, parent)
        at += 1 + first
        return path[at + end - start] - path[at]

    def _along(self, height: int, parent: int) -> Path:
        """The path on which the node is whose children are of this height; it is then the first."""
        at = height * (self._tree.arity + 2)
        there = next((path for path in self._paths if path[at] == parent), None)
        before = next((path for path in self._paths if path[at] == parent - 1), None)
        path = there or self._moved(before or self._paths[0], height, parent)
        others = [other for other in self._paths if other is not (there or before)]
        self._paths = (path, *others[: _PATHS - 1])
        return path

    def _moved(self, path: Path, height: int, parent: int) -> Path:
        """A path to that node, and on to the first leaf below it, with what it has in common with another one."""
        arity, tall = self._tree.arity, self._tree.height
        size = arity + 2
        parents = [path[size * i] for i in range(tall)]
        sums = [list(path[size * i + 1 : size * (i + 1)]) for i in range(tall)]
        for i in range(tall - 1, height - 1, -1):
            wanted = parent // arity ** (i - height)
            if parents[i] != wanted:
                parents[: i + 1] = [wanted * arity ** (i - lower) for lower in range(i + 1)]
                sums[: i + 1] = self._inside(i, wanted)
        return _path(parents, sums)

    def _inside(self, height: int, parent: int) -> list[list[int]]:
        """The running sums over the children, of this height, of a node; before them those of its first child's."""
        tree, arity = self._tree, self._tree.arity
        sizes = tree.sizes[: height + 2]
        if height and sizes[-1] > _PIECE:
            below = [self._inside(height - 1, parent * arity + child) for child in range(arity)]
            draws = self._drawn(height, parent * arity, arity).tolist()
            totals = [draw * sizes[height] + sums[-1][-1] for draw, sums in zip(draws, below, strict=True)]
            return [*below[0], list(accumulate(totals, initial=0))]
        levels = [self._drawn(i, parent * sizes[height + 1 - i], sizes[height + 1 - i]) for i in range(height + 1)]
        running = _running if sizes[-1] >= FEW else _few_running
        return [sums[: arity + 1] for sums in running(levels, arity, sizes)]

    def _drawn(self, height: int, first: int, count: int) -> Draws:
        return self._draw(self._tree.first(height) + first, count)


def _path(parents: Sequence[int], sums: Sequence[Sequence[int]]) -> Path:
    """For each height the parent's number and the running sums over its children, in one array if they fit."""
    flat = [number for parent, running in zip(parents, sums, strict=True) for number in (parent, *running)]
    try:
        return array("q", flat)
    except OverflowError:
        return flat


def _few_running(levels: Sequence[Draws], arity: int, sizes: Sequence[int]) -> list[list[int]]:
    """`_running` for few draws."""
    running: list[list[int]] = []
    for draws, size in zip(levels, sizes, strict=False):
        totals = [draw * size for draw in draws.tolist()]
        if running:
            below = running[-1]
            totals = [
                total + below[end] - below[end - arity]
                for total, end in zip(totals, range(arity, len(below), arity), strict=True)
            ]
        running.append(list(accumulate(totals, initial=0)))
    return running


def _running(levels: Sequence[Draws], arity: int, sizes: Sequence[int]) -> list[list[int]]:
    """The first running sums of U for each height, from the draws of its nodes, all under one of the next height."""
    running: list[list[int]] = []
    below: Draws | None = None
    terms = (len(levels) + 1) * sizes[-1]  # |U_i| <= (i + 1) k**i largest, and as many of a height as leaves allow
    for draws, size in zip(levels, sizes, strict=False):
        totals: Draws = _wide(draws, terms) * size
        if below is not None:
            totals = totals + below.reshape(-1, arity).sum(axis=1)
        first: list[int] = totals[:arity].tolist()
        running.append(list(accumulate(first, initial=0)))
        below = totals
    return running


def _wide(draws: Draws, terms: int) -> Draws:
    """The draws in a type that can hold a sum of `terms` of them."""
    largest = max(int(draws.max()), -int(draws.min()))
    return draws.astype(np.object_) if largest * terms >= 1 << 62 else draws
