"""Hybrid counter: epochs that grow by a factor, a noisy sum for each past one, and any counter within the current one.

Guarantee    pure epsilon-DP for all releases together; inputs may react to them (docs/proofs/counters.md)
Relation     values: two streams differ in what one unit contributed; who contributes, and when, is public
Unit         its elements, wherever they lie, move by at most `width` grid steps in all
Sensitivity  L1, exact: width over the epochs' sums; that of the inner counter over its nodes
Noise        discrete Laplace: scale width / (share * epsilon) on an epoch's sum; the inner counter runs at the rest of
             epsilon. A function of key and node
Capacity     none: epoch j has the elements g**j .. g**(j+1) - 1, and an inner counter with new noise
Variance     of release t in epoch j, in squared grid steps: j * 2p / (1 - p)**2 for the sums, with p = exp(-1 / scale),
             plus the inner counter's
Source       Chan, Shi and Song (2011), with halves for shares and the binary counter inside
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

from shoal.mechanisms import check
from shoal.mechanisms.counters.blue import BlueTree
from shoal.mechanisms.counters.counter import Counter, Scales, Subkeys, Tree
from shoal.mechanisms.noise import laplace

_EXPECTED = 1 << 20  # elements, where no horizon is stated
_SHARES = tuple(Fraction(part, 64) for part in range(1, 64))


Inner = Callable[..., Tree]  # (elements, width=..., epsilon=...) -> tree: BlueTree.best, or that of another module


@dataclass(frozen=True)
class HybridTree:
    """All that is public about the counter; the horizon tunes the split of epsilon and nothing else.

    >>> tree = HybridTree(width=1, epsilon=Fraction(1), horizon=2**10)
    >>> [tree.locate(t) for t in (1, 2, 3, 4, 1024)], tree.share
    ([(0, 1), (1, 1), (1, 2), (2, 1), (10, 1)], Fraction(11, 32))
    """

    width: int  # grid steps that one unit can move in all
    epsilon: Fraction  # paid once, wherever the unit's elements lie
    horizon: int = field(default=_EXPECTED, kw_only=True)  # elements expected
    growth: int = field(default=2, kw_only=True)  # g
    inner: Inner = field(default=BlueTree.best, kw_only=True)

    def __post_init__(self) -> None:
        check.positive(width=self.width, epsilon=self.epsilon, horizon=self.horizon)
        if self.growth < 2:
            raise ValueError(f"growth must be at least 2, not {self.growth}")

    @property
    def share(self) -> Fraction:
        """What of epsilon goes to the epochs' sums."""
        return _best_share(self.inner, self.growth, self.horizon)

    @property
    def scale(self) -> Fraction:
        """Scale of the noise on an epoch's sum; an element is in one of them."""
        return self.width / (self.share * self.epsilon)

    def size(self, epoch: int) -> int:
        """Elements of an epoch."""
        return int(self.growth**epoch) * (self.growth - 1)

    def within(self, epoch: int) -> Tree:
        """The inner counter of an epoch."""
        return _inner(self.inner, self.size(epoch), self.width, (1 - self.share) * self.epsilon)

    def locate(self, t: int) -> tuple[int, int]:
        """Prefix t as (epochs that are full and past, elements in the current one)."""
        epoch = 0
        while t > self.size(epoch):
            t, epoch = t - self.size(epoch), epoch + 1
        return epoch, t

    def first_subkey(self, epoch: int) -> int:
        """The number of the first subkey of an epoch's inner counter; the sums of all epochs have number 0."""
        return 1 + sum(self.within(past).locate(self.size(past))[0] + 1 for past in range(epoch))

    def sensitivities(self, epoch: int) -> tuple[tuple[int, Fraction], ...]:
        """The sums', then the inner counter's: the inner one's first tree stands for all, which cost the same."""
        return ((self.width, self.scale), *self.within(epoch).sensitivities(0))

    def nodes_of(self, element: int) -> tuple[tuple[int, int], ...]:
        """The nodes that hold an element, as (number of the subkey, index)."""
        epoch, place = self.locate(element)
        first = self.first_subkey(epoch)
        return ((0, epoch), *((first + inner, index) for inner, index in self.within(epoch).nodes_of(place)))

    def scales(self, t: int) -> Scales:
        """What the noise of release t consists of."""
        epoch, place = self.locate(t)
        sums: Scales = ((self.scale, epoch),) if epoch else ()
        return sums + self.within(epoch).scales(place)

    def variance(self, t: int) -> float:
        """Variance of the noise of release t, for planning and error bars: the private path has no floats."""
        epoch, place = self.locate(t)
        return epoch * laplace.variance(self.scale) + self.within(epoch).variance(place)

    def counter(self, subkey: Subkeys) -> "HybridCounter":
        """The noise of the releases under a key."""
        return HybridCounter(self, subkey)


@lru_cache(maxsize=256)
def _inner(inner: Inner, size: int, width: int, epsilon: Fraction) -> Tree:
    return inner(size, width=width, epsilon=epsilon)


@lru_cache(maxsize=64)
def _best_share(inner: Inner, growth: int, horizon: int) -> Fraction:
    """The share, in 64ths, with the least variance in the middle of the epoch that holds the horizon.

    Continuous noise at width = epsilon = 1, in exact fractions, so that every machine makes the same choice: a share s
    makes of the sums' half variance j, and of the inner counter's v, j / s**2 + v / (1 - s)**2.
    """
    epoch, end = 0, growth - 1
    while end < horizon:
        epoch, end = epoch + 1, end * growth + growth - 1
    size = growth**epoch * (growth - 1)
    v = sum(count * scale**2 for scale, count in inner(size, width=1, epsilon=Fraction(1)).scales((size + 1) // 2))
    return min(_SHARES, key=lambda s: epoch / s**2 + v / (1 - s) ** 2)


@dataclass(slots=True)
class HybridCounter:
    """The noise of the releases: the sum over past epochs, and the inner counter of the current one."""

    tree: HybridTree
    subkey: Subkeys = field(repr=False)  # number -> the subkey of the sums, or of an epoch of an inner counter
    _past: tuple[int, int] = field(default=(0, 0), init=False, repr=False)  # (epochs, noise of their sums)
    _inner: tuple[int, Counter] | None = field(default=None, init=False, repr=False)  # (epoch, its counter)

    def noise(self, t: int) -> int:
        """What is added to the exact sum of the first t elements."""
        check.not_negative(t=t)
        epoch, place = self.tree.locate(t)
        if self._past[0] != epoch:
            sums = laplace.DiscreteLaplace(self.tree.scale, self.subkey(0))
            self._past = epoch, sum(sums.draw(past) for past in range(epoch))
        if self._inner is None or self._inner[0] != epoch:
            self._inner = epoch, self.tree.within(epoch).counter(self._subkeys(epoch))
        return self._past[1] + self._inner[1].noise(place)

    def _subkeys(self, epoch: int) -> Callable[[int], bytes]:
        first = self.tree.first_subkey(epoch)
        return lambda inner: self.subkey(first + inner)
