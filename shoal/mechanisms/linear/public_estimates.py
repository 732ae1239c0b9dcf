"""Estimates where the number of samples is public: functions of noisy sums, so that they cost nothing.

With n the decayed number of samples, S the noisy decayed sum of grid indices i in 0 .. W and P that of i (W - i):

    count     n, exact: under relation values it costs nothing
    sum       low n + (high - low) / W S
    mean      low + (high - low) / W S / n
    variance  x (W - x) - P / n + s**2, in squares of grid steps, with x = S / n

as i**2 = W i - i (W - i). The noise in x, of standard deviation s, makes x (W - x) too small by s**2 on average. Where
a decay has left out whole trees of noise in a long silence, s is larger than the noise, and the value too large.

Variance     of a variance: s**2 ((W - 2 x)**2 + s**2) + p**2 on average, p: standard deviation of the noise in P / n.
             `noise_sd` is the root of it with the noisy x, which is post-processing; exact on average where the noise
             of S is one Laplace draw, and larger than needed where it is closer to normal
Interval     of a variance: low = value - h - q**2, high = value + h, h**2 = ((W - 2 x) q)**2 + r**2, with q and r the
             95 % quantiles of the noise in x and in P / n; for several releases together, with their quantiles for
             twice as many and h = |W - 2 x| q + r, and s**2 taken off low: that holds wherever both stay below theirs
Proof        docs/proofs/decayed-variance.md

Numbers count in units of 1 / `parts`; `bars` are a standard deviation and a quantile for each sum, in units of the
range and of its square. The result is None for a mean or variance without samples.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from shoal.mechanisms.error_bars import COVERAGE, six_digits
from shoal.mechanisms.grid import LARGEST, Grid
from shoal.mechanisms.linear.estimates import both
from shoal.mechanisms.statistic import Estimate, clamped_within

Bars = tuple[float, ...]
Ends = tuple[float, float] | None
Details = Mapping[str, Any]


def count(parts: int, released: Sequence[int], bars: Bars, details: Details) -> Estimate:
    """The exact number of samples."""
    n = released[0] if parts == 1 else released[0] / parts
    return Estimate(n, 0.0, n, n, {"samples": n}, details)


def total(grid: Grid, parts: int, released: Sequence[int], bars: Bars, details: Details) -> Estimate:
    """The sum of samples."""
    samples, noisy = released
    n = samples if parts == 1 else samples / parts
    value, (sd, half) = grid.sum_value(noisy, samples, parts), bars
    return Estimate(value, sd, max(value - half, -LARGEST), min(value + half, LARGEST), {"samples": n}, details)


def mean(
    grid: Grid, parts: int, ends: Ends, released: Sequence[int], bars: Bars, details: Details
) -> Estimate | None:  # fmt: skip
    """The mean of samples, between `ends`."""
    samples, noisy = released
    if not samples:
        return None
    n = samples if parts == 1 else samples / parts
    value, sd, half = grid.mean_value(noisy, samples), bars[0] / n, bars[1] / n
    low, high = max(value - half, -LARGEST), min(value + half, LARGEST)
    value, low, high = clamped_within(value, low, high, ends)
    return Estimate(value, sd, low, high, {"samples": n}, details)


def mean_and_variance(
    grid: Grid, parts: int, ends: Ends, coverage: float, released: Sequence[int], bars: Bars, details: Details
) -> Estimate | None:
    """The mean of samples, between `ends`, and their variance, within what the range allows if there are ends."""
    samples, first, second = released
    one = mean(grid, parts, ends, (samples, first), bars[:2], details)
    if one is None:
        return None
    n, highest = samples / parts, grid.steps * samples
    sd, half, other_sd, other_half = (bar / n for bar in bars)
    off = grid.width_value(Fraction(abs(highest - 2 * first), samples))  # (W - 2 x)
    exact = Fraction(first * (highest - first) - second * samples, samples**2)
    value = _finite(grid.squares.width_value(exact) + sd * sd)
    within = variance_within(off, (half, other_half), coverage)
    low = _finite(value - within - half * half - (0.0 if coverage == COVERAGE else sd * sd))
    most = None if ends is None else (0.0, (ends[1] - ends[0]) ** 2 / 4)
    value, low, high = clamped_within(value, low, _finite(value + within), most)
    return both(one, Estimate(value, _finite(variance_noise(off, (sd, other_sd))), low, high, {}))


def variance_noise(off: float, sds: tuple[float, float]) -> float:
    """The standard deviation of a variance's noise, from those in the mean and in the other sum over n."""
    return six_digits(math.hypot(sds[0] * math.hypot(off, sds[0]), sds[1]))


def variance_within(off: float, halves: tuple[float, float], coverage: float) -> float:
    """Bound on the noise, but for the square of that in the mean, with probability 0.95 or a little more.

    For several releases: the bound that holds wherever the noise of both sums stays within its own.
    """
    if coverage == COVERAGE:
        return six_digits(math.hypot(off * halves[0], halves[1]))
    return six_digits(off * halves[0] + halves[1])


def _finite(value: float) -> float:
    """The value, or the largest of its sign where noise over a tiny epsilon goes beyond all numbers."""
    return min(max(value, -LARGEST), LARGEST)
