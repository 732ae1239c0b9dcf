"""What the releases of a sharp mean will be like: its decisions, foretold for an assumed law of values.

The pattern decides when it activates, with which cap, and which blocks can count; there the real functions are asked.
Values decide how wide its private clip range will be. Assumed is that samples, of one user or of several, are
independent and have the law Beta(2, 2) over a body in the middle of the range, `spread` of it. The scale's exact
distribution then gives the median of the width, and noise is proportional to the width: with few units it may well come
out wider. Blocks are taken to count as soon as enough units have them, as they do where units are alike.

Privacy      no value and no key comes here, so nothing is charged
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate

from shoal.mechanisms import scale
from shoal.mechanisms.blue import GrowingBlue
from shoal.mechanisms.caps import Forecast
from shoal.mechanisms.planning import Expected, Pattern, expected
from shoal.mechanisms.sharp import Sharp
from shoal.mechanisms.sharp_bounder import EVENT_LEVELS, EVENTS, weight


def block_end(block: int) -> int:
    """The number of the sample that closes a unit's block.

    >>> [block_end(block) for block in range(5)]
    [96, 128, 192, 256, 384]
    """
    return EVENTS * (3 if block % 2 == 0 else 4) << block // 2 >> 1


@dataclass(frozen=True)
class SharpProspect:
    """A sharp mean over a pattern."""

    mean: Sharp
    pattern: Pattern
    releases: int | None
    spread: Fraction

    def at(self, tau: float) -> Expected:
        """The release when the part tau of the time is over; before activation the middle of the range."""
        tick, of = max(1, round(tau * self.ticks)), self.pattern.samples(None, tau)
        if self.start is None or tick < self.start:
            half = self.mean.grid.width_value(Fraction(self.mean.grid.steps, 2))
            return Expected(0, of, half, half) if of else Expected(0, 0, None, None)
        return expected(self.mean, self._included(tau, tick), of, self.counter.scales(tick - self.start + 1))

    # ---------------------------------------------------------------- when

    @cached_property
    def ticks(self) -> int:
        """Releases in all, those that come before activation too."""
        contributions = self._singles(1.0) + sum(self._blocks(block, 1.0) for block in range(self.mean.blocks))
        return max(1, contributions if self.releases is None else min(self.releases, contributions))

    @cached_property
    def start(self) -> int | None:
        """The tick of activation; None: there are too few units and samples."""
        return self._first(1, self._is_ready)

    def _first(self, tick: int, holds: Callable[[float], bool]) -> int | None:
        """The first tick, from this one on, at which the condition holds; it does not cease to hold."""
        high = self.ticks
        if tick > high or not holds(1.0):
            return None
        while tick < high:
            middle = (tick + high) // 2
            tick, high = (tick, middle) if holds(middle / self.ticks) else (middle + 1, high)
        return tick

    def _is_ready(self, tau: float) -> bool:
        return self.mean.is_ready(self.pattern.reached(1, tau), self._samples(tau), round(tau * self.ticks))

    # ---------------------------------------------------------------- which samples

    def _singles(self, tau: float) -> int:
        return self.pattern.samples(self.mean.singles, tau)

    def _blocks(self, block: int, tau: float) -> int:
        return self.pattern.reached(block_end(block), tau)

    def _weighted(self, block: int, tau: float) -> int:
        return weight(EVENT_LEVELS + block) * self._blocks(block, tau)

    def _samples(self, tau: float) -> int:
        return self._singles(tau) + sum(self._weighted(block, tau) for block in range(self.mean.blocks))

    @cached_property
    def _begin(self) -> float:
        """When it activates."""
        return (self.start or self.ticks) / self.ticks

    @cached_property
    def forecast(self) -> Forecast:
        """What the pattern up to activation says about its end."""
        tau = self._begin
        return self.mean.forecast(self._units, self._samples(tau), round(tau * self.ticks))

    @cached_property
    def cap(self) -> int:
        """How much of each unit counts."""
        return self.mean.choose_cap(self.forecast)

    @cached_property
    def _opened(self) -> tuple[int, ...]:
        """For each octave that opens, the tick at which it does."""
        opened: list[int] = []
        if self.cap <= self.mean.singles:
            return ()
        tick: int | None = self.start
        for octave in range(self.mean.octaves):
            tick = self._first((tick or 0) + (not opened), lambda tau, octave=octave: self._enough(octave, tau))  # type: ignore[misc]
            if tick is None:
                break
            opened.append(tick)
        return tuple(opened)

    def _enough(self, octave: int, tau: float) -> bool:
        return self._blocks(2 * octave, tau) >= self.mean.octave_units(self.pattern.reached(1, tau))

    def _included(self, tau: float, tick: int) -> int:
        open_ = sum(opened <= tick for opened in self._opened)
        blocks = range(min(2 * open_, self.mean.blocks))
        single = self.pattern.samples(min(self.cap, self.mean.singles), tau)
        return single + sum(self._weighted(block, tau) for block in blocks)

    # ---------------------------------------------------------------- how wide

    @cached_property
    def counter(self) -> GrowingBlue:
        """Its counter, for a clip range of the expected width."""
        mean, blocks = self.mean, self.cap > self.mean.singles
        ranged = self._units >= mean.least_units
        width = self.width if ranged else mean.grid.steps
        most = width * min(self.cap, mean.singles) + (mean.block_budget(width) if blocks else 0)
        return mean.counter(most, mean.shares.counter(ranged=ranged, blocks=blocks))

    @property
    def _units(self) -> int:
        return self.pattern.reached(1, self._begin)

    @cached_property
    def width(self) -> int:
        """The median of the clip range's width, in grid steps."""
        mean, units, steps = self.mean, self._units, self.mean.grid.steps
        epsilon = mean.group_epsilon * mean.shares.scale
        target = scale.left_outside(units, len(mean.half_widths), epsilon)
        if target is None:
            return steps
        singles = self.cap <= mean.singles
        few = self.forecast.noise_sd(self.cap, mean.relative_width(self.cap), mean.group_epsilon) if singles else 1
        widening = scale.widening(Fraction(target, units), Fraction(few))
        costs = [abs(units * self._outside(half) - target) for half in mean.half_widths]
        odds = [math.exp(-float(epsilon) / 2 * (cost - min(costs))) for cost in costs]
        widths = [self._around(int(half * widening)) for half in mean.half_widths]
        return _median(sorted(zip(widths, odds, strict=True)))

    def _ends(self, half: int) -> tuple[int, int]:
        """The clip range of that half width around the middle, in grid steps."""
        buckets = self.mean.buckets
        low, high = buckets.around(self.mean.grid.steps // 2, half)
        return buckets.boundaries[low], buckets.boundaries[high]

    def _around(self, half: int) -> int:
        low, high = self._ends(half)
        return high - low

    def _outside(self, half: int) -> float:
        """The part of the samples outside."""
        low, high = self._ends(half)
        return self._below(low) + 1 - self._below(high)

    def _below(self, step: int) -> float:
        """The distribution function of the assumed law."""
        steps = self.mean.grid.steps
        x = min(max((step / steps - 0.5) / float(self.spread) + 0.5, 0.0), 1.0)
        return x * x * (3 - 2 * x)


def _median(weighted: Sequence[tuple[int, float]]) -> int:
    """The number at which half of the weight is reached.

    >>> _median([(1, 0.2), (3, 0.4), (9, 0.4)])
    3
    """
    reached = accumulate(odds for _, odds in weighted)
    half = sum(odds for _, odds in weighted) / 2
    return next(number for (number, _), upto in zip(weighted, reached, strict=True) if upto >= half)
