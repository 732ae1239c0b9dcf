"""How large the error of a mechanism is likely to be, from public counts alone: what `best` goes by.

The worst case is of no use here: whoever clips has none, and for a linear mechanism it takes users whose values lie at
opposite ends of the range. Expected is instead, of a sample of user l, in parts of the range,

    1 / 2 + BETWEEN * u_l + WITHIN * e      u_l, e independent and normal: users differ, and a user's samples do

These two numbers are an assumption about accuracy, and take no part in the guarantee. They were chosen so that `best`
is near the best fixed choice as often as possible, on cells of independent samples and on cells of users who differ.

Under it, for shares p_l of a sample that counts, k_l of them of user l, who has m_l of the M samples,

    mismatch**2   BETWEEN**2 * sum of (k_l p_l - m_l / M)**2
                  + WITHIN**2 * sum of (k_l (p_l - 1 / M)**2 + (m_l - k_l) / M**2)

is the variance of the difference between what is averaged and the mean of all samples; whoever leaves out a user's
samples loses little where those kept tell the same. Errors are then E|N + L|, N normal, L the noise, cut to where the
value is clamped.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from shoal.mechanisms.slots.cell import CellParameters, Counts
from shoal.mechanisms.slots.clipping import Arrays
from shoal.mechanisms.slots.linear import Weighting

WITHIN = 0.2  # standard deviation of a user's samples around the user's mean
BETWEEN = 0.03  # of users' means
SKEW = 0.1  # part of what is clipped on one side that is not made good on the other

Floats = NDArray[np.float64]


def scatter(of: CellParameters) -> float:
    """The standard deviation of a user's samples: what is stated, or what is usual."""
    return WITHIN if of.sigma is None else min(WITHIN, float(of.sigma / (of.grid.high - of.grid.low)))


def size(normal: float, laplace: float) -> float:
    """E|N + L| of a normal N with that standard deviation and a Laplace L of that scale.

    >>> round(size(0.0, 3.0), 6), round(size(3.0, 1e-9), 6), round(size(1.0, 1.0), 6)
    (3.0, 2.393654, 1.321041)
    """
    x = normal / laplace
    if x > 20:  # exp(x * x / 2) * erfc(x / sqrt(2)) is sqrt(2 / pi) / x then, to one part in 400
        return math.sqrt(2 / math.pi) * (normal + laplace / x)
    return math.sqrt(2 / math.pi) * normal + laplace * math.exp(x * x / 2) * math.erfc(x / math.sqrt(2))


def clamped(laplace: float, room: float) -> float:
    """E min(|L|, room).

    >>> clamped(1.0, 100.0), round(clamped(100.0, 1.0), 3)
    (1.0, 0.995)
    """
    return laplace * -math.expm1(-room / laplace)


def mismatch(counts: Counts, kept: Sequence[int], shares: Sequence[float], within: float) -> float:
    """The standard deviation of what is averaged, less the mean of all samples, in parts of the range.

    >>> round(mismatch([1, 3], [1, 3], [0.25, 0.25], 0.2), 6), round(mismatch([1, 9], [1, 1], [0.5, 0.5], 0.0), 6)
    (0.0, 0.016971)
    """
    m, k, p = (np.array(numbers, dtype=np.float64) for numbers in (counts, kept, shares))
    part = 1 / float(m.sum())
    between = np.square(k * p - m * part).sum()
    own = (k * np.square(p - part) + (m - k) * part**2).sum()
    return math.sqrt(BETWEEN**2 * float(between) + within**2 * float(own))


@dataclass(frozen=True)
class Outlook:
    """What is known of arrays before their values are."""

    count: int
    mismatch: float
    spread: float  # standard deviation of an array mean, on average over the arrays


def outlook(counts: Counts, arrays: Arrays, of: CellParameters) -> Outlook:
    """The outlook for these arrays, all alike, and within an array all samples.

    >>> from fractions import Fraction
    >>> from shoal.mechanisms.grid import Grid
    >>> from shoal.mechanisms.slots.packing import best_fit
    >>> of = CellParameters(grid=Grid(Fraction(0), Fraction(1), 100), epsilon=Fraction(1))
    >>> found = outlook([1, 2, 5], Arrays(3, best_fit([1, 2, 5], 3)), of)
    >>> found.count, round(found.mismatch, 4), round(found.spread, 4)
    (2, 0.0411, 0.1185)
    """
    within, square = scatter(of), 0.0
    kept, shares = [min(count, arrays.cap) for count in counts], [0.0] * len(counts)
    for array in arrays.arrays:
        square += within**2 / array.fill
        for user in array.users:
            shares[user] = 1 / (len(arrays.arrays) * array.fill)
            square += (BETWEEN * kept[user] / array.fill) ** 2
    found = mismatch(counts, kept, shares, within)
    return Outlook(len(arrays.arrays), found, math.sqrt(square / len(arrays.arrays)))


@lru_cache(maxsize=1024)
def scores(count: int) -> Floats:
    """Where `count` normal numbers are expected, ascending."""
    normal = NormalDist()
    return np.array([normal.inv_cdf((2 * i + 1) / (2 * count)) for i in range(count)])


def linear(weighting: Weighting, counts: Counts, of: CellParameters) -> float:
    """The error of a weighted mean."""
    shares = [weight / weighting.weight for weight in weighting.weights]
    normal = mismatch(counts, weighting.kept, shares, scatter(of))
    return size(normal, clamped(weighting.heaviest / (weighting.weight * float(of.epsilon)), 0.5))


def levy(found: Outlook, width: float, bins: int, epsilon: Fraction) -> float:
    """The error of Levy: in the home bin noise for its width; in another one the distance to it.

    All array means are taken to lie in one bin. The cost of any other is their number.
    """
    weight = (bins - 1) * math.exp(-float(epsilon) * found.count / 4)
    missed = weight / (1 + weight)
    noise = clamped(2 * width / (found.count * float(epsilon)), width / 2)
    return (1 - missed) * size(found.mismatch, noise) + missed / 4


def quantile(found: Outlook, q: Fraction, epsilon: Fraction) -> float:
    """The error of an interval between two private quantiles: noise for its expected width, and clipping.

    Array means are taken to lie where normal ones are expected, and the law of a quantile to be linear between them.
    What is clipped on the two sides cancels but for chance, in the data and in the quantiles, and for some skew.
    """
    count = found.count
    ends = np.concatenate(([0.0], np.clip(0.5 + found.spread * scores(count), 0.0, 1.0), [1.0]))
    gaps = np.diff(ends)
    costs = np.abs(np.arange(count + 1) - float(q * count))
    law = (gaps + 1e-12) * np.exp(-float(epsilon) / 8 * (costs - costs.min()))
    law /= law.sum()
    width = _width(gaps, law)
    noise = clamped(2 * width / (count * float(epsilon)), width / 2)
    return size(math.sqrt(found.mismatch**2 + _clipping(gaps, law)), noise)


def _width(gaps: Floats, law: Floats) -> float:
    """The expected distance of the lower quantile and the upper one, whose law is the mirror image.

    The integral of the probability that just one of them lies below, by Simpson's rule: it is a square in each gap.
    """
    lower = np.concatenate(([0.0], np.cumsum(law)))
    upper = 1 - lower[::-1]
    crossing = _crossing(lower, upper)
    middle = _crossing((lower[1:] + lower[:-1]) / 2, (upper[1:] + upper[:-1]) / 2)
    return float((gaps * (crossing[1:] + crossing[:-1] + 4 * middle)).sum()) / 6


def _crossing(one: Floats, other: Floats) -> Floats:
    """The probability that just one of two independent numbers lies below."""
    found: Floats = one * (1 - other) + other * (1 - one)
    return found


def _clipping(gaps: Floats, law: Floats) -> float:
    """The mean square of what is clipped on one side less what is clipped on the other."""
    ranks = np.arange(len(gaps)) / (len(gaps) - 1)
    excess = np.concatenate(
        ([0.0], np.cumsum(gaps * ranks))
    )  # clipped off the mean, by a quantile at that end of a gap
    square = np.concatenate(([0.0], np.cumsum(gaps * (2 * excess[:-1] + gaps * ranks))))  # mean square clipped off
    middle = (excess[1:] + excess[:-1]) / 2
    mean = float((law * middle).sum())
    chosen = max(0.0, 2 * (float((law * np.square(middle)).sum()) - mean**2))
    chance = float((law * (square[1:] + square[:-1])).sum()) / (len(gaps) - 1)
    return chosen + chance + (SKEW * mean) ** 2
