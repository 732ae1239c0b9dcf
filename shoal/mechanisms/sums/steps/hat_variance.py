"""The variance of weighted sums of steps that are measured by hats: for planning and error bars only.

    variance  =  energy / precision + ends(t)      of a sum that ends at t, long after the beginning
    energy    =  the sum of the squared weights
    precision =  1 + s_1 + s_2 + ...
    ends(t)   =  a mean and two waves per stride: what the ends cost depends on their phases in each stride

in variances of a draw. `ends` is found at some phases with the solver of hat_least_squares.py; in a window longer than
a few of the largest strides, it does not depend on how far apart the ends are.

Accuracy     3 % of the variance; 15 % until t is several times the largest stride
Proof        docs/proofs/hats.md
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, product
from operator import mul
from typing import NamedTuple

import numpy as np

from shoal.mechanisms.error_bars import six_digits
from shoal.mechanisms.sums.exponentials import Exponentials
from shoal.mechanisms.sums.steps.hat_least_squares import Floats, Hats
from shoal.mechanisms.sums.steps.steps import like

LARGEST = 1 << 15  # stride
_ALL, _PHASES = 64, 37  # a variance is computed at all phases, if they are no more than 64, else at 37 of them
_SHORTEST = 4  # period of a second wave
_HISTORY = 3  # times 1 / rate: what is older weighs so little that where it begins costs nothing
_APART = 4  # largest strides between the ends of a window that know nothing of each other
_ENDLESS = 1 << 60
_MISSED = 0.122  # of a stride: what its hats miss of the energy of a step function

Ratios = tuple[int, ...]


@dataclass(frozen=True)
class Flat:
    """The weights of a window: 1 for each of its steps."""

    length: int

    def recent(self, ages: int) -> Floats:
        return (np.arange(ages) < self.length).astype(np.float64)

    def squares(self, t: int) -> float:
        """The sum of the squared weights up to an age of t - 1."""
        return float(min(t, self.length))


Weights = Exponentials | Flat
PREFIX = Flat(_ENDLESS)


class Profile(NamedTuple):
    """The variance that the ends add: a mean, and waves about it."""

    mean: float
    waves: tuple[tuple[float, float, float], ...]  # period, amplitude of its cosine and of its sine

    def cost(self, t: int) -> float:
        """The variance that an end at t adds."""
        return self.mean + self.wave(t)

    def wave(self, t: int, longest: int = LARGEST) -> float:
        """The deviation from the mean at t, by the waves whose periods are at most `longest`."""
        angles = [(2 * math.pi * t / period, cosine, sine) for period, cosine, sine in self.waves if period <= longest]
        return sum(cosine * math.cos(angle) + sine * math.sin(angle) for angle, cosine, sine in angles)


def strides_of(ratios: Ratios) -> tuple[int, ...]:
    """The strides s_1, s_2, ... whose successive ratios these are."""
    return tuple(accumulate(ratios, mul))


def squares(ratios: Ratios, weights: Weights, t: int) -> float:
    """The variance of a sum that ends at t, in variances of a draw; steps before the first one are no part of it."""
    top = math.prod(ratios)
    if isinstance(weights, Flat) and t < weights.length + top and weights != PREFIX:
        return _first_window(ratios, weights, t)
    if t < top:
        return _early(ratios, weights, t)
    return _late(ratios, weights, t)


def _late(ratios: Ratios, weights: Weights, t: int) -> float:
    return weights.squares(t) / _precision(ratios) + _profile(ratios, _nearer(ratios, weights)).cost(t)


def _first_window(ratios: Ratios, weights: Flat, t: int) -> float:
    """The variance while a window fills up, when it is a prefix.

    When just full, it is a prefix less another that is short, which adds no more than its own.
    """
    prefix = squares(ratios, PREFIX, t)
    if t <= weights.length:
        return prefix
    return min(prefix + squares(ratios, PREFIX, t - weights.length), _late(ratios, weights, t))


def mean_squares(ratios: Ratios, weights: Weights) -> float:
    """The mean of `squares` over all phases, long after the beginning."""
    return weights.squares(_ENDLESS) / _precision(ratios) + _profile(ratios, _nearer(ratios, weights)).mean


def draws(ratios: Ratios, weights: Weights) -> int:
    """The number of equal draws that the noise of such a sum is like."""
    return _coefficients(ratios, _nearer(ratios, weights))[0]


def largest(ratios: Ratios, weights: Weights) -> float:
    """The largest coefficient of a draw in such a sum."""
    return _coefficients(ratios, _nearer(ratios, weights))[1]


@lru_cache(maxsize=256)
def _coefficients(ratios: Ratios, weights: Weights) -> tuple[int, float]:
    before, top = _before(ratios, weights), math.prod(ratios)
    by_level = Hats(ratios, begins=False).estimate(_at(weights, before + top // 2, before + 3 * top))
    coefficients = np.concatenate(by_level)
    return like(coefficients), float(np.max(np.abs(coefficients)))


def best_ratios(energy: float, ends: int) -> Ratios:
    """The strides that are about best for sums of this energy with `ends` ends where weights jump."""
    scored = []
    for strides, ratio, last in product(range(1, 4), range(4, 41), range(4, 41)):
        ratios = (*[ratio] * (strides - 1), last)
        if ratio ** (strides - 1) * last <= LARGEST:
            scored.append((six_digits(_about(ratios, energy, ends)), ratios))
    return min(scored)[1]


def _about(ratios: Ratios, energy: float, ends: int) -> float:
    """The variance at equal epsilon, to within two per cent."""
    cost, stride, precision = 0.0, 1, 1
    for ratio in ratios:
        cost += _MISSED * ends * stride * (ratio - 1) / precision
        stride *= ratio
        precision += stride
    return (len(ratios) + 1) ** 2 * (cost + (energy - _MISSED * ends * stride) / precision)


def _precision(ratios: Ratios) -> int:
    return 1 + sum(strides_of(ratios))


def _nearer(ratios: Ratios, weights: Weights) -> Weights:
    """A window whose ends are nearer than those of a long one, at the same phases."""
    top = math.prod(ratios)
    if isinstance(weights, Flat) and PREFIX != weights and weights.length > _APART * top:
        return Flat(_APART * top + weights.length % top)
    return weights


def _before(ratios: Ratios, weights: Weights) -> int:
    """A multiple of the largest stride so late that what precedes the first step does not matter."""
    top = math.prod(ratios)
    if weights == PREFIX:
        return 2 * top
    reach = weights.length if isinstance(weights, Flat) else _HISTORY / float(min(weights.rates))
    return (math.ceil(reach / top) + 2) * top


@lru_cache(maxsize=256)
def _profile(ratios: Ratios, weights: Weights) -> Profile:
    """The mean and waves of variances computed at some t, evenly spread over the largest stride."""
    top, before, precision = math.prod(ratios), _before(ratios, weights), _precision(ratios)
    phases = top if top <= _ALL else _PHASES
    times = [before + phase * top // phases for phase in range(phases)]
    hats = Hats(ratios, begins=weights == PREFIX or isinstance(weights, Exponentials))
    variances = np.array(
        [hats.variance(_at(weights, t, before + 3 * top)) - weights.squares(t) / precision for t in times]
    )
    mean, waves = float(np.mean(variances)), []
    for period in _periods(ratios):
        angles = 2 * np.pi * np.array(times) / period
        cosine, sine = (2 * float(np.mean((variances - mean) * wave)) for wave in (np.cos(angles), np.sin(angles)))
        waves.append((period, cosine, sine))
    return Profile(mean, tuple(waves))


def _periods(ratios: Ratios) -> list[float]:
    """The period of each stride, and half of it if that is not too short."""
    strides = strides_of(ratios)
    return sorted({*map(float, strides), *(stride / 2 for stride in strides if stride >= 2 * _SHORTEST)})


def _early(ratios: Ratios, weights: Weights, t: int) -> float:
    """The variance before the first large stride is over.

    It is interpolated between two t for which it is computed, except for the shorter waves.
    """
    profile = _profile(ratios, weights)
    step = 1 << max((t >> 4).bit_length() - 1, 0)
    low, part = t // step * step, t % step / step
    ends = [(low, 1 - part), (low + step, part)]
    level = sum(share * (_beginning(ratios, weights, at) - profile.wave(at, t)) for at, share in ends if share)
    return level + profile.wave(t, t)


@lru_cache(maxsize=1 << 12)
def _beginning(ratios: Ratios, weights: Weights, t: int) -> float:
    return Hats(ratios, begins=True).variance(_at(weights, t, 4 * math.prod(ratios)))


def _at(weights: Weights, t: int, size: int) -> Floats:
    weighted = np.zeros(size)
    weighted[:t] = weights.recent(t)[::-1]
    return weighted
