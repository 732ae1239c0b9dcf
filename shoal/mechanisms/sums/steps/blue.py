"""Noised steps from trees of blocks: what is left of the noise in the best linear unbiased estimate of each step.

Guarantee    pure epsilon-DP for the numbers x_t + e_t of all steps together; steps may react to them
             (docs/proofs/decay.md)
Relation     values: two streams differ in what one unit contributed; who contributes, and when, is public
Unit         its changes, in one step or in many, are `width` grid steps in all
Sensitivity  L1, exact: width * levels; a step is in one node of each of `levels` heights
Noise        discrete Laplace, scale b = width * levels / epsilon, on every node of complete k-ary trees in a row; a
             function of key, tree and node. e = G z with G R = I
Variance     of the noise in a weighted sum, sum over t of a_t e_t, in squared grid steps: v(b) sum over i of
             (n_i - n_(i+1)) / lambda_i, n_i = sum over blocks of k**i steps of (sum of a in the block)^2 / k**i;
             v(b) = 2p / (1 - p)**2, p = exp(-1 / b)
Source       blue.py
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np

from shoal.mechanisms.counters.complete_tree import Complete
from shoal.mechanisms.counters.counter import Scales, Subkeys
from shoal.mechanisms.counters.least_squares import LeastSquares
from shoal.mechanisms.counters.spans import mean_norm, span_coefficients, span_squares, weighted
from shoal.mechanisms.counters.tree_row import LARGEST, Drawing, check_shape
from shoal.mechanisms.sums.steps.steps import FAR, Decaying, Floats, NoisedSteps, RowNoise, Spans, like
from shoal.mechanisms.sums.sums import Node

_ARITIES = range(2, 65)


@dataclass(frozen=True)
class BlueSteps(Spans):
    """Trees of k**height leaves, one after the other; each leaf, a step, is in height + 1 nodes.

    >>> steps = BlueSteps(1, Fraction(1), arity=14, height=2)
    >>> steps.size, steps.scale, round(steps.span_variance(0, 1024)), round(18 * steps.mean_window_squares(1024))
    (196, Fraction(3, 1), 153, 238)
    """

    mechanism: ClassVar[str] = "blue"

    arity: int
    height: int

    def __post_init__(self) -> None:
        super().__post_init__()
        check_shape(self.arity, self.levels)

    @property
    def levels(self) -> int:
        return self.height + 1

    def shape(self) -> str:
        return f"BlueSteps({self._shared_shape}, arity={self.arity}, height={self.height})"

    @cached_property
    def tree(self) -> LeastSquares:
        return LeastSquares(self.arity, self.height)

    @property
    def size(self) -> int:
        return self.tree.leaves

    @cached_property
    def denominator(self) -> int:
        return self.tree.denominator

    def column(self, step: int) -> tuple[Node, ...]:
        number, leaf = divmod(step - 1, self.size)
        tree = self.tree
        return tuple(Node(number, tree.first(i) + leaf // size, 1, self.scale) for i, size in enumerate(tree.sizes))

    def span_variance(self, start: int, end: int) -> float:
        """The variance, by how the span meets the blocks of each height."""
        return float(span_squares(self.tree, start, end)) * self.draw_variance

    def mean_window_squares(self, length: int) -> float:
        """A closed form, over all positions of a block's border."""
        return float(self._mean_span_squares(length))

    def _mean_span_squares(self, length: int) -> Fraction:
        return weighted(self.tree, [mean_norm(size, length) for size in self.tree.sizes])

    def span_scales(self, start: int, end: int) -> Scales:
        counts: dict[Fraction, int] = {}
        for number in range(start // self.size, -(-end // self.size)):
            low, high = max(start - number * self.size, 0), min(end - number * self.size, self.size)
            for coefficient, count in span_coefficients(self.tree, low, high):
                scale = coefficient * self.scale
                counts[scale] = counts.get(scale, 0) + count
        return tuple(counts.items())

    def decayed_variance(self, decay: Decaying, t: int) -> float:
        """The variance, by the sums of the weights in the blocks of each height."""
        norms = [decay.block_squares(size, t) / size for size in self.tree.sizes]
        return self._float_weighted(norms) * self.draw_variance

    def mean_decayed_squares(self, decay: Decaying) -> float:
        """The mean over all positions of the last block's border."""
        norms = [decay.mean_block_squares(size) / size for size in self.tree.sizes]
        return self._float_weighted(norms)

    def _float_weighted(self, norms: list[float]) -> float:
        differences = np.array(norms) - np.array([*norms[1:], 0.0])
        return float(np.sum(differences / np.array(self.tree.ratios, dtype=np.float64)))

    def decayed_draws(self, decay: Decaying) -> int:
        """The number of draws, from the nodes' coefficients when the last tree is half full."""
        return _node_draws(self.tree, decay)

    def drawn(self, subkey: Subkeys) -> "RowNoise":
        return RowNoise(
            self.size,
            lambda number: self.tree.prefixes(Drawing(self.scale, subkey, number)),
        )


def best_trees(reach: float, score: Callable[[NoisedSteps], float]) -> Callable[[int, Fraction], BlueSteps]:
    """The trees with the least score, made for a width and epsilon; none is a level higher than `reach` steps need."""
    shapes = [
        (arity, height)
        for arity in _ARITIES
        for height in range(1, LARGEST.bit_length())
        if arity ** (height - 1) < reach and arity**height <= LARGEST
    ]
    best = min(shapes, key=lambda shape: (score(BlueSteps(1, Fraction(1), *shape)), shape))
    return lambda width, epsilon: BlueSteps(width, epsilon, *best)


@lru_cache(maxsize=64)
def _node_draws(tree: LeastSquares, decay: Decaying) -> int:
    """The number of equal draws that a decayed sum's noise is like when the last tree is half full."""
    trees = max(FAR // tree.leaves, 2)
    weights = np.zeros(trees * tree.leaves)
    filled = (trees - 1) * tree.leaves + (tree.leaves + 1) // 2
    weights[:filled] = decay.recent(filled)[::-1]
    return like(node_coefficients(tree, weights))


def node_coefficients(tree: Complete, weights: Floats) -> Floats:
    """The coefficient of every node in the best estimate of a weighted sum of the leaves of such trees in a row."""
    above: Floats = np.zeros(len(weights) // tree.leaves)
    g: Floats = above
    coefficients: list[Floats] = []
    for i in range(tree.height, -1, -1):
        share: Floats = weights.reshape(-1, tree.sizes[i]).mean(axis=1)
        if i < tree.height:
            above, g = np.repeat(above, tree.arity), np.repeat(g, tree.arity)
        g = g + (share - above) / tree.ratios[i]
        coefficients.append(tree.sizes[i] * g)
        above = share
    return np.concatenate(coefficients)
