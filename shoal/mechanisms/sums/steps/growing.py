"""Noised steps from trees that grow: the best estimate of each step, whatever time there will be.

Guarantee    pure epsilon-DP for the numbers x_t + e_t of all steps together; steps may react to them
             (docs/proofs/decay.md)
Relation     values: two streams differ in what one unit contributed; who contributes, and when, is public
Unit         its changes, in one step or in many, are `width` grid steps in all
Sensitivity  L1, exact: width * levels over the nodes of a tree in which every step is in `levels` nodes
Noise        discrete Laplace, scale b = width * levels / epsilon of the tree's levels, on every node of the trees of
             GrowingBlue (blue.py); e = G z with G R = I
Variance     of the noise in a weighted sum, sum over t of a_t e_t, in squared grid steps: the sum over trees of v(b)
             a'(R'R)**-1 a, as trees share no draw (docs/proofs/decay.md); v(b) = 2p / (1 - p)**2, p = exp(-1 / b)
Source       counters/blue.py
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np

from shoal.mechanisms.counters.blue import GrowingBlue
from shoal.mechanisms.counters.complete_tree import Complete, Prefixes
from shoal.mechanisms.counters.counter import Subkeys
from shoal.mechanisms.counters.tree_row import Drawing
from shoal.mechanisms.sums.powers import Floats, Powers, TreeWeights
from shoal.mechanisms.sums.steps.blue import node_coefficients
from shoal.mechanisms.sums.sums import FRACTION, Node, Noised

Unit = Callable[[Fraction], float]  # scale of a draw -> what its squared coefficient is multiplied by


@dataclass(frozen=True)
class GrowingSteps(Noised):
    """Trees of 10, 100, ... leaves; with a horizon, these follow the trees that suit it best.

    >>> from shoal.mechanisms.noise import laplace
    >>> steps = GrowingSteps(1, Fraction(1))
    >>> [round(steps.forward_squares(Powers(Fraction(2)), t, laplace.variance)) for t in (10, 1000, 10**6)]
    [9, 51, 389]
    """

    mechanism: ClassVar[str] = "blue"

    horizon: int | None = None  # steps expected, if that is known; tunes accuracy alone

    def __post_init__(self) -> None:
        self.trees.position(0)

    @cached_property
    def trees(self) -> GrowingBlue:
        return GrowingBlue(self.width, self.epsilon, horizon=self.horizon)

    def shape(self) -> str:
        return f"GrowingSteps({self._shared_shape}, horizon={self.horizon})"

    def column(self, step: int) -> tuple[Node, ...]:
        scale = self.trees.scale(self.trees.position(step).tree)
        return tuple(Node(epoch, index, 1, scale) for epoch, index in self.trees.nodes_of(step))

    def borders(self, t: int) -> tuple[int, int]:
        """The last step up to t, and the first from t on, that ends a tree."""
        position = self.trees.position(t)
        before = t - position.within
        end = before + position.tree.leaves if position.within else t
        return (end if t == end else before), end

    def sampler(self, subkey: Subkeys) -> "GrowingNoise":
        return GrowingNoise(self.trees, subkey)

    # ---------------------------------------------------------------- of forward decay

    def forward_squares(self, powers: Powers, t: int, unit: Unit) -> float:
        """The sum over draws of the squared coefficient in the decayed sum of steps 1 .. t, times its scale's unit."""
        total = 0.0
        for tree, before, filled in self._until(t):
            weights = TreeWeights(powers, tree, before)
            total += _squares(weights, filled) * weights.left(t) ** 2 * unit(self.trees.scale(tree))
        return total

    def forward_draws(self, powers: Powers, t: int) -> Iterator[tuple[Fraction, Floats]]:
        """The coefficients of the draws in that sum, by their scale."""
        for tree, before, filled in self._until(t):
            weights = np.zeros(tree.leaves)
            weights[:filled] = powers.recent(t - before, t)[:filled]
            yield self.trees.scale(tree), node_coefficients(tree, weights)

    def largest_scale(self, t: int) -> Fraction:
        """The largest scale of a draw; no coefficient is above 1."""
        return max(self.trees.scale(tree) for tree, _, _ in self._until(t))

    def _until(self, t: int) -> Iterator[tuple[Complete, int, int]]:
        """The trees of the first t steps: shape, steps before it, leaves that are filled."""
        before = 0
        for tree, epochs in self.trees.runs(self.trees.position(t).epoch + 1):
            for _ in epochs:
                yield tree, before, min(tree.leaves, t - before)
                before += tree.leaves


@lru_cache(maxsize=32)  # arrays over a tree's blocks
def _kept(weights: TreeWeights) -> TreeWeights:
    return weights


@lru_cache(maxsize=1 << 16)
def _squares(weights: TreeWeights, leaves: int) -> float:
    return _kept(weights).squares(leaves)


@dataclass(slots=True)
class GrowingNoise:
    """The noise of consecutive steps of one tree, of which the last one used is kept."""

    _trees: GrowingBlue
    _subkey: Subkeys = field(repr=False)
    _open: tuple[int, Prefixes] | None = field(default=None, init=False, repr=False)  # (epoch, its prefixes)

    def __call__(self, start: int, end: int) -> int:
        """The sum of e over steps start + 1 .. end, all of one tree, rounded down to steps of 2**-40."""
        position = self._trees.position(end)
        prefixes = self._prefixes(position.epoch, position.tree)
        noise = prefixes.numerator(position.within) - prefixes.numerator(position.within - (end - start))
        return (noise << FRACTION) // position.tree.denominator

    def _prefixes(self, epoch: int, tree: Complete) -> Prefixes:
        if self._open is None or self._open[0] != epoch:
            self._open = None  # before the next one is made: they are large
            self._open = epoch, tree.prefixes(Drawing(self._trees.scale(tree), self._subkey, epoch))
        return self._open[1]
