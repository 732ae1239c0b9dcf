"""Weights of forward decay: step i counts in proportion to a power of its number, i**c.

At step t it weighs (i / t)**c, so the newest step weighs 1, and the ratio of any two steps never changes. Such a weight
is no function of age: it also depends on how much there has been.

Exact        weights are quotients of two public integers, i**c in steps of 2**-64, or i**c itself where c is whole: to
             45 digits, and the same on every machine
Source       Cormode, Shkapenyuk, Srivastava and Xu (2009), whose landmark is here the step before a group's first
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from shoal.mechanisms import check
from shoal.mechanisms.counters.complete_tree import Complete
from shoal.mechanisms.decimals import power
from shoal.mechanisms.sums.exponentials import EXPONENTS

BITS = 64  # binary places of a power that is not whole
_NEAR = 64  # terms of a sum that are added one by one
_EULER = (1 / 12, -1 / 720, 1 / 30240)  # Euler and Maclaurin's, of the first, third and fifth derivative
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Powers:
    """The weights of all steps, in proportion to i**exponent.

    >>> powers = Powers(Fraction(2))
    >>> [powers.part(step) for step in (1, 2, 3)], powers.weight(1, 2), powers.total(3) == (1 + 4 + 9) / 9
    ([1, 4, 9], 0.25, True)
    """

    exponent: Fraction

    def __post_init__(self) -> None:
        check.positive(exponent=self.exponent)
        if not EXPONENTS[0] <= self.exponent <= EXPONENTS[1]:
            raise ValueError(f"exponent must lie between {EXPONENTS[0]} and {EXPONENTS[1]}, not {self.exponent}")

    def part(self, step: int) -> int:
        """What a step counts, in units that all steps share."""
        return _part(self.exponent, step)

    def weight(self, step: int, t: int) -> float:
        """What a step weighs at step t."""
        return float((step / t) ** float(self.exponent))

    def total(self, t: int, ages: int | None = None) -> float:
        """The weight at step t of the youngest `ages` steps together, or of all."""
        return _sum(float(self.exponent), t if ages is None else ages, t)

    def squares(self, t: int) -> float:
        """The sum of the squared weights at step t."""
        return _sum(2 * float(self.exponent), t, t)

    def recent(self, steps: int, t: int) -> Floats:
        """The weights at step t of the last `steps` steps, the oldest first."""
        weights: Floats = (np.arange(t - steps + 1, t + 1) / t) ** float(self.exponent)
        return weights


@lru_cache(maxsize=1 << 12)  # the groups of a metric ask for the same ones
def _part(exponent: Fraction, step: int) -> int:
    if exponent.denominator == 1:
        return int(step**exponent.numerator)
    return round(power(step, exponent) * (1 << BITS))


def _sum(exponent: float, ages: int, t: int) -> float:
    """The sum of (i / t)**exponent over the last `ages` of i = 1 .. t, the first few one by one."""
    before = t - ages
    near = min(max(before, _NEAR), t)
    total: float = math.fsum((i / t) ** exponent for i in range(before + 1, near + 1))
    if near == t:
        return total
    total += t * (1 - (near / t) ** (exponent + 1)) / (exponent + 1) + (1 - (near / t) ** exponent) / 2
    derivative = exponent / t
    for order, factor in zip((1, 3, 5), _EULER, strict=True):
        total += factor * derivative * (1 - (near / t) ** (exponent - order))
        derivative *= (exponent - order) * (exponent - order - 1) / t**2
    return total


@dataclass(frozen=True)
class TreeWeights:
    """The weights of the steps in one tree, as they are at its last step: what its blocks weigh together.

    For planning and error bars only: the private path has no floats.
    """

    powers: Powers
    tree: Complete
    before: int  # steps before the tree's first

    @property
    def last(self) -> int:
        return self.before + self.tree.leaves

    def left(self, t: int) -> float:
        """What the last step weighs at step t; above 1 while it is still to come."""
        return self.powers.weight(self.last, t)

    @cached_property
    def _arrays(self) -> tuple[Floats, Floats, list[Floats]]:
        """Running sums over blocks: of weights and their squares, and of each higher height's squared sums."""
        blocks = self.powers.recent(self.tree.leaves, self.last).reshape(-1, self._small)
        sums = blocks.sum(axis=1)
        above = [_running(sums.reshape(-1, size // self._small).sum(axis=1) ** 2) for size in self.tree.sizes[1:]]
        return _running(sums), _running((blocks**2).sum(axis=1)), above

    @property
    def _small(self) -> int:
        """The leaves of the smallest blocks, over which nothing is kept."""
        return self.tree.sizes[min(1, self.tree.height)]

    def squares(self, leaves: int) -> float:
        """The sum of the squared coefficients of the draws in the best estimate of the first leaves' weighted sum.

        That is a'(R'R)**-1 a, by the sums of the weights a in the blocks of each height (docs/proofs/decay.md).
        """
        _, squares, above = self._arrays
        whole, loose = divmod(leaves, self._small)
        norms = [float(squares[whole] + np.sum(self._loose(leaves, loose) ** 2))]
        for size, sums in zip(self.tree.sizes[1:], above, strict=True):
            full = leaves // size
            part = self._before(leaves) - self._before(full * size)
            norms.append(float(sums[full] + part**2) / size)
        following = [*norms[1:], 0.0]
        return sum((a - b) / ratio for a, b, ratio in zip(norms, following, self.tree.ratios, strict=True))

    def _before(self, leaves: int) -> float:
        """The weight of the first leaves together."""
        whole, loose = divmod(leaves, self._small)
        return float(self._arrays[0][whole] + np.sum(self._loose(leaves, loose)))

    def _loose(self, leaves: int, loose: int) -> Floats:
        """The weights of the last few of the first leaves."""
        steps = self.before + np.arange(leaves - loose + 1, leaves + 1)
        weights: Floats = (steps / self.last) ** float(self.powers.exponent)
        return weights


def _running(terms: Floats) -> Floats:
    return np.concatenate((np.zeros(1), np.cumsum(terms)))
