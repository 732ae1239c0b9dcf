"""Every algorithm with every cap, and its expected error on given values: over its interval by keyed draws, over its
noise in closed form.

The interval of whoever clips is drawn by the mechanism's own code. Given it, the error is |clip(s + L) - t| with L a
Laplace variable: its expectation needs no draws, so that few intervals say much. `__main__` holds the sum of all
expectations against real releases.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

from benchmarks.places.inputs import HIGH, SPEEDS, STEPS, Users
from shoal.mechanisms.selection.median import median_bin
from shoal.mechanisms.slot import algorithms
from shoal.mechanisms.slot.cell import Cap, CellParameters, Counts, Draws
from shoal.mechanisms.slot.means import clipping, deviations, levy, linear, quantile
from shoal.mechanisms.slot.means.clipping import BITS
from shoal.mechanisms.slot.means.linear import Weighting

LINEAR = {"baseline": linear.baseline, "array-averaging": linear.array_averaging}
LOWER = {"fixed-quantile": quantile.fixed, "epsilon-quantile": quantile.dependent}
NAMES = ("baseline", "array-averaging", "levy", "fixed-quantile", "epsilon-quantile")
ARMS: tuple[tuple[str, Cap], ...] = (
    ("baseline", "optimal"), *((name, cap) for name in NAMES[1:] for cap in ("optimal", "median"))
)  # fmt: skip
FULL = STEPS << BITS


def parameters(epsilon: Fraction, cap: Cap = "optimal", share: Fraction | None = None) -> CellParameters:
    """Of a cell of speeds."""
    return CellParameters(grid=SPEEDS, epsilon=epsilon, cap=cap, spread_share=share)


def expected_size(at: float, scale: float, low: float, high: float, truth: float) -> float:
    """E|clamp(at + L, low, high) - truth|, L a Laplace variable of that scale.

    >>> expected_size(0.5, 0.1, -9.0, 9.0, 0.5), round(expected_size(0.5, 1e9, 0.5, 0.6, 0.4), 6)
    (0.1, 0.15)
    """

    def above(least: float) -> float:
        """E max(L - least, 0)."""
        return scale / 2 * math.exp(-least / scale) if least >= 0 else scale / 2 * math.exp(least / scale) - least

    if truth <= low or truth >= high:
        mean = low + above(low - at) - above(high - at)
        return round(abs(mean - truth), 12)
    up = above(truth - at) - above(high - at)
    down = above(at - truth) - above(at - low)
    return round(up + down, 12)


class Arm(Protocol):
    """An algorithm with a cap, on a cell with these counts."""

    def error(self, users: Users, draws: Draws) -> float:
        """Expected over noise, in km/h, against the mean of all samples."""
        ...


@dataclass(frozen=True)
class Averages:
    """A weighted mean."""

    weighting: Weighting
    of: CellParameters

    def error(self, users: Users, draws: Draws) -> float:
        """Nothing is drawn."""
        unit = self.weighting.weight * STEPS
        scale = self.weighting.heaviest / (self.weighting.weight * float(self.of.epsilon))
        return HIGH * expected_size(self.weighting.total(users) / unit, scale, 0.0, 1.0, true_mean(users))


@dataclass(frozen=True)
class Clips:
    """A mean of array means that are clipped to an interval."""

    arrays: clipping.Arrays
    of: CellParameters
    name: str

    def interval(self, means: Sequence[int], draws: Draws) -> tuple[int, int]:
        """As the mechanism draws it."""
        if self.name == "levy":
            bins = levy.bins(self.arrays, self.of)
            index = median_bin(means, bins.full, bins.count, self.of.epsilon, draws.words("interval"))
            return bins.interval(index)
        q = LOWER[self.name](len(means), self.of.epsilon)
        return quantile.interval(means, STEPS, q, self.of.epsilon / 4, draws)

    def error(self, users: Users, draws: Draws) -> float:
        """Of one interval."""
        means = self.arrays.means(users)
        low, high = self.interval(means, draws)
        scale = 2 * (high - low) / (float(self.of.epsilon) * len(means) * FULL)
        at = clipping.clip(means, low, high) / (len(means) * FULL)
        return HIGH * expected_size(at, scale, low / FULL, high / FULL, true_mean(users))


@dataclass(frozen=True)
class Deviates:
    """A mean of deviations from a centre that are clipped."""

    of: CellParameters

    def error(self, users: Users, draws: Draws) -> float:
        """Of one centre and spread."""
        counts = [len(user) for user in users]
        parts, expected = deviations.divided(counts, self.of)
        found = deviations.around(users, counts, self.of, parts.centre, draws)
        chosen = found.spread(parts.spread, draws.words("spread"))
        low, high = found.clipped(expected.steps[chosen])
        unit = sum(found.kept) * FULL
        at = (sum(found.kept) * found.centre + clipping.clip(found.deviations, low, high)) / unit
        scale = (high - low) / float(parts.rest) / unit
        return HIGH * expected_size(at, scale, 0.0, 1.0, true_mean(users))


def arm_of(name: str, cap: Cap, counts: Counts, epsilon: Fraction) -> Arm:
    """Whatever depends on counts alone is done here."""
    of = parameters(epsilon, cap)
    if name in LINEAR:
        return Averages(LINEAR[name](counts, of), of)
    return Clips(clipping.arranged(counts, of), of, name)


def real_error(name: str, cap: Cap, users: Users, epsilon: Fraction, draws: Draws) -> float:
    """Of one release."""
    found = algorithms.MEANS[name].release(users, replace(parameters(epsilon), cap=cap), draws)
    return abs(float(found.value) - HIGH * true_mean(users))


def true_mean(users: Users) -> float:
    """Of all samples, in parts of the range."""
    return sum(map(sum, users)) / (sum(map(len, users)) * STEPS)
