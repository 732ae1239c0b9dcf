"""Predicts when a mean that waits begins, in ticks and parts of the time, and how many releases follow.

A mean waits by ticks, with contributions or without; with a release per contribution, a tick is a release. Of ticks of
a length, only those with a contribution have a release.

Privacy      no value and no key comes here, so nothing is charged
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np

from shoal.mechanisms.continual_mean.looks import stride
from shoal.mechanisms.continual_mean.mean import MeanParameters
from shoal.mechanisms.workload import Pattern

FULL, STRIDES = 128, 8  # ticks in a doubling, and the strides in which they are looked at
CURVE = 256  # instants, twice, at which contributions are counted, where each has a release

Begun = TypeVar("Begun")


@dataclass(frozen=True)
class Waiting(ABC, Generic[Begun]):
    """The ticks of a mean that waits, over a pattern."""

    mean: MeanParameters
    pattern: Pattern
    releases: int | None  # None: one per contribution

    @cached_property
    def ticks(self) -> int:
        """The number of ticks in all, including those before it begins."""
        return max(1, self._contributions(1.0) if self.releases is None else self.releases)

    @cached_property
    def _share(self) -> Fraction:
        """Share of ticks that have a release, at most: each release needs a contribution."""
        return min(Fraction(1), Fraction(max(1, self._contributions(1.0)), self.ticks))

    def _released(self, ticks: int) -> int:
        """Number of releases in the first `ticks` ticks of the counter, the first of which has one."""
        return 1 + int((ticks - 1) * self._share)

    @abstractmethod
    def _contributions(self, tau: float) -> int:
        """The number of contributions when the part tau of the time is over."""

    @cached_property
    def _curve(self) -> tuple[list[float], list[float]]:
        """Parts of the time, some in equal ratios and some equally far apart, and the contributions by then."""
        ratios = (self.ticks ** (i / CURVE - 1) for i in range(CURVE))
        taus = sorted({0.0, *ratios, *(i / CURVE for i in range(1, CURVE + 1))})
        return taus, [float(self._contributions(tau)) for tau in taus]

    def _tick(self, tau: float) -> int:
        tick = float(np.interp(tau, *self._curve)) if self.releases is None else tau * self.ticks
        return max(1, round(tick))

    def _tau(self, tick: int) -> float:
        """The part of the time at which the tick is complete."""
        taus, counts = ([0.0, 1.0], [0.0, float(self.ticks)]) if self.releases is not None else self._curve
        return float(np.interp(tick, counts, taus))

    # ---------------------------------------------------------------- when it begins

    @abstractmethod
    def _begin(self, tick: int) -> Begun | None:
        """What the mean decides at this tick; None: to wait."""

    @cached_property
    def _begun(self) -> Begun | None:
        """The tick at which it begins and in which way, as the pattern decides.

        The search goes in strides of an eighth, then tick by tick.
        """
        asked = _asked(self.ticks)
        passed = index = 0
        while passed < len(asked):
            if self._begin(asked[index]) is not None:
                decisions = (self._begin(tick) for tick in asked[passed : index + 1])
                return next(decision for decision in decisions if decision is not None)
            passed, index = index + 1, min(index + max(1, min(index, FULL) // STRIDES), len(asked) - 1)
        return None


def _asked(ticks: int) -> list[int]:
    """The ticks at which the mean decides: all at first, then equally many in each doubling.

    >>> _asked(1000)[120:130]
    [121, 122, 123, 124, 125, 126, 127, 128, 130, 132]
    """
    asked, tick = [], 1
    while tick <= ticks:
        asked.append(tick)
        tick += stride(tick)
    return asked
