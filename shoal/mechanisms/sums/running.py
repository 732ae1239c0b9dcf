"""Running sum: everything since the beginning, undecayed, at every step; and from it the sum over any window.

Guarantee    pure epsilon-DP for all releases together; steps may react to them (docs/proofs/counters.md, blue.md)
Relation     values: two streams differ in what one unit contributed; who contributes, and when, is public
Unit         its changes, in one step or in many, are `width` grid steps in all
Sensitivity  L1, exact: width * levels over the nodes of a tree in which every step is in `levels` nodes
Noise        that of a growing counter (blue.py), for steps without end
Variance     of release t: the counter's. Of a window, the difference of two releases: in one tree that of a span
             (spans.py); over several trees the rest of the first, the totals between, and the prefix of the last
Source       blue.py
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple, cast

from shoal.mechanisms import check
from shoal.mechanisms.counters.blue import GrowingBlue
from shoal.mechanisms.counters.complete_tree import Coefficients, Complete
from shoal.mechanisms.counters.counter import Subkeys
from shoal.mechanisms.counters.least_squares import LeastSquares
from shoal.mechanisms.counters.spans import span_coefficients, span_squares
from shoal.mechanisms.error_bars import COVERAGE, noise_quantile, six_digits
from shoal.mechanisms.noise import laplace
from shoal.mechanisms.sums.steps.steps import equal_quantile
from shoal.mechanisms.sums.sums import Headed, Node, Noised, text

_FIRST = 64  # releases whose quantile is that of their very draws
_NORMAL = 200  # draws whose sum is as good as normal
_SPREAD = 16  # draws that the little stands for by which a past tree's total is not the best estimate


class Part(NamedTuple):
    """One of the numbers that add up to a window's sum: released by a step, at an index, with a sign."""

    step: int
    place: int
    sign: int


Last = Callable[[int], int]  # step t -> the last of the steps 1 .. t that released something, 0 if none did


def every_step(t: int) -> int:
    """The last step up to t that released something, where none was skipped: t itself."""
    return t


@dataclass(frozen=True)
class RunningSum(Noised):
    """All public parameters of a running sum. The horizon tunes accuracy and nothing else.

    >>> sums = RunningSum(1, Fraction(1), horizon=1000)
    >>> sums.parts(500, 100), round(sums.window_variance(500, 100)), round(sums.variance(500))
    ((Part(step=500, place=0, sign=1), Part(step=400, place=0, sign=-1)), 167, 143)
    """

    mechanism: ClassVar[str] = "blue"

    horizon: int | None = None  # steps expected, if that is known

    def __post_init__(self) -> None:
        self.tree.position(0)

    @cached_property
    def tree(self) -> GrowingBlue:
        return GrowingBlue(self.width, self.epsilon, horizon=self.horizon)

    def column(self, step: int) -> tuple[Node, ...]:
        scale = self.tree.scale(self.tree.position(step).tree)
        return tuple(Node(epoch, index, 1, scale) for epoch, index in self.tree.nodes_of(step))

    def variance(self, t: int) -> float:
        return self.tree.variance(t)

    def noise_sd(self, t: int) -> float:
        return _bars(self, t, COVERAGE)[0]

    def noise_quantile(self, t: int, coverage: float = COVERAGE) -> float:
        """The bound below which the size of release t's noise stays with probability `coverage`.

        Beyond the first steps it is at 95 % that of as many equal draws as have the same second and fourth moment.
        """
        return _bars(self, t, coverage)[1]

    def _moments(self, t: int) -> tuple[float, float]:
        """The sums, over the draws in release t's noise, of their variances and of the variances' squares."""
        position = self.tree.position(t)
        counted = [(1, position.tree, cast(LeastSquares, position.tree).moments(position.within))]
        counted += [(len(epochs), tree, _upper_moments(tree)) for tree, epochs in self.tree.runs(position.epoch)]
        units = [laplace.variance(self.tree.scale(tree)) for _, tree, _ in counted]
        pairs = list(zip(counted, units, strict=True))
        return (
            sum(count * second * unit for (count, _, (second, _)), unit in pairs),
            sum(count * fourth * unit**2 for (count, _, (_, fourth)), unit in pairs),
        )

    def parts(self, end: int, length: int, last: Last = every_step) -> tuple[Part, ...]:
        """The two releases whose difference is the sum over the last `length` of steps 1 .. end.

        Steps that `last` leaves out were skipped: they hold nothing, and the release before them tells the same.
        """
        start, end = _ends(end, length, last)
        if start == end:
            return ()
        before = (Part(start, 0, -1),) if start else ()
        return (Part(end, 0, 1), *before)

    def window_variance(self, end: int, length: int, last: Last = every_step) -> float:
        terms = self._window(*_ends(end, length, last))
        return math.fsum(float(squares) * laplace.variance(scale) for squares, scale, _ in terms)

    def window_quantile(self, end: int, length: int, last: Last = every_step, coverage: float = COVERAGE) -> float:
        counts: dict[Fraction, int] = {}
        for _, scale, coefficients in self._window(*_ends(end, length, last)):
            for coefficient, count in coefficients:
                counts[coefficient * scale] = counts.get(coefficient * scale, 0) + count
        return noise_quantile(tuple(counts.items()), coverage)

    def _window(self, first: int, end: int) -> Iterator[tuple[Fraction, Fraction, Coefficients]]:
        """The terms of the noise of release `end` without that of release `first`.

        Each is (squared coefficients in all, scale of the draws, coefficients). A past tree's total is estimated from
        its upper nodes; what that differs from the best estimate by is not correlated with any best estimate, so that
        the squares add up.
        """
        if first == end:
            return
        start, last = self.tree.position(first), self.tree.position(end)
        if start.epoch == last.epoch:
            yield self._span(last.tree, start.within, last.within)
            return
        yield self._span(start.tree, start.within, start.tree.leaves)
        more = start.tree.upper.total_squares - start.tree.total_squares
        yield more, self.tree.scale(start.tree), ((Fraction(math.sqrt(more / _SPREAD)), _SPREAD),)
        for tree, epochs in self.tree.runs(last.epoch):
            for _ in range(max(epochs.start, start.epoch + 1), epochs.stop):
                yield tree.upper.total_squares, self.tree.scale(tree), tree.upper.total_coefficients()
        yield self._span(last.tree, 0, last.within)

    def _span(self, tree: Complete, start: int, end: int) -> tuple[Fraction, Fraction, Coefficients]:
        return span_squares(tree, start, end), self.tree.scale(tree), span_coefficients(tree, start, end)

    def summer(self, subkey: Subkeys) -> "RunningSummer":
        return RunningSummer(self.tree.counter(subkey).noise)

    def shape(self) -> str:
        return f"RunningSum({self._shared_shape}, horizon={self.horizon})"

    def counts(self) -> "RunningSummer":
        return RunningSummer(lambda t: 0)


def _ends(end: int, length: int, last: Last) -> tuple[int, int]:
    """The last steps, before the window and up to its end, that released anything."""
    check.positive(length=length)
    check.not_negative(start=end - length)
    return last(end - length), last(end)


@lru_cache(maxsize=1 << 14)  # the groups of a metric ask for the same ones
def _bars(sums: RunningSum, t: int, coverage: float) -> tuple[float, float]:
    """Standard deviation and quantile of release t's noise."""
    if t <= _FIRST or coverage != COVERAGE:
        quantile, deviation = sums.tree.widths(t, (1, 1), coverage)
        return deviation, quantile
    second, fourth = sums._moments(t)
    draws = min(round(second**2 / fourth), _NORMAL) if fourth else _NORMAL  # 0 where there is hardly any noise
    sd = math.sqrt(second)
    return six_digits(sd), six_digits(equal_quantile(draws) * sd)


@lru_cache(maxsize=256)
def _upper_moments(tree: Complete) -> tuple[float, float]:
    return cast(LeastSquares, tree.upper).moments(tree.upper.leaves)


class RunningSummer(Headed):
    """The releases: the exact sum, and noise that is a function of t."""

    __slots__ = ("_last", "_noise", "_sum", "t")

    def __init__(self, noise: Callable[[int], int]) -> None:
        self._noise = noise
        self._sum = 0
        self._last: int | None = None  # release
        self.t = 0

    @property
    def released(self) -> tuple[int, ...]:
        """The release, once more, for `parts`."""
        return () if self._last is None else (self._last,)

    def add(self, x: int) -> int:
        self.t += 1
        self._sum += x
        self._last = self._sum + self._noise(self.t)
        return self._last

    def skip(self, steps: int) -> None:
        """Let empty steps take their places in the trees."""
        self.t += steps

    def head(self) -> list[Any]:
        return [self.t, text(self._sum)]

    def restore(self, head: list[Any], kept: Mapping[int, int]) -> None:
        self.t, self._sum = head[0], int(head[1], 16)
