"""A release to come: what counts, what is left out, and the noise that the release itself will state.

Privacy      functions of public parameters and of who contributes when, so nothing is charged
"""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

from shoal.mechanisms.words import duration

POINTS = 40  # of a time, at most
OVER_TIME = ("part", "seconds", "samples", "noise_sd", "half_interval", "left_out", "bias", "error")


class Point(NamedTuple):
    """A release to come; noise and bias in the unit of the value."""

    at: int | None  # microseconds since the start, where that is known
    samples: float  # that count; decayed ones are parts of one
    left_out: float  # part of the samples
    noise_sd: float | None  # None: nothing is released
    half: float | None = None  # of the noise interval
    bias: float = 0.0  # expected from what is left out; of values, measured
    count_sd: float | None = None  # noise of the number of samples, where that is released
    part: float = math.inf  # of the time, or of the events of a file; infinite: in the long run

    @property
    def error(self) -> float:
        """Noise and bias together; infinite where nothing is released."""
        return math.inf if self.noise_sd is None else math.hypot(self.noise_sd, self.bias)

    def fields(self, names: tuple[str, ...] = OVER_TIME) -> dict[str, Any]:
        """The numbers of these names, as JSON has them."""
        seconds = None if self.at is None else self.at / 1e6
        numbers = self._asdict() | {"seconds": seconds, "half_interval": self.half, "error": finite(self.error)}
        return {name: numbers[name] for name in names}

    def when(self) -> str:
        """The time since the start, or the part of the whole, in words."""
        return f"{100 * self.part:.3g} %" if self.at is None else duration(self.at)


class Forecast(Protocol):
    """A metric over a workload, release by release."""

    def point(self, tick: int) -> Point:
        """The release at the end of a tick, step or slot; the first one is 1."""
        ...


def finite(value: float) -> float | None:
    """The number as JSON has it; None for infinity."""
    return None if math.isinf(value) else value


def as_json(named: NamedTuple, only: Iterable[str] | None = None) -> dict[str, Any]:
    """The fields of a named tuple as JSON has them: all, or only some."""
    found = named._asdict()
    numbers = {name: finite(value) if isinstance(value, float) else value for name, value in found.items()}
    return {name: numbers[name] for name in (found if only is None else only)}


def spaced(ticks: int) -> list[int]:
    """At most 40 of 1 .. ticks: half of them equally far apart, half of them in equal ratios."""
    if ticks <= POINTS:
        return list(range(1, ticks + 1))
    half = POINTS // 2
    equal = {ticks * i // half for i in range(1, half + 1)}
    return sorted(equal | {max(1, round(ticks ** (i / half))) for i in range(half)})
