"""A grid point of d coordinates near many of n such points, or none: the exponential mechanism of the paper, in R^d.

Guarantee    (epsilon, delta)-DP, delta > 0, exactly
Unit         one of the points; it moves anywhere. How many there are is public
Law          s(p) is how many points lie within R of p, in the Euclidean distance; c = ceil(0.51 n) caps it. P(p) is
             proportional to exp(epsilon min(s(p), c) / 2) where s(p) is at least 1; P(none) to G V, V being the number
             of grid points in a ball. G >= 1 / (1 - exp(-epsilon / 2)), G >= exp(epsilon / 2) / delta, and
             G >= n M / ROUNDS with M = max of exp(epsilon min(s, c) / 2) / s
Sampling     exact rejection in integers: a uniform point of a uniform user's ball, or "none". The loop ends by
             acceptance alone, after 1 + ROUNDS rounds on average at most. How many they are depends on the points:
             time is not protected
Proof        docs/proofs/few-users.md
Source       Esfandiari, Mirrokni and Narayanan (2021); the cap is ours: without it M is exp(epsilon n / 2) / n, and so
             large a G leaves "none" alone where 49 % of the points lie elsewhere

No decision has a float: points are integers, distances squared integers, and a uniform point of a ball is drawn from
discrete Gaussian proposals, of which one in sqrt(pi d) is kept, about.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING
from fractions import Fraction
from functools import lru_cache
from itertools import count

from shoal.mechanisms import check
from shoal.mechanisms.decimals import decimal
from shoal.mechanisms.noise.gaussian import DiscreteGaussian
from shoal.mechanisms.noise.laplace import bernoulli_exp
from shoal.mechanisms.noise.uniform import exp_enclosed, is_below_exp, precise, wide_uniform
from shoal.mechanisms.selection.few_users_point import (
    NearChoice,
    none_of_odds,
    stretches,
)

ROUNDS = 1 << 12  # on average at most; each takes away from the probability of a point as `none_at_most` says
_DIGITS = 60  # of decimals; ten of them absorb rounding errors
_WORD = 64

Point = Sequence[int]


@dataclass(frozen=True)
class BallChoice(NearChoice):
    """The choice among points of several coordinates.

    >>> choice = BallChoice(numbers=100, radius=40, epsilon=Fraction(1), delta=Fraction(1, 10**6), coordinates=3)
    >>> choice.cap, choice.garbage
    (51, 56830198)
    """

    coordinates: int  # d

    def __post_init__(self) -> None:
        super().__post_init__()
        check.positive(radius=self.radius, coordinates=self.coordinates)

    @property
    def cap(self) -> int:
        """c, from which on more points near say no more."""
        return capped(self.numbers)

    @property
    def garbage(self) -> int:
        """G, which is so large that rounds are few, too."""
        return max(super().garbage, _rest(self.rate, self.numbers))

    def none_at_most(self, kappa: float) -> float:
        """An upper bound on the probability of "none" if all balls share exp(-kappa) of theirs; for planning only."""
        return none_of_odds(float(self.rate) * self.cap - kappa - math.log(self.garbage))

    def choose(self, points: Sequence[Point], subkey: bytes, words: Iterator[int]) -> list[int] | None:
        """The chosen point, or None; the order of the points makes no difference.

        The subkey is for the points of balls, the words are for all else.
        """
        points = sorted(points, key=tuple)
        most = self._most_near(points)
        bits = _WORD * (2 + self.garbage.bit_length() // _WORD)
        # All weights are in units of exp(rate * most) / 2**bits.
        share = max(-(-(1 << bits) // most), exp_enclosed(self.rate * (most - 1), bits)[1])
        none = exp_enclosed(self.rate * most, bits)[1]
        offsets = offsets_in_ball(self.radius, self.coordinates, subkey, words)
        while True:
            index, rest = divmod(wide_uniform(len(points) * share + self.garbage * none, words), share)
            if index >= len(points):
                rest = ((index - len(points)) * share + rest) % none
                if is_below_exp(rest, self.rate * most, bits, words):
                    return None
                continue
            point = [at + offset for at, offset in zip(points[index], next(offsets), strict=True)]
            near = near_to(point, points, self.radius)
            rest += share * wide_uniform(near, words)  # of near shares, for as many users propose the point
            if is_below_exp(rest, self.rate * (most - min(near, self.cap)), bits, words):
                return point

    def _most_near(self, points: Sequence[Point]) -> int:
        """An upper bound on the capped score of any point: in no coordinate are more near."""
        axes = (stretches(sorted(axis), self.radius) for axis in zip(*points, strict=True))
        return min(self.cap, *(max(stretch.near for stretch in axis) for axis in axes))


def capped(numbers: int) -> int:
    """0.51 n, rounded up.

    >>> capped(1), capped(100), capped(101)
    (1, 51, 52)
    """
    return -(-51 * numbers // 100)


def near_to(point: Point, points: Sequence[Point], radius: int) -> int:
    """How many of the points lie within the radius, in the Euclidean distance.

    >>> near_to([0, 0], [[3, 4], [5, 1], [0, -5]], 5)
    2
    """
    limit, near = radius * radius, 0
    for other in points:
        left = limit
        for one, two in zip(point, other, strict=True):
            left -= (one - two) ** 2
            if left < 0:
                break
        else:
            near += 1
    return near


def offsets_in_ball(radius: int, coordinates: int, subkey: bytes, words: Iterator[int]) -> Iterator[list[int]]:
    """Independent uniform points of the integer ball around 0, without end.

    A proposal's coordinates are discrete Gaussian with sigma2 = R**2 / d. It is kept with probability exp((z**2 - R**2)
    / (2 sigma2)) if z**2 <= R**2, so that all points of the ball come alike.
    """
    limit = radius * radius
    noise, index = DiscreteGaussian(Fraction(limit, coordinates), subkey), count()
    while True:
        offset: list[int] = []
        left = limit
        while left >= 0 and len(offset) < coordinates:
            offset.append(noise.draw(next(index)))
            left -= offset[-1] ** 2
        if left >= 0 and bernoulli_exp(left * coordinates, 2 * limit, words):
            yield offset


@lru_cache(maxsize=1 << 12)
def _rest(rate: Fraction, numbers: int) -> int:
    """That many: n M / ROUNDS, rounded up; exp(rate min(s, c)) / s is largest at s = 1 or s = c."""
    cap = capped(numbers)
    with precise(_DIGITS):
        exponent = decimal(rate)
        most = max(exponent.exp(), (cap * exponent).exp() / cap)
        garbage = numbers * most / ROUNDS
        garbage += garbage.scaleb(10 - _DIGITS) * (1 + cap * exponent)
        return int(garbage.to_integral_value(ROUND_CEILING))
