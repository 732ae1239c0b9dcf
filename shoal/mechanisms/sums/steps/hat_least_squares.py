"""Hat functions in levels: least squares from sums of steps whose weights rise and fall linearly.

Steps are numbered from 0. A node q of stride s weighs step p by max(0, 1 - abs(p + 1/2 - q s) / s): each step is under
two neighbours, with weights that sum to 1. H_i are the nodes of stride s_i, s_1 | s_2 | ...; each node's measurement,
and each step's, has noise of one variance. With M = I + sum of H_i'H_i,

    variance of the best linear unbiased estimate of a'x:  a' M**-1 a

As s_i divides s_(i+1), a hat is a sum of finer ones, H_(i+1) = T_i H_i; with K_i = I + T_i' K_(i+1) T_i (K = I at the
top), B_1 = H_1 H_1', B_(i+1) = T_i T_i'

    M**-1 = I - H_1' (K_1**-1 + B_1)**-1 H_1,   K_i**-1 = I - T_i' (K_(i+1)**-1 + B_(i+1))**-1 T_i

The eigenvalues of K**-1 are in (0, 1], those of B at least s / 3: a few steps of iteration are enough. Nobody's privacy
depends on how well that is solved (hats.py); nor do the arrays' sums, products and order depend on the machine.

Proof        docs/proofs/hats.md
"""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from operator import mul

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_ROUNDS = 7  # of the iteration, which gains a factor of four or more each time
_TAPS = 16  # of a filter whose weights fall by 0.27 or faster


@dataclass(frozen=True)
class Hats:
    """The levels over a stretch of steps, either from the very first step or within a row without end.

    A node belongs to a stretch if all its steps do. Arrays of nodes have an entry for each multiple of the stride, both
    ends included; the entry of a node outside the stretch is 0.
    """

    ratios: tuple[int, ...]  # s_1, s_2 / s_1, ...
    begins: bool  # at the first step of all: what would come before it is nothing, and node 0 is one of the stretch

    @cached_property
    def levels(self) -> "tuple[_Level, ...]":
        """The levels from the finest to the coarsest."""
        return tuple(_Level(ratio, 0.0 if i else 0.5, self.begins) for i, ratio in enumerate(self.ratios))

    def gather(self, steps: Floats) -> Floats:
        return self.levels[0].gather(steps)

    def spread(self, nodes: Floats) -> Floats:
        return self.levels[0].spread(nodes)

    def correction(self, residuals: list[Floats]) -> Floats:
        """M**-1 times the sum over levels of H_i' r_i.

        That is what the measurements, less the steps' own, say about the steps.
        """
        total = residuals[-1]
        for level, residual in zip(self.levels[:0:-1], residuals[-2::-1], strict=True):
            total = residual + level.spread_nodes(total)
        return self.spread(self._solve(0, self._inverse(0, total)))

    def estimate(self, weights: Floats) -> list[Floats]:
        """The coefficients of all measurements, of steps and of nodes, in the best estimate of a weighted sum."""
        coefficients = [weights - self.spread(self._solve(0, self.gather(weights)))]
        coefficients.append(self.gather(coefficients[0]))
        for level in self.levels[1:]:
            coefficients.append(level.gather_nodes(coefficients[-1]))
        return coefficients

    def variance(self, weights: Floats) -> float:
        """The variance of that estimate, in variances of a draw."""
        return float(np.sum(weights * (weights - self.spread(self._solve(0, self.gather(weights))))))

    def _inverse(self, i: int, nodes: Floats) -> Floats:
        """K_i**-1 times `nodes`."""
        if i + 1 == len(self.levels):
            return nodes
        above = self.levels[i + 1]
        return nodes - above.spread_nodes(self._solve(i + 1, above.gather_nodes(nodes)))

    def _solve(self, i: int, nodes: Floats) -> Floats:
        """(K_i**-1 + B_i)**-1 times `nodes`."""
        level = self.levels[i]
        solution = level.smooth(nodes)
        for _ in range(_ROUNDS):
            solution = solution + level.smooth(nodes - self._inverse(i, solution) - level.mass(solution))
        return solution


class _Level:
    """One level over the next finer one, whose elements come `ratio` to a stride, the first of them at an offset."""

    def __init__(self, ratio: int, offset: float, begins: bool) -> None:
        self._ratio, self._begins = ratio, begins
        self._rising: Floats = (np.arange(ratio) + offset) / ratio
        falling = 1 - self._rising
        self._first = float(np.sum(falling**2))  # what node 0 has at the first step of all
        self._middle, self._beside = self._first + float(np.sum(self._rising**2)), float(np.sum(self._rising * falling))
        # (I + B)**-1 within a long row: c**abs(distance) / root
        root = math.sqrt((1 + self._middle) ** 2 - 4 * self._beside * self._beside)
        fall = (root - 1 - self._middle) / (2 * self._beside)
        self._filter = list(accumulate([fall] * (_TAPS - 1), mul, initial=1 / root))

    def _ends(self, nodes: Floats) -> Floats:
        """Set the entries of nodes outside the stretch to 0."""
        nodes[-1] = 0
        if not self._begins:
            nodes[0] = 0
        return nodes

    def gather(self, values: Floats) -> Floats:
        """The nodes' weighted sums over the next finer level."""
        blocks = values.reshape(-1, self._ratio)
        upper: Floats = np.sum(blocks * self._rising, axis=1)
        nodes = np.zeros(len(blocks) + 1)
        nodes[:-1] = np.sum(blocks, axis=1) - upper
        nodes[1:] += upper
        return self._ends(nodes)

    def spread(self, nodes: Floats) -> Floats:
        """The transpose of `gather`."""
        rise = nodes[1:] - nodes[:-1]
        values: Floats = nodes[:-1, None] + rise[:, None] * self._rising
        return values.reshape(-1)

    def gather_nodes(self, finer: Floats) -> Floats:
        """Like `gather`, but from nodes, of which the last is outside the stretch."""
        return self.gather(finer[:-1])

    def spread_nodes(self, nodes: Floats) -> Floats:
        """The transpose of `gather_nodes`."""
        return self._ends(np.append(self.spread(nodes), 0.0))

    def mass(self, nodes: Floats) -> Floats:
        """B times `nodes`."""
        product: Floats = self._middle * nodes
        product[:-1] += self._beside * nodes[1:]
        product[1:] += self._beside * nodes[:-1]
        if self._begins:
            product[0] -= (self._middle - self._first) * nodes[0]
        return self._ends(product)

    def smooth(self, nodes: Floats) -> Floats:
        """Approximately (I + B)**-1 times `nodes`: as if the row had no ends."""
        smoothed: Floats = self._filter[0] * nodes
        for distance in range(1, min(_TAPS, len(nodes))):
            smoothed[:-distance] += self._filter[distance] * nodes[distance:]
            smoothed[distance:] += self._filter[distance] * nodes[:-distance]
        return self._ends(smoothed)
