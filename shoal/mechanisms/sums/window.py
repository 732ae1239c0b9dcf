"""Window sum: at every step the sum of the last W steps, from noised steps.

Guarantee    pure epsilon-DP for all releases together; steps may react to them (docs/proofs/decay.md)
Relation     values: two streams differ in what one unit contributed; who contributes, and when, is public
Unit         its changes, in one step or in many, are `width` grid steps in all
Sensitivity  that of the noised steps (steps.py): width times the levels of draws
Noise        the sum of the noise of the window's steps, exact, rounded once; a function of key and t
Variance     of release t: that of the noise in a span of min(t, W) steps (spans.py, hat_variance.py)
Cost         per step some operations per level of the trees; state: the exact sums of the window's steps that are not 0
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

from shoal.mechanisms import check
from shoal.mechanisms.counters.counter import Subkeys, rounded
from shoal.mechanisms.error_bars import COVERAGE, six_digits
from shoal.mechanisms.sums.steps.blue import best_trees
from shoal.mechanisms.sums.steps.hat_variance import best_ratios
from shoal.mechanisms.sums.steps.hats import HatSteps
from shoal.mechanisms.sums.steps.laplace import LaplaceSteps
from shoal.mechanisms.sums.steps.steps import NoisedSteps, OfSteps
from shoal.mechanisms.sums.sums import Windowed


@dataclass(frozen=True)
class WindowSum(OfSteps[NoisedSteps]):
    """All public parameters of a window sum.

    >>> sums = WindowSum.best(1024, width=1, epsilon=Fraction(1))
    >>> sums.mechanism, sums.steps.ratios, round(sums.mean_variance)
    ('hats', (15, 16), 191)
    >>> WindowSum.best(8, width=1, epsilon=Fraction(1)).mechanism
    'per-step'
    """

    denominator: ClassVar[int] = 1

    length: int
    steps: NoisedSteps

    def __post_init__(self) -> None:
        check.positive(length=self.length)

    @classmethod
    def best(cls, length: int, *, width: int, epsilon: Fraction) -> "WindowSum":
        """The sum with the least mean variance over all positions of a window."""
        check.positive(length=length)
        return cls(length, _best_steps(length)(width, epsilon))

    def variance(self, t: int) -> float:
        return self.steps.window_variance(self.length, t)

    @property
    def mean_variance(self) -> float:
        """The mean of `variance` over where a full window begins."""
        return self.steps.mean_window_squares(self.length) * self.steps.draw_variance

    def noise_sd(self, t: int) -> float:
        return self.steps.window_bars(self.length, t)[0]

    def noise_quantile(self, t: int, coverage: float = COVERAGE) -> float:
        return self.steps.window_bars(self.length, t, coverage)[1]

    def summer(self, subkey: Subkeys) -> "WindowSummer":
        noise, denominator = self.steps.drawn(subkey), self.steps.denominator
        return WindowSummer(self.length, lambda t: rounded(noise.between(max(t - self.length, 0), t), denominator))

    def shape(self) -> str:
        return f"WindowSum(length={self.length}, steps={self.steps.shape()})"

    def counts(self) -> "WindowSummer":
        return WindowSummer(self.length, lambda t: 0)


@lru_cache(maxsize=64)
def _best_steps(length: int) -> Callable[[int, Fraction], NoisedSteps]:
    """The choice of least variance among a draw per step, the best trees and the best hats; the first of equals."""

    def score(steps: NoisedSteps) -> float:
        """Half the mean variance of continuous noise, in few digits, so that every machine makes the same choice."""
        return six_digits(steps.levels**2 * steps.mean_window_squares(length))

    ratios = best_ratios(length, ends=2)
    makes: list[Callable[[int, Fraction], NoisedSteps]] = [LaplaceSteps, best_trees(max(length, 2), score)]
    makes.append(lambda width, epsilon: HatSteps(width, epsilon, ratios))
    return min(makes, key=lambda make: score(make(1, Fraction(1))))


class WindowSummer(Windowed):
    """The releases: the exact sum of the window, and noise that is a function of t."""

    __slots__ = ("_noise", "_sum")

    def __init__(self, length: int, noise: Callable[[int], int]) -> None:
        super().__init__(length)
        self._noise, self._sum = noise, 0

    def add(self, x: int) -> int:
        self.t += 1
        self._sum += x - self._steps.push(self.t, x)
        return self._sum + self._noise(self.t)

    def skip(self, steps: int) -> None:
        self.t += steps
        self._sum -= self._steps.forget(self.t)

    def restore(self, head: list[Any], kept: Mapping[int, int]) -> None:
        super().restore(head, kept)
        self._sum = sum(kept.values())
