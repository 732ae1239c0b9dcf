"""Noised steps from sums whose weights rise and fall linearly: a fifth less variance than trees whose nodes are blocks.

Guarantee    pure epsilon-DP for the numbers x_t + e_t of all steps together; steps may react to them
             (docs/proofs/decay.md, hats.md)
Relation     values: two streams differ in what one unit contributed; who contributes, and when, is public
Unit         its changes, in one step or in many, are `width` grid steps in all
Sensitivity  L1, exact: width * levels, the steps' own draws and each stride's hats being a level: a step's weights in
             the two hats of a stride that hold it sum to 1. They are fractions of twice the stride
Noise        discrete Laplace, scale b = width * levels / epsilon, on every step and, in fractions of twice the stride,
             on every hat, in one row without end; a function of key, level and number
Estimate     e = z_0 + f(z_hats - H z_0), in steps of 2**-16. What f takes does not move with x: any function will do,
             and this one is near the best linear one (hat_least_squares.py)
Variance     of a weighted sum, in squared grid steps: a' M**-1 a times v(b), v(b) = 2p / (1 - p)**2, p = exp(-1 / b);
             from that at some phases of the hats, to a few per cent (hat_variance.py)
Source       this project's; trees of blocks: Hay, Rastogi, Miklau and Suciu (2010)
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from shoal.mechanisms.counters.complete_tree import Draws
from shoal.mechanisms.counters.counter import Subkeys
from shoal.mechanisms.error_bars import COVERAGE, six_digits
from shoal.mechanisms.noise import laplace
from shoal.mechanisms.sums.exponentials import Exponentials
from shoal.mechanisms.sums.steps import hat_variance
from shoal.mechanisms.sums.steps.hat_least_squares import Floats, Hats
from shoal.mechanisms.sums.steps.hat_variance import LARGEST, Flat, strides_of
from shoal.mechanisms.sums.steps.steps import Decaying, NoisedSteps, RowNoise, equal_quantile
from shoal.mechanisms.sums.sums import Node

PLACES = 16  # binary places of e
_OWN, _MARGIN = 2, 2  # largest strides of a segment, and of what is looked at on either side of it


@dataclass(frozen=True)
class HatSteps(NoisedSteps):
    """The strides are ratios[0], ratios[0] * ratios[1], ...

    >>> steps = HatSteps(1, 1, (20,))
    >>> decay = Exponentials.half_life(69)
    >>> steps.levels, steps.scale, steps.size, round(8 * steps.mean_decayed_squares(decay))
    (2, Fraction(2, 1), 240, 37)
    >>> [(node.subkey, node.place, node.coefficient) for node in steps.column(23)]
    [(0, 22, 1), (1, 1, 35), (1, 2, 5)]
    """

    mechanism: ClassVar[str] = "hats"
    denominator: ClassVar[int] = 1 << PLACES  # of every e_t

    ratios: tuple[int, ...]
    segment: int = 256  # steps at least that are estimated together: more cost less each

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.ratios or min(self.ratios) < 2 or self.strides[-1] > LARGEST:
            raise ValueError(f"ratios must be 2 or more, and their product at most {LARGEST}, not {self.ratios}")

    def shape(self) -> str:
        return f"HatSteps({self._shared_shape}, ratios={self.ratios}, segment={self.segment})"

    @property
    def levels(self) -> int:
        return 1 + len(self.ratios)

    @cached_property
    def strides(self) -> tuple[int, ...]:
        return strides_of(self.ratios)

    @property
    def size(self) -> int:
        top = self.strides[-1]
        return max(_OWN, self.segment // top) * top

    def column(self, step: int) -> tuple[Node, ...]:
        """The step's own draw, and for each stride the two hats that cover it."""
        index = step - 1
        nodes = [Node(0, index, 1, self.scale)]
        for level, stride in enumerate(self.strides, start=1):
            hat, rest = divmod(index, stride)
            rising, scale = 2 * rest + 1, 2 * stride * self.scale
            nodes += [Node(level, hat, 2 * stride - rising, scale), Node(level, hat + 1, rising, scale)]
        return tuple(nodes)

    def drawn(self, subkey: Subkeys) -> RowNoise:
        """Segments in a row; the draws of a level come from the subkey of its number."""
        scales = (self.scale, *(2 * stride * self.scale for stride in self.strides))
        draws = [laplace.DiscreteLaplace(scale, subkey(level)) for level, scale in enumerate(scales)]
        return RowNoise(self.size, lambda number: _segment(self, draws, number))

    def decayed_variance(self, decay: Decaying, t: int) -> float:
        """The variance at t, by the phase of the hats."""
        return hat_variance.squares(self.ratios, cast(Exponentials, decay), t) * self.draw_variance

    def mean_decayed_squares(self, decay: Decaying) -> float:
        return hat_variance.mean_squares(self.ratios, cast(Exponentials, decay))

    def decayed_draws(self, decay: Decaying) -> int:
        """The number of draws, from the coefficients at one phase."""
        return hat_variance.draws(self.ratios, cast(Exponentials, decay))

    def window_variance(self, length: int, t: int) -> float:
        """The variance, by the phases of the hats at either end."""
        return hat_variance.squares(self.ratios, Flat(length), t) * self.draw_variance

    def mean_window_squares(self, length: int) -> float:
        return hat_variance.mean_squares(self.ratios, Flat(length))

    def decayed_tail(self, decay: Decaying, variance: float, coverage: float) -> float:
        """A bound by the largest coefficient at one phase, or 1 if that is less."""
        return self.tail(variance, max(1.0, hat_variance.largest(self.ratios, cast(Exponentials, decay))), coverage)

    def window_bars(self, length: int, t: int, coverage: float = COVERAGE) -> tuple[float, float]:
        """The bars of as many equal draws as come close to the noise; beyond 95 % a bound on its tail."""
        variance = self.window_variance(length, t)
        sd = variance**0.5
        if coverage != COVERAGE:
            largest = max(1.0, hat_variance.largest(self.ratios, Flat(length)))
            return six_digits(sd), self.tail(variance, largest, coverage)
        return six_digits(sd), six_digits(sd * equal_quantile(hat_variance.draws(self.ratios, Flat(length))))


class Prefixes(NamedTuple):
    """The sums of e over the first steps of a segment, in steps of 2**-16."""

    sums: NDArray[Any]

    def numerator(self, t: int) -> int:
        return int(self.sums[t])


def _segment(steps: HatSteps, draws: list[laplace.DiscreteLaplace], number: int) -> Prefixes:
    """The sums of one segment, from its draws and those of some strides around it, later ones too."""
    margin = _MARGIN * steps.strides[-1]
    start, end = number * steps.size, (number + 1) * steps.size
    first, last = max(start - margin, 0), end + margin
    own = draws[0].draw_block(first, last - first)
    residuals = [
        _residuals(noise, own, stride, first, last) for noise, stride in zip(draws[1:], steps.strides, strict=True)
    ]
    corrections = Hats(steps.ratios, begins=not first).correction(residuals)[start - first : end - first]
    correction = _integers(np.rint(corrections * (1 << PLACES)))
    own = own[start - first : end - first]
    if (_largest(own) + 1 << PLACES) + _largest(correction) >= (1 << 62) // steps.size:
        own, correction = own.astype(np.object_), correction.astype(np.object_)
    return Prefixes(np.concatenate((own[:1] * 0, np.cumsum(own * (1 << PLACES) + correction))))


def _residuals(noise: laplace.DiscreteLaplace, own: Draws, stride: int, first: int, last: int) -> Floats:
    """The draws of the hats, less what the steps' own draws sum up to under them: exact until it is a float."""
    if (_largest(own) + 1) * 4 * stride * stride >= 1 << 62:
        own = own.astype(np.object_)
    blocks = own.reshape(-1, stride)
    upper = (blocks * (2 * np.arange(stride) + 1)).sum(axis=1)
    lower = blocks.sum(axis=1) * (2 * stride) - upper
    at = first // stride + 1  # of the hats that have all their steps here
    drawn = noise.draw_block(at, len(blocks) - 1)
    inner = drawn.astype(np.object_) - (upper[:-1] + lower[1:])
    begin = 0 if first else noise.draw(0) - int(lower[0])
    return np.array([begin, *inner, 0], dtype=np.float64) / (2 * stride)


def _integers(values: Floats) -> Draws:
    if float(np.max(np.abs(values))) < 2.0**62:
        return values.astype(np.int64)
    return np.array([int(value) for value in values.tolist()], dtype=np.object_)


def _largest(values: Draws) -> int:
    return max(int(values.max()), -int(values.min()))
