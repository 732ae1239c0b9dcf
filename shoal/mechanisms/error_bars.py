"""Error bars of released noise: its standard deviation and a quantile of its size, in grid steps.

The quantile is that of 95 %, unless a number of releases is to be within its intervals together with that probability.

Both are functions of public scales alone and take no part in the guarantee. The quantile is that of continuous Laplace
noise, from which the discrete one differs by less than a grid step per draw; it is accurate to a relative 1e-3 and
rounded to six digits, so that it is the same number on every machine.

    P(|X| <= x) = x / H + sum over k of 2 phi(k pi / H) sin(k pi x / H) / (k pi)
    phi(w) = product over the draws of 1 / (1 + (b w)**2)

is the Fourier series of the law wrapped to [-H, H], with H so far out that the wrapped tails do not matter. Beyond
95 % a little normal noise is added, which cuts the series short where it would hide the tail: what is computed is
larger than the quantile, by less than a relative 1e-3.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from shoal.mechanisms.grid import LARGEST, Grid, width_of
from shoal.mechanisms.noise import cube, laplace
from shoal.mechanisms.statistic import Estimate, clamped_within

COVERAGE = 0.95
_TERMS = 1500
_BLUR = 0.03  # standard deviation of the noise that is added, in the largest scale
_STRIDE = 50  # looks for the last term that is needed
_THETA: NDArray[np.float64] = 1 - np.logspace(-9, -0.001, 500)  # of bounds on tails
_K: NDArray[np.float64] = np.pi * np.arange(1, _TERMS + 1, dtype=np.float64)

Scales = tuple[tuple[Fraction | int, int], ...]
Ratios = Sequence[tuple[int, int, int]]  # scales: numerator, denominator, and how many draws have that scale


@dataclass(frozen=True, slots=True)
class Normal:
    """A sum of discrete Gaussian draws, which is as good as normal."""

    variance: float


@dataclass(frozen=True, slots=True)
class OfCube:
    """One coordinate of noise that several have in common (noise/cube.py)."""

    coordinates: int
    scale: Fraction


Law = Scales | Normal | OfCube  # of noise
Widths = tuple[float, float]  # the quantile and the standard deviation of the noise of a sum, in units of the range


@lru_cache(maxsize=1 << 14)
def noise_sd(scales: Law) -> float:
    """Standard deviation of a sum of independent discrete Laplace draws, given as (scale, how many) pairs, or of a law.

    >>> noise_sd(((Fraction(10), 4),)), noise_sd(Normal(2.0)), noise_sd(OfCube(2, Fraction(10)))
    (28.2725, 1.41421, 19.9979)
    """
    if isinstance(scales, Normal):
        return six_digits(math.sqrt(scales.variance))
    if isinstance(scales, OfCube):
        return six_digits(math.sqrt(cube.variance(scales.coordinates, scales.scale)))
    return _laplace_sd(_ratios(scales))


def coverage_of(releases: int | None, numbers: int = 1) -> float:
    """The coverage of each interval, if those of all numbers of so many releases hold together: a union bound.

    Above 95 % even for one number, since intervals of 95 % may be approximations, and these may not.

    >>> coverage_of(None), coverage_of(1, 5), coverage_of(100)
    (0.95, 0.99, 0.9995)
    >>> COVERAGE < coverage_of(1) < 1.000001 * COVERAGE
    True
    """
    if releases is None:
        return COVERAGE
    return max(1 - (1 - COVERAGE) / (releases * numbers), math.nextafter(COVERAGE, 1))


@lru_cache(maxsize=1 << 14)
def noise_quantile(scales: Law, coverage: float = COVERAGE) -> float:
    """The bound below which the size of such a sum stays with probability `coverage`.

    >>> noise_quantile(((Fraction(10), 1),)), six_digits(10 * math.log(20)), noise_quantile(Normal(1.0))
    (29.9573, 29.9573, 1.95996)
    """
    if isinstance(scales, Normal):
        return six_digits(NormalDist().inv_cdf((1 + coverage) / 2) * math.sqrt(scales.variance))
    if isinstance(scales, OfCube):
        return six_digits(float(scales.scale) * _cube_quantile(scales.coordinates, coverage))
    return _laplace_quantile(_ratios(scales), coverage)


def tail_bound(squares: float, largest: float, coverage: float, *, has_largest: bool) -> float:
    """A bound that holds for any weighted sum of draws of scale 1, given its squared weights in all and the largest.

    Chernoff's, sharpened for laws with a log-concave density, for the best of some theta (docs/proofs/together.md).
    With `has_largest` a draw really has that weight; otherwise none has more.

    >>> [round(tail_bound(n, 1.0, coverage_of(100), has_largest=True), 2) for n in (1, 100)], round(math.log(2000), 2)
    ([7.6, 53.87], 7.6)
    """
    draws, square = squares / largest**2, _THETA**2
    of_one = (1 + square) / (1 - square) ** 2 if has_largest else 1.0
    deviation = np.sqrt(2 * np.maximum(draws - 1, 0) + 2 * min(draws, 1.0) * of_one)
    logs = math.log(2 / (1 - coverage)) - np.log(np.maximum(_THETA * deviation, 1)) - draws * np.log1p(-square)
    return largest * float(np.min(logs / _THETA))


def estimate(
    grid: Grid, total: Fraction | int, samples: int, scales: Law, ends: tuple[float, float] | None = None,
    coverage: float = COVERAGE,
) -> Estimate:  # fmt: skip
    """The mean of samples whose noisy sum is `total`, clamped to `ends`, with error bars for noise of these scales."""
    return estimate_within(grid, total, samples, widths(grid.step, scales, coverage), ends)


def estimate_within(
    grid: Grid, total: Fraction | int, samples: int, noise: Widths, ends: tuple[float, float] | None = None
) -> Estimate:
    """The same, for noise of these widths."""
    value = grid.mean_value(total, samples)
    quantile, deviation = noise
    half, sd = quantile / samples, deviation / samples
    low, high = max(value - half, -LARGEST), min(value + half, LARGEST)
    value, low, high = clamped_within(value, low, high, ends)
    return Estimate(value, sd, low, high, {"samples": samples})


@lru_cache(maxsize=1 << 14)  # the groups of a metric ask for the same ones
def widths(step: tuple[int, int], scales: Law, coverage: float) -> Widths:
    """The quantile and the standard deviation of the noise of a sum, in units of the range."""
    return width_of(step, noise_quantile(scales, coverage)), width_of(step, noise_sd(scales))


def laplace_widths(step: tuple[int, int], ratios: Ratios, coverage: float) -> Widths:
    """Widths of the noise of a sum of discrete Laplace draws, whose scales are ratios that need not be reduced.

    The result is that of `widths` for the same scales as fractions in the same order, to the last bit: Python rounds a
    quotient of integers correctly.

    >>> laplace_widths((1, 1), [(20, 2, 4), (10, 3, 1)], 0.95) == widths((1, 1), ((10, 4), (Fraction(10, 3), 1)), 0.95)
    True
    """
    return width_of(step, _laplace_quantile(ratios, coverage)), width_of(step, _laplace_sd(ratios))


def six_digits(value: float) -> float:
    """The value rounded to six significant decimal digits."""
    return float(f"{value:.6g}")


def _ratios(scales: Scales) -> Ratios:
    return [(*scale.as_integer_ratio(), count) for scale, count in scales if count]


def _laplace_sd(ratios: Ratios) -> float:
    variances = (count * laplace.variance_of_ratio(numerator, denominator) for numerator, denominator, count in ratios)
    return six_digits(math.sqrt(math.fsum(variances)))


def _laplace_quantile(ratios: Ratios, coverage: float) -> float:
    counted = [(numerator / denominator, count) for numerator, denominator, count in ratios]
    if not counted:
        return 0.0
    largest = max(scale for scale, _ in counted)
    if len(counted) == 1 and counted[0][1] == 1:
        return six_digits(largest * -math.log(1 - coverage))
    return six_digits(largest * _quantile([(scale / largest, count) for scale, count in counted], coverage))


@lru_cache(maxsize=1 << 8)
def _cube_quantile(coordinates: int, coverage: float) -> float:
    """The quantile for a scale of 1, by bisection."""
    low, high = 0.0, 1.0
    while cube.tail(coordinates, high) > 1 - coverage:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if cube.tail(coordinates, middle) > 1 - coverage else (low, middle)
    return high


def _quantile(scales: list[tuple[float, int]], coverage: float) -> float:
    """The quantile for scales of which the largest is 1."""
    sd = math.sqrt(sum(2 * count * scale * scale for scale, count in scales))
    far, blur = 6 * sd + 10, 0.0
    if coverage != COVERAGE:
        far, blur = far + math.log((1 - COVERAGE) / (1 - coverage)), _BLUR
    frequencies: NDArray[np.float64] = _K / far
    few = max(8, int(np.searchsorted(-_log_phi(scales, frequencies[::_STRIDE], blur), 30.0)) * _STRIDE)
    log_phi = _log_phi(scales, frequencies[:few], blur)
    used = max(8, int(np.searchsorted(-log_phi, 30.0)))  # the terms beyond are below 1e-13
    phi: NDArray[np.float64] = np.exp(log_phi[:used])
    return _solve(phi, frequencies[:used], far, 1.96 * sd, coverage)


def _log_phi(scales: list[tuple[float, int]], frequencies: NDArray[np.float64], blur: float) -> NDArray[np.float64]:
    sizes = np.array([[scale] for scale, _ in scales])
    counts = np.array([[float(count)] for _, count in scales])
    log_phi: NDArray[np.float64] = -((blur * frequencies) ** 2) / 2
    for term in counts * np.log1p((sizes * frequencies) ** 2):  # a sum in the order of `scales`, not in numpy's
        log_phi -= term
    return log_phi


def _solve(phi: NDArray[np.float64], frequencies: NDArray[np.float64], far: float, x: float, coverage: float) -> float:
    """Newton's method from the left: the distribution of |X| is concave there, so each step stays left of the root."""
    step = x
    while step > 1e-8 * x:
        angles = frequencies * x
        distribution = (x + 2 * float(np.sum(phi * np.sin(angles) / frequencies))) / far
        density = (1 + 2 * float(np.sum(phi * np.cos(angles)))) / far
        step = (coverage - distribution) / density
        x += step
    return x
