"""Noise as every user has more samples, and as there are more users: how fast it falls."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from benchmarks.places.arms import NAMES, parameters
from benchmarks.places.inputs import Users, grid_steps, heavy_counts
from shoal.mechanisms.slot import algorithms
from shoal.mechanisms.slot import cap as caps
from shoal.mechanisms.slot.cell import Draws

EPSILON = Fraction(2)
LAW = (30.0, 10.0)
USERS, MEAN = 100, 40
SAMPLES, PEOPLE = "samples of every user", "users"
FACTORS = {SAMPLES: (1, 2, 4, 8, 16, 32, 64, 128, 256), PEOPLE: (1, 2, 4, 8, 16, 32, 64)}
QUICK_FACTORS = (1, 4)
LATE = 4  # points, the last ones, that a slope is of
KEY = bytes(range(2, 34))
# Of noise, as a power of the factor: the paper's laws. For quantiles and more samples there is none.
SLOPES: dict[str, dict[str, float | None]] = {
    SAMPLES: {"baseline": 0.0, "array-averaging": 0.0, "levy": -0.5, "fixed-quantile": None, "epsilon-quantile": None},
    PEOPLE: dict.fromkeys(NAMES, -1.0),
}


@dataclass(frozen=True)
class Line:
    """The noise of an algorithm, in km/h: its standard deviation, root mean square over draws of the interval."""

    scaled: str
    algorithm: str
    factors: list[int]
    noise: list[float]
    expected: float | None  # slope on logarithmic axes
    slope: float  # over the largest factors


def measure(*, quick: bool) -> list[Line]:
    """Both scalings; all algorithms have the median as cap, so that arrays scale as the counts do."""
    found = []
    for scaled in (SAMPLES, PEOPLE):
        factors = QUICK_FACTORS if quick else FACTORS[scaled]
        by_factor = [_noise(scaled, factor, 4 if quick else 128) for factor in factors]
        for name in NAMES:
            noise = [of[name] for of in by_factor]
            found.append(Line(scaled, name, list(factors), noise, SLOPES[scaled][name], slope(factors, noise)))
    return found


def slope(factors: Sequence[int], noise: Sequence[float]) -> float:
    """Of a straight line through the last points, on logarithmic axes.

    >>> round(slope([1, 2, 4, 8, 16], [9, 8, 4, 2, 1]), 6)
    -1.0
    """
    return float(np.polyfit(np.log(factors[-LATE:]), np.log(noise[-LATE:]), 1)[0])


def cell_of(scaled: str, factor: int, number: int) -> Users:
    """The same numbers of samples, each or all of them so many times."""
    counts = heavy_counts(USERS, MEAN, np.random.default_rng(5))
    counts = [factor * count for count in counts] if scaled == SAMPLES else counts * factor
    values = grid_steps(np.random.default_rng([6, factor, number]).normal(*LAW, sum(counts)))
    ends = np.cumsum([0, *counts]).tolist()
    return [values[first:end] for first, end in zip(ends, ends[1:], strict=False)]


def _noise(scaled: str, factor: int, draws: int) -> dict[str, float]:
    cap = caps.median([len(user) for user in cell_of(scaled, 1, 0)])
    of = parameters(EPSILON, cap * factor if scaled == SAMPLES else cap)
    everything = parameters(EPSILON)
    squares = dict.fromkeys(NAMES, 0.0)
    numbers = range(max(4 if scaled == SAMPLES else 16, draws // factor))
    for number in numbers:
        users = cell_of(scaled, factor, number)
        for name in NAMES:
            at = everything if name == "baseline" else of
            found = algorithms.MEANS[name].release(users, at, Draws(KEY, f"{scaled}, {factor}".encode(), number))
            squares[name] += float(found.noise_sd) ** 2
    return {name: math.sqrt(square / len(numbers)) for name, square in squares.items()}
