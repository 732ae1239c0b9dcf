"""BLUE counters: complete k-ary trees and the best linear unbiased estimate of every prefix from all their noisy nodes.

Guarantee    pure epsilon-DP for all releases together; inputs may react to them (docs/proofs/blue.md)
Relation     values: two streams differ in what one unit contributed; who contributes, and when, is public
Unit         its elements, wherever they lie, move by at most `width` grid steps in all; in one tree or in many: the
             same epsilon
Sensitivity  L1, exact: width * levels over the nodes of a tree in which every element is in `levels` nodes
Noise        discrete Laplace, scale b = width * levels / epsilon of the tree's levels, on every node; a function of key
             and node. Prefixes are exact fractions, rounded once
Capacity     none: a full tree is followed by a new one (epoch), with new noise, and is from then on one number
Variance     of release t, in squared grid steps: sum over past trees of k**u / lambda_u * v(b), plus |L_t|**2 v(b) in
             the current one, with v(b) = 2p / (1 - p)**2, p = exp(-1 / b); lambda, L: least_squares.py,
             u: complete_tree.py
Source       least squares on trees: Hay, Rastogi, Miklau and Suciu (2010); the counters are this project's

`BlueTree` has trees of one height: k of them are the tree of levels 0 .. h - 1 whose root, known to nobody, is left
out. `GrowingBlue` has trees of k, k**2, k**3, ... leaves, and with a horizon first those best for that many elements.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from shoal.mechanisms import check
from shoal.mechanisms.counters.least_squares import LeastSquares
from shoal.mechanisms.counters.tree_row import LARGEST, Rows, Stretch, best_shape, check_shape

_ARITIES = (2, 65)  # from, to: to choose from for a horizon


@dataclass(frozen=True)
class BlueTree(Rows):
    """Trees of one height, with each element in `levels` nodes.

    >>> tree = BlueTree.best(1024, width=1, epsilon=Fraction(1))
    >>> tree.arity, tree.levels, round(tree.mean_variance(1024), 1), round(tree.variance(1024), 1)
    (14, 3, 117.4, 152.8)
    >>> counter = BlueTree(1, Fraction(1), arity=10, levels=2).counter(lambda epoch: bytes([epoch] * 32))
    >>> from shoal.mechanisms.counters import counter as interface
    >>> from shoal.mechanisms.noise import laplace
    >>> z = laplace.DiscreteLaplace(Fraction(2), bytes(32)).draw
    >>> counter.noise(10) == interface.rounded(10 * z(0) + sum(map(z, range(1, 11))), 11)
    True
    """

    arity: int
    levels: int

    def __post_init__(self) -> None:
        Rows.__post_init__(self)
        check_shape(self.arity, self.levels)

    @classmethod
    def best(cls, horizon: int, *, width: int, epsilon: Fraction) -> "BlueTree":
        """The tree whose mean variance over the first `horizon` releases is least."""
        check.positive(horizon=horizon)
        return cls(width, epsilon, *best_shape(LeastSquares, _ARITIES, horizon))

    @cached_property
    def stretches(self) -> tuple[Stretch, ...]:
        return (Stretch(LeastSquares(self.arity, self.levels - 1), None),)

    @property
    def l1_sensitivity(self) -> int:
        """The most that one unit changes all nodes together, in grid steps."""
        return self.width * self.levels


@dataclass(frozen=True)
class GrowingBlue(Rows):
    """Trees of k, k**2, k**3, ... leaves, up to LARGEST; with a horizon, these follow the trees that suit it best.

    The horizon tunes the accuracy and nothing else: the guarantee is the same before and beyond it.

    >>> [GrowingBlue(1, Fraction(1)).locate(t) for t in (10, 11, 110, 111)]
    [(0, 10), (1, 1), (1, 100), (2, 1)]
    >>> round(GrowingBlue(1, Fraction(1)).variance(10)), round(GrowingBlue(1, Fraction(1)).mean_variance(2**20))
    (7, 973)
    >>> tree = GrowingBlue(1, Fraction(1), horizon=1000)
    >>> tree.shape(0), tree.locate(1000), tree.shape(6)
    (LeastSquares(arity=14, height=2), (5, 20), LeastSquares(arity=10, height=4))
    """

    horizon: int | None = field(default=None, kw_only=True)  # elements expected, if that is known
    arity: int = field(default=10, kw_only=True)  # of the trees that grow

    def __post_init__(self) -> None:
        Rows.__post_init__(self)
        check.positive(horizon=1 if self.horizon is None else self.horizon)
        check_shape(self.arity, levels=2)

    @cached_property
    def stretches(self) -> tuple[Stretch, ...]:
        first: tuple[Stretch, ...] = ()
        if self.horizon is not None:
            arity, levels = best_shape(LeastSquares, _ARITIES, self.horizon)
            tree = LeastSquares(arity, levels - 1)
            first = (Stretch(tree, -(-self.horizon // tree.leaves)),)
        covered = sum(tree.leaves * (epochs or 0) for tree, epochs in first)
        heights = [h for h in range(1, LARGEST.bit_length()) if self.arity**h <= LARGEST]
        growing = [h for h in heights[:-1] if self.arity**h >= covered]
        trees = [Stretch(LeastSquares(self.arity, h), 1) for h in growing]
        return (*first, *trees, Stretch(LeastSquares(self.arity, heights[-1]), None))
