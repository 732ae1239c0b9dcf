"""Public coefficients near the square root of the matrix of prefix sums: integers, in few pieces.

The square root of that matrix is the Toeplitz matrix of f_0 = 1, f_i = (1 - 1 / (2 i)) f_(i - 1). Here f is averaged
over bins of lags [a, b), b / a near 5/4 from lag 8 on, so that a row times a vector is a few products with sums of
elements; that costs 0.1 % of variance. An element's column has a weight: 1, or what makes all columns equally long.
What is spent is computed from these integers, so how near they are to the root matters to accuracy alone.

Matrix       row t, column s: lag(t - s) * weight(s), in steps of 2**-40: the lag's of 2**-24, the weight's of 2**-16
Sensitivity  the longest column, squared: 2**32 * the sum of the squared lags, at column 0; no other is longer
Proof        docs/proofs/square-root.md
Source       Fichtenberger, Henzinger and Upadhyay (2023); arXiv 2509.14334 (columns); arXiv 2412.07093 (bins)
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

LAG_BITS, WEIGHT_BITS = 24, 16
STEP_BITS = LAG_BITS + WEIGHT_BITS
_SINGLE = 8  # lags that are a bin of their own
_EXACT = 96  # binary places of f
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Root:
    """The coefficients of a matrix of `size` rows.

    >>> root = Root.of(11, unit_columns=False)
    >>> [value >> 16 for value in root.values]
    [256, 128, 96, 80, 70, 63, 57, 53, 48, 45]
    >>> root.starts
    (0, 1, 2, 3, 4, 5, 6, 7, 8, 10)
    """

    size: int
    unit_columns: bool
    starts: tuple[int, ...]  # of each bin of lags, the first being 0
    values: tuple[int, ...]  # of a lag in each bin

    @classmethod
    @lru_cache(maxsize=16)
    def of(cls, size: int, *, unit_columns: bool) -> "Root":
        edges = [0]
        while edges[-1] < size:
            edges.append(edges[-1] + 1 if edges[-1] < _SINGLE else -(-5 * edges[-1] // 4))
        edges[-1] = size
        values, f, lag = [], 1 << _EXACT, 0
        for start, end in pairwise(edges):
            total = 0
            while lag < end:
                total += f
                lag += 1
                f = f * (2 * lag - 1) // (2 * lag)
            values.append(total // (end - start << _EXACT - LAG_BITS))
        return cls(size, unit_columns, tuple(edges[:-1]), tuple(values))

    @cached_property
    def squared_column(self) -> int:
        """The square of the longest column's length, in steps of 2**-80."""
        return self._squares << 2 * WEIGHT_BITS

    @cached_property
    def _squares(self) -> int:
        ends = (*self.starts[1:], self.size)
        return sum((b - a) * value * value for a, b, value in zip(self.starts, ends, self.values, strict=True))

    def weights(self) -> Iterator[int]:
        """The largest weight of each element with which its column is no longer than the first.

        The columns are the shorter, the later their elements are.
        """
        left = self._squares
        last = len(self.starts) - 1
        for rows in range(self.size, 0, -1):
            yield math.isqrt((self._squares << 2 * WEIGHT_BITS) // left) if self.unit_columns else 1 << WEIGHT_BITS
            last -= rows <= self.starts[last]
            left -= self.values[last] ** 2

    @cached_property
    def _lags(self) -> Floats:
        """The coefficients as floats; for planning, like all that follows."""
        return np.repeat(np.array(self.values) / 2.0**LAG_BITS, np.diff([*self.starts, self.size]))

    @cached_property
    def _weights(self) -> Floats:
        return np.fromiter(self.weights(), dtype=np.float64, count=self.size) / 2.0**WEIGHT_BITS

    @cached_property
    def _inverse(self) -> Floats:
        """The power series that is the reciprocal of that of the lags, by Newton's method."""
        inverse: Floats = 1 / self._lags[:1]
        while len(inverse) < self.size:
            n = min(2 * len(inverse), self.size)
            padded: Floats = np.concatenate([inverse, np.zeros(n - len(inverse))])
            inverse = 2 * padded - _product(_product(padded, padded), self._lags[:n])
        return inverse

    def variance(self, t: int, sigma2: float, rounding: float) -> float:
        """Variance of the sum of the first t elements of e, if R e = z + errors, as for elements of whole numbers.

        `sigma2` is the variance of each z, and `rounding` times its element's squared weight that of each error.
        """
        return self.span_variance(0, t, sigma2, rounding)

    def span_variance(self, start: int, end: int, sigma2: float, rounding: float) -> float:
        """Variance, as above, of the sum of elements start + 1 .. end."""
        row = self._row(end)
        row[:start] -= self._row(start)
        return float(np.sum(row**2 * (sigma2 + rounding * self._weights[:end] ** 2)))

    def _row(self, t: int) -> Floats:
        """Row t of A R**-1, empty for t = 0."""
        if not t:
            return np.zeros(0)
        return _product(1 / self._weights[:t][::-1], self._inverse[:t])[::-1]


def _product(left: Floats, right: Floats) -> Floats:
    """The first len(left) terms of the product of two power series."""
    size = 1 << (2 * len(left) - 1).bit_length()
    product: Floats = np.fft.irfft(np.fft.rfft(left, size) * np.fft.rfft(right, size), size)[: len(left)]
    return product
