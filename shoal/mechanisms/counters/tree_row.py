"""Complete trees in a row: what the counters have in common that open one tree after the other.

Guarantee    pure epsilon-DP for all releases together; inputs may react to them (docs/proofs/counters.md)
Relation     values: two streams differ in what one unit contributed; who contributes, and when, is public
Unit         its elements, wherever they lie, move by at most `width` grid steps in all; in one tree or in many: the
             same epsilon
Sensitivity  L1, exact: width * levels over the nodes of a tree in which every element is in `levels` nodes
Noise        discrete Laplace, scale b = width * levels / epsilon of the tree's levels, on every node; a function of key
             and node. Prefixes are exact fractions, rounded once
Capacity     none: a full tree is followed by a new one (epoch), with new noise, and is from then on one number
Variance     of release t, in squared grid steps: sum over past trees of k**u / lambda_u * v(b), plus |L_t|**2 v(b) in
             the current one, with v(b) = 2p / (1 - p)**2, p = exp(-1 / b); lambda, L and u: complete_tree.py
Proof        docs/proofs/blue.md
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from shoal.mechanisms import check
from shoal.mechanisms.counters.complete_tree import FEW, Complete, Draw, Draws, Numerators, Prefixes
from shoal.mechanisms.counters.counter import Scales, Subkeys, rounded
from shoal.mechanisms.error_bars import Widths, laplace_widths
from shoal.mechanisms.noise import laplace

LARGEST = 1 << 20  # leaves of a tree, at most: what is drawn when it opens, and kept while it is open


class Stretch(NamedTuple):
    """Consecutive epochs with trees of one shape; `epochs` is None for the last one, which does not end."""

    tree: Complete
    epochs: int | None


class Position(NamedTuple):
    """The end of a prefix: its epoch, the elements within it, and the shape of its tree."""

    epoch: int
    within: int  # elements in the epoch
    tree: Complete


@dataclass(frozen=True)
class Rows(ABC):
    """All public parameters of such a counter; a subclass says which trees follow each other."""

    width: int  # grid steps that one unit can move in all
    epsilon: Fraction  # paid once, wherever the unit's elements lie

    def __post_init__(self) -> None:
        check.positive(width=self.width, epsilon=self.epsilon)

    @property
    @abstractmethod
    def stretches(self) -> tuple[Stretch, ...]:
        """The trees that follow one another, the last of them without end."""

    def position(self, t: int) -> Position:
        epoch, stretches = 0, iter(self.stretches)
        tree, epochs = next(stretches)
        while epochs is not None and t > epochs * tree.leaves:
            epoch, t = epoch + epochs, t - epochs * tree.leaves
            tree, epochs = next(stretches)
        past = (t - 1) // tree.leaves if t else 0
        return Position(epoch + past, t - past * tree.leaves, tree)

    def locate(self, t: int) -> tuple[int, int]:
        position = self.position(t)
        return position.epoch, position.within

    def runs(self, epochs: int) -> Iterator[tuple[Complete, range]]:
        """The first `epochs` epochs, as pairs of a tree's shape and the epochs that have it."""
        start = 0
        for tree, number in self.stretches:
            end = epochs if number is None else min(start + number, epochs)
            if start < end:
                yield tree, range(start, end)
            start = end

    def shape(self, epoch: int) -> Complete:
        return list(self.runs(epoch + 1))[-1][0]

    def scale(self, tree: Complete) -> Fraction:
        """Scale b of the noise on every node of a tree of this shape: an element is in one node of each height."""
        return _scale(self.width * (tree.height + 1), Fraction(self.epsilon))

    def sensitivities(self, epoch: int) -> tuple[tuple[int, Fraction], ...]:
        """One unit changes the nodes of an epoch by width * levels at most, in L1."""
        tree = self.shape(epoch)
        return ((self.width * (tree.height + 1), self.scale(tree)),)

    def nodes_of(self, element: int) -> tuple[tuple[int, int], ...]:
        epoch, within, tree = self.position(element)
        return tuple((epoch, tree.first(i) + (within - 1) // size) for i, size in enumerate(tree.sizes))

    def scales(self, t: int) -> Scales:
        """The scales of the draws in the totals of past trees and in a prefix, as release t adds them up."""
        counts, denominator = self._numerators(t)
        return tuple((Fraction(numerator, denominator), count) for numerator, count in counts.items())

    def widths(self, t: int, step: tuple[int, int], coverage: float) -> Widths:
        """Widths of the noise of release t, in units of the range."""
        return _widths(self, t, step, coverage)

    def _numerators(self, t: int) -> tuple[Numerators, int]:
        """Scales of the draws in the noise of release t, times the denominator that is returned with them.

        Their order is that of `noise_quantile`'s sum: past trees, then the open one. Equal scales of two trees are one.
        """
        position = self.position(t)
        parts = [
            (tree.upper, tree.upper.leaves, self.scale(tree), len(epochs)) for tree, epochs in self.runs(position.epoch)
        ]
        parts.append((position.tree, position.within, self.scale(position.tree), 1))
        denominator = math.lcm(*(tree.denominator * scale.denominator for tree, _, scale, _ in parts))
        counts: Numerators = {}
        for tree, leaves, scale, epochs in parts:
            unit = denominator // (tree.denominator * scale.denominator) * scale.numerator
            for numerator, count in tree.numerators(leaves).items():
                counts[numerator * unit] = counts.get(numerator * unit, 0) + count * epochs
        return counts, denominator

    def variance(self, t: int) -> float:
        position = self.position(t)
        current = float(position.tree.squares(position.within)) * laplace.variance(self.scale(position.tree))
        return self._past_variance(position.epoch) + current

    def mean_variance(self, horizon: int) -> float:
        """Mean of `variance(t)` over t = 1 .. horizon, without a loop over them."""
        check.positive(horizon=horizon)
        position, total, past = self.position(horizon), 0.0, 0.0
        for tree, epochs in self.runs(position.epoch):
            unit, number = laplace.variance(self.scale(tree)), len(epochs)
            full = float(tree.upper.total_squares) * unit
            total += number * (float(tree.sum_squares(tree.leaves)) * unit + past * tree.leaves)
            total += number * (number - 1) / 2 * full * tree.leaves
            past += number * full
        unit = laplace.variance(self.scale(position.tree))
        total += float(position.tree.sum_squares(position.within)) * unit + past * position.within
        return total / horizon

    def _past_variance(self, epochs: int) -> float:
        return sum(
            len(equal) * float(tree.upper.total_squares) * laplace.variance(self.scale(tree))
            for tree, equal in self.runs(epochs)
        )

    def counter(self, subkey: Subkeys) -> "RowsCounter":
        return RowsCounter(self, subkey)


@lru_cache(maxsize=1 << 10)  # all trees of a shape have the same one
def _scale(sensitivity: int, epsilon: Fraction) -> Fraction:
    return sensitivity / epsilon


@lru_cache(maxsize=1 << 14)  # the groups of a metric ask for the same ones
def _widths(rows: Rows, t: int, step: tuple[int, int], coverage: float) -> Widths:
    counts, denominator = rows._numerators(t)
    return laplace_widths(step, [(numerator, denominator, count) for numerator, count in counts.items()], coverage)


@dataclass(slots=True)
class RowsCounter:
    """The noise of the releases: one number for all past trees, one per node of the open one."""

    tree: Rows
    subkey: Subkeys = field(repr=False)  # epoch -> the subkey of its nodes
    _past: tuple[int, Fraction] = field(default=(0, Fraction(0)), init=False, repr=False)  # (epochs, their totals)
    _open: tuple[int, Prefixes] | None = field(default=None, init=False, repr=False)  # (epoch, its prefixes)

    def noise(self, t: int) -> int:
        numerator, denominator = self.exact(t)
        return rounded(numerator, denominator)

    def exact(self, t: int) -> tuple[int, int]:
        """The noise before it is rounded, as numerator and denominator."""
        check.not_negative(t=t)
        position = self.tree.position(t)
        past = self._total(position.epoch)
        if not position.within:
            return past.as_integer_ratio()
        numerator, denominator = self._prefixes(position).numerator(position.within), position.tree.denominator
        return numerator * past.denominator + past.numerator * denominator, denominator * past.denominator

    def _total(self, epochs: int) -> Fraction:
        """The noise in the totals of the first `epochs` trees, each from the few draws of its upper part."""
        done, noise = self._past if self._past[0] <= epochs else (0, Fraction(0))
        for tree, equal in self.tree.runs(epochs):
            upper, fresh = tree.upper, range(max(done, equal.start), equal.stop)
            totals = (upper.total_numerator(self._draw(tree, epoch)(0, upper.nodes)) for epoch in fresh)
            noise += Fraction(sum(totals), upper.nodes)
        self._past = epochs, noise
        return noise

    def _prefixes(self, position: Position) -> Prefixes:
        """The noise of the open tree, whose draws are all added up when its first prefix is asked for."""
        if self._open is None or self._open[0] != position.epoch:
            self._open = None  # before the next one is made: they are large
            self._open = position.epoch, position.tree.prefixes(self._draw(position.tree, position.epoch))
        return self._open[1]

    def _draw(self, tree: Complete, epoch: int) -> Draw:
        return Drawing(self.tree.scale(tree), self.subkey, epoch)


class Drawing:
    """The draws of this scale under the subkey of this number, which is derived when there is something to draw.

    Thousands of trees are open at a time, and each draws from time to time: a cipher for each would be most of them.
    """

    __slots__ = ("_number", "_scale", "_subkey")

    def __init__(self, scale: Fraction, subkey: Subkeys, number: int) -> None:
        self._scale, self._subkey, self._number = scale, subkey, number

    def __call__(self, first: int, count: int) -> Draws:
        noise = laplace.DiscreteLaplace(self._scale, self._subkey(self._number))
        if count >= FEW:
            return noise.draw_block(first, count)
        return np.array([noise.draw(node) for node in range(first, first + count)], dtype=np.object_)


def check_shape(arity: int, levels: int) -> None:
    """Refuse nodes with fewer than two children and trees too large to be drawn at once."""
    check.positive(levels=levels)
    check.below(LARGEST + 1, arity=arity)
    if arity < 2:
        raise ValueError(f"arity must be at least 2, not {arity}")
    if arity ** (levels - 1) > LARGEST:
        raise ValueError(f"arity {arity} with {levels} levels makes trees of more than {LARGEST} leaves")


@lru_cache(maxsize=256)
def best_shape(kind: type[Complete], arities: tuple[int, int], horizon: int) -> tuple[int, int]:
    """(arity, levels) with the least mean variance over `horizon` releases, a function of the arguments alone.

    Continuous noise at width = epsilon = 1, in exact fractions, so that every machine makes the same choice.
    """
    candidates = (
        (arity, levels)
        for arity in range(*arities)
        for levels in range(1, LARGEST.bit_length() + 1)
        if levels == 1 or arity ** (levels - 2) < horizon and arity ** (levels - 1) <= LARGEST
    )
    return min(candidates, key=lambda shape: (_sum_of_variances(kind(shape[0], shape[1] - 1), horizon), shape))


def _sum_of_variances(tree: Complete, horizon: int) -> Fraction:
    full, rest = divmod(horizon, tree.leaves)
    past = tree.upper.total_squares * (full * (full - 1) // 2 * tree.leaves + full * rest)
    return (tree.height + 1) ** 2 * (full * tree.sum_squares(tree.leaves) + past + tree.sum_squares(rest))
