"""Noised steps: numbers x_t + e_t that may all be published, so that whatever is made of them costs nothing more.

Guarantee    pure epsilon-DP for the numbers x_t + e_t of all steps together; steps may react to them
             (docs/proofs/decay.md)
Relation     values: two streams differ in what one unit contributed; who contributes, and when, is public
Unit         its changes, in one step or in many, are `width` grid steps in all
Sensitivity  L1, exact: width * levels, over the draws that protect a step
Noise        discrete Laplace, scale b = width * levels / epsilon, on whatever is noised; a function of key and name

A draw per step (laplace.py), trees of blocks (blue.py), sums with linear weights (hats.py).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from shoal.mechanisms.counters.complete_tree import Prefixes
from shoal.mechanisms.counters.counter import Scales, Subkeys
from shoal.mechanisms.error_bars import COVERAGE, noise_quantile, noise_sd, six_digits, tail_bound
from shoal.mechanisms.noise import laplace
from shoal.mechanisms.sums.exponentials import Exponentials
from shoal.mechanisms.sums.sums import Node, Noised
from shoal.mechanisms.sums.weights import Weights

Floats = NDArray[np.float64]
Decaying = Exponentials | Weights  # how steps weigh by age
FEW = 150  # draws: below that, one by one is faster
FAR = 1 << 18  # steps that decide how many draws a decayed sum is like


class StepNoise(Protocol):
    """The noise of the steps under a key."""

    def between(self, start: int, end: int) -> int:
        """The sum of e over steps start + 1 .. end, times the denominator."""
        ...


@dataclass(frozen=True)
class NoisedSteps(Noised, ABC):
    """All public parameters of steps with noise."""

    mechanism: ClassVar[str]  # the name that a release gives the mechanism that made it

    @property
    @abstractmethod
    def levels(self) -> int:
        """The number of draws that protect a step."""

    @abstractmethod
    def shape(self) -> str:
        """The steps' part of the digest of a metric's parameters; see `DecayedSum.shape`."""

    @property
    def l1_sensitivity(self) -> int:
        """The most, in grid steps, that one unit changes all noised numbers together."""
        return self.width * self.levels

    @cached_property
    def scale(self) -> Fraction:
        """Scale b of every draw."""
        return self.l1_sensitivity / Fraction(self.epsilon)

    @cached_property
    def draw_variance(self) -> float:
        return laplace.variance(self.scale)

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of steps after which draws have nothing in common with those before."""

    @abstractmethod
    def column(self, step: int) -> tuple[Node, ...]:
        """The draws that protect a step."""

    @abstractmethod
    def decayed_variance(self, decay: Decaying, t: int) -> float:
        """Variance of the noise in the decayed sum of steps 1 .. t."""

    @abstractmethod
    def mean_decayed_squares(self, decay: Decaying) -> float:
        """The mean of that variance over all phases, long after the beginning, in variances of a draw."""

    @abstractmethod
    def decayed_draws(self, decay: Decaying) -> int:
        """The number of equal draws that a decayed sum's noise is like, judged by its fourth moment."""

    @abstractmethod
    def window_variance(self, length: int, t: int) -> float:
        """Variance of the noise in the sum of the last `length` of steps 1 .. t, or of all if they are fewer."""

    @abstractmethod
    def mean_window_squares(self, length: int) -> float:
        """The mean of that variance over all positions of a full window, in variances of a draw."""

    @abstractmethod
    def window_bars(self, length: int, t: int, coverage: float = COVERAGE) -> tuple[float, float]:
        """Standard deviation of that noise, and the quantile of its size."""

    def decayed_tail(self, decay: Decaying, variance: float, coverage: float) -> float:
        """A bound for the noise of a decayed sum with this variance: no coefficient is above 1."""
        return self.tail(variance, 1.0, coverage)

    def tail(self, variance: float, largest: float, coverage: float, *, has_largest: bool = False) -> float:
        """A bound for a sum of draws with this variance, of which no coefficient is above `largest`."""
        squares = variance / self.draw_variance
        return six_digits(float(self.scale) * tail_bound(squares, largest, coverage, has_largest=has_largest))

    @abstractmethod
    def drawn(self, subkey: Subkeys) -> StepNoise: ...


class Given(Protocol):
    """What a sum of noised steps has from them."""

    @property
    def width(self) -> int: ...
    @property
    def epsilon(self) -> Fraction: ...
    @property
    def mechanism(self) -> str: ...
    def column(self, step: int) -> tuple[Node, ...]: ...


S = TypeVar("S", bound=Given)


class OfSteps(Generic[S]):
    """A weighted sum of noised steps, which is as private as they are."""

    steps: S

    @property
    def width(self) -> int:
        return self.steps.width

    @property
    def epsilon(self) -> Fraction:
        return self.steps.epsilon

    @property
    def mechanism(self) -> str:
        return self.steps.mechanism

    def column(self, step: int) -> tuple[Node, ...]:
        return self.steps.column(step)


class WeighedSteps(OfSteps[NoisedSteps], ABC):
    """A decayed sum of noised steps: the variance of its noise is a closed form of the weights."""

    @property
    @abstractmethod
    def by_age(self) -> Decaying:
        """How steps weigh by age."""

    @property
    @abstractmethod
    def far(self) -> int:
        """A multiple of the trees' size, beyond which the variance depends on the position in the trees alone."""

    @property
    def mean_variance(self) -> float:
        """Mean of `variance(t)` over all phases of the trees, long after the beginning."""
        return self.steps.mean_decayed_squares(self.by_age) * self.steps.draw_variance

    def variance(self, t: int) -> float:
        return _decayed_variance(self, t if t <= self.far else self.far + (t - self.far) % self.steps.size)

    def noise_sd(self, t: int) -> float:
        return six_digits(self.variance(t) ** 0.5)

    def noise_quantile(self, t: int, coverage: float = COVERAGE) -> float:
        """The quantile of a sum of equal draws, as many as the noise is like, at the same variance.

        For more than 95 % it is a bound on the tail, by the variance and the largest coefficient of a draw.
        """
        if coverage != COVERAGE:
            return self.steps.decayed_tail(self.by_age, self.variance(t), coverage)
        return six_digits(equal_quantile(self.steps.decayed_draws(self.by_age)) * self.variance(t) ** 0.5)


@lru_cache(maxsize=1 << 16)  # the groups of a metric ask for the same ones
def _decayed_variance(sums: WeighedSteps, t: int) -> float:
    return sums.steps.decayed_variance(sums.by_age, t)


def mean_noise(steps: NoisedSteps, decay: Decaying) -> float:
    """Half the mean variance of continuous noise, in few digits, so that every machine makes the same choice."""
    return six_digits(steps.levels**2 * steps.mean_decayed_squares(decay))


class Spans(NoisedSteps):
    """Noised steps for which the noise of any span has a closed form."""

    def window_variance(self, length: int, t: int) -> float:
        return self.span_variance(max(t - length, 0), t)

    def window_bars(self, length: int, t: int, coverage: float = COVERAGE) -> tuple[float, float]:
        """The bars of the window's span; a full window's depend on its position in the trees alone."""
        return _span_bars(self, length, t if t <= length else length + (t - length) % self.size, coverage)

    @abstractmethod
    def span_variance(self, start: int, end: int) -> float:
        """Variance of the noise in the sum of steps start + 1 .. end."""

    @abstractmethod
    def span_scales(self, start: int, end: int) -> Scales:
        """The scales of the draws that make up that noise."""


class RowNoise:
    """Sums of e over consecutive steps, from whole trees in a row, of which the first and the last are kept."""

    __slots__ = ("_held", "_middle", "_size", "_totals", "_tree")

    def __init__(self, size: int, tree: Callable[[int], Prefixes]) -> None:
        self._size, self._tree = size, tree
        self._held: dict[int, Prefixes] = {}  # by number of the tree
        self._totals: dict[int, int] = {}  # likewise
        self._middle: tuple[int, int, int] = (0, 0, 0)  # two trees, and the sum of e between them

    def between(self, start: int, end: int) -> int:
        """The sum of e over steps start + 1 .. end, at least one step."""
        size = self._size
        first, last = start // size, (end - 1) // size
        if not self._held.keys() <= {first, last}:
            self._let_go(first, last)
        tail = self._prefix(last, end - last * size)
        before = self._prefix(first, start - first * size) if start % size else 0
        if first == last:
            return tail - before
        return tail + self._total(first) - before + self._between(first, last)

    def _let_go(self, first: int, last: int) -> None:
        """Reduce trees between these two to their totals, and forget those before them."""
        for number in self._held.keys() - {first, last}:
            self._totals[number] = self._held.pop(number).numerator(self._size)
        self._totals = {number: total for number, total in self._totals.items() if number >= first}

    def _between(self, first: int, last: int) -> int:
        if self._middle[:2] != (first, last):
            self._middle = first, last, sum(map(self._total, range(first + 1, last)))
        return self._middle[2]

    def _total(self, number: int) -> int:
        if number not in self._totals:
            tree = self._held[number] if number in self._held else self._tree(number)
            self._totals[number] = tree.numerator(self._size)
        return self._totals[number]

    def _prefix(self, number: int, leaves: int) -> int:
        if number not in self._held:
            self._held[number] = self._tree(number)
        return self._held[number].numerator(leaves)


@lru_cache(maxsize=1 << 16)  # the groups of a metric, and all trees, ask for the same ones
def _span_bars(steps: Spans, length: int, t: int, coverage: float) -> tuple[float, float]:
    scales = steps.span_scales(max(t - length, 0), t)
    return noise_sd.__wrapped__(scales), noise_quantile.__wrapped__(scales, coverage)


def equal_quantile(draws: int) -> float:
    """The 95 % quantile of the size of a sum of `draws` equal draws, in standard deviations.

    >>> round(equal_quantile(1), 3), round(equal_quantile(200), 2)
    (2.118, 1.96)
    """
    return noise_quantile(((Fraction(1), draws),)) / math.sqrt(2 * draws)


def like(coefficients: Floats) -> int:
    """The number of equal draws with the same ratio of fourth to second moment; many are nearly a normal law."""
    squares = coefficients**2
    return int(min(round(float(np.sum(squares)) ** 2 / float(np.sum(squares**2))), 200))
