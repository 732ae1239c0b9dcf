"""Sum with listed weights: at every step the sum of the last steps, each with the weight of its age, from noised steps.

Guarantee    pure epsilon-DP for all releases together; steps may react to them (docs/proofs/decay.md)
Relation     values: two streams differ in what one unit contributed; who contributes, and when, is public
Unit         its changes, in one step or in many, are `width` grid steps in all
Sensitivity  that of the noised steps (steps.py): width times the levels of draws; no weight enters it
Noise        the sum of the noise of the steps with their weights, exact, rounded once to a grid step's denominator-th
             part; a function of key and t
Variance     of release t: in closed form by the weights' sums in the blocks of the trees, as for all decays
Cost         per step two products per weight; state: the exact sums of the steps that weigh anything and are not 0
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from operator import mul
from typing import Any

from shoal.mechanisms.counters.counter import Subkeys, rounded
from shoal.mechanisms.sums.steps.blue import best_trees
from shoal.mechanisms.sums.steps.laplace import LaplaceSteps
from shoal.mechanisms.sums.steps.steps import NoisedSteps, WeighedSteps, mean_noise
from shoal.mechanisms.sums.sums import Windowed
from shoal.mechanisms.sums.weights import Weights


@dataclass(frozen=True)
class TableSum(WeighedSteps):
    """All public parameters of a sum with listed weights.

    >>> sums = TableSum.best(Weights.of([Fraction(1), Fraction(1, 2), Fraction(1, 4)]), width=1, epsilon=Fraction(1))
    >>> sums.mechanism, sums.denominator, round(sums.mean_variance, 2)
    ('per-step', 4, 2.42)
    >>> TableSum.best(Weights.of([Fraction(1)] * 1000), width=1, epsilon=Fraction(1)).mechanism
    'blue'
    """

    weights: Weights
    steps: NoisedSteps

    @classmethod
    def best(cls, weights: Weights, *, width: int, epsilon: Fraction) -> "TableSum":
        """The sum with the least mean variance long after the beginning."""
        return cls(weights, _best_steps(weights)(width, epsilon))

    @property
    def denominator(self) -> int:
        return self.weights.denominator

    @property
    def by_age(self) -> Weights:
        return self.weights

    @property
    def far(self) -> int:
        return -(-self.weights.length // self.steps.size) * self.steps.size

    def summer(self, subkey: Subkeys) -> "TableSummer":
        noise = self.steps.drawn(subkey)
        return TableSummer(self.weights, lambda t: noise.between(t - 1, t), self.steps.denominator)

    def shape(self) -> str:
        return f"TableSum(weights={self.weights.shape()}, steps={self.steps.shape()})"

    def counts(self) -> "TableSummer":
        return TableSummer(self.weights, lambda t: 0, 1)


@lru_cache(maxsize=64)
def _best_steps(weights: Weights) -> Callable[[int, Fraction], NoisedSteps]:
    """The choice of least variance among the best trees and a draw per step; the simplest of equals."""
    score = partial(mean_noise, decay=weights)
    makes: list[Callable[[int, Fraction], NoisedSteps]] = [LaplaceSteps, best_trees(max(weights.length, 2), score)]
    return min(makes, key=lambda make: score(make(1, Fraction(1))))


class TableSummer(Windowed):
    """The releases: the exact sum with its weights, and noise that is a function of t."""

    __slots__ = ("_denominator", "_drawn", "_last", "_noise", "_parts")

    def __init__(self, weights: Weights, noise: Callable[[int], int], denominator: int) -> None:
        super().__init__(weights.length)
        self._parts, self._noise, self._denominator = weights.parts, noise, denominator
        self._drawn: deque[int] = deque(maxlen=weights.length)  # noise of the last steps up to `_last`, youngest first
        self._last = 0

    def add(self, x: int) -> int:
        self.t += 1
        self._steps.push(self.t, x)
        for step in range(max(self._last, self.t - len(self._parts)) + 1, self.t + 1):
            self._drawn.appendleft(self._noise(step))
        self._last = self.t
        exact = sum(self._parts[self.t - step] * held for step, held in self._steps.held.items())
        return exact + rounded(sum(map(mul, self._parts, self._drawn)), self._denominator)

    def skip(self, steps: int) -> None:
        self.t += steps
        self._steps.forget(self.t)

    def restore(self, head: list[Any], kept: Mapping[int, int]) -> None:
        super().restore(head, kept)
        self._drawn.clear()
        self._last = 0
