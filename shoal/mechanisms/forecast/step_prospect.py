"""Predicts the releases of a stepped statistic before it meets a value: noise and samples, step by step.

Both are functions of the public parameters and of the pattern, who contributes when; so they cost nothing, and may be
floats. The noise is not estimated: it is what a release states. Rates are constant within a class of users, so that the
decayed number of samples has a closed form.

Privacy      no value and no key comes here, so nothing is charged
By hand      what a decayed sum would have with one draw of Laplace noise for each step: a yardstick
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from shoal.mechanisms.linear.public_estimates import variance_noise, variance_within
from shoal.mechanisms.linear.sides import Products
from shoal.mechanisms.linear.statistic import LinearStatistic
from shoal.mechanisms.noise.keyed import MAX_INDEX
from shoal.mechanisms.parts.of import Mean, Sum
from shoal.mechanisms.sums.decayed import DecayedSteps
from shoal.mechanisms.sums.decays import (
    AllWindows,
    AnyWindow,
    Exponential,
    Forward,
    Listed,
    Polynomial,
    Undecayed,
    Window,
)
from shoal.mechanisms.sums.exponentials import Exponentials
from shoal.mechanisms.sums.forward import ForwardSum
from shoal.mechanisms.sums.patent.polynomial_sum import FlatWindows
from shoal.mechanisms.sums.steps.laplace import LaplaceSteps
from shoal.mechanisms.sums.sums import DecayedSum
from shoal.mechanisms.sums.table import TableSum
from shoal.mechanisms.sums.window import WindowSum
from shoal.mechanisms.workload import Pattern

FOREVER = 1 << 40  # steps
PHASES, STRIDE = 256, 7919  # releases whose variances are averaged where no formula has the mean, and how far apart
ENDS = 24  # of windows of one length, likewise


class Expected(NamedTuple):
    """A release to come, in units of the values; no noise_sd where nothing is released."""

    samples: float  # that count, decayed
    total: float  # that there are
    noise_sd: float | None
    half_interval: float | None  # what the noise stays below with the interval's coverage

    @property
    def left_out(self) -> float:
        return max(0.0, 1 - self.samples / self.total) if self.total else 0.0


@dataclass(frozen=True)
class Flow:
    """Samples at constant rates over `steps` steps, and which of them count.

    >>> from fractions import Fraction
    >>> flow = Flow(Pattern.even(100, samples=8), steps=40, cap=4)  # a user's fourth sample comes after 20 steps
    >>> running = Undecayed().sharp(1, Fraction(1))
    >>> [(counts, there) for counts, there in (flow.samples(running, Undecayed(), t) for t in (10, 20, 40))]
    [(200.0, 200.0), (400.0, 400.0), (400.0, 800.0)]
    """

    pattern: Pattern
    steps: int
    cap: float | None = None  # None: everything counts; a part of a sample, where groups share the cap
    periods: float | None = None  # that the time has, if the cap is that of a period; None: it is for ever

    def samples(self, sums: DecayedSum, decay: object, t: int) -> tuple[float, float]:
        """The decayed numbers of samples at step t: those that count, and all."""
        counts = there = 0.0
        before = weights(sums, decay, t, t)
        for share, size in self.pattern.classes:
            rate = self.pattern.users * share * size / self.steps
            there += rate * before
            factor, last = self._counting(size)
            whole = int(min(t, last))
            after = weights(sums, decay, t - whole, t)
            counted = before - after
            if whole < t:  # the step in which the last sample comes
                counted += (last - whole) * (after - weights(sums, decay, t - whole - 1, t))
            counts += rate * factor * counted
        return counts, there

    def _counting(self, size: float) -> tuple[float, float]:
        """The part of the samples that counts in each period, and the number of the last step in which any does."""
        if self.cap is None:
            return 1.0, math.inf
        if self.periods is not None:
            return min(1.0, self.cap * self.periods / size), math.inf
        return 1.0, math.inf if size <= self.cap else self.steps * self.cap / size

    def rates(self) -> tuple[float, float]:
        """The samples of a step that count, and all, on average over the whole time."""
        most = math.inf if self.cap is None else self.cap * (1.0 if self.periods is None else self.periods)
        counted = sum(share * min(size, most) for share, size in self.pattern.classes)
        there = sum(share * size for share, size in self.pattern.classes)
        return self.pattern.users * counted / self.steps, self.pattern.users * there / self.steps


@dataclass(frozen=True, eq=False)
class Counted:
    """Samples that were counted: for each step, those that count and all.

    >>> from fractions import Fraction
    >>> Counted([3, 1, 0], [3, 4, 5]).samples(Window(2).sharp(1, Fraction(1)), Window(2), 3)
    (1.0, 9.0)
    """

    counts: Sequence[int]
    there: Sequence[int]
    _decayed: dict[tuple[type, object], list[tuple[float, float]]] = field(default_factory=dict, repr=False)

    @property
    def steps(self) -> int:
        return len(self.counts)

    def samples(self, sums: DecayedSum, decay: object, t: int) -> tuple[float, float]:
        key = type(sums), decay  # weights depend on no more
        if key not in self._decayed:
            some, whole, parts = sums.counts(), sums.counts(), sums.denominator
            decayed = self._decayed[key] = []
            for n, m in zip(self.counts, self.there, strict=True):
                repeats = n == 0 and decayed and isinstance(decay, Window) and decay.of_updates
                decayed.append(decayed[-1] if repeats else (some.add(n) / parts, whole.add(m) / parts))
        return self._decayed[key][t - 1]

    def rates(self) -> tuple[float, float]:
        return sum(self.counts) / self.steps, sum(self.there) / self.steps


@dataclass(frozen=True)
class StepProspect:
    """A stepped statistic over a flow of samples."""

    statistic: LinearStatistic
    sums: DecayedSum
    flow: Flow | Counted

    @property
    def mechanism(self) -> str:
        return self.statistic.mechanism if self.statistic.is_exact else self.sums.mechanism

    def at(self, t: int) -> Expected:
        """Release t, with the bars that it will state."""
        counts, there = self.flow.samples(self.sums, self.statistic.decay, t)
        if self.statistic.is_exact:
            return Expected(counts, there, 0.0, 0.0)
        bars = self.sums.noise_sd(t), self.sums.noise_quantile(t, self.statistic.coverage)
        sd, half = map(self.statistic.grid.width_value, bars)
        return self._expected(counts, there, sd, half)

    def _expected(self, counts: float, there: float, sd: float, half: float | None) -> Expected:
        return Expected(counts, there, *noise_of(self.statistic, sd, half, counts))

    def long_run(self) -> Expected | None:
        """The mean over all releases long after the beginning, if users stay as many; None if noise grows."""
        if isinstance(self.statistic.decay, Undecayed | AllWindows | Forward):
            return None
        weight = weights(self.sums, self.statistic.decay, FOREVER, FOREVER)
        counts, there = (rate * weight for rate in self.flow.rates())
        if self.statistic.is_exact:
            return Expected(counts, there, 0.0, 0.0)
        return self._expected(counts, there, self.statistic.grid.width_value(math.sqrt(mean_variance(self.sums))), None)

    def window(self, length: int) -> float | None:
        """The mean noise of the sum, or mean, over the last `length` steps, over ends in the second half."""
        first = max(length, self.flow.steps // 2)
        ends = {first + (self.flow.steps - first) * i // ENDS for i in range(ENDS + 1)}
        variance = sum(self._window_variance(end, length) for end in ends) / len(ends)
        sd = self.statistic.grid.width_value(math.sqrt(variance))
        return noise_of(self.statistic, sd, None, self.flow.rates()[0] * length)[0]

    def _window_variance(self, end: int, length: int) -> float:
        if isinstance(self.sums, WindowSum):  # by hand
            return replace(self.sums, length=length).variance(end)
        sums: AnyWindow = self.sums  # type: ignore[assignment]  # of all windows; there is no other way here
        return sums.window_variance(end, length)


def breadth(statistic: LinearStatistic, spread: Fraction = Fraction(1)) -> float | None:
    """The width of what values lie in if samples lie in this part of the range; None: they grow with samples."""
    width = (statistic.grid.high - statistic.grid.low) * spread
    if isinstance(statistic.sides, Products):
        return float(width**2 / 4)
    return float(width) if statistic.statistic is Mean else None


def noise_of(
    statistic: LinearStatistic, sd: float, half: float | None, n: float
) -> tuple[float | None, float | None]:  # fmt: skip
    """The noise of a release from `n` samples, given that of the first sum in units of the range; None: none.

    Of a variance it is that for a mean half way between the middle and an end of the range.
    """
    if statistic.statistic is Sum:
        return sd, half
    if not n:
        return None, None
    sd, half = sd / n, None if half is None else half / n
    if not isinstance(statistic.sides, Products):
        return sd, half
    # The other sum's noise has W / 2 times this scale, in grid steps.
    off = float(statistic.grid.high - statistic.grid.low) / 2
    within = None if half is None else variance_within(off, (half, half * off), statistic.coverage)
    return variance_noise(off, (sd, sd * off)), within


def prospect(statistic: LinearStatistic, flow: Flow | Counted) -> StepProspect:
    """The releases to come of a statistic.

    Raises:
        ValueError: its algorithm refuses the settings.
    """
    return StepProspect(statistic, statistic.decayed[0], flow)


def by_hand(statistic: LinearStatistic, flow: Flow | Counted) -> StepProspect:
    """The releases to come with one draw of noise for each step."""
    steps = LaplaceSteps(statistic.decayed[0].width, statistic.decayed[0].epsilon)
    sums: DecayedSum
    match statistic.decay:
        case Window(length):
            sums = WindowSum(length, steps)
        case Exponential(alpha):
            sums = DecayedSteps(Exponentials.exponential(alpha), steps)
        case Polynomial(exponent, horizon):
            sums = DecayedSteps(Exponentials.polynomial(exponent, horizon), steps)
        case Listed(weights):
            sums = TableSum(weights, steps)
        case Forward():
            sums = ForwardSum(statistic.decay.powers, steps)
        case _:
            sums = WindowSum(MAX_INDEX, steps)
    return StepProspect(statistic, sums, flow)


def least_weights(sums: DecayedSum, decay: object) -> Callable[[int], float]:
    """The least weight that the youngest steps have together at any step: of forward decay they gain with time."""
    return lambda ages: weights(sums, decay, ages, ages)


def weights(sums: DecayedSum, decay: object, ages: int, t: int) -> float:
    """The weight at step t of the youngest `ages` steps together.

    >>> from fractions import Fraction
    >>> round(weights(Exponential(Fraction(1, 2)).sharp(1, Fraction(1)), Exponential(Fraction(1, 2)), 3, 9), 9)
    1.75
    """
    if isinstance(decay, Forward):
        return decay.powers.total(t, ages)
    if isinstance(decay, Window):
        return float(min(ages, decay.length))
    if isinstance(decay, Exponential):
        rate = -math.log(decay.alpha)
        return math.expm1(-rate * ages) / math.expm1(-rate)
    if isinstance(sums, TableSum):
        return sums.weights.total(int(min(ages, sums.weights.length)))
    if isinstance(sums, FlatWindows):
        parts = ((aged.weight, min(max(ages - aged.age, 0), aged.window.length)) for aged in sums.windows)
        return sum(weight * steps for weight, steps in parts) / 2**96
    if isinstance(sums, DecayedSteps):
        return float(np.sum(sums.decay.amounts * np.expm1(-sums.decay.rates * ages) / np.expm1(-sums.decay.rates)))
    return float(ages)


def mean_variance(sums: DecayedSum) -> float:
    """Mean variance of releases long after the beginning: by formula, else over many of them."""
    by_formula: float | None = getattr(sums, "mean_variance", None)
    if by_formula is not None:
        return by_formula
    return sum(sums.variance((1 << 24) + STRIDE * i) for i in range(PHASES)) / PHASES
