"""Array averaging: users' samples packed into arrays of about one size, and the mean of the arrays' means.

Guarantee    pure epsilon-DP: `linear.py` with a weight of floor(2**40 / fill) for a sample in an array of that fill
Sensitivity  of the weighted sum, exact: steps * max w_l k_l over users l. A user lies in one array, so of the mean it
             is steps * max (k_l / fill) / arrays, but for the rounding of the weights: at most steps / arrays
Weights      are public integers, and the sum is divided by their sum: rounding them costs no privacy
Cap          m_UB, an array's capacity, and the samples of a user that count; "optimal" is never worse than "median"
Proof        docs/proofs/slots.md
Source       Rameshwar, Tandon, Gupta, Singh, Chakraborty and Sharma (2024), "Array-Averaging"
"""

from functools import lru_cache

from shoal.mechanisms.slot import linear
from shoal.mechanisms.slot.cap import contribution_cap, median
from shoal.mechanisms.slot.cell import CellParameters, Counts, Draws, Users
from shoal.mechanisms.slot.packing import best_fit
from shoal.mechanisms.statistic import Estimate

ONE = 1 << 40  # the weight of an array


def weighting(counts: Counts, cell: CellParameters) -> linear.Weighting:
    """The weights with which all arrays count alike, and within an array all samples.

    >>> from fractions import Fraction
    >>> from shoal.mechanisms.grid import Grid
    >>> speeds = Grid(Fraction(0), Fraction(65), 1 << 20)
    >>> averaged = weighting([2, 9, 1], CellParameters(grid=speeds, epsilon=Fraction(1), cap=4))
    >>> averaged.kept, [round(ONE / weight, 9) for weight in averaged.weights], averaged.mechanism
    ([2, 4, 1], [3.0, 4.0, 3.0], 'array-averaging, 2 arrays of 4')
    """
    best = packed(counts, contribution_cap(counts, cell))
    if cell.cap == "optimal":  # for arrays that are all full. Where they are not, the median may do better
        both = best, packed(counts, median(counts))
        best = min(both, key=lambda candidate: candidate.error(counts, cell.dropped, cell.epsilon))
    return best


def packed(counts: Counts, cap: int) -> linear.Weighting:
    """The weights with at most `cap` samples of each user."""
    return _packed(tuple(counts), cap)


@lru_cache(maxsize=4)  # the same for prediction and release
def _packed(counts: Counts, cap: int) -> linear.Weighting:
    arrays = best_fit(counts, cap)
    weights = [0] * len(counts)
    for array in arrays:
        for user in array.users:
            weights[user] = ONE // array.fill
    mechanism = f"array-averaging, {len(arrays)} {'array' if len(arrays) == 1 else 'arrays'} of {cap}"
    return linear.Weighting([min(count, cap) for count in counts], weights, mechanism)


def release(users: Users, cell: CellParameters, draws: Draws) -> Estimate:
    """The mean of the arrays' means, with noise."""
    return linear.release(weighting([len(user) for user in users], cell), users, cell, draws)


def predicted_error(counts: Counts, cell: CellParameters) -> float:
    """The worst expected error of the mean, in units of the range: its noise, and the bias of unequal weights."""
    return linear.predicted_error(weighting(counts, cell), counts, cell)
