"""How large the error of a mechanism is likely to be, from public counts alone: what `best` goes by.

The worst case is of no use here: clipping has none, and for a linear mechanism it takes users whose values lie at
opposite ends of the range. Expected is instead, of a sample of user l, in parts of the range,

    1 / 2 + BETWEEN * u_l + WITHIN * e      u_l, e independent and normal: users differ, and a user's samples do

These numbers are an assumption about accuracy, and take no part in the guarantee. Real users are more alike than the
worst case has it, and how alike is not public. With BETWEEN small a mechanism that clips narrowly looks good, which it
is for users who are alike, and several times worse than noise for the whole range for users who are not; with BETWEEN
large it is never taken. These are between: of many cells, of independent samples and of users who differ by up to a
seventh of the range, they leave the fewest with a choice much worse than the best. That changes little between 0.15 and
0.25, and between 0.02 and 0.05.

Under it, for shares p_l of a sample that counts, k_l of them of user l, who has m_l of the M samples,

    mismatch**2   BETWEEN**2 * sum of (k_l p_l - m_l / M)**2
                  + WITHIN**2 * sum of (k_l (p_l - 1 / M)**2 + (m_l - k_l) / M**2)

is the variance of the difference between what is averaged and the mean of all samples; leaving out a user's
samples loses little where those kept tell the same. No bias of the worst case is added. Errors are E|N + L|, N
normal with that variance, L of the size that noise and choice of an interval have, the value being clamped.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from shoal.mechanisms.slot.cell import CellParameters, Counts
from shoal.mechanisms.slot.means.clipping import Arrays
from shoal.mechanisms.slot.means.linear import Weighting

WITHIN = 0.2  # standard deviation of a user's samples around the user's mean
BETWEEN = 0.03  # of users' means
SKEW = 0.1  # part of what is clipped on one side that is not made good on the other

WIDE = 1000  # widths of an interval: with more noise than that the value is at either end
GROUPS, TAIL = 16, 3  # points for the law of a quantile: between array means, and beyond them on either side
KEPT = 1 << 13  # predictions: cells of a slot ask for the same ones

Floats = NDArray[np.float64]


def scatter(cell: CellParameters) -> float:
    """The standard deviation of a user's samples: the stated one, or what is usual."""
    return WITHIN if cell.sigma is None else min(WITHIN, float(cell.sigma / (cell.grid.high - cell.grid.low)))


def size(normal: float, laplace: float) -> float:
    """E|N + L| for a normal N of that standard deviation and a Laplace L of that scale.

    >>> round(size(0.0, 3.0), 6), round(size(3.0, 1e-9), 6), round(size(1.0, 1.0), 6)
    (3.0, 2.393654, 1.321041)
    """
    if not laplace:  # epsilon is so large that no float holds the noise
        return math.sqrt(2 / math.pi) * normal
    x = normal / laplace
    if x > 20:  # exp(x * x / 2) * erfc(x / sqrt(2)) is sqrt(2 / pi) / x then, to one part in 400
        return math.sqrt(2 / math.pi) * (normal + laplace / x)
    return math.sqrt(2 / math.pi) * normal + laplace * math.exp(x * x / 2) * math.erfc(x / math.sqrt(2))


def clamped(scale: Floats, low: Floats, high: Floats, value: Floats) -> Floats:
    """E|clamp(value + L) - 1/2| for a Laplace L of that scale, clamped to low .. high, where the value lies.

    It is the integral of P(X > t) above 1/2 and of P(X < t) below it, where X is the clamped sum.

    >>> [round(float(clamped(*np.array([scale, 0, 1, 0.5]))), 4) for scale in (0.1, 1e30)]
    [0.0993, 0.4999]
    """
    scale = np.maximum(np.minimum(scale, WIDE * (high - low)), 1e-300)
    near = np.clip(0.5, low, high)

    def beyond(x: Floats) -> Floats:  # the integral of P(L > t) above x, but for what cancels
        return np.maximum(-x, 0) + scale / 2 * np.exp(-np.abs(x) / scale)

    error: Floats = np.abs(near - 0.5) + beyond(near - value) + beyond(value - near)
    return error - beyond(high - value) - beyond(value - low)


def mismatch(counts: Counts, kept: Sequence[int], shares: Sequence[float], within: float) -> float:
    """The standard deviation of the weighted average less the mean of all samples, in parts of the range.

    >>> round(mismatch([1, 3], [1, 3], [0.25, 0.25], 0.2), 6), round(mismatch([1, 9], [1, 1], [0.5, 0.5], 0.0), 6)
    (0.0, 0.016971)
    """
    m, k, p = (np.array(numbers, dtype=np.float64) for numbers in (counts, kept, shares))
    part = 1 / float(m.sum())
    between = np.square(k * p - m * part).sum()
    own = (k * np.square(p - part) + (m - k) * part**2).sum()
    return math.sqrt(BETWEEN**2 * float(between) + within**2 * float(own))


@dataclass(frozen=True)
class ArraysOutlook:
    """The public numbers of arrays, known before their values are."""

    count: int
    mismatch: float
    spread: float  # standard deviation of an array mean, on average over the arrays


def outlook(counts: Counts, arrays: Arrays, cell: CellParameters) -> ArraysOutlook:
    """The outlook for these arrays, all weighed alike, and within an array all samples.

    >>> from fractions import Fraction
    >>> from shoal.mechanisms.grid import Grid
    >>> from shoal.mechanisms.slot.means.packing import best_fit
    >>> cell = CellParameters(grid=Grid(Fraction(0), Fraction(1), 100), epsilon=Fraction(1))
    >>> ahead = outlook([1, 2, 5], Arrays(3, best_fit([1, 2, 5], 3)), cell)
    >>> ahead.count, round(ahead.mismatch, 4), round(ahead.spread, 4)
    (2, 0.0411, 0.1185)
    """
    within, square = scatter(cell), 0.0
    kept, shares = [min(count, arrays.cap) for count in counts], [0.0] * len(counts)
    for array in arrays.arrays:
        square += within**2 / array.fill
        for user in array.users:
            shares[user] = 1 / (len(arrays.arrays) * array.fill)
            square += (BETWEEN * kept[user] / array.fill) ** 2
    mismatched = mismatch(counts, kept, shares, within)
    return ArraysOutlook(len(arrays.arrays), mismatched, math.sqrt(square / len(arrays.arrays)))


@lru_cache(maxsize=1024)
def scores(count: int) -> Floats:
    """The expected values of `count` ordered standard normal numbers, ascending."""
    normal = NormalDist()
    return np.array([normal.inv_cdf((2 * i + 1) / (2 * count)) for i in range(count)])


def linear(weighting: Weighting, counts: Counts, cell: CellParameters) -> float:
    """The expected error of a weighted mean."""
    shares = [weight / weighting.weight for weight in weighting.weights]
    normal = mismatch(counts, weighting.kept, shares, scatter(cell))
    scale = weighting.heaviest / (weighting.weight * float(cell.lone_epsilon))
    return size(normal, scale and scale * -math.expm1(-0.5 / scale))  # `clamped` to the range


def levy(expected: ArraysOutlook, half: float, bins: int, epsilon: Fraction, lone: Fraction) -> float:
    """The expected error of Levy.

    All array means are taken to lie in the middle bin, so that the cost of any other bin is their number.
    """
    return size(expected.mismatch, _levy(expected.count, half, bins, epsilon, lone))


@lru_cache(maxsize=KEPT)
def _levy(count: int, half: float, bins: int, epsilon: Fraction, lone: Fraction) -> float:
    middles = (np.arange(bins) + 0.5) / bins
    law = np.full(bins, math.exp(-float(epsilon) * count / 4))
    law[bins // 2] = 1
    low, high = np.maximum(middles - half, 0), np.minimum(middles + half, 1)
    errors = clamped(2 * (high - low) / (count * float(lone)), low, high, np.clip(0.5, low, high))
    return float((law * errors).sum() / law.sum())


def quantile(expected: ArraysOutlook, q: Fraction, epsilon: Fraction, lone: Fraction) -> float:
    """The expected error of a mean clipped between two private quantiles.

    Array means are taken to lie where normal ones are expected: the law of the lower quantile follows, and that of
    the upper one is its mirror image. Where means really lie differs by chance, and by some skew, so that what is
    clipped on one side differs from what is clipped on the other. Two digits of the spread are enough, so that cells
    have it in common.
    """
    noise, chance, clipped = _quantile(expected.count, float(f"{expected.spread:.1e}"), q, epsilon, lone)
    return size(math.sqrt(expected.mismatch**2 + chance + (SKEW * clipped) ** 2), noise)


@lru_cache(maxsize=KEPT)
def _quantile(count: int, spread: float, q: Fraction, epsilon: Fraction, lone: Fraction) -> tuple[float, float, float]:
    """The expected error of what is clamped between, the variance of what is clipped, and its mean on either side."""
    means = np.clip(0.5 + spread * scores(count), 0.0, 1.0)
    ends = np.concatenate(([0.0], means, [1.0]))
    costs = np.abs(np.arange(count + 1) - float(q * count))
    at, law = _nodes(ends, (np.diff(ends) + 1e-12) * np.exp(-float(epsilon) / 8 * (costs - costs.min())))
    clipped = np.maximum(at[:, None] - means, 0)  # by a lower quantile there
    lower, chance = clipped.mean(axis=1), 2 * float(law @ clipped.var(axis=1)) / count
    return _between(at, law, lower, lower + 0.5 - at, count * float(lone)), chance, float(law @ lower)


def _nodes(ends: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """A few points for the law of a quantile, and their probabilities.

    The points are equal parts of the gaps at both ends, and groups of neighbouring gaps between array means.
    """
    middles = (ends[1:] + ends[:-1]) / 2
    inner = len(weights) - 2
    starts = 1 + np.unique(np.arange(GROUPS) * inner // GROUPS) if inner else np.array([], dtype=np.int64)
    sums = np.add.reduceat(weights[:-1], starts) if inner else np.array([])
    places = np.add.reduceat((weights * middles)[:-1], starts) / np.maximum(sums, 1e-300) if inner else sums
    parts = (np.arange(TAIL) + 0.5) / TAIL
    at = np.concatenate((ends[1] * parts, places, ends[-2] + (1 - ends[-2]) * parts))
    law = np.concatenate((np.full(TAIL, weights[0] / TAIL), sums, np.full(TAIL, weights[-1] / TAIL)))
    return at, law / law.sum()


def _between(at: Floats, law: Floats, lower: Floats, upper: Floats, total: float) -> float:
    """The expected error between a lower quantile and a mirrored upper one, each at these points with this law.

    `lower` and `upper` are what is clipped off the mean below a point and above it; `total` is epsilon times the number
    of arrays.
    """
    left, right = at[:, None], 1 - at[None, :]
    ordered = left <= right
    low, high = np.minimum(left, right), np.maximum(left, right)
    value = 0.5 + np.where(ordered, lower[:, None] - lower[None, :], upper[None, :] - upper[:, None])
    errors = clamped(2 * (high - low) / total, low, high, np.clip(value, low, high))
    return float(law @ errors @ law)
