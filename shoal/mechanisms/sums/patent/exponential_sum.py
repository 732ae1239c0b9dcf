"""ExponentialSum: exponentially decayed sums from the left nodes of a growing dyadic tree, whose steps have decayed.

Guarantee    pure epsilon-DP for all releases together; steps may react to them (docs/proofs/decay.md)
Relation     values: two streams differ in what one unit contributed; who contributes, and when, is public
Unit         its changes, in one step or in many, are `width` grid steps in all
Sensitivity  L1, exact: width * S, S = sum over k >= 0 of a(2**k - 1): a step is in left nodes only, and weighs a(u - i)
             in the one that ends at u; a(n) = floor(alpha**n 2**40) / 2**40, which is 0 from some n on
Noise        discrete Laplace, scale b = width * S / epsilon, in steps of 2**-40, on every left node when it is complete
Variance     of release t, in squared grid steps: v(b) times the sum over the nodes of its binary expansion, ending at
             u, of a(t - u)**2, at most S(alpha**2); v(b) = 2p / (1 - p)**2, p = exp(-1 / b)
Source       Bolot, Fawaz, Muthukrishnan, Nikolov and Taft (2013), ExponentialSum; US patent application 2013/0212690 A1
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from shoal.mechanisms import check
from shoal.mechanisms.counters.counter import Subkeys
from shoal.mechanisms.error_bars import COVERAGE, noise_quantile, six_digits
from shoal.mechanisms.noise import laplace
from shoal.mechanisms.noise.keyed import MAX_INDEX
from shoal.mechanisms.sums.decayed import exact
from shoal.mechanisms.sums.exponentials import RATE_BITS, Exponentials, power
from shoal.mechanisms.sums.sums import FRACTION, UNIT, Headed, Node, Noised, Summer, spelled, text

_HEIGHTS = MAX_INDEX.bit_length() - 1
_SHIFT = RATE_BITS - FRACTION
_LARGEST = (1 << RATE_BITS) - (1 << RATE_BITS - 40)  # so that powers that are not 0 differ by more than they round


@dataclass(frozen=True)
class ExponentialSum(Noised):
    """All public parameters of an exponential sum.

    >>> sums = ExponentialSum(1, Fraction(1), Fraction(99, 100))
    >>> round(sums.sensitivity / UNIT, 4), round(sums.variance(1023)), round(sums.variance(1024))
    (6.3777, 442, 81)
    """

    mechanism: ClassVar[str] = "patent"
    denominator: ClassVar[int] = UNIT

    alpha: Fraction  # what is left of a step's weight one step later

    def __post_init__(self) -> None:
        super().__post_init__()
        check.probability(alpha=self.alpha)
        if not 0 < self.factor <= _LARGEST:
            raise ValueError(f"alpha must lie between 2**-96 and 1 - 2**-40, not {self.alpha}: its powers need that")

    @cached_property
    def factor(self) -> int:
        return (self.alpha.numerator << RATE_BITS) // self.alpha.denominator

    @cached_property
    def squares(self) -> tuple[int, ...]:
        """alpha**1, alpha**2, alpha**4, ... in steps of 2**-96, each rounded down."""
        return tuple(power(self.factor, 1 << height) for height in range(_HEIGHTS))

    def weight(self, age: int) -> int:
        """a(age) in steps of 2**-40; it never rises."""
        return power(self.factor, age) >> _SHIFT

    @cached_property
    def sensitivity(self) -> int:
        """S in steps of 2**-40."""
        return sum(self.weight((1 << k) - 1) for k in range(_HEIGHTS))

    @property
    def l1_sensitivity(self) -> int:
        """The most that one unit changes all nodes together, in steps of 2**-40."""
        return self.width * self.sensitivity

    @cached_property
    def scale(self) -> Fraction:
        """Scale b of the noise on every node, in steps of 2**-40."""
        return self.l1_sensitivity / Fraction(self.epsilon)

    def holders(self, step: int) -> Iterator[tuple[int, int]]:
        """(height, weight in it) of the left nodes that hold a step: at 0 bits of step - 1, 1 bits of its age."""
        return self._weights(~(step - 1))

    def expansion(self, t: int) -> Iterator[tuple[int, int]]:
        """(height, its weight) of the left nodes that hold steps 1 .. t, ends first: where t has a 1 bit."""
        return self._weights(t, t.bit_length())

    def _weights(self, bits: int, heights: int = _HEIGHTS) -> Iterator[tuple[int, int]]:
        """The height of each 1 bit, and the weight of the age made of the 1s below it, until that is 0."""
        product = 1 << RATE_BITS
        for height in range(heights):
            if bits >> height & 1:
                if not product >> _SHIFT:
                    return
                yield height, product >> _SHIFT
                product = product * self.squares[height] >> RATE_BITS

    def column(self, step: int) -> tuple[Node, ...]:
        """The draws that protect a step: those of the left nodes that hold it."""
        return tuple(Node(j, step - 1 >> j + 1, weight, self.scale) for j, weight in self.holders(step))

    def variance(self, t: int) -> float:
        squares = sum((weight / UNIT) ** 2 for _, weight in self.expansion(t))
        return squares * laplace.variance(self.scale) / UNIT**2

    @property
    def mean_variance(self) -> float:
        """The mean of `variance` over t, long after the beginning, where a bit of t is 1 as often as 0."""
        squares, product = 0.0, 1.0
        for factor in self.squares:
            squares += product / 2
            product *= (1 + (factor / (1 << RATE_BITS)) ** 2) / 2
        return squares * laplace.variance(self.scale) / UNIT**2

    def noise_sd(self, t: int) -> float:
        return six_digits(self.variance(t) ** 0.5)

    def noise_quantile(self, t: int, coverage: float = COVERAGE) -> float:
        return noise_quantile(tuple((self.scale * weight / UNIT**2, 1) for _, weight in self.expansion(t)), coverage)

    def summer(self, subkey: Subkeys) -> "ExponentialSummer":
        return ExponentialSummer(self, subkey)

    def shape(self) -> str:
        return f"ExponentialSum({self._shared_shape}, alpha={spelled(self.alpha)})"

    def counts(self) -> Summer:
        return exact(Exponentials.exponential(self.alpha))


class ExponentialSummer(Headed):
    """The releases: for each height the state holds the exact sum of the last left node that is not empty."""

    __slots__ = ("_draws", "_nodes", "_noise", "_sums", "t")

    def __init__(self, sums: ExponentialSum, subkey: Subkeys) -> None:
        self._sums = sums
        self._draws = [laplace.DiscreteLaplace(sums.scale, subkey(height)) for height in range(_HEIGHTS)]
        self._noise: dict[int, tuple[int, int]] = {}  # by height: (index of a node, its draw)
        self._nodes: dict[int, tuple[int, int]] = {}  # by height: (index of a node, its exact sum)
        self.t = 0

    def add(self, x: int) -> int:
        self.t += 1
        check.below(MAX_INDEX, t=self.t)
        if x:
            for height, weight in self._sums.holders(self.t):
                node = self.t - 1 >> height + 1
                index, total = self._nodes.get(height, (node, 0))
                self._nodes[height] = node, weight * x + (total if index == node else 0)
        return sum(weight * self._noised(height) for height, weight in self._sums.expansion(self.t)) >> FRACTION

    def _noised(self, height: int) -> int:
        """The last complete left node of this height, with its noise."""
        node = (self.t >> height) - 1 >> 1
        index, total = self._nodes.get(height, (node, 0))
        if self._noise.get(height, (-1, 0))[0] != node:
            self._noise[height] = node, self._draws[height].draw(node)
        return self._noise[height][1] + (total if index == node else 0)

    def skip(self, steps: int) -> None:
        """Let ages grow; nodes that were not complete become so now or later."""
        self.t += steps

    def head(self) -> list[Any]:
        return [self.t, [[height, index, text(total)] for height, (index, total) in sorted(self._nodes.items())]]

    def restore(self, head: list[Any], kept: Mapping[int, int]) -> None:
        self.t, nodes = head
        self._nodes = {height: (index, int(total, 16)) for height, index, total in nodes}
