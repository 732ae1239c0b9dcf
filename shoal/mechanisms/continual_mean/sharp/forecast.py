"""Predicts the releases of a sharp mean, and its decisions, for an assumed law of values.

The pattern decides when it begins, in which way and with which cap; there the mean itself is asked. Values decide how
wide its private clip ranges will be, and noise is proportional to that: the median under the assumed law
(assumed_law.py) is taken, or another quantile, for with few units a range may well come out wider.

    short      single samples up to a cap, and blocks clipped like them; whole range, or one that first samples give
    alike      from units' first blocks: octaves of blocks have clips of their own, and open when enough units have them
    unalike    from them too, but octaves are not worth it: all is clipped like single samples

Privacy      no value and no key comes here, so nothing is charged
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from shoal.mechanisms.continual_mean.forecast import Expected, expected
from shoal.mechanisms.continual_mean.sharp.assumed_law import Law
from shoal.mechanisms.continual_mean.sharp.cap import Beginning, Forecast
from shoal.mechanisms.continual_mean.sharp.parameters import NARROWER, SharpParameters
from shoal.mechanisms.continual_mean.sharp.releaser import WORTH
from shoal.mechanisms.continual_mean.sharp.waiting import Waiting
from shoal.mechanisms.counters.blue import GrowingBlue
from shoal.mechanisms.counters.growing_root import GrowingRoot
from shoal.mechanisms.error_bars import Law as NoiseLaw
from shoal.mechanisms.error_bars import noise_sd


class Start(NamedTuple):
    """The choices made when a mean begins; numbers in grid steps."""

    tick: int
    beginning: Beginning
    width: int  # that a single sample may move
    block_width: int  # that the mean of a first block may, times the root of its weight; 0 where there is no such clip
    half: int  # of the clip of such a mean


@dataclass(frozen=True)
class SharpProspect(Waiting[tuple[int, Beginning, Forecast]]):
    """The releases of a sharp mean to come over a pattern."""

    mean: SharpParameters
    spread: Fraction
    quantile: float = 0.5  # of what the first clip range may come out as

    def likely(self, tau: float) -> tuple[float, float] | None:
        """The bounds of the noise's standard deviation in four cases out of five: clip ranges are drawn."""
        deviations = [self._narrow_or_wide(quantile / 20).at(tau).noise_sd for quantile in range(1, 20, 2)]
        known = sorted(sd for sd in deviations if sd is not None)
        return (known[1], known[-2]) if known else None

    def _narrow_or_wide(self, quantile: float) -> "SharpProspect":
        """The same prospect with another clip range, which does not change when it begins."""
        other = replace(self, quantile=quantile)
        vars(other).update(_curve=self._curve, _begun=self._begun)
        return other

    def at(self, tau: float) -> Expected:
        """The release when the part tau of the time is over; before it begins, the middle of the range."""
        tick, samples = self._tick(tau), self.pattern.samples(None, tau)
        if self.start is None or tick < self.start.tick:
            half = self.mean.grid.width_value(Fraction(self.mean.grid.steps, 2))
            return Expected(0, samples, half, half) if samples else Expected(0, 0, None, None)
        included = self._included(tau, tick, self.opened)
        return expected(self.mean.grid, included, samples, self._scales(tick), self.mean.coverage)

    # ---------------------------------------------------------------- ticks

    def _contributions(self, tau: float) -> int:
        """The number of samples that come one by one, and of blocks beyond them."""
        shape = self.mean.shape
        beyond = (self._reached(block, tau) for block in range(shape.blocks) if shape.end(block) > shape.singles)
        return self.pattern.samples(shape.singles, tau) + sum(beyond)

    def _first(self, tick: int, holds: Callable[[float], bool]) -> int | None:
        """The first tick, from this one on, at which the condition holds; once it holds it keeps holding."""
        high = self.ticks
        if tick > high or not holds(1.0):
            return None
        while tick < high:
            middle = (tick + high) // 2
            tick, high = (tick, middle) if holds(self._tau(middle)) else (middle + 1, high)
        return tick

    # ---------------------------------------------------------------- how it begins

    @cached_property
    def start(self) -> Start | None:
        return None if self._begun is None else self._start(*self._begun)

    def _begin(self, tick: int) -> tuple[int, Beginning, Forecast] | None:
        tau = self._tau(tick)
        units, samples = self.pattern.reached(1, tau), self._samples(tau)
        longs = self._reached(0, tau) if self.mean.shape.blocks else 0
        beginning = self.mean.begin(units, longs, samples, tick)
        return beginning and (tick, beginning, self.mean.forecast(units, samples, tick))

    def _samples(self, tau: float) -> int:
        """The number of samples that wait when the part tau of the time is over."""
        shape = self.mean.shape
        beyond = (block for block in range(shape.blocks) if shape.end(block) > shape.singles)
        return self.pattern.samples(shape.singles, tau) + sum(self._weighted(block, tau) for block in beyond)

    def _reached(self, block: int, tau: float) -> int:
        return self.pattern.reached(self.mean.shape.end(block), tau)

    def _weighted(self, block: int, tau: float) -> int:
        return self.mean.shape.weight(block) * self._reached(block, tau)

    @cached_property
    def _law(self) -> Law:
        return Law(self.mean, self.spread, self.quantile)

    def _start(self, tick: int, beginning: Beginning, forecast: Forecast) -> Start:
        mean, cap = self.mean, beginning.cap
        if beginning.longs:
            return self._start_long(tick, beginning, forecast)
        if not beginning.firsts:
            return Start(tick, beginning, mean.grid.steps, 0, 0)
        noise = forecast.noise_sd(cap, Fraction(cap), mean.noise_epsilon)
        width = self._law.clip_width(beginning.firsts, mean.shares(beginning), noise)
        return Start(tick, beginning, width, 0, 0)

    def _start_long(self, tick: int, beginning: Beginning, forecast: Forecast) -> Start:
        """A start with octaves, or without if their clips take too little off the noise."""
        mean = self.mean
        half = self._law.first_half_width(beginning.longs, mean.shares(beginning))
        block_width = mean.block_width(half)
        low, high = mean.buckets.around(mean.grid.steps // 2, -(-block_width // 2))
        width = mean.buckets.boundaries[high] - mean.buckets.boundaries[low]
        alike = Start(tick, beginning, width, block_width, half)
        unalike = Start(tick, beginning._replace(alike=False, cap=mean.choose_cap(forecast)), width, 0, 0)
        noises = [
            forecast.noise_sd(start.beginning.cap, Fraction(self._most(start)), mean.counter_share(start.beginning))
            for start in (unalike, alike)
        ]
        return unalike if noises[0] < WORTH * noises[1] else alike

    def _most(self, start: Start) -> int:
        return self.mean.most(start.beginning, start.width, start.block_width)

    @cached_property
    def counter(self) -> GrowingBlue | GrowingRoot:
        assert self.start is not None  # noqa: S101 - asked for after the start
        return self.mean.counter(self._most(self.start), self.start.beginning)

    def _scales(self, tick: int) -> NoiseLaw:
        assert self.start is not None  # noqa: S101 - asked for after the start
        return self.counter.scales(self._released(tick - self.start.tick + 1))

    # ---------------------------------------------------------------- which samples count

    @cached_property
    def opened(self) -> tuple[int, ...]:
        """The tick from which each block that counts as one does so, in order."""
        if self.start is None:
            return ()
        tick, beginning, shape = self.start.tick, self.start.beginning, self.mean.shape
        if beginning.alike:
            return self._open_octaves(self.start)
        ends = (shape.end(block) for block in range(shape.blocks))
        return (tick,) * sum(end <= beginning.cap for end in ends)  # those up to S come one by one

    def _included(self, tau: float, tick: int, opened: tuple[int, ...]) -> int:
        assert self.start is not None  # noqa: S101 - asked for after the start
        beginning, shape = self.start.beginning, self.mean.shape
        single = shape.alone if beginning.alike else min(beginning.cap, shape.singles)
        blocks = (block for block, open_ in enumerate(opened) if open_ <= tick and shape.end(block) > single)
        return self.pattern.samples(single, tau) + sum(self._weighted(block, tau) for block in blocks)

    def _open_octaves(self, start: Start) -> tuple[int, ...]:
        """The ticks at which enough units have their first block of each octave."""
        mean, shape = self.mean, self.mean.shape
        share = mean.shares(start.beginning).octave
        opened = (start.tick,) * len(shape.octave(0))
        half, spent = start.half, self._moves(shape.octave(0), start.half)
        asked = start.tick + 1
        while len(opened) < shape.blocks:
            octave = shape.octave((len(opened) - 1) // 2)
            tick = self._first(asked, lambda tau, octave=octave: self._enough(octave[0], share, tau))  # type: ignore[misc]
            if tick is None:
                break
            half = min(self._octave_half(octave, half, tick, opened), self._affordable(start, octave, spent))
            spent += self._moves(octave, half)
            opened += (tick,) * len(octave)
            asked = tick
        return opened

    def _enough(self, block: int, share: Fraction, tau: float) -> bool:
        return self._reached(block, tau) >= self.mean.octave_units(self.pattern.reached(1, tau), share)

    def _moves(self, octave: range, half: int) -> int:
        """The most that an octave's blocks may move around the middle of the range."""
        return self.mean.shape.weight(octave[0]) * min(2 * half, self.mean.grid.steps) * len(octave)

    def _octave_half(self, octave: range, before: int, tick: int, opened: tuple[int, ...]) -> int:
        """The half width that the means of an octave's blocks want."""
        mean, tau = self.mean, self._tau(tick - 1)
        assert self.start is not None  # noqa: S101 - asked for after the start
        epsilon = mean.shares(self.start.beginning).octave * mean.call_epsilon
        noise = noise_sd(self._scales(tick - 1)) / self._included(tau, tick - 1, opened)
        widest = min(before, mean.grid.steps)
        candidates = [widest, *(half for half in mean.half_widths if half < widest)][:NARROWER]
        size, units = mean.shape.weight(octave[0]), self._reached(octave[0], self._tau(tick))
        half = self._law.half_width(size, units, candidates, epsilon, noise)
        return min(widest, half + int(noise) + 1)

    def _affordable(self, start: Start, octave: range, spent: int) -> int:
        """The half width that the budget allows."""
        both = 2 * self.mean.shape.weight(octave[0]) * len(octave)
        return (self.mean.block_budget(start.block_width, octave.stop) - spent) // both
