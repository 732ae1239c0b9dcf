"""What is published of a key's noisy sides: functions of them and of public numbers alone, so that they cost nothing.

With B_k the noisy sides of a statistic that has several, u_k the places in the range of what adds to one side alone,
and N = sum of B_k, in units of what one sample adds to all sides together:

    count     N                             its noise: sqrt(K) that of a side, for K sides
    mean      M = sum of u_k B_k / N        in [0, 1], of the range; of two sides P / (P + Q)
    variance  B_2 / N - M**2                of three sides, in squares of the range
    interval  Fieller's: all means m with |sum of (u_k - m) B_k| <= q sqrt(sum of (u_k - m)**2), q being the 95 %
              quantile of a side's noise; the whole range where that is unbounded, or N is not above 0
    noise_sd  of the mean s / N * sqrt(sum of (u_k - M)**2), s being the standard deviation of a side's noise

A mean is a quotient, whose noise is worth stating only where N is well above its own: below `LEAST_COUNT` standard
deviations it is not published. Proof and measurements: docs/proofs/two-sided.md
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from shoal.mechanisms.error_bars import six_digits
from shoal.mechanisms.grid import LARGEST, Grid
from shoal.mechanisms.statistic import Estimate, clamped, clamped_within

LEAST_COUNT = 3  # standard deviations below which nothing is said of a mean
_LARGEST_INTEGER = 1 << 53  # that every reader of JSON has exactly


@dataclass(frozen=True, slots=True)
class Sided:
    """The noisy sides of a key at one step, and the bars of each side's noise."""

    noisy: Sequence[int]  # in units of 1 / denominator
    denominator: int
    width: int  # what a sample adds to all sides together
    sd: float
    quantile: float  # of the size of a side's noise

    @property
    def whole(self) -> int:
        """N, in units of 1 / denominator, of which a sample has `width`."""
        return sum(self.noisy)

    @property
    def size(self) -> float:
        """N, in units of which a sample has `width`."""
        return self.whole / self.denominator

    @property
    def counts(self) -> dict[str, float]:
        """The number of samples and the standard deviation of its noise."""
        return {
            "count": self.whole / (self.denominator * self.width),
            "count_sd": six_digits(math.sqrt(len(self.noisy)) * self.sd / self.width),
        }

    @property
    def is_enough(self) -> bool:
        """Whether a mean can be told, judged by what is released."""
        counts = self.counts
        return self.whole > 0 and counts["count"] >= LEAST_COUNT * counts["count_sd"]

    def place(self, places: Sequence[Fraction]) -> Fraction:
        """The noisy mean, in the range: exact."""
        return sum((place * side for place, side in zip(places, self.noisy, strict=True)), Fraction(0)) / self.whole


def count(sided: Sided) -> Estimate:
    """The number of samples, from a side that counts them."""
    value = _count(sided.noisy[0], sided.denominator)
    return Estimate(value, six_digits(sided.sd), value - sided.quantile, value + sided.quantile, {})


def _count(noisy: int, denominator: int) -> int | float:
    return noisy if denominator == 1 and abs(noisy) <= _LARGEST_INTEGER else noisy / denominator


def signed_sum(grid: Grid, sided: Sided) -> Estimate:
    """The sum, from the one side of a grid between 0 and the range's larger end."""
    return _sum(grid, Fraction(sided.noisy[0], sided.denominator), sided, {})


def sum_of_range(grid: Grid, sided: Sided) -> Estimate:
    """The sum of values whose range ends at 0: that of the side which 0 adds nothing to."""
    noisy = sided.noisy[0] if grid.high > 0 else -sided.noisy[1]
    return _sum(grid, Fraction(noisy, sided.denominator), sided, sided.counts)


def _sum(grid: Grid, steps: Fraction, sided: Sided, counts: dict[str, float]) -> Estimate:
    value, half = grid.width_value(steps), grid.width_value(sided.quantile)
    return Estimate(value, grid.width_value(sided.sd), *_around(value, half, half), counts)


def mean(grid: Grid, places: Sequence[Fraction], sided: Sided, *, clamps: bool) -> Estimate:
    """The mean of a statistic with several sides; without a value where there are too few samples to tell it."""
    low, high = _interval(grid, places, sided, clamps=clamps)
    if not sided.is_enough:
        return Estimate(None, None, low, high, sided.counts)
    place = sided.place(places)
    value = grid.mean_value(grid.steps * place, 1)
    sd = float(grid.high - grid.low) * sided.sd / sided.size * _spread(places, float(place))
    value, low, high = clamped_within(value, low, high, _ends(grid) if clamps else None)
    return Estimate(value, six_digits(sd), low, high, sided.counts)


def _interval(grid: Grid, places: Sequence[Fraction], sided: Sided, *, clamps: bool) -> tuple[float, float]:
    ends, found = _ends(grid), fieller(places, sided)
    if found is None:
        return ends
    width = ends[1] - ends[0]
    low, high = (clamped(ends[0] + width * at, ends if clamps else None) for at in found)
    return low, high


def fieller(places: Sequence[Fraction], sided: Sided) -> tuple[float, float] | None:
    """The ends, in the range, of the interval of the mean; None if it has none.

    With r = q / N, U and V the sums of u_k and u_k**2, these are the roots of

        (1 - K r**2) m**2 - 2 (M - U r**2) m + M**2 - V r**2 = 0.

    >>> two = Fraction(1), Fraction(0)
    >>> fieller(two, Sided((30, 70), 1, 1, 0.0, 0.0)), fieller(two, Sided((1, 1), 1, 1, 1.0, 2.0))
    ((0.3, 0.3), None)
    """
    if sided.whole <= 0:
        return None
    sides, r, place = len(places), sided.quantile / sided.size, float(sided.place(places))
    scale = 1 - sides * r * r
    if scale <= 0:
        return None
    first, second = float(sum(places)), float(sum(u * u for u in places))
    root = math.sqrt(max(second - 2 * first * place + sides * place**2 - r * r * (sides * second - first**2), 0.0))
    middle = place - first * r * r
    return (middle - r * root) / scale, (middle + r * root) / scale


def _spread(places: Sequence[Fraction], at: float) -> float:
    return math.sqrt(math.fsum((float(place) - at) ** 2 for place in places))


def mean_and_variance(grid: Grid, places: Sequence[Fraction], sided: Sided, *, clamps: bool) -> Estimate:
    """Mean and variance, from Bernstein's three sides.

    The noise in the variance is to first order that of sum of c_k B_k / N, with

        c_k = f_k - E - 2 M (u_k - M),   f = (0, 0, 1),   E = B_2 / N,

    and M**2 has the further noise s_M**2. The interval has the half width h, h**2 = (q s_V / s)**2 + (q s_M / s)**4,
    and above it s_M**2 more.
    """
    first, largest = mean(grid, places, sided, clamps=clamps), grid.width_value(grid.steps) ** 2 / 4
    if not sided.is_enough:
        return both(first, Estimate(None, None, 0.0, largest, {}))
    place, square = sided.place(places), Fraction(sided.noisy[-1], sided.whole)
    value = grid.squares.width_value(grid.squares.steps * (square - place**2))
    m, e, unit = float(place), float(square), grid.squares.width_value(grid.squares.steps)
    coefficients = [(k == 2) - e - 2 * m * (float(u) - m) for k, u in enumerate(places)]
    r = sided.sd / sided.size
    sd, moved = unit * r * math.hypot(*coefficients), unit * (r * _spread(places, m)) ** 2
    times = sided.quantile / sided.sd if sided.sd else 0.0
    half = math.hypot(times * sd, times**2 * moved)
    ends = (0.0, largest) if clamps else None
    low, high = (clamped(end, ends) for end in _around(value, half, half + moved))
    return both(first, Estimate(clamped(value, ends), six_digits(sd), low, high, {}))


def both(first: Estimate, second: Estimate) -> Estimate:
    """One estimate of a mean and a variance; counts and details are those of the mean."""

    def pair(one: Any, other: Any) -> dict[str, Any]:
        return {"mean": one, "variance": other}

    return replace(
        first,
        value=pair(first.value, second.value),
        noise_sd=pair(first.noise_sd, second.noise_sd),
        low=pair(first.low, second.low),
        high=pair(first.high, second.high),
    )


def _ends(grid: Grid) -> tuple[float, float]:
    return float(grid.low), float(grid.high)


def _around(value: float, below: float, above: float) -> tuple[float, float]:
    return max(value - below, -LARGEST), min(value + above, LARGEST)
