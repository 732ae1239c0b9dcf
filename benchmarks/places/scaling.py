"""Noise as every user has more samples, and as there are more users: how fast it falls."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from benchmarks.places.arms import NAMES, parameters
from benchmarks.places.inputs import HIGH, Users, grid_steps, heavy_counts
from shoal.mechanisms.slots import array_averaging, registry
from shoal.mechanisms.slots.cell import Cap, Draws

EPSILON = Fraction(2)
LAW = (30.0, 10.0)
USERS, MEAN = 200, 20
FACTORS = (1, 2, 4, 8, 16, 32, 64)
QUICK_FACTORS = (1, 4)
SAMPLES, PEOPLE = "samples of every user", "users"
KEY = bytes(range(2, 34))
# Of noise, as a power of the factor: what the paper shows, and what follows for quantiles of array means.
SLOPES = {
    SAMPLES: {"baseline": 0.0, "array-averaging": 0.0, "levy": -0.5, "fixed-quantile": -0.5, "epsilon-quantile": -0.5},
    PEOPLE: dict.fromkeys(NAMES, -1.0),
}


@dataclass(frozen=True)
class Line:
    """The noise of an algorithm, in km/h: its standard deviation, root mean square over draws of the interval."""

    scaled: str
    algorithm: str
    factors: list[int]
    noise: list[float]
    expected: float  # slope on logarithmic axes
    slope: float  # over the second half of the factors


def measure(*, quick: bool) -> list[Line]:
    """Both scalings; all algorithms have the median as cap, so that arrays scale as the counts do."""
    factors, draws = (QUICK_FACTORS, 2) if quick else (FACTORS, 24)
    found = []
    for scaled in (SAMPLES, PEOPLE):
        by_factor = [_noise(scaled, factor, draws) for factor in factors]
        for name in NAMES:
            noise = [of[name] for of in by_factor]
            found.append(Line(scaled, name, list(factors), noise, SLOPES[scaled][name], slope(factors, noise)))
    return found


def slope(factors: Sequence[int], noise: Sequence[float]) -> float:
    """Of a straight line through the later half of the points, on logarithmic axes.

    >>> round(slope([1, 2, 4, 8], [9, 5, 1, 0.25]), 6)
    -2.0
    """
    half = len(factors) // 2
    return float(np.polyfit(np.log(factors[half:]), np.log(noise[half:]), 1)[0]) if len(factors) > 2 else math.log(
        noise[-1] / noise[0]
    ) / math.log(factors[-1] / factors[0])  # fmt: skip


def cell_of(scaled: str, factor: int, number: int) -> Users:
    """The same numbers of samples, each or all of them so many times."""
    counts = heavy_counts(USERS, MEAN, np.random.default_rng(5))
    counts = [factor * count for count in counts] if scaled == SAMPLES else counts * factor
    values = grid_steps(np.random.default_rng([6, factor, number]).normal(*LAW, sum(counts)))
    ends = np.cumsum([0, *counts]).tolist()
    return [values[first:end] for first, end in zip(ends, ends[1:], strict=False)]


def _noise(scaled: str, factor: int, draws: int) -> dict[str, float]:
    cap: Cap = array_averaging.median([len(user) for user in cell_of(scaled, 1, 0)])
    of = replace(parameters(EPSILON), cap=cap * factor if scaled == SAMPLES else cap)
    squares = dict.fromkeys(NAMES, 0.0)
    for number in range(max(2, draws // factor if scaled == PEOPLE else draws // math.isqrt(factor))):
        users = cell_of(scaled, factor, number)
        for name in NAMES:
            at = replace(of, cap="optimal") if name == "baseline" else of
            sd = registry.MEANS[name][0](users, at, Draws(KEY, f"{scaled}, {factor}".encode(), number)).noise_sd
            squares[name] += float(sd) ** 2
    drawn = number + 1
    return {name: min(math.sqrt(square / drawn), 1e9 * HIGH) for name, square in squares.items()}
