"""Noised steps by one draw of noise for each.

Guarantee    pure epsilon-DP for the numbers x_t + e_t of all steps together; steps may react to them
             (docs/proofs/decay.md)
Relation     values: two streams differ in what one unit contributed; who contributes, and when, is public
Unit         its changes, in one step or in many, are `width` grid steps in all
Sensitivity  L1, exact: width
Noise        discrete Laplace, scale b = width / epsilon, on every step; a function of key and step
Variance     of the noise in a weighted sum, sum over t of a_t e_t, in squared grid steps: v(b) |a|^2,
             v(b) = 2p / (1 - p)**2, p = exp(-1 / b)
Source       Dwork, McSherry, Nissim and Smith (2006)
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from shoal.mechanisms.counters.counter import Scales, Subkeys
from shoal.mechanisms.noise import laplace
from shoal.mechanisms.sums.powers import Powers
from shoal.mechanisms.sums.steps.steps import FAR, FEW, Decaying, Floats, Spans, like
from shoal.mechanisms.sums.sums import FRACTION, Node


@dataclass(frozen=True)
class LaplaceSteps(Spans):
    """One draw per step.

    >>> steps = LaplaceSteps(1, Fraction(1))
    >>> from shoal.mechanisms.sums.exponentials import Exponentials
    >>> decay = Exponentials.exponential(Fraction(9, 10))
    >>> round(steps.span_variance(10, 20), 1), round(steps.decayed_variance(decay, 99))
    (18.4, 10)
    """

    mechanism: ClassVar[str] = "per-step"

    def shape(self) -> str:
        return f"LaplaceSteps({self._shared_shape})"

    @property
    def levels(self) -> int:
        return 1

    @property
    def size(self) -> int:
        return 1

    def column(self, step: int) -> tuple[Node, ...]:
        return (Node(0, step, 1, self.scale),)

    def span_variance(self, start: int, end: int) -> float:
        return (end - start) * self.draw_variance

    def mean_window_squares(self, length: int) -> float:
        return float(length)

    def span_scales(self, start: int, end: int) -> Scales:
        return ((self.scale, end - start),)

    def decayed_variance(self, decay: Decaying, t: int) -> float:
        return decay.squares(t) * self.draw_variance

    def decayed_tail(self, decay: Decaying, variance: float, coverage: float) -> float:
        """A bound by the weight of the youngest step, which every release has."""
        return self.tail(variance, decay.weight(0), coverage, has_largest=True)

    def mean_decayed_squares(self, decay: Decaying) -> float:
        return decay.squares(1 << 60)

    def decayed_draws(self, decay: Decaying) -> int:
        return _step_draws(decay)

    # ---------------------------------------------------------------- of forward decay

    def borders(self, t: int) -> tuple[int, int]:
        """The last step up to t, and the first from t on, that shares no draw with the next."""
        return t, t

    def sampler(self, subkey: Subkeys) -> Callable[[int, int], int]:
        """The sum of e over steps start + 1 .. end, in steps of 2**-40."""
        drawn = self.drawn(subkey)
        return lambda start, end: drawn.between(start, end) << FRACTION

    def forward_squares(self, powers: Powers, t: int, unit: Callable[[Fraction], float]) -> float:
        return powers.squares(t) * unit(self.scale)

    def forward_draws(self, powers: Powers, t: int) -> Iterator[tuple[Fraction, Floats]]:
        yield self.scale, powers.recent(t, t)

    def largest_scale(self, t: int) -> Fraction:
        return self.scale

    # ---------------------------------------------------------------- drawn

    def drawn(self, subkey: Subkeys) -> "LaplaceNoise":
        """The noise under a key, with draw t for step t."""
        return LaplaceNoise(laplace.DiscreteLaplace(self.scale, subkey(0)))


@dataclass(slots=True)
class LaplaceNoise:
    """Sums of consecutive draws; the last sum is kept for the next, which shares most draws with it."""

    draws: laplace.DiscreteLaplace = field(repr=False)
    _last: tuple[int, int, int] = field(default=(0, 0, 0), init=False, repr=False)  # start, end, sum

    def between(self, start: int, end: int) -> int:
        first, last, total = self._last
        if start - first + end - last >= end - start or start < first or end < last:
            first, last, total = start, start, 0
        total += self._sum(last, end) - self._sum(first, start)
        self._last = start, end, total
        return total

    def _sum(self, start: int, end: int) -> int:
        if end - start < FEW:
            return sum(map(self.draws.draw, range(start + 1, end + 1)))
        return sum(self.draws.draw_block(start + 1, end - start).tolist())


@lru_cache(maxsize=64)
def _step_draws(decay: Decaying) -> int:
    return like(decay.recent(FAR))
