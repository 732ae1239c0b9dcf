"""Growing square-root counter: Gaussian noise of a given rho for any number of elements, in epochs that double.

Guarantee    rho-zCDP for all releases together; inputs may react to them (docs/proofs/square-root.md)
Relation     values: two streams differ in what one unit contributed; who contributes, and when, is public
Unit         all its elements, wherever they lie, change by `width` grid steps in all: the sum of absolute changes
Sensitivity  L2, exact: in epoch j at most its changes there times the longest column C_j of its matrix, with
             sigma2_j = (width * C_j)**2 / (2 rho); over epochs the quotients add up to rho at most
Noise        discrete Gaussian, as in square_root.py; a function of key, epoch and element
Capacity     none: an epoch of `horizon` elements is followed by epochs of twice as many, up to LARGEST
Variance     of release t, in squared grid steps: the sum over past epochs of that of their totals, and that of the
             prefix in the current one
Source       square_root.py
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from shoal.mechanisms import check
from shoal.mechanisms.counters.counter import Subkeys
from shoal.mechanisms.counters.square_root import RootPrefixes, RootTree
from shoal.mechanisms.error_bars import Normal, Widths, widths

LARGEST = 1 << 15  # elements of an epoch: their sums are held, and computed again after a restart


@dataclass(frozen=True)
class RootEpoch(RootTree):
    """The matrix of one epoch."""

    capacity: int
    width: int
    spent: Fraction

    @property
    def rho(self) -> Fraction:
        return self.spent


@dataclass(frozen=True)
class GrowingRoot:
    """All public parameters of a growing square-root counter.

    >>> tree = GrowingRoot(1 << 20, Fraction(1, 40), horizon=1000)
    >>> [tree.locate(t) for t in (0, 1, 1000, 1001, 3001)]
    [(0, 0), (0, 1), (0, 1000), (1, 1), (2, 1)]
    >>> round(tree.scales(1000).variance / 2**40), round(tree.scales(1001).variance / 2**40)
    (137, 207)
    """

    width: int
    rho: Fraction  # charged once, for the life of the metric version
    horizon: int  # elements expected; it tunes the accuracy and nothing else

    def __post_init__(self) -> None:
        check.positive(width=self.width, rho=self.rho, horizon=self.horizon)

    def epoch(self, number: int) -> RootEpoch:
        return RootEpoch(min(self._first << min(number, LARGEST.bit_length()), LARGEST), self.width, self.rho)

    @cached_property
    def _first(self) -> int:
        """The elements of the first epoch."""
        return min(self.horizon, LARGEST)

    @cached_property
    def _grown(self) -> tuple[int, ...]:
        """The elements of the epochs before those of LARGEST."""
        sizes: list[int] = []
        while self._first << len(sizes) < LARGEST:
            sizes.append(self._first << len(sizes))
        return tuple(sizes)

    def locate(self, t: int) -> tuple[int, int]:
        """Prefix t as (epochs that are full and past, elements in the current one)."""
        for number, size in enumerate(self._grown):
            if t <= size:
                return number, t
            t -= size
        past = (t - 1) // LARGEST if t else 0
        return len(self._grown) + past, t - past * LARGEST

    def variance(self, t: int) -> float:
        """Variance of release t, interpolated within an epoch: right to 4e-4."""
        epoch, within = self.locate(t)
        return sum(self._totals(epoch)) + self.epoch(epoch).near(within)

    def _totals(self, epochs: int) -> Iterator[float]:
        """Variances of the totals of so many epochs; those of LARGEST are alike."""
        few = min(epochs, len(self._grown))
        yield from (self.epoch(number).near(self._grown[number]) for number in range(few))
        if epochs > few:
            yield (epochs - few) * self.epoch(epochs).near(LARGEST)

    def scales(self, t: int) -> Normal:
        """The law of the noise of release t."""
        return Normal(self.variance(t))

    def widths(self, t: int, step: tuple[int, int], coverage: float) -> Widths:
        """Widths of the noise of release t, in units of the range."""
        return widths(step, self.scales(t), coverage)

    def counter(self, subkey: Subkeys) -> "GrowingRootCounter":
        return GrowingRootCounter(self, subkey)


@dataclass(slots=True)
class GrowingRootCounter:
    """The noise of a tree's releases, element after element; the first request is the slowest.

    >>> counter = GrowingRoot(1, Fraction(1, 40), horizon=10).counter(subkey=lambda epoch: bytes([epoch] * 32))
    >>> [counter.noise(t) for t in (0, 1, 10, 11, 10)]
    [0, 4, -3, -7, -3]
    """

    tree: GrowingRoot
    subkey: Subkeys = field(repr=False)  # epoch -> the subkey of its draws
    _past: tuple[int, int] = field(default=(0, 0), init=False)  # (epochs, their total noise)
    _epoch: int = field(default=-1, init=False)
    _prefixes: RootPrefixes = field(init=False, repr=False)  # of that epoch

    def noise(self, t: int) -> int:
        check.not_negative(t=t)
        epoch, within = self.tree.locate(t)
        done, noise = self._past if self._past[0] <= epoch else (0, 0)
        for past in range(done, epoch):
            noise += self._prefix(past, self.tree.epoch(past).capacity)
        self._past = epoch, noise
        return noise + self._prefix(epoch, within)

    def _prefix(self, epoch: int, t: int) -> int:
        if epoch != self._epoch:
            self._epoch, self._prefixes = epoch, RootPrefixes(self.tree.epoch(epoch), self.subkey(epoch))
        return self._prefixes.numerator(t)
