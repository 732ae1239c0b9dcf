"""Complete k-ary trees whose nodes are all noisy: where the nodes are, and what an estimate from them must tell.

Index        of nodes: breadth first from the root, 0, each level from the left
Estimates    of a prefix of the leaves are linear in the nodes and unbiased: L R = A, with R the 0/1 matrix of which
             node holds which leaf. How good they are is the sum of the squared coefficients, a row of L
Whole trees  the sum of all leaves may be estimated from the upper levels alone (`upper`, u of them below the root): a
             few draws, and a variance that is larger by a factor of less than 1 / (1 - k**-(u + 1))
Proof        docs/proofs/blue.md
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

Draws = NDArray[np.int64] | NDArray[np.object_]
Coefficients = tuple[tuple[Fraction, int], ...]  # (|coefficient| of a draw, how many draws have it)
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
        """k**h."""
        return self.sizes[-1]

    @cached_property
    def nodes(self) -> int:
        """How many there are."""
        return self.ratios[-1]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Leaves of a node of height i."""
        return tuple(self.arity**i for i in range(self.height + 1))

    @cached_property
    def ratios(self) -> tuple[int, ...]:
        """lambda_i = 1 + k + ... + k**i: also how many nodes a subtree of height i has."""
        return tuple((self.arity ** (i + 1) - 1) // (self.arity - 1) for i in range(self.height + 1))

    def first(self, height: int) -> int:
        """Index of the leftmost node of this height."""
        return self.ratios[self.height - height - 1] if height < self.height else 0

    @cached_property
    def upper(self) -> Self:
        """The upper part, whose estimate of the sum of all leaves stands for the tree once it is full."""
        fits = (h for h in range(self.height) if self.sizes[h] >= _UPPER)
        return type(self)(self.arity, next(fits, self.height))

    @property
    def total_squares(self) -> Fraction:
        """Sum of the squared coefficients in the best estimate of the sum of all leaves: k**h / lambda_h."""
        return Fraction(self.leaves, self.nodes)

    def total_coefficients(self) -> Coefficients:
        """Of the draws in that estimate: k**i / lambda_h at height i."""
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
        """Of every coefficient of a prefix."""

    @abstractmethod
    def squares(self, t: int) -> Fraction:
        """Sum of the squared coefficients of prefix t."""

    @abstractmethod
    def sum_squares(self, t: int) -> Fraction:
        """Sum of the squared coefficients of the prefixes 1 .. t, without a loop over them."""

    @abstractmethod
    def coefficients(self, t: int) -> Coefficients:
        """Of the draws in the noise of prefix t; only those that are not 0."""

    @abstractmethod
    def prefixes(self, draws: Draws) -> Prefixes:
        """The noise of every prefix, from the draws of all nodes."""


def running_sums(tree: Complete, draws: Draws) -> list[Draws]:
    """For each height i, the running sums over its nodes of U_i = k**i z + (U_{i-1} of the children)."""
    largest = max(int(draws.max()), -int(draws.min()))
    if largest * (tree.height + 1) * tree.leaves >= 1 << 62:  # |U_i| <= (i + 1) k**i largest
        draws = draws.astype(np.object_)
    running: list[Draws] = []
    below: Draws | None = None
    for i, size in enumerate(tree.sizes):
        start = tree.first(i)
        totals: Draws = draws[start : start + tree.sizes[tree.height - i]] * size
        if below is not None:
            totals = totals + below.reshape(-1, tree.arity).sum(axis=1)
        running.append(np.concatenate((totals[:1] * 0, np.cumsum(totals))))
        below = totals
    return running
