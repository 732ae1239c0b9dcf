"""Public parameters of the sharp mean of subgaussian samples, and what follows from them and the pattern.

Everything that is decided here is a function of the configuration and of the pattern: it costs nothing.

    reach   z, in standard deviations: what the least of noise and of what is cut off of subgaussian tails asks for
    slack   how far the centre may be from the mean: the rank that a private choice may be off, as a part of the units,
            over the density of units' means at their median, if samples are normal, and the width of a bucket
    cap     as for other sharp means (cap.py), with the width that blocks take within it
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from shoal.mechanisms.continual_mean.levels import BlockMean
from shoal.mechanisms.continual_mean.looks import next_look, stride
from shoal.mechanisms.continual_mean.sharp.cap import NOISE, Forecast, brief, choose_cap, patience
from shoal.mechanisms.continual_mean.sharp.parameters import RELEASES
from shoal.mechanisms.continual_mean.subgaussian.bounder import Doubling, DoublingBounder
from shoal.mechanisms.counters.blue import GrowingBlue
from shoal.mechanisms.decimals import ceiling, decimal, rounding_up
from shoal.mechanisms.workload import Pattern

BUCKETS = 1 << 12  # candidates of a centre, at most
BEYOND = 8  # in sigmas: how far they reach outside the range
RANKS = 80  # over units times epsilon it is the centre's share, within these two
LEAST_SHARE, MOST_SHARE = Fraction(12, 1000), Fraction(2, 5)
OFF = 6  # the rank is off by that much over the centre's epsilon once in exp(3)
DENSITY = Fraction(251, 100)  # sqrt(2 pi): one over the density of a normal law at its median, in standard deviations
MEDIAN = Fraction(5, 4)  # standard deviation of the median, in those of the mean
READY = 4000  # units times epsilon from which more of them make a centre no better
SLACK = Fraction(5, 4)  # how much wider than without a slack clips may be, while waiting may still help
WORTH = Fraction(11, 10)  # a centre has to take a tenth off the error
# z, and the bound on what subgaussian samples lie beyond it on one side, in sigmas: the integral of exp(-t**2 / 2).
REACHES = tuple(
    (Fraction(z), Fraction(beyond))
    for z, beyond in (
        ("2", "0.0571"), ("2.5", "0.0156"), ("3", "0.00339"), ("3.5", "0.000584"), ("4", "0.0000795"),
        ("4.5", "0.00000852"), ("5", "0.00000072"),
    )
)  # fmt: skip


class Start(NamedTuple):
    """The way in which a group begins: a function of the pattern at that time."""

    cap: int  # samples of a unit that count
    units: int  # from whose means the centre is chosen; 0: it is the middle of the range, and nothing is charged
    slack: int  # grid steps that the centre may be off
    reach: int  # index in REACHES


@dataclass(frozen=True, kw_only=True)
class SubgaussianParameters(BlockMean):
    """All public parameters of a sharp mean of subgaussian samples."""

    horizon: int | None = None  # releases expected of a group; tunes accuracy, never the guarantee
    each: bool = False  # a release per contribution: then the horizon is what would come if all gave all they may
    day: int | None = None  # ticks of a day; None: a release per contribution, or the length of a tick is not known

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sigma is None:
            raise ValueError("sigma is missing; add it")

    @cached_property
    def doubling(self) -> Doubling:
        return Doubling(self.max_contributions)

    def bounder(self) -> DoublingBounder:
        return DoublingBounder(self.doubling)

    def closed(self, pattern: Pattern, tau: float) -> list[int]:
        return [pattern.reached(end, tau) for end in self.doubling.ends]

    @property
    def releases(self) -> int:
        return self.horizon or RELEASES

    # ---------------------------------------------------------------- what epsilon is spent on

    def share(self, start: Start) -> Fraction:
        """The part of the group's epsilon for the centre; what it leaves is the counter's.

        The more units there are, the less is needed.
        """
        if not start.units:
            return Fraction(0)
        return min(max(RANKS / (start.units * self.group_epsilon), LEAST_SHARE), MOST_SHARE)

    def counter(self, start: Start) -> GrowingBlue:
        return GrowingBlue(sum(self.widths(start)), self.counter_epsilon(start), horizon=self.releases)

    def counter_epsilon(self, start: Start) -> Fraction:
        return self.group_epsilon * (1 - self.share(start))

    # ---------------------------------------------------------------- clip intervals

    def open_blocks(self, cap: int) -> int:
        """The number of a unit's blocks that count: those that end within the cap."""
        return sum(end <= cap for end in self.doubling.ends)

    def half_widths(self, reach: int, slack: int) -> tuple[int, ...]:
        """For each block, z standard deviations of its sum if samples are subgaussian, and its weight times the slack.

        Rounding a sample to the grid adds half a step to its deviation at most.
        """
        with rounding_up():
            deviation = decimal(REACHES[reach][0] * self.spread / 2)
            return tuple(ceiling(deviation * decimal(w).sqrt()) + w * slack for w in self.doubling.weights)

    def intervals(self, start: Start, centre: Fraction) -> tuple[tuple[int, int], ...]:
        """What the sum of each block that counts is clipped to, in steps of the samples' grid."""
        middles = (int(weight * centre) for weight in self.doubling.weights)
        pairs = zip(middles, self.half_widths(start.reach, start.slack), self.doubling.weights, strict=True)
        ends = (
            (max(0, middle - half), min(middle + half, weight * self.sample_grid.steps))
            for middle, half, weight in pairs
        )
        return tuple(ends)[: self.open_blocks(start.cap)]

    def widths(self, start: Start) -> tuple[int, ...]:
        """The most that each block that counts may move: twice its half width, or all that a block may be."""
        return self._widths(start.reach, start.slack)[: self.open_blocks(start.cap)]

    def _widths(self, reach: int, slack: int) -> tuple[int, ...]:
        pairs = zip(self.half_widths(reach, slack), self.doubling.weights, strict=True)
        return tuple(min(2 * half, weight * self.sample_grid.steps) for half, weight in pairs)

    # ---------------------------------------------------------------- the centre's candidates

    @cached_property
    def candidates(self) -> tuple[int, int, int]:
        """(from, to, how many): even buckets over the range and 8 sigma on either side, in steps of samples' grid."""
        beyond = min(self.margin, math.ceil(BEYOND * self.sigma_steps))
        low, high = self.margin - beyond, self.margin + self.grid.steps + beyond
        return low, high, min(BUCKETS, high - low)

    def bucket(self, total: int, samples: int) -> int:
        """The bucket of a mean; one that lies outside all of them is in that at the end."""
        low, high, count = self.candidates
        index = (total - low * samples) * count // ((high - low) * samples)
        return min(max(index, 0), count - 1)

    def middle(self, bucket: int) -> Fraction:
        """The middle of a bucket, or the end of the range that it lies beyond."""
        low, high, count = self.candidates
        middle = low + Fraction((high - low) * (2 * bucket + 1), 2 * count)
        return min(max(middle, Fraction(self.margin)), Fraction(self.margin + self.grid.steps))

    # ---------------------------------------------------------------- when to begin, and with what

    def begin(self, reached: Sequence[int], ticks: int) -> Start | None:
        """The way to begin after `ticks` ticks of a group, or None to wait: a function of the pattern.

        `reached` are the units that have closed each block, so far.
        """
        units = reached[0]
        if not units or ticks % stride(ticks):  # no units: late samples may overtake a unit's first
            return None
        samples = sum(w * count for w, count in zip(self.doubling.weights, reached, strict=True))
        longer = max(Fraction(1), Fraction(self.releases, ticks))
        forecast = Forecast(units, samples, self.users, longer, self.releases)
        reach = self._reach(max(self.users, units))
        unknown = self._start(forecast, 0, -(-self.grid.steps // 2), reach)
        wanted = self._variance(forecast, unknown) / WORTH**2
        if wanted <= self._sampling(forecast, unknown):  # no centre would take off as much
            return unknown
        waited = ticks >= self.patience
        if units < self.least_units:
            return unknown if ticks >= self.patience * self._hope else None
        known = self._start(forecast, units, self._slack(units, reached), reach)
        if not waited and not self._is_ready(known):
            return None
        return known if self._variance(forecast, known) < wanted else unknown

    def _start(self, forecast: Forecast, units: int, slack: int, reach: int) -> Start:
        ends, widths = self.doubling.ends, self._widths(reach, slack)
        in_clips = [Fraction(width, widths[0]) for width in accumulate(widths)]
        cap = choose_cap(forecast, ends, self.max_contributions, self.group_epsilon, in_clips)
        return Start(cap, units, slack, reach)

    def _is_ready(self, start: Start) -> bool:
        """Whether more units, and more samples of each, would not make the clips much narrower."""
        exact = sum(self.widths(start._replace(slack=0)))
        return start.units >= self.ready_units and sum(self.widths(start)) <= SLACK * exact

    def _variance(self, forecast: Forecast, start: Start) -> Fraction:
        """The expected squared error at the end, in grid steps: of noise, and of samples that are independent."""
        width = Fraction(sum(self.widths(start)))
        noise = forecast.noise_sd(start.cap, width, self.counter_epsilon(start))
        return noise**2 + self._sampling(forecast, start)

    def _sampling(self, forecast: Forecast, start: Start) -> Fraction:
        return self.sigma_steps**2 / forecast.kept(start.cap)

    def _reach(self, units: int) -> int:
        """The z for which the noise of `units` units, and the worst that subgaussian tails lose, is least.

        Both are proportional to the standard deviation of a block's mean: it does not matter.
        """
        noise = NOISE * self.releases.bit_length() / (units * self.group_epsilon)
        errors = [(2 * z * noise) ** 2 + beyond**2 for z, beyond in REACHES]
        return errors.index(min(errors))

    def _slack(self, units: int, reached: Sequence[int]) -> int:
        start = Start(1, units, 0, 0)
        off = OFF / (self.group_epsilon * self.share(start) * units)
        sampled = MEDIAN / max(1, math.isqrt(units))
        roots = Fraction(sum(gain * count for gain, count in zip(self.doubling.gains, reached, strict=True)), 256)
        low, high, count = self.candidates
        deviation = self.spread / 2 * units / roots
        return math.ceil(deviation * (off * DENSITY + sampled) + Fraction(high - low, count))

    @cached_property
    def least_units(self) -> int:
        """The number of units below which a centre would take too much of epsilon."""
        return math.ceil(RANKS / (MOST_SHARE * self.group_epsilon))

    @cached_property
    def ready_units(self) -> int:
        """The number of units to wait for: a rank error no longer matters, or half of those expected are there."""
        enough = math.ceil(READY / self.group_epsilon)
        return max(self.least_units, min(enough, self.users // 2 or enough))

    @property
    def _hope(self) -> int:
        """How many times as long it waits for the units that a centre takes: expected ones, half of the time."""
        if self.users >= self.least_units:
            return 8
        return 2 if self.users <= 1 else 1

    @property
    def patience(self) -> int:
        """The number of ticks to wait for more units than a centre takes."""
        return brief(patience(self.releases, self.max_contributions, each=self.each), self.day)

    def latest(self, ticks: int) -> int:
        """Latest tick at which a group that has waited `ticks` ticks begins, if it has a unit by then."""
        return next_look(max(self.patience * self._hope, ticks + 1))
