"""Mean and variance of a cell jointly, each with half of epsilon and the exact sensitivity for whole users.

    mean      (N1 + noise) / S       N1 = sum of x               over the S samples x that count
    variance  (N2 + noise) / S**2    N2 = S * (sum of x**2) - (sum of x)**2: S**2 times their variance

Guarantee    pure epsilon-DP for both together
Relation     values: two cells differ in the values of one user; how many samples each user has is public
Unit         all samples of a user in the cell
Sensitivity  exact, with g the most samples of a user that count: steps * g of N1; of N2 steps**2 * g * (S - g) where
             S > 2 g, else steps**2 * floor(S**2 / 4)
Noise        discrete Laplace, scales 2 / epsilon times these
Variance     of the noise on the values, in grid steps: 2p / (1 - p)**2 with p = exp(-1 / scale), over S**2 and S**4
Error        worst expected, for all samples of the cell, those left out too: `worst_error.py`
Proof        docs/proofs/slots.md
Source       Rameshwar and Tandon (2024), which has the user-level sensitivity of the variance
"""

from fractions import Fraction
from functools import partial
from operator import mul
from typing import Any

from shoal.mechanisms.slot.cap import contribution_cap
from shoal.mechanisms.slot.cell import CellParameters, Counts, Draws, Users, cell_estimate
from shoal.mechanisms.slot.means.linear import noised
from shoal.mechanisms.slot.worst_error import mean_and_variance_error, mean_error, variance_error, variance_sensitivity
from shoal.mechanisms.statistic import Estimate


def release(users: Users, cell: CellParameters, draws: Draws) -> Estimate:
    """Mean and variance of the samples that count, in units of the range and in such units squared."""
    counts = [len(user) for user in users]
    most = cap(counts, cell)
    values = [user[:most] for user in users]
    kept = sum(map(len, values))
    grid, squares = cell.grid, cell.grid.squares
    (first, second), (narrow, wide) = sums(values), scales(kept, most, cell)
    first += draws.laplace("mean", narrow)
    second += draws.laplace("variance", wide) if wide else 0  # of one sample, which has none
    highest, widest = (grid.steps, Fraction(squares.steps, 4)) if cell.clamps else (None, None)
    mean = noised(grid, first, kept, cell.law(narrow), highest, cell.coverage)
    variance = noised(squares, second, kept**2, cell.law(wide), widest, cell.coverage)
    return cell_estimate(
        value=_pair(mean.value, variance.value),
        noise_sd=_pair(mean.noise_sd, variance.noise_sd),
        low=_pair(mean.low, variance.low),
        high=_pair(mean.high, variance.high),
        samples=kept,
        error=_pair(*errors(kept, most, sum(counts) + cell.dropped, cell)),
        mechanism=f"mean and variance, up to {most} of a user's samples",
    )


def predicted_error(counts: Counts, cell: CellParameters) -> float:
    """The sum of both worst expected errors, in units of the range and its square: "optimal" makes it least."""
    most = cap(counts, cell)
    kept, samples = sum(min(count, most) for count in counts), sum(counts) + cell.dropped
    return float(mean_and_variance_error(kept, most, samples, cell.epsilon, cell.grid.high - cell.grid.low))


def cap(counts: Counts, cell: CellParameters) -> int:
    """The number of samples of a user that count; "optimal" makes the sum of both errors least."""
    width = cell.grid.high - cell.grid.low
    return contribution_cap(counts, cell, partial(mean_and_variance_error, epsilon=cell.epsilon, width=width))


def sums(users: Users) -> tuple[int, int]:
    """The sums N1 and N2 over all these samples.

    >>> sums([[1, 2], [6]])
    (9, 42)
    """
    samples, total = sum(map(len, users)), sum(map(sum, users))
    return total, samples * sum(sum(map(mul, user, user)) for user in users) - total**2


def scales(kept: int, most: int, cell: CellParameters) -> tuple[Fraction, Fraction]:
    """The scales of the noise on N1 and on N2."""
    steps, half = cell.grid.steps, cell.epsilon / 2
    return steps * most / half, steps**2 * variance_sensitivity(kept, most) / half


def errors(kept: int, most: int, samples: int, cell: CellParameters) -> tuple[float, float]:
    """The worst expected errors of mean and variance, in units of the range and of its square."""
    half, grid, squares = cell.epsilon / 2, cell.grid, cell.grid.squares
    mean, variance = mean_error(kept, most, samples, half), variance_error(kept, most, samples, half)
    return grid.width_value(grid.steps * mean), squares.width_value(squares.steps * variance)


def _pair(mean: Any, variance: Any) -> Any:
    return {"mean": mean, "variance": variance}
