"""Square-root counter: every prefix sum of a stream with Gaussian noise, correlated so that little is needed.

Guarantee    rho-zCDP, hence (epsilon, delta)-DP, for all releases together; inputs may react to them
             (docs/proofs/square-root.md)
Relation     values: two streams differ in what one unit contributed; who contributes, and when, is public
Unit         all its elements, wherever they lie, change by `width` grid steps in all: the sum of absolute changes
Sensitivity  L2, exact: width * the longest column of the integer matrix R (square_root_coefficients.py), in steps of
             2**-40 grid steps
Noise        discrete Gaussian z on R x, sigma2 = sensitivity**2 / (2 rho); a function of key, epoch and element. What
             is released is a function of R x + z: the exact prefix plus an integer that depends on z alone
Capacity     a matrix takes `capacity` elements and is never extended; the next element begins a new one, with new noise
Variance     of release t, in squared grid steps: |row t of A R**-1|**2 * sigma2, and 1/12 per element for rounding
Source       Fichtenberger, Henzinger and Upadhyay (2023); arXiv 2509.14334 (columns of one length, `normalised`)
"""

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from operator import mul
from statistics import NormalDist

from shoal.mechanisms import check
from shoal.mechanisms.counters.counter import Subkeys, rounded
from shoal.mechanisms.counters.square_root_coefficients import LAG_BITS, STEP_BITS, Root
from shoal.mechanisms.error_bars import COVERAGE, six_digits
from shoal.mechanisms.noise.gaussian import DiscreteGaussian
from shoal.mechanisms.privacy.zcdp import gaussian_sigma2, largest_rho

_QUANTILE = NormalDist().inv_cdf((1 + COVERAGE) / 2)
_BLOCK = 1 << 12  # draws at a time


class RootTree(ABC):
    """The parameters of a square-root counter, whatever its rho comes from."""

    capacity: int  # elements of an epoch
    width: int  # grid steps that one unit can move in all
    normalised: bool = True  # columns of one length; False: the root itself

    @property
    @abstractmethod
    def rho(self) -> Fraction:
        """The zCDP of all releases together."""

    @cached_property
    def root(self) -> Root:
        return Root.of(self.capacity, unit_columns=self.normalised)

    @cached_property
    def squared_sensitivity(self) -> int:
        """The square of the most that one unit changes R x in L2, in steps of 2**-80 squared grid steps."""
        return self.width**2 * self.root.squared_column

    @property
    def l2_sensitivity(self) -> float:
        """The root of `squared_sensitivity`, in grid steps, for reading."""
        return math.sqrt(self.squared_sensitivity) / (1 << STEP_BITS)

    @cached_property
    def sigma2(self) -> Fraction:
        """The sigma2 of the noise on every element of R x, in squared steps of R."""
        return gaussian_sigma2(self.squared_sensitivity, self.rho)

    def near(self, t: int) -> float:
        """Variance of prefix t of one epoch, interpolated; the computed ones are denser near both ends."""
        step = 1 << max((min(t, self.capacity - t) >> 5).bit_length() - 1, 0)
        before, part = divmod(t, step)
        low = _within(self, before * step)
        high = _within(self, (before + 1) * step) if part else low
        return low + (high - low) * part / step

    def within(self, t: int) -> float:
        """Variance of prefix t of one epoch; it takes transforms of t terms."""
        if not t:
            return 0.0
        diagonal = self.root.values[0] / (1 << LAG_BITS)  # an element is rounded to the nearest
        return self.root.variance(t, float(self.sigma2 / (1 << 2 * STEP_BITS)), diagonal**2 / 12)


_within = lru_cache(maxsize=1 << 12)(RootTree.within)


@dataclass(frozen=True)
class SquareRoot(RootTree):
    """All public parameters of a square-root counter.

    >>> tree = SquareRoot(capacity=1024, width=1 << 20, epsilon=Fraction(1), delta=Fraction(1, 10**6))
    >>> round(float(tree.rho), 5), round(tree.l2_sensitivity / tree.width, 3)
    (0.02436, 1.809)
    """

    capacity: int
    width: int
    epsilon: Fraction  # charged once, for the life of the metric version
    delta: Fraction  # likewise
    normalised: bool = True

    def __post_init__(self) -> None:
        check.positive(capacity=self.capacity, width=self.width, epsilon=self.epsilon)
        check.probability(delta=self.delta)

    @cached_property
    def rho(self) -> Fraction:
        """The rho that epsilon and delta allow."""
        return largest_rho(self.epsilon, self.delta)

    def locate(self, t: int) -> tuple[int, int]:
        epoch = (t - 1) // self.capacity if t else 0
        return epoch, t - epoch * self.capacity

    def variance(self, t: int) -> float:
        """Variance of release t, for planning; it takes transforms of t terms.

        >>> round(SquareRoot(1024, 1, Fraction(1), Fraction(1, 10**6)).variance(1024), 1)
        142.0
        """
        epoch, within = self.locate(t)
        return epoch * self.within(self.capacity) + self.within(within)

    def noise_sd(self, t: int) -> float:
        """Standard deviation of release t's noise in grid steps, from variances near it: right to 2e-4."""
        return six_digits(math.sqrt(self._near(t)))

    def noise_quantile(self, t: int) -> float:
        """The bound below which the size of release t's noise, as good as Gaussian, stays with probability 0.95."""
        return six_digits(_QUANTILE * math.sqrt(self._near(t)))

    def _near(self, t: int) -> float:
        epoch, within = self.locate(t)
        return epoch * _within(self, self.capacity) + self.near(within)

    def counter(self, subkey: Subkeys) -> "SquareRootCounter":
        return SquareRootCounter(self, subkey)


@dataclass(slots=True)
class SquareRootCounter:
    """The noise of a matrix's releases, element after element; the first request is the slowest.

    >>> tree = SquareRoot(10, 1, Fraction(1), Fraction(1, 10**6))
    >>> counter = SquareRootCounter(tree, subkey=lambda epoch: bytes([epoch] * 32))
    >>> [counter.noise(t) for t in (0, 1, 10, 11)]
    [0, 4, -3, 0]
    """

    tree: SquareRoot
    subkey: Subkeys = field(repr=False)  # epoch -> the subkey of its draws
    _past: tuple[int, int] = field(default=(0, 0), init=False)  # (epochs, their total noise)
    _epoch: int = field(default=-1, init=False)
    _prefixes: "RootPrefixes" = field(init=False, repr=False)  # of that epoch

    def noise(self, t: int) -> int:
        check.not_negative(t=t)
        epoch, within = self.tree.locate(t)
        done, noise = self._past if self._past[0] <= epoch else (0, 0)
        for past in range(done, epoch):
            noise += self._prefix(past, self.tree.capacity)
        self._past = epoch, noise
        return noise + self._prefix(epoch, within)

    def _prefix(self, epoch: int, t: int) -> int:
        if epoch != self._epoch:
            self._epoch, self._prefixes = epoch, RootPrefixes(self.tree, self.subkey(epoch))
        return self._prefixes.numerator(t)


class RootPrefixes:
    """The sums of e over the first steps of an epoch, computed only as far as they are needed."""

    __slots__ = ("_more", "_sums")

    def __init__(self, tree: RootTree, subkey: bytes) -> None:
        self._sums = [0]
        self._more: Iterator[int] = prefixes(tree.root, draws(tree, subkey))

    def numerator(self, t: int) -> int:
        while len(self._sums) <= t:
            self._sums.append(next(self._more))
        return self._sums[t]


def draws(tree: RootTree, subkey: bytes) -> Iterator[int]:
    """The noise z of one epoch: element s gets draw s."""
    noise = DiscreteGaussian(tree.sigma2, subkey)
    for start in range(0, tree.capacity, _BLOCK):
        yield from noise.draw_block(start, min(_BLOCK, tree.capacity - start)).tolist()


def prefixes(root: Root, noise: Iterator[int]) -> Iterator[int]:
    """Prefix sums of the integers e that R takes nearest to z, row after row.

    e_s is (z_s - what R makes of the elements before s) / R_ss, rounded; so z + R d gives e + d, for all integer d.
    """
    jumps = [new - old for old, new in zip((0, *root.values[1:]), root.values[1:], strict=False)]
    starts = root.starts[1:]
    weighted = [0]  # sums of weight * e
    prefix = 0
    for s, (z, weight) in enumerate(zip(noise, root.weights(), strict=True)):
        before = sum(map(mul, jumps, [weighted[s + 1 - start] for start in starts[: bisect_right(starts, s)]]))
        element = rounded(z - before, root.values[0] * weight)
        weighted.append(weighted[-1] + weight * element)
        prefix += element
        yield prefix
