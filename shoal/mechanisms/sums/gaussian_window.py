"""Window sum with Gaussian noise that is correlated so that little is needed: spans of a square-root counter.

Guarantee    rho-zCDP, hence (epsilon, delta)-DP, for all releases together; steps may react to them
             (docs/proofs/square-root.md, decay.md)
Relation     values: two streams differ in what one unit contributed; who contributes, and when, is public
Unit         its changes, in one step or in many, are `width` grid steps in all
Sensitivity  L2, exact: width * the longest column of the counter's matrix (square_root_coefficients.py)
Noise        discrete Gaussian; what a window adds to its exact sum is a sum of consecutive e, and each x + e is a
             function of R x + z. An epoch has 4 W steps; the next one begins with new noise
Variance     of release t, in squared grid steps: |rows of A R**-1, one less another|**2 sigma2 in each epoch that the
             window meets, and 1/12 per step for rounding
Source       square_root.py
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import ClassVar

from shoal.mechanisms import check
from shoal.mechanisms.counters.counter import Subkeys
from shoal.mechanisms.counters.square_root import RootPrefixes, SquareRoot
from shoal.mechanisms.counters.square_root_coefficients import LAG_BITS, STEP_BITS
from shoal.mechanisms.error_bars import COVERAGE, six_digits
from shoal.mechanisms.sums.steps.steps import RowNoise
from shoal.mechanisms.sums.sums import Noised, spelled
from shoal.mechanisms.sums.window import WindowSummer

LARGEST = 1 << 16  # window: of an epoch all sums are held
_EPOCH = 4  # windows
_PLACES = 32  # at which a mean is taken


@dataclass(frozen=True)
class RootWindow(Noised):
    """All public parameters of a window sum with Gaussian noise.

    >>> sums = RootWindow(1 << 20, Fraction(1), Fraction(1, 1000), length=4096)
    >>> round(sums.noise_sd(10**6) / (1 << 20), 1)
    16.3
    """

    mechanism: ClassVar[str] = "square-root"

    delta: Fraction  # paid once, like epsilon
    length: int  # W

    def __post_init__(self) -> None:
        super().__post_init__()
        check.positive(length=self.length)
        check.probability(delta=self.delta)
        check.below(LARGEST + 1, length=self.length)

    @cached_property
    def tree(self) -> SquareRoot:
        return SquareRoot(_EPOCH * self.length, self.width, self.epsilon, self.delta)

    def variance(self, t: int) -> float:
        """Variance of release t; computing it takes transforms of 4 W terms."""
        start, size = max(t - self.length, 0), self.tree.capacity
        first, last = start // size, (t - 1) // size
        if first == last:
            return _span(self.tree, start - first * size, t - first * size)
        return _span(self.tree, start - first * size, size) + _span(self.tree, 0, t - last * size)

    @property
    def mean_variance(self) -> float:
        """The mean of `variance` over a window's positions in an epoch, from a sample of them."""
        size = self.tree.capacity
        places = min(size, _PLACES)
        return sum(self.variance(size + 1 + (2 * i + 1) * size // (2 * places)) for i in range(places)) / places

    def _near(self, t: int) -> float:
        """Variance of release t, interpolated; the computed ones are denser where the curve bends."""
        size = self.tree.capacity
        epoch, within = divmod(t, size) if t > size else (0, t)
        base = size + within if epoch else within  # every epoch but the first is alike
        bend = min(within, abs(within - self.length), size - within)
        step = 1 << max((bend >> 4).bit_length() - 1, 0)
        low, part = base // step * step, base % step / step
        return (1 - part) * self.variance(max(low, 1)) + (part * self.variance(low + step) if part else 0.0)

    def noise_sd(self, t: int) -> float:
        """Standard deviation of release t's noise, to about 1e-3."""
        return six_digits(math.sqrt(self._near(t)))

    def noise_quantile(self, t: int, coverage: float = COVERAGE) -> float:
        """The bound below which the size of release t's noise, as good as Gaussian, stays with that probability."""
        return six_digits(NormalDist().inv_cdf((1 + coverage) / 2) * math.sqrt(self._near(t)))

    def summer(self, subkey: Subkeys) -> WindowSummer:
        noise = RowNoise(self.tree.capacity, lambda epoch: RootPrefixes(self.tree, subkey(epoch)))
        return WindowSummer(self.length, lambda t: noise.between(max(t - self.length, 0), t))

    def shape(self) -> str:
        return f"RootWindow({self._shared_shape}, delta={spelled(self.delta)}, length={self.length})"

    def counts(self) -> WindowSummer:
        return WindowSummer(self.length, lambda t: 0)


@lru_cache(maxsize=1 << 12)
def _span(tree: SquareRoot, start: int, end: int) -> float:
    diagonal = tree.root.values[0] / (1 << LAG_BITS)  # an element is rounded to the nearest
    return tree.root.span_variance(start, end, float(tree.sigma2 / (1 << 2 * STEP_BITS)), diagonal**2 / 12)
