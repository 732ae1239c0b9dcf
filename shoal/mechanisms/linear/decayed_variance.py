"""The variance of samples that decay or lie in a window, released at every step of event time.

Each sample is a grid index i in 0 .. W, and adds i to one decayed sum and i (W - i) to another. With n the decayed
number of samples, which is public, and S and P the two sums with their noise, in grid steps

    x = S / n,   variance = x (W - x) - P / n + s**2

as i**2 = W i - i (W - i). The noise in x, of standard deviation s, makes x (W - x) too small by s**2 on average. Where
a decay has left out whole trees of noise in a long silence, s is larger than the noise, and the value too large.

Guarantee    pure epsilon-DP for both sums, hence for all releases of all groups together; the time and order of samples
             may react
Relation     values: two streams differ in the values of one unit; who contributes when, and in which group, is public
Unit         at most m samples, whatever groups and steps they are in: a user's, a user's of one period, or one event
Sensitivity  joint, exact: a sample that moves i by j moves i (W - i) by j (W - j) at most, and W i + 2 i (W - i) by
             D = max over j of j (3 W - 2 j) at most, their parts taken absolutely: 9 W**2 / 8, at j = 3 W / 4
Noise        of the decayed sums: of S as of a sum with the width m W and epsilon W**2 / D (8/9), of P with the width
             m floor(W**2 / 4) and epsilon 2 floor(W**2 / 4) / D (4/9): together a third more than a split would allow
Variance     of a release: s**2 ((W - 2 x)**2 + s**2) + p**2 on average, p: standard deviation of the noise in P / n.
             `noise_sd` is the root of it with the noisy x, which is post-processing; exact on average where the noise
             of S is one Laplace draw, and larger than needed where it is closer to normal
Interval     low = value - h - q**2, high = value + h, h**2 = ((W - 2 x) q)**2 + r**2, with q and r the 95 % quantiles
             of the noise in x and in P / n; for several releases together, with their quantiles for twice as many
             and h = |W - 2 x| q + r, and s**2 taken off low: that holds wherever both stay below theirs
Proof        docs/proofs/decayed-variance.md
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from shoal.mechanisms.error_bars import COVERAGE, coverage_of, six_digits
from shoal.mechanisms.grid import LARGEST, Grid, grid_of
from shoal.mechanisms.linear.decay import decay_of, rest_of
from shoal.mechanisms.linear.sides import Products
from shoal.mechanisms.linear.stepped import PlannedStatistic
from shoal.mechanisms.linear.sums import LinearSums
from shoal.mechanisms.moments import Moments
from shoal.mechanisms.noise.keyed import derive
from shoal.mechanisms.parts.expect import expect
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.of import Variance
from shoal.mechanisms.statistic import NO_ESTIMATE, Estimate, clamped_within
from shoal.mechanisms.sums.sums import DecayedSum, Summer


@dataclass(frozen=True, kw_only=True)
class DecayedVariance(PlannedStatistic):
    """All public parameters of a variance that is released at every step.

    >>> from shoal.mechanisms.statistic import Contribution
    >>> from shoal.mechanisms.sums.decays import Window
    >>> grid = Grid(Fraction(0), Fraction(10), 100)
    >>> sure = DecayedVariance(decay=Window(2), grid=grid, epsilon=Fraction(10**9), max_contributions=3)
    >>> releaser = sure.releaser(bytes(32), b"")
    >>> for value in (2, 6):
    ...     total = sure.packing.unpack(sure.quantize([value]), 1)
    ...     _, _ = releaser.add(Contribution(0, "", 0, 0, 1, total)), releaser.close()
    ...     print(round(releaser.estimate().value, 6))
    0.0
    4.0
    """

    statistic: ClassVar[str] = "variance"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.delta:
            raise ValueError("delta must be 0: the bound that both sums share holds for pure noise")
        _ = self.grid.squares  # what it refuses, it refuses now

    @cached_property
    def decayed(self) -> tuple[DecayedSum, DecayedSum]:
        """The decayed sums of i and of i (W - i)."""
        first, second = Products(self.grid.steps).noised
        m = self.max_contributions
        return (
            self.made(m * first.width, self.epsilon * first.share),
            self.made(m * second.width, self.epsilon * second.share),
        )

    @property
    def sum_grids(self) -> tuple[Grid, ...]:
        return self.grid, self.grid.squares

    # ---------------------------------------------------------------- a sample

    @property
    def packing(self) -> Moments:
        return Moments(self.grid.steps)

    # ---------------------------------------------------------------- planned

    ends: ClassVar[str] = "largest possible variance"

    def breadth(self, spread: Fraction = Fraction(1)) -> float:
        return float(((self.grid.high - self.grid.low) * spread) ** 2 / 4)

    def noise_of(self, sd: float, half: float | None, n: float) -> tuple[float | None, float | None]:
        """The noise for a mean half way between the middle and an end of the range."""
        if not n:
            return None, None
        width = float(self.grid.high - self.grid.low)
        # The other sum's noise has W / 2 times this scale, in grid steps.
        noise_sd, within = _noise(width / 2, (sd / n, sd / n * width / 2)), None
        if half is not None:
            within = self._within(width / 2, (half / n, half / n * width / 2))
        return noise_sd, within

    def noise_words(self, name: str) -> str:
        return f"in units of {name} squared, for a mean half way from the middle of the range to one of its ends"

    # ---------------------------------------------------------------- of a metric's parts

    @classmethod
    def of(cls, metric: Metric) -> "DecayedVariance":
        what = expect(metric.of, Variance)
        made = cls(
            decay=decay_of(metric),
            algorithm=metric.by.name,
            epsilon=metric.budget.epsilon,
            max_contributions=metric.samples,
            grid=grid_of(what.values),
            clamps=what.clamp,
            max_gap=rest_of(metric),
            coverage=coverage_of(metric.by.bars.simultaneous, 2),
        )
        for sums in made.decayed:  # whatever they refuse, they refuse now
            sums.noise_sd(1)
        return made

    # ---------------------------------------------------------------- a release

    def releaser(self, key: bytes, group: bytes) -> "VarianceReleaser":
        return VarianceReleaser(self, key, group)

    def estimate(self, noisy: tuple[int, int], samples: int, bars: tuple[float, ...]) -> Estimate | None:
        """The estimate from both noisy sums and the number of samples; None without samples.

        All three count in units of 1 / `denominator`; `bars` are of the sums, in units of the range and of its square.
        """
        if not samples:
            return None
        n, (first, second), highest = samples / self.decayed[0].denominator, noisy, self.grid.steps * samples
        sd, half, other_sd, other_half = (bar / n for bar in bars)
        off = self.grid.width_value(Fraction(abs(highest - 2 * first), samples))  # (W - 2 x)
        exact = Fraction(first * (highest - first) - second * samples, samples**2)
        value = _finite(self.grid.squares.width_value(exact) + sd * sd)
        within = self._within(off, (half, other_half))
        low = _finite(value - within - half * half - (0.0 if self.coverage == COVERAGE else sd * sd))
        ends = (0.0, self.breadth()) if self.clamps else None
        value, low, high = clamped_within(value, low, _finite(value + within), ends)
        return Estimate(
            value,
            _finite(_noise(off, (sd, other_sd))),
            low,
            high,
            {"samples": n if self.decayed[0].denominator > 1 else samples},
        )

    def _within(self, off: float, halves: tuple[float, float]) -> float:
        """What the noise stays within, but for the square of that in the mean, with probability 0.95 or a little more.

        For several releases it is what it stays within wherever the noise of both sums stays within theirs.
        """
        if self.coverage == COVERAGE:
            return six_digits(math.hypot(off * halves[0], halves[1]))
        return six_digits(off * halves[0] + halves[1])


def _noise(off: float, sds: tuple[float, float]) -> float:
    """The standard deviation of the variance's noise, from those in the mean and in the other sum over n."""
    return six_digits(math.hypot(sds[0] * math.hypot(off, sds[0]), sds[1]))


def _finite(value: float) -> float:
    """The value, or the largest of its sign where noise over a tiny epsilon goes beyond all numbers."""
    return min(max(value, -LARGEST), LARGEST)


class VarianceReleaser(LinearSums):
    """One group's variance, step by step."""

    __slots__ = ("_of",)

    def __init__(self, of: DecayedVariance, key: bytes, group: bytes) -> None:
        self._of = of
        noised = [self._noised(key, group, index) for index in range(2)]
        super().__init__(Products(of.grid.steps), (of.decayed[0].counts(), *noised), of_updates=of.of_updates)

    def _noised(self, key: bytes, group: bytes, index: int) -> Summer:
        name = ("step", "product")[index]
        return self._of.decayed[index].summer(lambda number: derive(key, group, "tree", name, 0, 0, number))

    def estimate(self) -> Estimate:
        """The release of the last complete step; without a value where there are no samples."""
        of, details = self._of, {"mechanism": self._of.mechanism}
        samples, first, second = self.released
        estimate = of.estimate((first, second), samples, of.bars(self.t))
        return replace(NO_ESTIMATE if estimate is None else estimate, details=details)
