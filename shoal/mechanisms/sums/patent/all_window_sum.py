"""AllWindowSum: noisy nodes of one infinite dyadic tree, which tell the sum over any window after the fact.

Guarantee    pure epsilon-DP for all nodes together; steps may react to them (docs/proofs/decay.md)
Relation     values: two streams differ in what one unit contributed; who contributes, and when, is public
Unit         its changes, in one step or in many, are `width` grid steps in all
Sensitivity  L1, exact: width at each height; a step is in one node of each, and height j - 1 is paid with
             epsilon_j = epsilon / (zeta(s) j**s), s = `exponent` > 1, which sum to epsilon over all heights
Noise        discrete Laplace, scale width / epsilon_j, on every node; a function of key, height and node. A node is
             released at the step that completes it; zeta(s) and powers are rounded up
Variance     of a window: the sum over the nodes of its dyadic cover, at most 2 of each height, of v(b_j),
             v(b) = 2p / (1 - p)**2, p = exp(-1 / b)
Source       Bolot, Fawaz, Muthukrishnan, Nikolov and Taft (2013), AllWindowSum; US patent application 2013/0212690 A1
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

from shoal.mechanisms import check
from shoal.mechanisms.counters.counter import Scales, Subkeys
from shoal.mechanisms.decimals import most, power
from shoal.mechanisms.error_bars import COVERAGE, noise_quantile, noise_sd
from shoal.mechanisms.noise import laplace
from shoal.mechanisms.noise.keyed import MAX_INDEX
from shoal.mechanisms.sums.running import Last, Part, every_step
from shoal.mechanisms.sums.sums import Headed, Node, Noised, spelled, text

HEIGHTS = MAX_INDEX.bit_length() - 1  # steps 1 .. 2**48 - 1 have nodes of these heights that they complete
_TERMS = 200  # of zeta's series, before the integral takes over
_STEPS = 1 << 20  # a scale is rounded up to a multiple of 1 / this


@dataclass(frozen=True)
class AllWindowSum(Noised):
    """All public parameters of it. A release is the sum since the beginning; `released` has the nodes it completes.

    >>> sums = AllWindowSum(1, Fraction(1))
    >>> sums.parts(12, 5), round(float(sums.scales_by_height[0]), 3), round(sums.window_variance(12, 5))
    ((Part(step=8, place=0, sign=1), Part(step=12, place=2, sign=1)), 4.595, 700)
    """

    mechanism: ClassVar[str] = "patent"

    exponent: Fraction = Fraction(5, 4)  # s

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.exponent <= 1:
            raise ValueError(f"exponent must be greater than 1, not {self.exponent}: the budgets would have no sum")

    @cached_property
    def scales_by_height(self) -> tuple[Fraction, ...]:
        """The scale of the noise on nodes of height 0, 1, ..."""
        exact = [zeta(self.exponent) * most(power(j, self.exponent)) for j in range(1, HEIGHTS + 1)]
        return tuple(Fraction(math.ceil(x * self.width / self.epsilon * _STEPS), _STEPS) for x in exact)

    def column(self, step: int) -> tuple[Node, ...]:
        return tuple(Node(j, step - 1 >> j, 1, scale) for j, scale in enumerate(self.scales_by_height))

    def parts(self, end: int, length: int, last: Last = every_step) -> tuple[Part, ...]:
        """The nodes, as few as possible, that add up to the sum over the last `length` of steps 1 .. end.

        Their numbers are those that their last steps released, by height. Steps that `last` leaves out were skipped:
        they hold nothing, and a node that ended in one was never released. Its halves stand for it, and theirs.
        """
        check.positive(length=length)
        check.not_negative(start=end - length)
        cover = (node for height, at in _cover(end - length, end) for node in _released(height, at, last))
        return tuple(Part(at + (1 << height), height, 1) for height, at in cover)

    def _scales(self, parts: Iterable[Part]) -> Scales:
        counts: dict[Fraction, int] = {}
        for part in parts:
            scale = self.scales_by_height[part.place]
            counts[scale] = counts.get(scale, 0) + 1
        return tuple(counts.items())

    def window_variance(self, end: int, length: int, last: Last = every_step) -> float:
        return sum(count * laplace.variance(scale) for scale, count in self._scales(self.parts(end, length, last)))

    def window_quantile(self, end: int, length: int, last: Last = every_step, coverage: float = COVERAGE) -> float:
        return noise_quantile(self._scales(self.parts(end, length, last)), coverage)

    def variance(self, t: int) -> float:
        return self.window_variance(t, t)

    def noise_sd(self, t: int) -> float:
        return noise_sd(self._scales(self.parts(t, t)))

    def noise_quantile(self, t: int, coverage: float = COVERAGE) -> float:
        return self.window_quantile(t, t, coverage=coverage)

    def summer(self, subkey: Subkeys) -> "AllWindowSummer":
        draws = [laplace.DiscreteLaplace(scale, subkey(j)) for j, scale in enumerate(self.scales_by_height)]
        return AllWindowSummer([noise.draw for noise in draws])

    def shape(self) -> str:
        return f"AllWindowSum({self._shared_shape}, exponent={spelled(self.exponent)})"

    def counts(self) -> "AllWindowSummer":
        return AllWindowSummer([lambda index: 0] * HEIGHTS)


def answer(parts: Sequence[Part], released: Callable[[int], Sequence[int]]) -> int:
    """The sum over a window, from the numbers that each step released, without any state or key.

    >>> answer([Part(8, 0, 1), Part(12, 2, 1)], {8: [5, 1, 2, 3], 12: [0, 0, 20]}.__getitem__)
    25
    """
    return sum(part.sign * released(part.step)[part.place] for part in parts)


def _cover(start: int, end: int) -> Iterator[tuple[int, int]]:
    """(height, first step - 1) of the fewest dyadic nodes that hold steps start + 1 .. end, from the left."""
    while start < end:
        height = (end - start).bit_length() - 1
        if start:
            height = min(height, (start & -start).bit_length() - 1)
        yield height, start
        start += 1 << height


def _released(height: int, start: int, last: Last) -> Iterator[tuple[int, int]]:
    """The node itself if it was released; otherwise its released parts, without those that hold nothing.

    >>> list(_released(2, 0, lambda t: min(t, 3))), list(_released(2, 0, lambda t: 0))
    ([(1, 0), (0, 2)], [])
    """
    end = start + (1 << height)
    latest = last(end)
    if latest == end:
        yield height, start
    elif latest > start:
        yield from _released(height - 1, start, last)
        yield from _released(height - 1, (start + end) // 2, last)


@lru_cache(maxsize=64)
def zeta(exponent: Fraction) -> Fraction:
    """An upper bound of the sum over j = 1, 2, ... of j**-exponent, to a relative 1e-5 or better.

    Beyond some terms, each is less than the integral from j - 1/2 to j + 1/2, as j**-exponent is convex.

    >>> round(float(zeta(Fraction(2))), 6), round(float(zeta(Fraction(5, 4))), 4)
    (1.644934, 4.5951)
    """
    series = sum((most(power(j, -exponent)) for j in range(1, _TERMS + 1)), start=Fraction(0))
    return series + most(power(_TERMS + Fraction(1, 2), 1 - exponent)) / (exponent - 1)


class AllWindowSummer(Headed):
    """The releases. The state is the exact sum of each node of the cover of the steps so far."""

    __slots__ = ("_draws", "_sums", "released", "t")

    def __init__(self, draws: Sequence[Callable[[int], int]]) -> None:
        self._draws = draws  # by height
        self._sums: dict[int, int] = {}  # by height, the highest first
        self.released: tuple[int, ...] = ()  # the nodes that the last step completed, by height
        self.t = 0

    def add(self, x: int) -> int:
        """Take one more step and return the noisy sum since the beginning."""
        self.t += 1
        check.below(MAX_INDEX, t=self.t)
        nodes = [x]
        while len(nodes) - 1 in self._sums:
            nodes.append(nodes[-1] + self._sums.pop(len(nodes) - 1))
        self._sums[len(nodes) - 1] = nodes[-1]
        self.released = tuple(self._noised(height, node) for height, node in enumerate(nodes))
        return sum(self._noised(height, node) for height, node in self._sums.items())

    def _noised(self, height: int, node: int) -> int:
        """The last complete node of this height, with its noise."""
        return node + self._draws[height]((self.t >> height) - 1)

    def skip(self, steps: int) -> None:
        """Move all that the steps so far hold to the first nodes of the new cover."""
        before, self.t, self.released = self.t, self.t + steps, ()
        check.below(MAX_INDEX, t=self.t)
        sums: dict[int, int] = {}
        for height, start in _cover(0, self.t):
            inside = [j for j, at in _cover(0, before) if start <= at < start + (1 << height)]
            sums[height] = sum(self._sums[j] for j in inside)
        self._sums = sums

    def head(self) -> list[Any]:
        return [self.t, list(map(text, self._sums.values()))]

    def restore(self, head: list[Any], kept: Mapping[int, int]) -> None:
        self.t, sums = head
        self._sums = {height: int(node, 16) for (height, _), node in zip(_cover(0, self.t), sums, strict=True)}
        self.released = ()
