"""A grid point near many of n numbers, or none at all: an exponential mechanism over all the integers.

Guarantee    (epsilon, delta)-DP, delta > 0, exactly
Unit         one of the numbers; it moves anywhere. How many there are is public
Law          s(p) is how many numbers lie within R of p. P(p) is proportional to exp(epsilon s(p) / 2) where s(p) is at
             least 1; P(none) to G (2R + 1), with G >= 1 / (1 - exp(-epsilon / 2)) and G >= exp(epsilon / 2) / delta
Sampling     exact rejection in integers: a round proposes a point, or none, with a probability that is too large by one
             in 2**64 at most, and keeps it with what remains. The loop ends by acceptance alone: to stop it after a
             fixed number of rounds would break the guarantee
Proof        docs/proofs/few-users.md
Source       Esfandiari, Mirrokni and Narayanan (2021)

On a line s is constant between 2n points, so proposals follow the law itself, and nothing has to bound their rounds.
slot/means/few_users_ball.py has the paper's proposals, for points of several coordinates.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING
from fractions import Fraction
from functools import lru_cache
from heapq import merge
from itertools import accumulate, pairwise
from typing import NamedTuple

from shoal.mechanisms import check
from shoal.mechanisms.decimals import decimal
from shoal.mechanisms.noise.uniform import SPARE, exp_enclosed, is_below_exp, precise, wide_uniform

_DIGITS = 60  # of decimals
_WORD = 64
_REACH_DIGITS = 50  # of r0, before it is rounded up
_MOST = Fraction(100)  # of epsilon / 2: more of it would change no draw in exp(100) and make the numbers long


class Stretch(NamedTuple):
    """Neighbouring points with the same number of numbers near them."""

    start: int
    points: int
    near: int


@dataclass(frozen=True)
class NearChoice:
    """The public parameters of a choice near many of n numbers, or of n points of several coordinates."""

    numbers: int  # n
    radius: int  # R
    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        check.positive(numbers=self.numbers, epsilon=self.epsilon)
        check.not_negative(radius=self.radius)
        check.probability(delta=self.delta)

    @property
    def rate(self) -> Fraction:
        """Epsilon / 2, or less where more would make no difference."""
        return min(self.epsilon / 2, _MOST)

    @property
    def garbage(self) -> int:
        """G: "none" weighs as much as G balls of points that no number is near."""
        return _garbage(self.rate, self.delta)


def none_of_odds(odds: float) -> float:
    """The probability of "none" where the logarithm of a point's weight over that of "none" is `odds`."""
    return 1 / (1 + math.exp(odds)) if odds < 0 else math.exp(-odds) / (1 + math.exp(-odds))


@dataclass(frozen=True)
class PointChoice(NearChoice):
    """The choice among integers.

    >>> choice = PointChoice(numbers=3, radius=4, epsilon=Fraction(1), delta=Fraction(1, 1000))
    >>> choice.ball, choice.garbage
    (9, 1649)
    """

    @property
    def ball(self) -> int:
        """The number of points of a ball; no range cuts it, so all balls have as many."""
        return 2 * self.radius + 1

    @property
    def bits(self) -> int:
        """The bits of the weights: with them, rounding the weights up adds less than one round in 2**64."""
        return _WORD * (2 + ((self.garbage + self.numbers) * self.ball).bit_length() // _WORD)

    def none_at_most(self, common: Fraction) -> float:
        """An upper bound on the probability of "none" if all balls share that part; for planning only."""
        return none_of_odds(float(self.rate) * self.numbers + math.log(common) - math.log(self.garbage))

    def choose(self, numbers: Sequence[int], words: Iterator[int]) -> int | None:
        """The chosen point, or None; the order of the numbers makes no difference."""
        groups = [Stretch(0, self.garbage * self.ball, 0), *stretches(sorted(numbers), self.radius)]
        most = max(stretch.near for stretch in groups)
        exponents = {near: self.rate * (most - near) for near in {stretch.near for stretch in groups}}
        weights = {near: exp_enclosed(exponent, self.bits)[1] for near, exponent in exponents.items()}
        ends = list(accumulate(stretch.points * weights[stretch.near] for stretch in groups))
        while True:
            drawn = wide_uniform(ends[-1], words)
            index = bisect_right(ends, drawn)
            stretch = groups[index]
            offset, rest = divmod(ends[index] - 1 - drawn, weights[stretch.near])
            if is_below_exp(rest, exponents[stretch.near], self.bits, words):
                return stretch.start + offset if index else None


def users_needed(epsilon: Fraction, delta: Fraction, failure: Fraction, kappa: float = math.log(2)) -> int:
    """The number of users from which on there is a release, except with probability `failure`.

    That is n >= 1 + 2 / epsilon * (ln(1 / (delta * failure)) + kappa), if the users' means lie within r0 of one point;
    exp(-kappa) is the part that all their balls share.

    >>> users_needed(Fraction(1), Fraction(1, 10**6), Fraction(1, 20))
    37
    """
    check.positive(epsilon=epsilon)
    check.probability(delta=delta, failure=failure)
    needed = 2 / float(epsilon) * (_log_inverse(delta) + _log_inverse(failure) + kappa)
    return 1 + math.ceil(float(f"{needed:.9g}"))


@lru_cache(maxsize=1 << 12)
def reach_steps(users: int, samples: int, failure: Fraction, scatter: Fraction) -> int:
    """r0: how far, in grid steps, the users' means are from the true one, except with probability `failure`.

    It is scatter * sqrt(2 ln(2n / failure) / samples), rounded up, and one step for rounding samples and means.

    >>> reach_steps(40, 100, Fraction(1, 20), Fraction(1000))
    386
    """
    with precise(_REACH_DIGITS):
        steps = (2 * decimal(2 * users / failure).ln() / samples).sqrt() * decimal(scatter)
        return int(steps.to_integral_value(ROUND_CEILING)) + 1


def stretches(numbers: Sequence[int], radius: int) -> Iterator[Stretch]:
    """All points with a number near, in runs with equally many numbers near; the numbers ascend.

    >>> list(stretches([0, 3], 2))
    [Stretch(start=-2, points=3, near=1), Stretch(start=1, points=2, near=2), Stretch(start=3, points=3, near=1)]
    """
    begins = ((number - radius, 1) for number in numbers)
    ends = ((number + radius + 1, -1) for number in numbers)
    near = 0
    for (start, change), (end, _) in pairwise(merge(begins, ends)):
        near += change
        if end > start and near:
            yield Stretch(start, end - start, near)


@lru_cache(maxsize=1 << 12)
def _garbage(rate: Fraction, delta: Fraction) -> int:
    """max(1 / (1 - exp(-rate)), exp(rate) / delta), rounded up; the first is below 1 + 1 / rate."""
    with precise(_DIGITS):
        exponent = decimal(rate)
        garbage = max(1 + 1 / exponent, exponent.exp() / decimal(delta))
        most = garbage + garbage.scaleb(SPARE - _DIGITS) * (1 + exponent)
        return int(most.to_integral_value(ROUND_CEILING))


def _log_inverse(value: Fraction) -> float:
    """ln(1 / value), even for values too small for a float."""
    return math.log(value.denominator) - math.log(value.numerator)
