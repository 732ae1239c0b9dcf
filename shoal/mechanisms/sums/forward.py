"""Forward decay of noised steps: each step weighs a power of its number, over that of the newest one.

    y_t = ((t - 1) / t)**c y_(t-1) + x_t + e_t,   so that step i weighs (i / t)**c

Guarantee    pure epsilon-DP for all releases together; steps may react to them: they are a function of the noised steps
             (docs/proofs/decay.md)
Relation     values: two streams differ in what one unit contributed; who contributes, and when, is public
Unit         its changes, in one step or in many, are `width` grid steps in all
Sensitivity  that of the noised steps; no weight enters it
Noise        that of the noised steps, with the weights of the steps
Variance     of release t: of a draw per step v(b) sum over i of (i / t)**2c, which is near t / (2 c + 1) times one
             draw's and grows with t; of trees that grow, by the weights' sums in their blocks (powers.py), with t's
             logarithm
Silence      a tree whose steps are all skipped takes no noise; in others, skipped steps are taken in pieces, each with
             the weight of its first: less than what they would weigh by a part of 1 / 32 at most
Cost         per step a few products of integers; to skip, some 64 pieces or 32 c for each doubling of t in a tree.
             State: one integer, as long as t**c
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from shoal.mechanisms.counters.counter import Scales, Subkeys
from shoal.mechanisms.error_bars import COVERAGE, noise_quantile, six_digits, tail_bound
from shoal.mechanisms.noise import laplace
from shoal.mechanisms.sums.powers import Floats, Powers
from shoal.mechanisms.sums.steps.growing import GrowingSteps
from shoal.mechanisms.sums.steps.laplace import LaplaceSteps
from shoal.mechanisms.sums.steps.steps import FAR, Given, OfSteps, equal_quantile, like
from shoal.mechanisms.sums.sums import FRACTION, UNIT, Headed, spelled, text

_PIECES = 64  # of skipped steps, for each doubling of t and, beyond 2, every 2 of the exponent
_PLACES = 32  # releases that mechanisms are compared at
_FIRST = 16  # releases whose quantile is that of their very draws
_DIGITS = 4  # bits of t that decide how many draws its noise is like
Noise = Callable[[int, int], int]  # start, end -> the sum of e over steps start + 1 .. end of one tree, times 2**40
Borders = Callable[[int], tuple[int, int]]  # t -> the last step up to it, and the first from it on, that ends a tree


class Profile(NamedTuple):
    """What the draws of a release are like."""

    draws: int  # equal ones with the same ratio of moments
    largest: float  # scale, with the coefficient


class Steps(Given, Protocol):
    """Noised steps that forward decay can be made of."""

    def shape(self) -> str: ...
    def borders(self, t: int) -> tuple[int, int]: ...
    def sampler(self, subkey: Subkeys) -> Noise: ...
    def forward_squares(self, powers: Powers, t: int, unit: Callable[[Fraction], float]) -> float: ...
    def forward_draws(self, powers: Powers, t: int) -> Iterator[tuple[Fraction, Floats]]: ...
    def largest_scale(self, t: int) -> Fraction: ...


@dataclass(frozen=True)
class ForwardSum(OfSteps[Steps]):
    """All public parameters of a sum with forward decay.

    >>> sums = ForwardSum.best(Powers(Fraction(2)), width=1, epsilon=Fraction(1))
    >>> per_step = ForwardSum(sums.powers, LaplaceSteps(1, Fraction(1)))
    >>> sums.mechanism, round(sums.variance(10**4)), round(per_step.variance(10**4))
    ('blue', 119, 3684)
    >>> summer = ForwardSum(sums.powers, LaplaceSteps(1, Fraction(10**9))).summer(lambda number: bytes(32))  # no noise
    >>> [round(summer.add(x) / sums.denominator, 4) for x in (36, 0, 0, 1)]
    [36.0, 9.0, 4.0, 3.25]
    """

    denominator: ClassVar[int] = UNIT

    powers: Powers
    steps: Steps

    @classmethod
    def best(cls, powers: Powers, *, width: int, epsilon: Fraction, horizon: int | None = None) -> "ForwardSum":
        """Trees that grow; with a horizon, what has the least mean variance over so many releases."""
        return cls(powers, _best_steps(powers, horizon)(width, epsilon))

    def shape(self) -> str:
        return f"ForwardSum(exponent={spelled(self.powers.exponent)}, steps={self.steps.shape()})"

    def variance(self, t: int) -> float:
        return _variance(self, t)

    def noise_sd(self, t: int) -> float:
        return six_digits(self.variance(t) ** 0.5)

    def noise_quantile(self, t: int, coverage: float = COVERAGE) -> float:
        """The quantile of the first releases' very draws; later that of equal draws, as many as the noise is like.

        For more than 95 % it is then a bound on the tail, by the squared scales and the largest.
        """
        if t <= _FIRST:
            return noise_quantile(_scales(self, t), coverage)
        if coverage == COVERAGE:
            return six_digits(equal_quantile(_profile(self, _leading(t)).draws) * self.variance(t) ** 0.5)
        squares = self.steps.forward_squares(self.powers, t, lambda scale: float(scale) ** 2)
        is_known = t <= FAR
        largest = _profile(self, t).largest if is_known else float(self.steps.largest_scale(t))
        return six_digits(tail_bound(squares, largest, coverage, has_largest=is_known))

    def summer(self, subkey: Subkeys) -> "ForwardSummer":
        return ForwardSummer(self.powers, self.steps.sampler(subkey), self.steps.borders)

    def counts(self) -> "ForwardSummer":
        return ForwardSummer(self.powers, lambda start, end: 0, lambda t: (t, t))


@lru_cache(maxsize=64)
def _best_steps(powers: Powers, horizon: int | None) -> Callable[[int, Fraction], Steps]:
    """A draw per step, trees that grow, or those that suit a running sum of this horizon; the first of equals."""
    if horizon is None:  # the noise of a draw per step would grow without end
        return GrowingSteps
    places = sorted({-(-horizon * place // _PLACES) for place in range(1, _PLACES + 1)})

    def score(steps: Steps) -> float:
        """Continuous noise in few digits, so that every machine makes the same choice."""
        return six_digits(sum(steps.forward_squares(powers, t, lambda scale: float(scale) ** 2) for t in places))

    makes: list[Callable[[int, Fraction], Steps]] = [LaplaceSteps, GrowingSteps]
    makes.append(lambda width, epsilon: GrowingSteps(width, epsilon, horizon))
    return min(makes, key=lambda make: score(make(1, Fraction(1))))


@lru_cache(maxsize=1 << 16)  # the groups of a metric ask for the same ones
def _variance(sums: ForwardSum, t: int) -> float:
    return sums.steps.forward_squares(sums.powers, t, laplace.variance)


@lru_cache(maxsize=1 << 10)
def _profile(sums: ForwardSum, t: int) -> Profile:
    parts = _parts(sums, t)
    return Profile(like(parts), float(np.max(parts)))


@lru_cache(maxsize=1 << 10)
def _scales(sums: ForwardSum, t: int) -> Scales:
    """The scales of the draws of release t, with their coefficients."""
    found, counts = np.unique(_parts(sums, t), return_counts=True)
    return tuple(
        (Fraction(scale), count) for scale, count in zip(found.tolist(), counts.tolist(), strict=True) if scale
    )


def _parts(sums: ForwardSum, t: int) -> Floats:
    """The size of each draw's coefficient in release t, times its scale."""
    return np.concatenate([float(scale) * np.abs(values) for scale, values in sums.steps.forward_draws(sums.powers, t)])


def _leading(t: int) -> int:
    """A step of about the same number, of which there are few.

    >>> [_leading(t) for t in (7, 15, 16, 17, 1000, 10**9)]
    [7, 15, 16, 16, 960, 262144]
    """
    drop = max(min(t, FAR).bit_length() - _DIGITS, 0)
    return min(t, FAR) >> drop << drop


class ForwardSummer(Headed):
    """The releases. The state is the noised steps' weighted sum: it tells no more than what is published."""

    __slots__ = ("_borders", "_noise", "_pieces", "_powers", "_sum", "t")

    def __init__(self, powers: Powers, noise: Noise, borders: Borders) -> None:
        self._powers, self._noise, self._borders = powers, noise, borders
        self._pieces = _PIECES * max(1, math.ceil(powers.exponent / 2))
        self._sum = 0  # of the steps, each times its power
        self.t = 0

    def add(self, x: int) -> int:
        self._take(x, self.t + 1)
        return self._sum // self._powers.part(self.t)

    def _take(self, x: int, end: int) -> None:
        """Take the steps up to `end`, all of one tree, with the weight of the first."""
        self._sum += self._powers.part(self.t + 1) * ((x << FRACTION) + self._noise(self.t, end))
        self.t = end

    def skip(self, steps: int) -> None:
        """Pass whole trees by their number alone, and parts of them in pieces, the longer the later they are."""
        end = self.t + steps
        first, last = self._borders(self.t)[1], self._borders(end)[0]
        if first < last:
            self._rest(first)
            self.t = last
        self._rest(end)

    def _rest(self, end: int) -> None:
        while self.t < end:
            self._take(0, min(self.t + 1 + self.t // self._pieces, self._borders(self.t + 1)[1], end))

    def head(self) -> list[Any]:
        return [self.t, text(self._sum)]

    def restore(self, head: list[Any], kept: Mapping[int, int]) -> None:
        self.t, self._sum = head[0], int(head[1], 16)
