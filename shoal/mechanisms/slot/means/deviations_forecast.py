"""How far out to clip deviations, for each spread that may be chosen, and how large the error is likely to be.

Public counts and shares of epsilon go in, and nothing else. Taken is, as in error_forecast.py, that a user's sum of k
samples is usually sqrt(BETWEEN**2 k**2 + WITHIN**2 k) of the range from k times its expectation; in a cell all are
`spread` times as far. Which spread is not known before: spreads about 0.7 are the likeliest, and twice that or half
of it is less so. Nor is it known after, as the private choice of a spread errs. So for each choice the law of what is
true follows from what is likely before and from the mechanism's own law; the clip that is taken has least expected
error under it. The centre errs by its noise, which moves all deviations of a cell one way: it is one of three sizes.

Sums are taken to follow logistic laws, whose tails are those of exponentials: for one of scale s around m,

    E max(x - t, 0) = s ln(1 + exp((m - t) / s))

These numbers are an assumption about accuracy, and take no part in the guarantee.
"""

from collections import Counter
from fractions import Fraction
from functools import lru_cache
from math import isqrt, log2, pi, sqrt
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from shoal.mechanisms.slot.means.error_forecast import BETWEEN, SKEW, WITHIN

RUNGS, LOWEST = 15, -8  # spreads 2**((j + LOWEST) / 2), from 1/16 of what is usual to 8 times it
PARTS = (1, 2, 4, 8)  # one over such a number is set aside, of what may be
CENTRE = Fraction(2, 3)  # of what is set aside for centre and spread
SPREADS = 2.0 ** ((np.arange(RUNGS) + LOWEST) / 2)
LIKELY = SPREADS[::2]  # those that are taken to be possible
LIKELIEST = -0.5  # their logarithm, binary, around which they lie
SIZES = np.array([0.4158, 2.2943, 6.2899])  # of the centre's noise over its scale: the nodes of Gauss and Laguerre
WEIGHTS = np.array([0.7111, 0.2785, 0.0104])
FINEST = 40  # times sqrt(k) that t may be below the range: 1/8 of what is usual
LARGE = 1e6  # an epsilon beyond it changes nothing

Floats = NDArray[np.float64]


class Shares(NamedTuple):
    """The parts of a cell's epsilon, which sum to it."""

    centre: Fraction
    spread: Fraction
    rest: Fraction

    @classmethod
    def of(cls, epsilon: Fraction, share: Fraction) -> Self:
        """Of which `share` is set aside for centre and spread.

        >>> [str(part) for part in Shares.of(Fraction(2), Fraction(3, 10))]
        ['2/5', '1/5', '7/5']
        """
        return cls(epsilon * share * CENTRE, epsilon * share * (1 - CENTRE), epsilon * (1 - share))


class Forecast(NamedTuple):
    """Of a cell with these counts."""

    steps: tuple[int, ...]  # for each rung: t is 2**(-step / 4) of the most that a user's sum may be
    error: float  # in parts of the range, of users who are as usual


def divided(
    counts: tuple[int, ...], epsilon: Fraction, most: Fraction, coordinates: int = 1
) -> tuple[Shares, Forecast]:
    """The parts of epsilon: all of what may be set aside, or half of it, and so on while a forecast gains by it."""
    ways = ((way, forecast(counts, way, coordinates)) for way in (Shares.of(epsilon, most / part) for part in PARTS))
    found = next(ways)
    for other in ways:
        if float(f"{other[1].error:.8e}") >= float(f"{found[1].error:.8e}"):
            break
        found = other
    return found


@lru_cache(maxsize=16)  # a cell's choice asks, and then its release; a key is as long as the cell has users
def forecast(counts: tuple[int, ...], shares: Shares, coordinates: int = 1) -> Forecast:
    """The clips for these counts of users, which come in ascending order.

    >>> found = forecast((4,) * 300, Shares.of(Fraction(1), Fraction(3, 10)))
    >>> found.steps, round(found.error, 4)
    ((12, 14, 14, 14, 12, 12, 9, 8, 6, 5, 0, 0, 0, 0, 0), 0.0027)
    """
    less = 2 * coordinates / (coordinates + 1)  # noise of several coordinates than they would have apart
    centre, spread, rest = (min(float(part), LARGE) for part in shares)
    centre, rest = less * centre, less * rest
    groups = Counter(2.0 ** (round(4 * log2(count)) / 4) for count in counts)  # counts that differ less are alike
    sizes, users = (np.array(list(numbers), dtype=np.float64) for numbers in (groups, groups.values()))
    samples, most = float(sum(counts)), float(counts[-1])
    states, before = _states(1 / (centre * len(counts)))
    scales = states[:, :1] * np.sqrt((BETWEEN * sizes) ** 2 + WITHIN**2 * sizes) * sqrt(3) / pi
    shifts = states[:, 1:] * sizes

    law = _law(scales, shifts, states, users, spread)
    after = law + np.log(before)
    after = np.exp(after - after.max(axis=1, keepdims=True))
    clips = most * 2.0 ** (-np.arange(_number(counts)) / 4)
    noise = np.minimum(2 * clips, most) / (samples * rest)
    missing = _missing(clips, scales, shifts, users, samples)
    errors = np.minimum(np.sqrt(missing + noise[:, None] ** 2), 0.5)
    steps = [_least(expected / part) for expected, part in zip((errors @ after.T).T, after.sum(axis=1), strict=True)]
    usual = before * (states[:, 0] == 1)
    error = float((np.exp(law) * errors[steps] * usual).sum() / usual.sum())
    return Forecast(tuple(steps), min(error, 0.5))


def _least(errors: Floats) -> int:
    """The place of the least number, after rounding to 9 digits, so that machines agree."""
    near: list[int] = np.flatnonzero(errors <= errors.min() * (1 + 2e-8)).tolist()  # others round to more
    return min(near, key=lambda i: float(f"{errors[i]:.8e}"))


def _states(scale: float) -> tuple[Floats, Floats]:
    """All pairs of a spread and an error of the centre, and how likely each is before anything is chosen."""
    shifts = np.minimum(SIZES * scale, 0.5)
    states = np.column_stack((np.repeat(LIKELY, len(SIZES)), np.tile(shifts, len(LIKELY))))
    likely = np.exp(-np.square(np.log2(LIKELY) - LIKELIEST) / 2)
    before = np.outer(likely / likely.sum(), WEIGHTS).ravel()
    return states, before


def _law(scales: Floats, shifts: Floats, states: Floats, users: Floats, epsilon: float) -> Floats:
    """The logarithm of the probability of each rung in each state."""
    at = SPREADS[:, None, None] * (scales / states[:, :1] * pi / sqrt(3))
    outside = (_above(at, shifts, scales) + _above(at, -shifts, scales)) @ users
    costs = np.abs(outside - users.sum() / 2)
    logs = -epsilon / 2 * (costs - costs.min(axis=0))
    found: Floats = logs - np.log(np.exp(logs).sum(axis=0))
    return found


def _above(at: Floats, middle: Floats, scale: Floats) -> Floats:
    """The probability that a logistic number is above."""
    return 1 / (1 + np.exp(np.clip((at - middle) / scale, -700, 700)))


def _missing(clips: Floats, scales: Floats, shifts: Floats, users: Floats, samples: float) -> Floats:
    """The squared size of what clipping takes off the mean, for each clip in each state."""
    at = clips[:, None, None]
    over, under = (scales * _softplus((side - at) / scales) for side in (shifts, -shifts))
    above, below = over @ users / samples, under @ users / samples
    bias = np.abs(above - below) + SKEW * np.minimum(above, below)
    chance = 2 / pi * ((2 * (over + under) * scales) @ users) / samples**2
    found: Floats = np.square(bias) + chance
    return found


def _softplus(x: Floats) -> Floats:
    """ln(1 + exp(x)), for exponentials that no float holds, too."""
    found: Floats = np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))
    return found


def _number(counts: tuple[int, ...]) -> int:
    """How many clips there are, from the most that a sum may be to much less than is usual in the middle."""
    return 4 * (FINEST * counts[-1] // isqrt(counts[len(counts) // 2])).bit_length()
