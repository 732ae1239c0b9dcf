"""Measured variance of releases that have nothing but noise, over what the closed form says of the same steps."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Protocol, cast

import numpy as np

from shoal.mechanisms.counters.counter import Subkeys
from shoal.mechanisms.noise.keyed import derive
from shoal.mechanisms.noise.laplace import DiscreteLaplace
from shoal.mechanisms.sums.decayed import DecayedSteps
from shoal.mechanisms.sums.decays import AnyWindow
from shoal.mechanisms.sums.patent.all_window_sum import answer
from shoal.mechanisms.sums.sums import DecayedSum

KEY = bytes(range(32))
FEWEST, MOST = 40, 100_000  # keys: fewer say too little of the standard error
_GOLDEN = (math.sqrt(5) - 1) / 2
_ROUGH = 1 << 40  # places of a formula, all of them


class Looking(Protocol):
    """Which releases of a key are looked at."""

    @property
    def cost(self) -> float:
        """Microseconds that a key takes, roughly: they decide how many keys there are, not what these show."""
        ...

    @property
    def fewest(self) -> int:
        """Keys at least."""
        ...

    def looks(self, sums: DecayedSum, subkey: Subkeys, number: int) -> Iterator[tuple[float, float]]:
        """Of each look, the noise and the variance that is stated for it, for a unit worth 1."""
        ...

    def formula(self, sums: DecayedSum) -> tuple[float, float]:
        """Mean and maximum of the variance that is stated."""
        ...


@dataclass(frozen=True)
class Steps:
    """Every `stride`-th step from `begin` on; keys begin at different places of a period."""

    begin: int
    period: int  # after so many steps the variance repeats
    stride: int
    count: int
    cost: float
    skips: bool = True  # the noise is a function of key and step alone, so that steps between need not be taken
    places: int = _ROUGH  # of the period, at which the formula is looked at
    late: int = 0  # for the formula: the first step for which the beginning makes no difference, if not `begin`
    shifts: bool = True
    fewest: int = FEWEST

    def looks(self, sums: DecayedSum, subkey: Subkeys, number: int) -> Iterator[tuple[float, float]]:
        """In order of steps."""
        summer, unit = sums.summer(subkey), sums.denominator * sums.width
        ahead = self.begin + (math.floor(number * _GOLDEN % 1 * self.period) if self.shifts else 0)
        for _ in range(self.count):
            if self.skips:
                summer.skip(ahead)
            else:
                for _ in range(ahead):
                    summer.add(0)
            noise = summer.add(0) / unit
            yield noise, sums.variance(summer.t) / sums.width**2
            ahead = self.stride - 1

    def formula(self, sums: DecayedSum) -> tuple[float, float]:
        """Over a period, or evenly over it and at its end."""
        places: Iterable[int] = range(self.period)
        if self.period > self.places:
            places = (math.floor(place * _GOLDEN % 1 * self.period) for place in range(self.places))
        begin = (self.late or self.begin) + 1
        found = [sums.variance(begin + place) / sums.width**2 for place in places]
        return math.fsum(found) / len(found), max(*found, sums.variance(begin + self.period - 2) / sums.width**2)


class Draws(Steps):
    """The same for exponentially decayed noise per step, from many draws at once: seven times as many looks."""

    def looks(self, sums: DecayedSum, subkey: Subkeys, number: int) -> Iterator[tuple[float, float]]:
        """After `begin`, a multiple of the stride, each stride's last step."""
        assert isinstance(sums, DecayedSteps)
        steps = self.begin + self.count * self.stride
        noise = DiscreteLaplace(sums.steps.scale, subkey(0)).draw_block(1, steps).astype(np.float64) / sums.width
        (rate,) = sums.decay.rates
        within = noise.reshape(-1, self.stride) @ np.exp(-rate * np.arange(self.stride)[::-1])
        value, kept = 0.0, math.exp(-rate * self.stride)
        for t, more in zip(range(self.stride, steps + 1, self.stride), within.tolist(), strict=True):
            value = value * kept + more
            if t > self.begin:
                yield value, sums.variance(t) / sums.width**2


@dataclass(frozen=True)
class Window:
    """One window, answered from what was released; other steps are skipped, for nobody contributes in them."""

    end: int
    length: int
    cost: float
    fewest: int = FEWEST

    def looks(self, sums: DecayedSum, subkey: Subkeys, number: int) -> Iterator[tuple[float, float]]:
        """One."""
        windows = cast(AnyWindow, sums)
        parts, summer, released = windows.parts(self.end, self.length), sums.summer(subkey), {}
        for step in sorted({part.step for part in parts}):
            summer.skip(step - 1 - summer.t)
            summer.add(0)
            released[step] = getattr(summer, "released")  # noqa: B009  (no part of what every summer has)
        yield answer(parts, released.__getitem__) / sums.width, self.formula(sums)[0]

    def formula(self, sums: DecayedSum) -> tuple[float, float]:
        """Of this one."""
        variance = cast(AnyWindow, sums).window_variance(self.end, self.length) / sums.width**2
        return variance, variance


@dataclass(frozen=True)
class Measured:
    """Variances for a unit worth 1 and epsilon 1."""

    mean: float  # of the formula
    most: float
    ratio: float  # measured over formula, at the same steps
    error: float  # standard error of the ratio, from how keys differ
    keys: int
    looks: int

    @property
    def measured(self) -> float:
        """Variance as measured, for all steps as the formula's mean is."""
        return self.mean * self.ratio

    @property
    def agrees(self) -> bool:
        """Within 5 %, or 3 standard errors."""
        return abs(self.ratio - 1) <= max(0.05, 3 * self.error)


@dataclass(slots=True)
class Ratio:
    """Squared noise over stated variance, summed up over keys; each key is one independent pair.

    >>> ratio = Ratio()
    >>> [ratio.add(square, 1.0) for square in (0.5, 1.5, 1.0, 1.0)], ratio.value, round(ratio.error, 3)
    ([None, None, None, None], 1.0, 0.204)
    """

    keys: int = 0
    _s: float = 0.0
    _v: float = 0.0
    _ss: float = 0.0
    _sv: float = 0.0
    _vv: float = 0.0

    def add(self, square: float, variance: float) -> None:
        """One more key."""
        self.keys += 1
        self._s, self._v = self._s + square, self._v + variance
        self._ss += square * square
        self._sv += square * variance
        self._vv += variance * variance

    @property
    def value(self) -> float:
        """The ratio of the sums."""
        return self._s / self._v

    @property
    def error(self) -> float:
        """Its standard error."""
        r = self.value
        squares = max(self._ss - 2 * r * self._sv + r * r * self._vv, 0.0)
        return math.sqrt(squares * self.keys / (self.keys - 1)) / self._v


def subkeys(name: str, number: int) -> Subkeys:
    """The draws of one key; no two rows share any."""
    return partial(derive, KEY, name, number)


def measure(name: str, sums: DecayedSum, looking: Looking, seconds: float, enough: float) -> Measured:
    """Keys until the standard error is small enough, or until there are as many as fit into about these seconds."""
    ratio, looks = Ratio(), 0
    keys = min(max(int(seconds * 1e6 / looking.cost), looking.fewest), MOST)
    while ratio.keys < keys and (ratio.keys < looking.fewest or ratio.error > enough):
        found = list(looking.looks(sums, subkeys(name, ratio.keys), ratio.keys))
        ratio.add(math.fsum(noise**2 for noise, _ in found), math.fsum(variance for _, variance in found))
        looks += len(found)
    return Measured(*looking.formula(sums), ratio.value, ratio.error, ratio.keys, looks)
