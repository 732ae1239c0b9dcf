"""Exact noise for several integers at once: P(x) proportional to exp(-max |x_i| / scale), addressable by coordinate.

Guarantee    added to d integers of which a neighbour changes each by at most s, it is pure (s / scale)-DP, exactly; no
             float is involved
Sampling     R has P(R = k) proportional to (2k + 1)**d exp(-k / scale): it is the sum of d + 1 geometric numbers and of
             S, with P(S = s) proportional to B(d, s) exp(-s / scale). Then every coordinate is uniform in -R .. R
Variance     of a coordinate, with q = exp(-1 / scale), Z_d = sum of (2k + 1)**d q**k: (Z_(d+2) / Z_d - 1) / 12
Size         the mean of |x_i| is at most scale * (d + 1) / 2, and nearly that; it would be scale * d with a share of
             epsilon for each coordinate
Proof        docs/proofs/slots.md
Source       Hardt and Talwar (2010), the K-norm mechanism, here for the largest norm and on integers
"""

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from operator import mul

from shoal.mechanisms import check
from shoal.mechanisms.noise.geometric import exactly, geometric
from shoal.mechanisms.noise.keyed import Bits
from shoal.mechanisms.noise.uniform import exp_enclosed, is_below_exp, wide_uniform

_BITS = 64  # of weights
LEAST = Fraction(1, 1 << 20)  # of scales, for planning: with less there is no noise in any float


class CubeNoise:
    """The noise of one vector; `draw(coordinate)` is always the same number.

    >>> noise = CubeNoise(2, Fraction(10), bytes(32))
    >>> noise.radius(), noise.draw(0), noise.draw(1), noise.draw(0)
    (16, -7, -7, -7)
    """

    __slots__ = ("_bits", "_radius", "coordinates", "scale")

    def __init__(self, coordinates: int, scale: Fraction | int, subkey: bytes) -> None:
        check.positive(coordinates=coordinates, scale=scale)
        self.coordinates, self.scale = coordinates, Fraction(scale)
        self._bits = Bits(subkey)
        self._radius: int | None = None

    def draw(self, coordinate: int) -> int:
        """The number of a coordinate, 0 to d - 1."""
        check.below(self.coordinates, coordinate=coordinate)
        radius = self.radius()
        return wide_uniform(2 * radius + 1, self._bits.draw(1 + coordinate)) - radius

    def radius(self) -> int:
        """R, which all coordinates have in common."""
        if self._radius is None:
            self._radius = radius(self.coordinates, self.scale, self._bits.draw(0))
        return self._radius


def radius(coordinates: int, scale: Fraction, words: Iterator[int]) -> int:
    """R from these words."""
    rate = exactly(1 / scale)
    return sum(geometric(rate, words) for _ in range(coordinates + 1)) + _offset(coordinates, scale, words)


def _offset(coordinates: int, scale: Fraction, words: Iterator[int]) -> int:
    """S: proposed with its weight rounded up to an integer, and kept with what that is too much."""
    tops = [exp_enclosed(s / scale, _BITS)[1] for s in range(coordinates + 1)]
    upto = list(accumulate(map(mul, eulerian(coordinates), tops)))
    while True:
        drawn = wide_uniform(upto[-1], words)
        proposed = bisect_right(upto, drawn)
        rest = (upto[proposed] - 1 - drawn) % tops[proposed]
        if is_below_exp(rest, proposed / scale, _BITS, words):
            return proposed


@lru_cache(maxsize=1 << 8)
def eulerian(coordinates: int) -> Sequence[int]:
    """B(d, s) for s = 0 .. d: the sum of (2k + 1)**d q**k over k is the sum of B(d, s) q**s, over (1 - q)**(d + 1).

    They are the Eulerian numbers of type B, and sum to 2**d d!.

    >>> eulerian(1), eulerian(2), eulerian(3)
    ((1, 1), (1, 6, 1), (1, 23, 23, 1))
    """
    if not coordinates:
        return (1,)
    d, before = coordinates, (0, *eulerian(coordinates - 1), 0)
    return tuple((2 * s + 1) * before[s + 1] + (2 * (d - s) + 1) * before[s] for s in range(d + 1))


def variance(coordinates: int, scale: Fraction | int) -> float:
    """Variance of one coordinate, for planning and error bars only.

    >>> from shoal.mechanisms.noise import laplace
    >>> round(variance(1, Fraction(10)), 3), round(laplace.variance(Fraction(10)), 3)
    (199.833, 199.833)
    >>> round(variance(2, Fraction(10)), 3)  # a Laplace draw for half of epsilon has 799.833
    399.917
    """
    x = float(1 / Fraction(scale)) if scale > LEAST else 1e6
    q, few = math.exp(-x), eulerian(coordinates)
    # Z_(d+2) - Z_d over a common denominator, whose coefficients are integers: nothing cancels in floats
    more = list(eulerian(coordinates + 2))
    for s, number in enumerate(few):
        for power, sign in enumerate((1, -2, 1)):
            more[s + power] -= sign * number
    return _at(more, q) / (12 * _at(few, q) * math.expm1(-x) ** 2)


def tail(coordinates: int, x: float) -> float:
    """P(|x_i| > x * scale), as it is of real numbers: exp(-x) times the sum of x**k / k! (1 - k / d) over k < d.

    >>> tail(1, 3.0) == math.exp(-3.0), round(tail(2, 3.0), 6)
    (True, 0.124468)
    """
    d = coordinates
    return math.exp(-x) * math.fsum(x**k / math.factorial(k) * (1 - k / d) for k in range(d))


def _at(polynomial: Sequence[int], q: float) -> float:
    return math.fsum(number * q**power for power, number in enumerate(polynomial))
