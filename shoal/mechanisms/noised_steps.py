"""Noised steps: numbers x_t + e_t that may all be published, so that whatever is made of them costs nothing more.

Guarantee    pure epsilon-DP for the numbers x_t + e_t of all steps together; steps may react to them
             (docs/proofs/decay.md)
Relation     values: two streams differ in what one unit contributed; who contributes, and when, is public
Unit         its changes, in one step or in many, are `width` grid steps in all
Sensitivity  L1, exact: width for one draw per step; width * levels for trees whose nodes of `levels` heights are noisy
Noise        discrete Laplace, scale b = width * levels / epsilon, on every step or node; a function of key and name
Variance     of the noise of a weighted sum, sum over t of a_t e_t, in squared grid steps: v(b) |a|^2 for one draw per
             step; v(b) sum over i of (n_i - n_(i+1)) / lambda_i for trees, n_i being the sum over blocks of k**i steps
             of (sum of a in the block)^2 / k**i; v(b) = 2p / (1 - p)**2, p = exp(-1 / b)
Source       input perturbation: Dwork, McSherry, Nissim and Smith (2006); trees: blue.py

`LaplaceSteps` draws e_t for each step. `BlueSteps` has complete trees in a row, every node noisy, and e_t is what is
left of z in the best linear unbiased estimate of x_t from them: G z with G R = I.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from shoal.mechanisms import check, laplace
from shoal.mechanisms.complete import Draws, Prefixes
from shoal.mechanisms.counter import Scales
from shoal.mechanisms.decay import Node, Subkeys
from shoal.mechanisms.exponentials import Exponentials
from shoal.mechanisms.interval import noise_quantile, noise_sd
from shoal.mechanisms.least_squares import LeastSquares
from shoal.mechanisms.rows import check_shape
from shoal.mechanisms.spans import mean_norm, span_coefficients, span_squares, weighted

Floats = NDArray[np.float64]
_FEW = 150  # draws: below that, one by one is faster
_FAR = 1 << 18  # steps that decide how many draws a decayed sum is like


class StepNoise(Protocol):
    """The noise of the steps under a key."""

    def between(self, start: int, end: int) -> int:
        """The sum of e over the steps start + 1 .. end, times the denominator."""
        ...


@dataclass(frozen=True)
class NoisedSteps(ABC):
    """What is public about them."""

    width: int  # grid steps that one unit can move in all
    epsilon: Fraction  # paid once, wherever the unit's changes lie

    def __post_init__(self) -> None:
        check.positive(width=self.width, epsilon=self.epsilon)

    @property
    @abstractmethod
    def mechanism(self) -> str:
        """What a release says of it."""

    @property
    @abstractmethod
    def levels(self) -> int:
        """How many draws protect a step."""

    @property
    def l1_sensitivity(self) -> int:
        """The most that one unit changes all that is noised, in grid steps."""
        return self.width * self.levels

    @cached_property
    def scale(self) -> Fraction:
        """Scale b of every draw."""
        return self.l1_sensitivity / Fraction(self.epsilon)

    @cached_property
    def draw_variance(self) -> float:
        """Variance of every draw."""
        return laplace.variance(self.scale)

    @property
    @abstractmethod
    def size(self) -> int:
        """Steps after which draws have nothing in common with those before."""

    @property
    @abstractmethod
    def denominator(self) -> int:
        """Of every e_t."""

    @abstractmethod
    def column(self, step: int) -> tuple[Node, ...]:
        """The draws that protect a step."""

    @abstractmethod
    def decayed_variance(self, decay: Exponentials, t: int) -> float:
        """Variance of the noise in the decayed sum of the steps 1 .. t."""

    @abstractmethod
    def mean_decayed_squares(self, decay: Exponentials) -> float:
        """Mean of that over all phases, long after the beginning, in variances of a draw."""

    @abstractmethod
    def decayed_draws(self, decay: Exponentials) -> int:
        """How many equal draws the noise of a decayed sum is like: as far from a normal law, by its fourth moment."""

    @abstractmethod
    def window_variance(self, length: int, t: int) -> float:
        """Variance of the noise in the sum of the last `length` of the steps 1 .. t, or of all if they are fewer."""

    @abstractmethod
    def mean_window_squares(self, length: int) -> float:
        """Mean of that over all places of a full window, in variances of a draw."""

    @abstractmethod
    def window_bars(self, length: int, t: int) -> tuple[float, float]:
        """Standard deviation and 95 % quantile of it."""

    @abstractmethod
    def drawn(self, subkey: Subkeys) -> StepNoise:
        """The noise under a key."""


class Spans(NoisedSteps):
    """Noised steps of which the noise of spans is known in closed form."""

    def window_variance(self, length: int, t: int) -> float:
        """That of a span."""
        return self.span_variance(max(t - length, 0), t)

    def window_bars(self, length: int, t: int) -> tuple[float, float]:
        """Those of a span; a full window's depend on its place in the trees alone."""
        return _span_bars(self, length, t if t <= length else length + (t - length) % self.size)

    @abstractmethod
    def span_variance(self, start: int, end: int) -> float:
        """Variance of the noise in the sum of the steps start + 1 .. end."""

    @abstractmethod
    def span_scales(self, start: int, end: int) -> Scales:
        """What the noise in that sum consists of."""


@dataclass(frozen=True)
class LaplaceSteps(Spans):
    """One draw per step.

    >>> steps = LaplaceSteps(1, Fraction(1))
    >>> decay = Exponentials.exponential(Fraction(9, 10))
    >>> round(steps.span_variance(10, 20), 1), round(steps.decayed_variance(decay, 99))
    (18.4, 10)
    """

    @property
    def mechanism(self) -> str:
        """The noise is on the steps."""
        return "per-step"

    @property
    def levels(self) -> int:
        """One."""
        return 1

    @property
    def size(self) -> int:
        """Each step is by itself."""
        return 1

    @property
    def denominator(self) -> int:
        """Draws are integers."""
        return 1

    def column(self, step: int) -> tuple[Node, ...]:
        """Its own draw."""
        return (Node(0, step, 1, self.scale),)

    def span_variance(self, start: int, end: int) -> float:
        """So many draws."""
        return (end - start) * self.draw_variance

    def mean_window_squares(self, length: int) -> float:
        """As many as steps."""
        return float(length)

    def span_scales(self, start: int, end: int) -> Scales:
        """So many draws."""
        return ((self.scale, end - start),)

    def decayed_variance(self, decay: Exponentials, t: int) -> float:
        """The squared weights."""
        return decay.squares(t) * self.draw_variance

    def mean_decayed_squares(self, decay: Exponentials) -> float:
        """The squared weights, all of them."""
        return decay.squares(1 << 60)

    def decayed_draws(self, decay: Exponentials) -> int:
        """From the weights."""
        return _step_draws(decay)

    def drawn(self, subkey: Subkeys) -> "LaplaceNoise":
        """Draw t is step t's."""
        return LaplaceNoise(laplace.DiscreteLaplace(self.scale, subkey(0)))


@dataclass(slots=True)
class LaplaceNoise:
    """Sums of consecutive draws; the last sum is kept for the next, which shares most draws with it."""

    draws: laplace.DiscreteLaplace = field(repr=False)
    _last: tuple[int, int, int] = field(default=(0, 0, 0), init=False, repr=False)  # start, end, sum

    def between(self, start: int, end: int) -> int:
        """The sum of the draws start + 1 .. end."""
        first, last, total = self._last
        if start - first + end - last >= end - start or start < first or end < last:
            first, last, total = start, start, 0
        total += self._sum(last, end) - self._sum(first, start)
        self._last = start, end, total
        return total

    def _sum(self, start: int, end: int) -> int:
        if end - start < _FEW:
            return sum(map(self.draws.draw, range(start + 1, end + 1)))
        return sum(self.draws.draw_block(start + 1, end - start).tolist())


@dataclass(frozen=True)
class BlueSteps(Spans):
    """Trees of k**height leaves, one after the other; each leaf, a step, is in height + 1 nodes.

    >>> steps = BlueSteps(1, Fraction(1), arity=14, height=2)
    >>> steps.size, steps.scale, round(steps.span_variance(0, 1024)), round(18 * steps.mean_window_squares(1024))
    (196, Fraction(3, 1), 153, 238)
    """

    arity: int
    height: int

    def __post_init__(self) -> None:
        NoisedSteps.__post_init__(self)
        check_shape(self.arity, self.levels)

    @property
    def levels(self) -> int:
        """Leaf, root and what is between."""
        return self.height + 1

    @property
    def mechanism(self) -> str:
        """Best linear unbiased estimates."""
        return "blue"

    @cached_property
    def tree(self) -> LeastSquares:
        """One of them."""
        return LeastSquares(self.arity, self.height)

    @property
    def size(self) -> int:
        """Steps per tree."""
        return self.tree.leaves

    @cached_property
    def denominator(self) -> int:
        """Of every prefix of a tree."""
        return self.tree.denominator

    def column(self, step: int) -> tuple[Node, ...]:
        """One node of each height."""
        number, leaf = divmod(step - 1, self.size)
        tree = self.tree
        return tuple(Node(number, tree.first(i) + leaf // size, 1, self.scale) for i, size in enumerate(tree.sizes))

    def span_variance(self, start: int, end: int) -> float:
        """By how the span meets the blocks of each height."""
        return float(span_squares(self.tree, start, end)) * self.draw_variance

    def mean_window_squares(self, length: int) -> float:
        """The mean over the place of a block's border is a closed form."""
        return float(self._mean_span_squares(length))

    def _mean_span_squares(self, length: int) -> Fraction:
        return weighted(self.tree, [mean_norm(size, length) for size in self.tree.sizes])

    def span_scales(self, start: int, end: int) -> Scales:
        """Of all trees that the span meets."""
        counts: dict[Fraction, int] = {}
        for number in range(start // self.size, -(-end // self.size)):
            low, high = max(start - number * self.size, 0), min(end - number * self.size, self.size)
            for coefficient, count in span_coefficients(self.tree, low, high):
                scale = coefficient * self.scale
                counts[scale] = counts.get(scale, 0) + count
        return tuple(counts.items())

    def decayed_variance(self, decay: Exponentials, t: int) -> float:
        """By how the weights sum up in the blocks of each height."""
        norms = [decay.block_squares(size, t) / size for size in self.tree.sizes]
        return self._float_weighted(norms) * self.draw_variance

    def mean_decayed_squares(self, decay: Exponentials) -> float:
        """The mean over the place of the last block's border."""
        norms = [decay.mean_block_squares(size) / size for size in self.tree.sizes]
        return self._float_weighted(norms)

    def _float_weighted(self, norms: list[float]) -> float:
        differences = np.array(norms) - np.array([*norms[1:], 0.0])
        return float(np.sum(differences / np.array(self.tree.ratios, dtype=np.float64)))

    def decayed_draws(self, decay: Exponentials) -> int:
        """From the coefficients of the nodes, where the last tree is half full."""
        return _node_draws(self.tree, decay)

    def drawn(self, subkey: Subkeys) -> "RowNoise":
        """The draws of a tree have its number's subkey."""
        return RowNoise(self.size, lambda number: self.tree.prefixes(self._draws(subkey(number))))

    def _draws(self, subkey: bytes) -> Draws:
        noise, nodes = laplace.DiscreteLaplace(self.scale, subkey), self.tree.nodes
        if nodes >= _FEW:
            return noise.draw_block(0, nodes)
        return np.array([noise.draw(node) for node in range(nodes)], dtype=np.object_)


class RowNoise:
    """Sums of e over consecutive steps: from whole trees in a row, of which the first and the last are held."""

    __slots__ = ("_held", "_middle", "_size", "_totals", "_tree")

    def __init__(self, size: int, tree: Callable[[int], Prefixes]) -> None:
        self._size, self._tree = size, tree
        self._held: dict[int, Prefixes] = {}  # by number of the tree
        self._totals: dict[int, int] = {}  # likewise
        self._middle: tuple[int, int, int] = (0, 0, 0)  # between these trees lies so much

    def between(self, start: int, end: int) -> int:
        """The sum over the steps start + 1 .. end, of which there is one at least."""
        size = self._size
        first, last = start // size, (end - 1) // size
        if not self._held.keys() <= {first, last}:
            self._let_go(first, last)
        tail = self._prefix(last, end - last * size)
        before = self._prefix(first, start - first * size) if start % size else 0
        if first == last:
            return tail - before
        return tail + self._total(first) - before + self._between(first, last)

    def _let_go(self, first: int, last: int) -> None:
        """A tree between these two is but its total; one before them is nothing."""
        for number in self._held.keys() - {first, last}:
            self._totals[number] = self._held.pop(number).numerator(self._size)
        self._totals = {number: total for number, total in self._totals.items() if number >= first}

    def _between(self, first: int, last: int) -> int:
        """The trees that lie between these two."""
        if self._middle[:2] != (first, last):
            self._middle = first, last, sum(map(self._total, range(first + 1, last)))
        return self._middle[2]

    def _total(self, number: int) -> int:
        """The sum of e over a whole tree."""
        if number not in self._totals:
            tree = self._held[number] if number in self._held else self._tree(number)
            self._totals[number] = tree.numerator(self._size)
        return self._totals[number]

    def _prefix(self, number: int, leaves: int) -> int:
        if number not in self._held:
            self._held[number] = self._tree(number)
        return self._held[number].numerator(leaves)


@lru_cache(maxsize=1 << 16)  # the groups of a metric, and all trees, ask for the same ones
def _span_bars(steps: Spans, length: int, t: int) -> tuple[float, float]:
    scales = steps.span_scales(max(t - length, 0), t)
    return noise_sd.__wrapped__(scales), noise_quantile.__wrapped__(scales)


def equal_quantile(draws: int) -> float:
    """The 95 % quantile of the size of a sum of so many equal draws, in standard deviations.

    >>> round(equal_quantile(1), 3), round(equal_quantile(200), 2)
    (2.118, 1.96)
    """
    return noise_quantile(((Fraction(1), draws),)) / math.sqrt(2 * draws)


@lru_cache(maxsize=64)
def _step_draws(decay: Exponentials) -> int:
    return like(decay.recent(_FAR))


@lru_cache(maxsize=64)
def _node_draws(tree: LeastSquares, decay: Exponentials) -> int:
    """From the coefficients of the nodes in a decayed sum whose last tree is half full."""
    trees = max(_FAR // tree.leaves, 2)
    weights = np.zeros(trees * tree.leaves)
    filled = (trees - 1) * tree.leaves + (tree.leaves + 1) // 2
    weights[:filled] = decay.recent(filled)[::-1]
    above: Floats = np.zeros(trees)
    g: Floats = np.zeros(trees)
    found: list[Floats] = []
    for i in range(tree.height, -1, -1):
        share: Floats = weights.reshape(-1, tree.sizes[i]).mean(axis=1)
        if i < tree.height:
            above, g = np.repeat(above, tree.arity), np.repeat(g, tree.arity)
        g = g + (share - above) / tree.ratios[i]
        found.append(tree.sizes[i] * g)
        above = share
    return like(np.concatenate(found))


def like(coefficients: Floats) -> int:
    """How many equal draws have the same fourth moment beside the same second one; many are a normal law."""
    squares = coefficients**2
    return int(min(round(float(np.sum(squares)) ** 2 / float(np.sum(squares**2))), 200))
