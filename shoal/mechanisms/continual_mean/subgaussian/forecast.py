"""Predicts the releases of a sharp mean of subgaussian samples: the pattern decides everything but the centre.

Privacy      no value and no key comes here, so nothing is charged
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from shoal.mechanisms.continual_mean.forecast import Expected, expected
from shoal.mechanisms.continual_mean.sharp.waiting import Waiting
from shoal.mechanisms.continual_mean.subgaussian.parameters import Start, SubgaussianParameters
from shoal.mechanisms.counters.blue import GrowingBlue


class Begun(NamedTuple):
    """When it begins, and how."""

    tick: int
    start: Start


@dataclass(frozen=True)
class SubgaussianProspect(Waiting[Begun]):
    """The releases to come over a pattern."""

    mean: SubgaussianParameters

    def at(self, tau: float) -> Expected:
        """The release when the part tau of the time is over; before it begins, the middle of the range."""
        tick, samples, mean = self._tick(tau), self.pattern.samples(None, tau), self.mean
        if self._begun is None or tick < self._begun.tick:
            half = mean.grid.width_value(mean.grid.steps / 2)
            return Expected(0, samples, half, half) if self._contributions(tau) else Expected(0, samples, None, None)
        blocks = zip(mean.doubling.weights, self._reached(tau)[: mean.open_blocks(self._begun.start.cap)], strict=False)
        included = sum(weight * count for weight, count in blocks)
        scales = self._counter.scales(self._released(tick - self._begun.tick + 1))
        return expected(mean.grid, included, samples, scales, mean.coverage)

    def likely(self, tau: float) -> None:
        """Always None: chance has no part in the noise's size."""

    @cached_property
    def _counter(self) -> GrowingBlue:
        assert self._begun is not None  # noqa: S101 - asked for after the start
        return self.mean.counter(self._begun.start)

    def _contributions(self, tau: float) -> int:
        return sum(self._reached(tau))

    def _reached(self, tau: float) -> list[int]:
        return self.mean.closed(self.pattern, tau)

    def _begin(self, tick: int) -> Begun | None:
        start = self.mean.begin(self._reached(self._tau(tick)), tick)
        return start and Begun(tick, start)
