"""Decays as sums of exponentials: a step of age a weighs the sum over terms of w_m d_m**a, so that each step costs the
same however long the history is.

What runs through it are public numbers, or numbers that are already noised: it may round, and takes no part in a
guarantee. All of it is integers, the same on every machine.

Exponential  one term: alpha**a, alpha being a fraction or given by its half-life
Polynomial   (a + 1)**-c, from (a + 1)**-c Gamma(c) = integral over u of exp(c u - (a + 1) e**u), by the trapezoidal
             rule with steps of h = 2 / (3.4 + c / 2). The relative error is below 1e-6 for all ages up to `horizon`;
             beyond it weights fall faster than they should
Accuracy     a sum is within 2**-40 / (1 - d) per term, times its weight, of the sum with these weights
Proof        docs/proofs/decay.md
Source       Beylkin and Monzon (2010) for sums of exponentials near powers
"""

import math
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.mechanisms import check
from shoal.mechanisms.sums.sums import text

RATE_BITS = 96  # binary places of a term's factor per step
LARGEST_HORIZON = 1 << 40
EXPONENTS = Fraction(1, 4), Fraction(16)
_CONTEXT = Context(prec=50)
_NEGLIGIBLE = Decimal("1e-7")  # relative, of what is left out at either end
_NEAR = 1e-5  # of a rate times the size of a block: below it, a block is like one step
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Exponentials:
    """Weights w_m = weights[m] / 2**weight_bits and factors d_m = factors[m] / 2**96 per step.

    >>> Exponentials.half_life(Fraction(2)).weight(4), Exponentials.exponential(Fraction(9, 10)).weight(2)
    (0.25, 0.81)
    >>> decay = Exponentials.polynomial(Fraction(2), horizon=1000)
    >>> round(decay.weight(0), 6), round(decay.weight(9), 8), round(decay.weight(999) * 10**6, 6)
    (1.0, 0.01, 1.0)
    """

    weights: tuple[int, ...]
    weight_bits: int
    factors: tuple[int, ...]

    def shape(self) -> str:
        return f"Exponentials(weights={self.weights}, weight_bits={self.weight_bits}, factors={self.factors})"

    @classmethod
    def exponential(cls, alpha: Fraction) -> "Exponentials":
        """A step weighs alpha times as much as the next one."""
        check.probability(alpha=alpha)
        factor = (alpha.numerator << RATE_BITS) // alpha.denominator
        if not factor:
            raise ValueError("alpha must be at least 2**-96, and half_life at least 1/96 of a step")
        return cls((1,), 0, (factor,))

    @classmethod
    def half_life(cls, steps: Fraction) -> "Exponentials":
        """A step weighs half as much as the one that many steps later."""
        return cls.exponential(half_life_alpha(steps))

    @classmethod
    @lru_cache(maxsize=64)
    def polynomial(cls, exponent: Fraction, horizon: int) -> "Exponentials":
        """A step of age a weighs (a + 1)**-exponent, to a relative 1e-6, up to an age of `horizon`."""
        check.positive(exponent=exponent, horizon=horizon)
        check.below(LARGEST_HORIZON + 1, horizon=horizon)
        if not EXPONENTS[0] <= exponent <= EXPONENTS[1]:
            raise ValueError(f"exponent must lie between {EXPONENTS[0]} and {EXPONENTS[1]}, not {exponent}")
        bits = RATE_BITS + int(exponent + 1) * (horizon + 1).bit_length()
        with localcontext(_CONTEXT):
            terms = list(_trapezoid(Decimal(exponent.numerator) / exponent.denominator, Decimal(horizon + 1)))
            total = sum(weight for weight, _ in terms)
            weights = tuple(int(weight / total * (1 << bits)) for weight, _ in terms)
            factors = tuple(int((-rate).exp() * (1 << RATE_BITS)) for _, rate in terms)
        return cls(weights, bits, factors)

    @cached_property
    def amounts(self) -> Floats:
        return np.array([float(Fraction(weight, 1 << self.weight_bits)) for weight in self.weights])

    @cached_property
    def rates(self) -> Floats:
        return np.array([_rate(max(factor, 1)) for factor in self.factors])

    def weight(self, age: int) -> float:
        return round(float(np.sum(self.amounts * np.exp(-self.rates * age))), 15)

    def squares(self, t: int) -> float:
        """The sum of the squared weights of the ages 0 .. t - 1, without a loop over them."""
        rates = self.rates[:, None] + self.rates
        return float(np.sum(np.outer(self.amounts, self.amounts) * np.expm1(-rates * t) / np.expm1(-rates)))

    def recent(self, ages: int) -> Floats:
        weights: Floats = np.zeros(ages)
        for amount, rate in zip(self.amounts, self.rates, strict=True):
            weights += amount * np.exp(-rate * np.arange(ages))
        return weights

    def block_squares(self, size: int, t: int) -> float:
        """The sum over blocks of `size` steps of (their weights' sum at step t)**2; the last may be unfinished."""
        w, s = self.amounts, self.rates
        full, rest = divmod(t, size)
        unfinished = float(np.sum(w * np.expm1(-s * rest) / np.expm1(-s)))
        sums = w * np.exp(-s * rest) * np.expm1(-s * size) / np.expm1(-s)
        both = s[:, None] + s
        finished = np.outer(sums, sums) * np.expm1(-both * size * full) / np.expm1(-both * size)
        return unfinished**2 + float(np.sum(finished))

    def mean_block_squares(self, size: int) -> float:
        """The mean of `block_squares` over `size` consecutive t long after the beginning.

        Two steps at a distance of d share a block in 1 - d / size of all cases, and the sum over d of
        (1 - abs(d) / size) exp(-s abs(d)) is (sinh(s) + (exp(-s size) - 1) / size) / (2 sinh(s / 2)**2).
        """
        s = self.rates
        both = s[:, None] + s
        pairs = np.sum(np.outer(self.amounts, self.amounts) / -np.expm1(-both), axis=1)
        near = s * size < _NEAR
        shared = (np.sinh(s) + np.expm1(-s * size) / size) / (2 * np.sinh(s / 2) ** 2)
        return float(np.sum(pairs * np.where(near, size, shared)))


def half_life_alpha(steps: Fraction | int) -> Fraction:
    """The alpha per step with which half is left after `steps`, to 50 digits."""
    check.positive(half_life=steps)
    with localcontext(_CONTEXT):
        return Fraction((Decimal(2).ln() * -steps.denominator / steps.numerator).exp())


def _rate(factor: int) -> float:
    """-ln of a factor, which may be close to 1 or close to 0."""
    if 2 * factor < 1 << RATE_BITS:
        return RATE_BITS * math.log(2) - math.log(factor)
    return -math.log1p(-float(Fraction((1 << RATE_BITS) - factor, 1 << RATE_BITS)))


def _trapezoid(exponent: Decimal, furthest: Decimal) -> list[tuple[Decimal, Decimal]]:
    """(weight, rate) of each term, from where e**(c u) vanishes beside furthest**-c to where exp(-e**u) does."""
    step = 2 / (Decimal("3.4") + exponent / 2)
    last = -(furthest.ln() + (2 - _NEGLIGIBLE.ln()) / exponent) // step
    terms: list[tuple[Decimal, Decimal]] = []
    node, weight, peak = last, Decimal(1), Decimal(0)
    while node <= 0 or weight > peak * _NEGLIGIBLE:
        rate = (node * step).exp()
        weight = (exponent * node * step - rate).exp()
        terms.append((weight, rate))
        peak, node = max(peak, weight), node + 1
    return terms


class Running:
    """A decayed sum. Numbers and sums are in steps of 2**-40; the state is one integer per term.

    >>> from shoal.mechanisms.sums.sums import FRACTION
    >>> running = Running(Exponentials.exponential(Fraction(1, 2)))
    >>> [running.add(8 << FRACTION) >> FRACTION for _ in range(3)], running.skip(2), running.value >> FRACTION
    ([8, 12, 14], None, 3)
    """

    __slots__ = ("_bits", "_factors", "_sums", "_weights")

    def __init__(self, decay: Exponentials) -> None:
        self._weights, self._bits, self._factors = decay.weights, decay.weight_bits, decay.factors
        self._sums = [0] * len(decay.factors)

    def add(self, x: int) -> int:
        """Take one more step and return the sum with it."""
        self._sums = [(s * d >> RATE_BITS) + x for s, d in zip(self._sums, self._factors, strict=True)]
        return self.value

    @property
    def value(self) -> int:
        return sum(map(int.__mul__, self._weights, self._sums)) >> self._bits

    def skip(self, steps: int) -> None:
        """Pass `steps` empty steps by powers of the factors, each computed by squaring."""
        self._sums = [s * power(d, steps) >> RATE_BITS for s, d in zip(self._sums, self._factors, strict=True)]

    def head(self) -> list[Any]:
        return [text(s) for s in self._sums]

    def restore(self, head: list[Any]) -> None:
        self._sums = [int(s, 16) for s in head]


def power(factor: int, exponent: int, bits: int = RATE_BITS) -> int:
    """(factor / 2**bits)**exponent in the same steps, each product being rounded down.

    >>> power(1 << 95, 3) == 1 << 93, power(1 << 95, 0) == 1 << 96
    (True, True)
    """
    result = 1 << bits
    while exponent:
        if exponent & 1:
            result = result * factor >> bits
        factor = factor * factor >> bits
        exponent >>= 1
    return result
