"""Any decay by window sums: ages whose weights differ by a factor of less than 1 - r share a window and a weight.

Guarantee    pure epsilon-DP for all releases together; steps may react to them (docs/proofs/decay.md)
Relation     values: two streams differ in what one unit contributed; who contributes, and when, is public
Unit         its changes, in one step or in many, are `width` grid steps in all
Sensitivity  L1, exact: that of PolynomialSum (polynomial_sum.py), whose budgets these windows have
Noise        that of PolynomialSum
Weights      a step of age n is in the window j with a_j <= g(n) < a_j / (1 - r), a_j = (1 - r)**j, and weighs a_j:
             without noise (1 - r) F <= F' <= F
Variance     that of PolynomialSum, by these windows
Source       Bolot, Fawaz, Muthukrishnan, Nikolov and Taft (2013), who say that PolynomialSum serves any decay function
             whose inverse grows subexponentially; a list of weights ends, and so its sensitivity is finite
"""

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from shoal.mechanisms import check
from shoal.mechanisms.sums.patent.polynomial_sum import FlatWindows
from shoal.mechanisms.sums.sums import spelled
from shoal.mechanisms.sums.weights import Weights


@dataclass(frozen=True)
class TableWindows(FlatWindows):
    """All public parameters of such a sum.

    >>> weights = Weights.of([Fraction(1), Fraction(3, 4), Fraction(1, 2), Fraction(1, 2), Fraction(1, 5)])
    >>> sums = TableWindows(1, Fraction(1), weights, error=Fraction(1, 2))
    >>> [(aged.age, aged.weight / 2**96, aged.window.length) for aged in sums.windows]
    [(0, 1.0, 1), (1, 0.5, 3), (4, 0.125, 1)]
    """

    weights: Weights
    error: Fraction  # r

    def __post_init__(self) -> None:
        super().__post_init__()
        check.probability(error=self.error)

    def _shapes(self) -> Iterator[tuple[int, int, int]]:
        parts, age, j, least = self.weights.parts, 0, 0, Fraction(self.weights.denominator)
        while age < len(parts):
            end = bisect_right(parts, -math.ceil(least), key=int.__neg__)
            if end > age:
                yield j, age, end - age
            age, j, least = end, j + 1, least * (1 - self.error)

    def shape(self) -> str:
        return f"TableWindows({self._shared_shape}, weights={self.weights.shape()}, error={spelled(self.error)})"
