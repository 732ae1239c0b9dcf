"""Quantile: array means clipped to an interval between two of their private quantiles, whatever their spread is.

    fixed     q = 1/10 and 9/10
    epsilon   q = r / K and 1 - r / K of K arrays, r = ceil(2 / epsilon), but neither beyond 1/2: array means are
              clipped on either side until clipping one more would cost what it saves in noise

Guarantee    pure epsilon-DP: a quarter of epsilon for each quantile, half for the noise
Relation     values: two cells differ in the values of one user; how many samples each user has is public
Unit         all samples of a user in the cell; they lie in one array
Sensitivity  both exact: 1 of the cost of each grid step as a quantile (exact_quantile.py); b - a of the clipped sum
Interval     a: the lower end of the lower grid step chosen; b: the upper end of the upper one; at least one step
Noise        exponential mechanism over all grid steps; discrete Laplace of scale 2 (b - a) / epsilon
Cap          "optimal": the m that makes K sqrt(m) greatest (`clipping.sharpest_cap`)
Proof        docs/proofs/clipping.md
Source       Smith (2011); Amin, Kulesza, Munoz Medina and Vassilvitskii (2019) for what depends on epsilon; Rameshwar,
             Tandon, Gupta, Singh, Chakraborty and Sharma (2024), "Quantile"
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from shoal.mechanisms.selection.exact_quantile import choose
from shoal.mechanisms.slot.cell import CellParameters, Counts, Draws, Users
from shoal.mechanisms.slot.means import clipping, error_forecast
from shoal.mechanisms.slot.means.clipping import BITS, arranged
from shoal.mechanisms.slot.means.error_forecast import ArraysOutlook, outlook
from shoal.mechanisms.statistic import Estimate

TENTH, HALF = Fraction(1, 10), Fraction(1, 2)
Lower = Callable[[int, Fraction], Fraction]  # the lower q, from the number of arrays and epsilon


def fixed(_count: int, _epsilon: Fraction) -> Fraction:
    """The lower quantile that does not depend on epsilon."""
    return TENTH


def dependent(count: int, epsilon: Fraction) -> Fraction:
    """The lower quantile that depends on epsilon.

    >>> dependent(100, Fraction(3, 2)), dependent(3, Fraction(1))
    (Fraction(1, 50), Fraction(1, 2))
    """
    return min(Fraction(-(-2 * epsilon.denominator // epsilon.numerator), count), HALF)


def interval(means: Sequence[int], steps: int, q: Fraction, epsilon: Fraction, draws: Draws) -> tuple[int, int]:
    """The interval [a, b] from the q and 1 - q quantiles, each for epsilon; in 2**-16 of the grid's steps."""
    cells = [min(mean >> BITS, steps - 1) for mean in means]
    lower = choose(cells, steps, q, epsilon, draws.words("quantile", 0))
    upper = choose(cells, steps, 1 - q, epsilon, draws.words("quantile", 1))
    return min(lower, upper) << BITS, (max(lower, upper) + 1) << BITS


@dataclass(frozen=True)
class Quantile:
    """Array means clipped between two of their private quantiles, of which `lower` gives the lower q."""

    name: str
    lower: Lower

    def release(self, users: Users, cell: CellParameters, draws: Draws) -> Estimate:
        arrays = arranged([len(user) for user in users], cell)
        means, q = arrays.means(users), self.lower(len(arrays.arrays), cell.lone_epsilon)
        low, high = interval(means, cell.grid.steps, q, cell.epsilon / 4, draws)
        return clipping.release(means, low, high, cell.epsilon / 2, arrays, cell, draws, self.name)

    def likely_error(self, expected: ArraysOutlook, cell: CellParameters) -> float:
        """The likely error for these arrays, in parts of the range."""
        return error_forecast.quantile(
            expected, self.lower(expected.count, cell.lone_epsilon), cell.epsilon, cell.lone_epsilon
        )

    def predicted_error(self, counts: Counts, cell: CellParameters) -> float:
        """The likely error for these counts, in units of the range, as error_forecast.py assumes it."""
        expected = outlook(counts, arranged(counts, cell), cell)
        return self.likely_error(expected, cell) * float(cell.grid.high - cell.grid.low)


FIXED, DEPENDENT = Quantile("fixed-quantile", fixed), Quantile("epsilon-quantile", dependent)
