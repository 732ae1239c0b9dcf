"""Mean of array means that are clipped to an interval: the part that Levy and the quantiles have in common.

    value   (sum of clip(A_i, a, b) + noise) / K     A_i = floor(2**16 * sum of array i / its fill), K arrays

Guarantee    pure epsilon_s-DP given the interval; the interval is chosen privately before, or public
Relation     values: two cells differ in the values of one user; how many samples each user has is public
Unit         all samples of a user in the cell; they lie in one array
Sensitivity  of the integer sum, exact: b - a, in steps of 2**-16 of the grid's
Noise        discrete Laplace, one draw of scale (b - a) / epsilon_s
Clamping     to [a, b], where the mean of clipped numbers lies; the interval has been paid for
Proof        docs/proofs/clipping.md
Source       Rameshwar, Tandon, Gupta, Singh, Chakraborty and Sharma (2024)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from shoal.mechanisms.error_bars import estimate
from shoal.mechanisms.slot.cap import candidates, contribution_cap
from shoal.mechanisms.slot.cell import CellParameters, Counts, Draws, Users, cell_estimate
from shoal.mechanisms.slot.means.packing import Array, best_fit
from shoal.mechanisms.statistic import Estimate

BITS = 16  # of an array mean, below the grid's step
ONE = 1 << BITS
FINE = 1 << 40  # parts of an interval


@dataclass(frozen=True)
class Arrays:
    """Which array each user's samples lie in: a function of public counts."""

    cap: int
    arrays: Sequence[Array]

    @property
    def samples(self) -> int:
        return sum(array.fill for array in self.arrays)

    def means(self, users: Users) -> list[int]:
        """A_i: the mean of each array's samples, rounded down to a multiple of 2**-16 grid steps."""
        cap = self.cap
        return [(sum(sum(users[u][:cap]) for u in array.users) << BITS) // array.fill for array in self.arrays]

    def __str__(self) -> str:
        return f"{len(self.arrays)} {'array' if len(self.arrays) == 1 else 'arrays'} of {self.cap}"


def arranged(counts: Counts, cell: CellParameters) -> Arrays:
    """The arrays for these counts."""
    capacity = cap(counts, cell)
    return Arrays(capacity, best_fit(counts, capacity))


def cap(counts: Counts, cell: CellParameters) -> int:
    """The cap that the parameters set, at most the largest count."""
    return sharpest_cap(counts) if cell.cap == "optimal" else contribution_cap(counts, cell)


def sharpest_cap(counts: Counts) -> int:
    """The m that makes K sqrt(m) greatest, the smallest of several: the spread of array means over their number.

    K = S / m, the arrays that the S samples kept would fill. Not the number of arrays there will be: half empty ones
    would count for more than they hold. Between two neighbouring counts S = p + q m, and S / sqrt(m) has no maximum
    inside, so that m is one of the counts: a scan in integers, O(L log L) for L users.

    >>> sharpest_cap([1, 4, 4, 4]), sharpest_cap([1, 1, 1, 1, 1, 9]), sharpest_cap([1, 1, 9, 16])
    (4, 1, 16)
    """
    best, most = 1, 0
    for capacity, kept in candidates(counts):
        if kept**2 * best > most**2 * capacity:
            best, most = capacity, kept
    return best


def clip(means: Sequence[int], low: int, high: int) -> int:
    """The sum of the means, each clipped to low .. high.

    >>> clip([1, 5, 9], 2, 6)
    13
    """
    return sum([low if mean < low else high if mean > high else mean for mean in means])


def noised_clip(
    means: Sequence[int], low: int, high: int, scale: Fraction, cell: CellParameters, draws: Draws, purpose: str
) -> Fraction | int:
    """The sum of the means, each clipped to low .. high, with noise of this scale.

    Of several coordinates each has an interval of its own, and one draw of noise is for all. So what is clipped is
    rounded to 2**-40 of its interval, and the noise is in such parts: one user moves each coordinate by FINE of them.
    """
    if cell.coordinates == 1:
        return clip(means, low, high) + draws.noise_for(purpose, scale)
    width, bottom = high - low, low * len(means)
    parts = sum((2 * FINE * (min(max(mean, low), high) - low) + width) // (2 * width) for mean in means)
    return bottom + Fraction((parts + draws.noise_for(purpose, scale * FINE / width)) * width, FINE)


def release(
    means: Sequence[int], low: int, high: int, epsilon: Fraction, arrays: Arrays, cell: CellParameters, draws: Draws,
    name: str,
) -> Estimate:  # fmt: skip
    """The mean of the clipped array means, with noise for `epsilon`, which is what is left of the cell's."""
    scale = (high - low) / epsilon
    noisy, count = noised_clip(means, low, high, scale, cell, draws, "clipped mean"), len(means)
    unclamped = estimate(cell.grid, noisy, count << BITS, cell.law(scale), None, cell.coverage)
    value = unclamped.value
    if cell.clamps:
        value = cell.grid.mean_value(min(max(noisy, low * count), high * count), count << BITS)
    mechanism = f"{name}, {arrays}"
    return cell_estimate(value, unclamped.noise_sd, unclamped.low, unclamped.high, arrays.samples, None, mechanism)
