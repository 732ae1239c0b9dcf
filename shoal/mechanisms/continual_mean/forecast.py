"""What the releases of a mean will be like, before it meets a value: noise and the samples that count, over time.

Both are functions of the public parameters and of the pattern, who contributes when; so they cost nothing, and may be
floats. The noise is not estimated: it is that of the very trees, at the counts that the pattern gives. Only `Sharp`
decides by values, privately; what it decides is foretold for an assumed law of values (sharp/forecast.py).

Privacy      no value and no key comes here, so nothing is charged
"""

from dataclasses import dataclass
from typing import Protocol

from shoal.mechanisms.error_bars import Scales, noise_quantile, noise_sd
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.workload import Pattern


@dataclass(frozen=True, slots=True)
class Expected:
    """A release to come, in units of the range; no noise_sd where nothing is released."""

    samples: int  # that it rests on
    of: int  # samples that there are
    noise_sd: float | None
    half_interval: float | None  # what 95 % of the noise stays below

    @property
    def left_out(self) -> float:
        """The part of the samples so far that it does not rest on, say over the cap."""
        return 1 - self.samples / self.of if self.of else 1.0


class Prospect(Protocol):
    """A mean over a pattern."""

    def at(self, tau: float) -> Expected:
        """The release when the part tau of the time is over."""
        ...

    def likely(self, tau: float) -> tuple[float, float] | None:
        """What the noise's standard deviation lies between in four cases of five; None: it is no matter of chance."""
        ...


class Countable(Protocol):
    """A mean whose noise follows from the pattern alone."""

    @property
    def grid(self) -> Grid:
        """Of its range."""
        ...

    def counted(self, pattern: Pattern, tau: float) -> tuple[int, Scales]:
        """(samples that count, what the noise of their sum consists of)."""
        ...


@dataclass(frozen=True)
class Counted:
    """Any algorithm but sharp: its trees at the counts of the pattern."""

    mean: Countable
    pattern: Pattern

    def at(self, tau: float) -> Expected:
        """The release when the part tau of the time is over."""
        samples, scales = self.mean.counted(self.pattern, tau)
        return expected(self.mean.grid, samples, self.pattern.samples(None, tau), scales)

    def likely(self, tau: float) -> None:
        """Nothing here is drawn."""


def expected(grid: Grid, samples: int, of: int, scales: Scales) -> Expected:
    """The release on so many samples with noise of these scales; the same numbers as in the release itself."""
    if not samples:
        return Expected(0, of, None, None)
    width = grid.width_value
    return Expected(samples, of, width(noise_sd(scales)) / samples, width(noise_quantile(scales)) / samples)
