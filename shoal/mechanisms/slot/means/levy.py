"""Levy: array means clipped to an interval around their private median, as wide as independent samples need it.

    tau = U sqrt(ln(2 K / failure) / (2 m))     K arrays of capacity m over a range of U; for sigma-subgaussian samples
                                                2 sigma takes the place of U, where it is less
    [a, b] = [y - 2 tau, y + 2 tau], cut to the range; y: the middle of one of ceil(U / (2 tau)) equal bins

Guarantee    pure epsilon-DP: half of epsilon for the bin, half for the noise
Relation     values: two cells differ in the values of one user; how many samples each user has is public
Unit         all samples of a user in the cell; they lie in one array
Sensitivity  1 of a bin's cost max(array means in lower bins, in higher bins); b - a of the sum: both exact
Noise        exponential mechanism, P(bin) proportional to exp(-(epsilon / 2) * cost / 2); discrete Laplace of scale
             2 (b - a) / epsilon
Accuracy     full arrays of independent samples: but for `failure`, all means lie within tau of their expectation; then
             y is within 2 tau of it but for bins * exp(-epsilon * K / 16)
Cap          "optimal": the m that makes K sqrt(m) greatest (`clipping.sharpest_cap`)
Proof        docs/proofs/clipping.md
Source       Levy, Sun, Amin, Kale, Kulesza, Mohri and Suresh (2021), Algorithm 1; Rameshwar, Tandon, Gupta, Singh,
             Chakraborty and Sharma (2024), "Levy"
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from shoal.mechanisms.decimals import ceiling, decimal, rounding_up
from shoal.mechanisms.selection.median import median_bin
from shoal.mechanisms.slot.cell import CellParameters, Counts, Draws, Users
from shoal.mechanisms.slot.means import clipping, error_forecast
from shoal.mechanisms.slot.means.clipping import BITS, Arrays, arranged
from shoal.mechanisms.slot.means.error_forecast import ArraysOutlook, outlook
from shoal.mechanisms.statistic import Estimate


@dataclass(frozen=True)
class Bins:
    """The bins from which the interval is chosen, in 2**-16 of the grid's steps; they are public.

    >>> bins = Bins(full=100, tau=20)
    >>> bins.count, [bins.interval(index) for index in range(bins.count)]
    (3, [(0, 57), (10, 90), (43, 100)])
    """

    full: int  # the range
    tau: int

    @property
    def count(self) -> int:
        return -(-self.full // (2 * self.tau))

    def interval(self, index: int) -> tuple[int, int]:
        """The interval [a, b] of a bin, rounded outward."""
        twice = self.full * (2 * index + 1)
        low, high = twice // (2 * self.count) - 2 * self.tau, -(-twice // (2 * self.count)) + 2 * self.tau
        return max(low, 0), min(high, self.full)


def bins(arrays: Arrays, cell: CellParameters) -> Bins:
    """The bins for these arrays, each at most 2 tau wide."""
    full = cell.grid.steps << BITS
    spread = Fraction(full)
    if cell.sigma is not None:  # rounding to the grid adds half a step to sigma at most
        spread = min(spread, 2 * cell.sigma * full / (cell.grid.high - cell.grid.low) + (1 << BITS))
    return Bins(full, tau(spread, len(arrays.arrays), arrays.cap, cell.failure))


@lru_cache(maxsize=1 << 14)
def tau(spread: Fraction, count: int, cap: int, failure: Fraction) -> int:
    """The integer above spread * sqrt(ln(2 * count / failure) / (2 * cap)), the same on every machine.

    >>> tau(Fraction(10**6), 50, 100, Fraction(1, 1000))
    239927
    """
    with rounding_up():
        return ceiling(decimal(spread) * ((decimal(2 * count / failure)).ln() / (2 * cap)).sqrt())


def likely_error(expected: ArraysOutlook, arrays: Arrays, cell: CellParameters) -> float:
    """The likely error for these arrays, in parts of the range."""
    chosen_from = bins(arrays, cell)
    half = 2 * chosen_from.tau / chosen_from.full
    return error_forecast.levy(expected, half, chosen_from.count, cell.epsilon, cell.lone_epsilon)


def predicted_error(counts: Counts, cell: CellParameters) -> float:
    """The likely error for these counts, in units of the range, as error_forecast.py assumes it."""
    arrays = arranged(counts, cell)
    return likely_error(outlook(counts, arrays, cell), arrays, cell) * float(cell.grid.high - cell.grid.low)


def release(users: Users, cell: CellParameters, draws: Draws) -> Estimate:
    """The mean of what is clipped to the chosen interval."""
    arrays = arranged([len(user) for user in users], cell)
    means, chosen_from = arrays.means(users), bins(arrays, cell)
    index = median_bin(means, chosen_from.full, chosen_from.count, cell.epsilon, draws.words("interval"))
    return clipping.release(means, *chosen_from.interval(index), cell.epsilon / 2, arrays, cell, draws, "levy")
