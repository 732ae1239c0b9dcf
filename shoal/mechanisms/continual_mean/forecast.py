"""Predicts the releases of a mean before it meets a value: noise and the samples that count, over time.

Both are functions of the public parameters and of the pattern, who contributes when; so they cost nothing, and may be
floats. The noise is not estimated: it is that of the very trees, at the counts that the pattern gives. Only `Sharp`
decides by values, privately; what it decides is predicted for an assumed law of values (sharp/forecast.py).

Privacy      no value and no key comes here, so nothing is charged
"""

from dataclasses import dataclass
from typing import Protocol

from shoal.mechanisms.error_bars import Law, noise_quantile, noise_sd
from shoal.mechanisms.grid import Grid


@dataclass(frozen=True, slots=True)
class Expected:
    """A release to come, in units of the range; no noise_sd where nothing is released."""

    samples: int  # that it rests on
    total: int  # samples that there are
    noise_sd: float | None
    half_interval: float | None  # what the noise stays below with the interval's coverage

    @property
    def left_out(self) -> float:
        """The part of the samples so far that the release does not rest on, for instance those over the cap."""
        return 1 - self.samples / self.total if self.total else 1.0


class Prospect(Protocol):
    """A mean over a pattern."""

    def at(self, tau: float) -> Expected:
        """The release to expect when the part tau of the time is over."""
        ...

    def likely(self, tau: float) -> tuple[float, float] | None:
        """The bounds of the noise's standard deviation in four cases of five; None if chance has no part in it."""
        ...


def expected(grid: Grid, samples: int, total: int, scales: Law, coverage: float) -> Expected:
    """The release that rests on `samples` samples; its numbers are those that the release itself will state."""
    if not samples:
        return Expected(0, total, None, None)
    sd, half = map(grid.width_value, (noise_sd(scales), noise_quantile(scales, coverage)))
    return Expected(samples, total, sd / samples, half / samples)
