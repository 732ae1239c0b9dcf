"""Decayed sum of noised steps: exponential or polynomial weights, applied to what may be published anyway.

Guarantee    pure epsilon-DP for all releases together; steps may react to them: they are a function of the noised steps
             (steps.py, docs/proofs/decay.md)
Relation     values: two streams differ in what one unit contributed; who contributes, and when, is public
Unit         its changes, in one step or in many, are `width` grid steps in all
Sensitivity  that of the noised steps; no weight enters it, so weights may round
Noise        that of the noised steps, with the weights of the steps
Variance     of release t: in closed form by the weights' sums in the blocks of the trees
Silence      a tree, or segment, whose steps are all skipped takes no noise; other steps of 0 are noised like all: the
             best estimates of their tree count on it, and one step alone would have several times the variance
Cost         per step one product per term of the decay (exponentials.py), whatever t is; to skip, two trees' at most.
             State: one integer per term
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import Any, ClassVar

from shoal.mechanisms.counters.counter import Subkeys
from shoal.mechanisms.counters.tree_row import LARGEST
from shoal.mechanisms.sums.exponentials import Exponentials, Running
from shoal.mechanisms.sums.steps.blue import best_trees
from shoal.mechanisms.sums.steps.hat_variance import best_ratios
from shoal.mechanisms.sums.steps.hats import HatSteps
from shoal.mechanisms.sums.steps.laplace import LaplaceSteps
from shoal.mechanisms.sums.steps.steps import NoisedSteps, WeighedSteps, mean_noise
from shoal.mechanisms.sums.sums import FRACTION, UNIT, Headed

_FURTHEST = 64  # times the steps that matter: a tree with more steps is no better than a smaller one
_SLOWEST = 1e-6  # rate; from there on trees are better, and planning hats takes time and memory by its inverse


@dataclass(frozen=True)
class DecayedSteps(WeighedSteps):
    """All public parameters of a decayed sum of noised steps.

    >>> decay = Exponentials.exponential(Fraction(99, 100))
    >>> sums = DecayedSteps.best(decay, width=1, epsilon=Fraction(1))
    >>> sums.mechanism, sums.steps.ratios, round(sums.mean_variance, 1)
    ('hats', (19,), 36.3)
    >>> summer = DecayedSteps(decay, LaplaceSteps(1, Fraction(10**9))).summer(lambda number: bytes(32))  # no noise
    >>> [round(summer.add(x) / sums.denominator, 4) for x in (100, 0, 0)]
    [100.0, 99.0, 98.01]
    """

    denominator: ClassVar[int] = UNIT

    decay: Exponentials
    steps: NoisedSteps

    @classmethod
    def best(cls, decay: Exponentials, *, width: int, epsilon: Fraction) -> "DecayedSteps":
        """The sum with the least mean variance long after the beginning."""
        return cls(decay, _best_steps(decay)(width, epsilon))

    @property
    def by_age(self) -> Exponentials:
        return self.decay

    @cached_property
    def far(self) -> int:
        """A multiple of the trees' size beyond which age makes no difference that a float shows."""
        size = self.steps.size
        return math.ceil(_FURTHEST / float(min(self.decay.rates)) / size) * size

    def summer(self, subkey: Subkeys) -> "DecayedSummer":
        noise, denominator = self.steps.drawn(subkey), self.steps.denominator
        return DecayedSummer(
            self.decay, lambda t: (noise.between(t - 1, t) << FRACTION) // denominator, self.steps.size
        )

    def shape(self) -> str:
        return f"DecayedSteps(decay={self.decay.shape()}, steps={self.steps.shape()})"

    def counts(self) -> "DecayedSummer":
        return exact(self.decay)


def exact(decay: Exponentials) -> "DecayedSummer":
    """The decayed sum of public numbers, without noise."""
    return DecayedSummer(decay, lambda t: 0, 1)


@lru_cache(maxsize=64)
def _best_steps(decay: Exponentials) -> Callable[[int, Fraction], NoisedSteps]:
    """The choice of least variance among the best trees, the best hats and a draw per step; the simplest of equals."""
    score = partial(mean_noise, decay=decay)
    reach = min(_FURTHEST / float(min(decay.rates)), LARGEST)
    makes: list[Callable[[int, Fraction], NoisedSteps]] = [LaplaceSteps, best_trees(reach, score)]
    if len(decay.factors) == 1 and decay.rates[0] > _SLOWEST:
        ratios = best_ratios(decay.squares(1 << 60), ends=1)
        makes.append(lambda width, epsilon: HatSteps(width, epsilon, ratios))
    return min(makes, key=lambda make: score(make(1, Fraction(1))))


class DecayedSummer(Headed):
    """The releases. The state holds noised numbers alone: it tells no more than what is published."""

    __slots__ = ("_noise", "_running", "_size", "t")

    def __init__(self, decay: Exponentials, noise: Callable[[int], int], size: int) -> None:
        self._running, self._noise, self._size = Running(decay), noise, size
        self.t = 0

    def add(self, x: int) -> int:
        self.t += 1
        return self._running.add((x << FRACTION) + self._noise(self.t))

    def skip(self, steps: int) -> None:
        """Pass whole trees by decay alone, and parts of them step by step."""
        end, size = self.t + steps, self._size
        first, last = -(-self.t // size) * size, end // size * size
        if first < last:
            self._rest(first)
            self._running.skip(last - first)
            self.t = last
        self._rest(end)

    def _rest(self, t: int) -> None:
        while self.t < t:
            self.add(0)

    def head(self) -> list[Any]:
        return [self.t, self._running.head()]

    def restore(self, head: list[Any], kept: Mapping[int, int]) -> None:
        self.t = head[0]
        self._running.restore(head[1])
