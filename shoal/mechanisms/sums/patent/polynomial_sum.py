"""PolynomialSum: polynomially decayed sums from window sums of growing lengths, each with one weight for all its steps.

Guarantee    pure epsilon-DP for all releases together; steps may react to them (docs/proofs/decay.md)
Relation     values: two streams differ in what one unit contributed; who contributes, and when, is public
Unit         its changes, in one step or in many, are `width` grid steps in all
Sensitivity  L1, exact: width * h_j over the nodes of window j, h_j = ceil(log2 W_j) + 1, paid with epsilon_j
Noise        discrete Laplace, scale width * h_j / epsilon_j, on every node of window j, with
             epsilon_j = epsilon h_j a_j**(2/3) / (sum over i of h_i a_i**(2/3)); they sum to epsilon exactly
Weights      a step of age n is in the window j with a_j <= (n + 1)**-c < a_j / (1 - r), a_j = (1 - r)**j, and weighs
             a_j: without noise (1 - r) F <= F' <= F, for ages up to `horizon`; older steps are left out
Variance     of release t, in squared grid steps: sum over j of a_j**2 * (nodes of window j) * v(b_j); for any t at most
             2 (sum of h_j a_j**(2/3))**3 width**2 / epsilon**2, where scales are large
Source       Bolot, Fawaz, Muthukrishnan, Nikolov and Taft (2013), PolynomialSum; US patent application 2013/0212690 A1.
             There all nodes have one scale, and the variance stated does not belong to it; these budgets make it finite
"""

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

from shoal.mechanisms import check
from shoal.mechanisms.counters.counter import Subkeys
from shoal.mechanisms.decimals import most, power
from shoal.mechanisms.error_bars import COVERAGE, noise_quantile, six_digits
from shoal.mechanisms.noise.keyed import MAX_INDEX
from shoal.mechanisms.sums.patent.window_sum import DyadicNoise, DyadicWindow
from shoal.mechanisms.sums.sums import FRACTION, UNIT, Node, Noised, Windowed, spelled

_WEIGHT_BITS = 96
LARGEST_HORIZON = 1 << 30


class Aged(NamedTuple):
    """A window over steps of certain ages."""

    age: int  # of its last step
    weight: int  # of its steps, in steps of 2**-96
    window: DyadicWindow


class FlatWindows(Noised, ABC):
    """Window sums side by side, each with one weight for all its steps, which fall by the factor 1 - `error`."""

    mechanism: ClassVar[str] = "patent"
    denominator: ClassVar[int] = UNIT

    error: Fraction  # r

    @cached_property
    def windows(self) -> tuple[Aged, ...]:
        """The windows that have any steps and any weight, side by side, the youngest first."""
        shapes = [(age, length, (1 - self.error) ** j) for j, age, length in self._shapes()]
        parts = [
            ((length - 1).bit_length() + 1) * math.floor(power(weight, Fraction(2, 3)) * (1 << _WEIGHT_BITS))
            for _, length, weight in shapes
        ]
        total = sum(parts)
        return tuple(
            Aged(
                age,
                math.floor(weight * (1 << _WEIGHT_BITS)),
                DyadicWindow(self.width, self.epsilon * Fraction(part, total), length),
            )
            for (age, length, weight), part in zip(shapes, parts, strict=True)
            if part  # else its weight, which is less, is below 2**-96
        )

    @abstractmethod
    def _shapes(self) -> Iterator[tuple[int, int, int]]:
        """(j, age of the youngest step, length) of each window, whose weight is (1 - r)**j."""

    @property
    def length(self) -> int:
        last = self.windows[-1]
        return last.age + last.window.length

    def column(self, step: int) -> tuple[Node, ...]:
        """The draws that protect a step: the nodes of all windows' trees that hold it."""
        return tuple(
            node._replace(subkey=_number(j, node.subkey))
            for j, aged in enumerate(self.windows)
            for node in aged.window.column(step)
        )

    def variance(self, t: int) -> float:
        return sum(
            (aged.weight / (1 << _WEIGHT_BITS)) ** 2 * aged.window.variance(t - aged.age) for aged in self.windows
        )

    def noise_sd(self, t: int) -> float:
        return six_digits(self.variance(t) ** 0.5)

    def noise_quantile(self, t: int, coverage: float = COVERAGE) -> float:
        scales = (
            (aged.weight * aged.window.scale / (1 << _WEIGHT_BITS), aged.window.nodes(t - aged.age))
            for aged in self.windows
        )
        return noise_quantile(tuple(scales), coverage)

    def summer(self, subkey: Subkeys) -> "PolynomialSummer":
        noises = [DyadicNoise(aged.window, partial(_subkey, subkey, j)).at for j, aged in enumerate(self.windows)]
        return PolynomialSummer(self, noises)

    def counts(self) -> "PolynomialSummer":
        return PolynomialSummer(self, [lambda t: 0] * len(self.windows))


@dataclass(frozen=True)
class PolynomialSum(FlatWindows):
    """All public parameters of a polynomial sum.

    >>> sums = PolynomialSum(1, Fraction(1), exponent=Fraction(2), error=Fraction(1, 2), horizon=1000)
    >>> [(aged.age, aged.window.length) for aged in sums.windows[:5]], len(sums.windows), sums.length
    ([(0, 1), (1, 1), (2, 2), (4, 1), (5, 3)], 19, 1024)
    >>> sum(aged.window.epsilon for aged in sums.windows), round(sums.variance(10**6), 1)
    (Fraction(1, 1), 23.6)
    """

    exponent: Fraction  # c, greater than 1
    error: Fraction  # r
    horizon: int  # largest age that matters

    def __post_init__(self) -> None:
        super().__post_init__()
        check.positive(exponent=self.exponent, horizon=self.horizon)
        check.probability(error=self.error)
        check.below(LARGEST_HORIZON, horizon=self.horizon)
        if not 1 < self.exponent <= 16:
            raise ValueError(f"exponent must be greater than 1 and at most 16, not {self.exponent}")

    def _shapes(self) -> Iterator[tuple[int, int, int]]:
        """(j, age of the youngest step, length): the oldest age of window j is floor((1 - r)**(-j / c)) - 1."""
        j, age = 0, 0
        while age <= self.horizon:
            end = math.floor(most(power(1 - self.error, -j / self.exponent)))
            if end > age:
                yield j, age, end - age
            j, age = j + 1, end

    def shape(self) -> str:
        exponent, error = spelled(self.exponent), spelled(self.error)
        return f"PolynomialSum({self._shared_shape}, exponent={exponent}, error={error}, horizon={self.horizon})"


def _number(window: int, block: int) -> int:
    """The number of the subkey of a window's block."""
    check.below(MAX_INDEX, block=block)  # beyond it is the next window's
    return window * MAX_INDEX + block


def _subkey(subkey: Subkeys, window: int, block: int) -> bytes:
    return subkey(_number(window, block))


class PolynomialSummer(Windowed):
    """The releases: the exact sum of each window, and noise that is a function of t."""

    __slots__ = ("_edges", "_noises", "_sums", "_windows")

    def __init__(self, sums: FlatWindows, noises: Sequence[Callable[[int], int]]) -> None:
        super().__init__(sums.length)
        self._windows, self._noises = sums.windows, noises
        self._edges = [*(aged.age for aged in sums.windows), sums.length]
        self._sums = [0] * len(sums.windows)

    def add(self, x: int) -> int:
        """Take one more step: each window passes its oldest step to the next."""
        self.t += 1
        oldest = self._steps.push(self.t, x)
        steps = [self._steps.held.get(self.t - edge, 0) for edge in self._edges[:-1]] + [oldest]
        self._sums = [total + steps[j] - steps[j + 1] for j, total in enumerate(self._sums)]
        parts = zip(self._windows, self._sums, self._noises, strict=True)
        released = sum(aged.weight * (total + noise(self.t - aged.age)) for aged, total, noise in parts)
        return released >> _WEIGHT_BITS - FRACTION

    def skip(self, steps: int) -> None:
        self.t += steps
        self._steps.forget(self.t)
        self._sum()

    def _sum(self) -> None:
        self._sums = [0] * len(self._windows)
        for step, x in self._steps.held.items():
            self._sums[bisect_right(self._edges, self.t - step) - 1] += x

    def restore(self, head: list[Any], kept: Mapping[int, int]) -> None:
        super().restore(head, kept)
        self._sum()
