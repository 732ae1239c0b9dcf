"""Weighted means of users' samples, with noise for the user who weighs most: one mechanism for any public weights.

    value             (T + noise) / W    T = sum of w_l * (sum of the first k_l samples of user l),  W = sum of w_l k_l
    baseline          w_l = 1: all samples count alike; noise for the user who has most
    array averaging   w_l = floor(2**40 / fill) for a sample in an array of that fill (packing.py): arrays count alike,
                      and a user lies in one of them. Weights are public integers and the sum is divided by their sum,
                      so that rounding them costs no privacy

Guarantee    pure epsilon-DP
Relation     values: two cells differ in the values of one user; how many samples each user has is public
Unit         all samples of a user in the cell
Sensitivity  of the integer T, exact: steps * max w_l k_l. Of the mean of S samples alike, with at most m of a user,
             steps * m / S; of the mean of arrays at most steps / arrays, but for the rounding of the weights
Noise        discrete Laplace, one draw of scale b = steps * max w_l k_l / epsilon
Variance     of the value, in squared grid steps: 2p / (1 - p)**2 / W**2 with p = exp(-1 / b)
Bias         against all M samples, kept or not; at worst, exact: sum of k_l max(0, w_l / W - 1 / M) of the range
Cap          baseline: if given as a number, that many first samples of each user count; else all do. Array averaging:
             m_UB, an array's capacity, and the samples of a user that count; "optimal" is never worse than "median"
Proof        docs/proofs/slots.md
Source       Rameshwar, Tandon, Gupta, Singh, Chakraborty and Sharma (2024), "Baseline" and "Array-Averaging"; Dwork et
             al. (2006)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache

from shoal.mechanisms.error_bars import COVERAGE, Law, estimate
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.slot.cap import contribution_cap, median
from shoal.mechanisms.slot.cell import CellParameters, Counts, Draws, Users, cell_estimate
from shoal.mechanisms.slot.means.packing import best_fit
from shoal.mechanisms.statistic import Estimate

ONE = 1 << 40  # the weight of an array


@dataclass(frozen=True)
class Weighting:
    """The samples of each user that count, and their weights; a function of public counts.

    >>> halves = Weighting(kept=[2, 1], weights=[1, 2], mechanism="two users, a half each")
    >>> halves.weight, halves.heaviest, halves.error([2, 1], 0, Fraction(1))
    (4, 2, Fraction(2, 3))
    """

    kept: Sequence[int]  # k_l
    weights: Sequence[int]  # w_l: of each sample kept
    mechanism: str

    @cached_property
    def weight(self) -> int:
        """W, the weight of all samples together."""
        return sum(map(int.__mul__, self.weights, self.kept))

    @cached_property
    def heaviest(self) -> int:
        return max(map(int.__mul__, self.weights, self.kept))

    def total(self, users: Users) -> int:
        """T, the weighted sum of the samples."""
        return sum(w * sum(user[:k]) for user, k, w in zip(users, self.kept, self.weights, strict=True))

    def bias(self, counts: Counts, dropped: int) -> Fraction:
        """The most the weighted mean can be off the mean of all samples, in parts of the range: half an L1 distance."""
        samples = sum(counts) + dropped
        above = sum(k * max(0, w * samples - self.weight) for k, w in zip(self.kept, self.weights, strict=True))
        return Fraction(above, self.weight * samples)

    def error(self, counts: Counts, dropped: int, epsilon: Fraction) -> Fraction:
        """The worst expected error, in parts of the range."""
        return self.bias(counts, dropped) + self.heaviest / (epsilon * self.weight)


def baseline(counts: Counts, cell: CellParameters) -> Weighting:
    """The weights with which all samples count alike, up to a cap that is a number.

    >>> speeds = Grid(Fraction(0), Fraction(65), 1 << 20)
    >>> baseline([2, 9], CellParameters(grid=speeds, epsilon=Fraction(1), cap=5))
    Weighting(kept=[2, 5], weights=[1, 1], mechanism="baseline, up to 5 of a user's samples")
    """
    cap = contribution_cap(counts, cell) if isinstance(cell.cap, int) else max(counts)
    kept = [min(count, cap) for count in counts]
    return Weighting(kept, [1] * len(kept), f"baseline, up to {cap} of a user's samples")


def array_averaging(counts: Counts, cell: CellParameters) -> Weighting:
    """The weights with which all arrays count alike, and within an array all samples.

    >>> speeds = Grid(Fraction(0), Fraction(65), 1 << 20)
    >>> averaged = array_averaging([2, 9, 1], CellParameters(grid=speeds, epsilon=Fraction(1), cap=4))
    >>> averaged.kept, [round(ONE / weight, 9) for weight in averaged.weights], averaged.mechanism
    ([2, 4, 1], [3.0, 4.0, 3.0], 'array-averaging, 2 arrays of 4')
    """
    best = packed(tuple(counts), contribution_cap(counts, cell))
    if cell.cap == "optimal":  # for arrays that are all full. Where they are not, the median may do better
        both = best, packed(tuple(counts), median(counts))
        best = min(both, key=lambda candidate: candidate.error(counts, cell.dropped, cell.lone_epsilon))
    return best


@lru_cache(maxsize=4)  # the same for prediction and release
def packed(counts: tuple[int, ...], cap: int) -> Weighting:
    """The weights of arrays that take at most `cap` samples of each user."""
    arrays = best_fit(counts, cap)
    weights = [0] * len(counts)
    for array in arrays:
        for user in array.users:
            weights[user] = ONE // array.fill
    mechanism = f"array-averaging, {len(arrays)} {'array' if len(arrays) == 1 else 'arrays'} of {cap}"
    return Weighting([min(count, cap) for count in counts], weights, mechanism)


@dataclass(frozen=True)
class Linear:
    """A weighted mean whose weights are a function of public counts."""

    weighting: Callable[[Counts, CellParameters], Weighting]

    def release(self, users: Users, cell: CellParameters, draws: Draws) -> Estimate:
        return release(self.weighting([len(user) for user in users], cell), users, cell, draws)

    def predicted_error(self, counts: Counts, cell: CellParameters) -> float:
        """The worst expected error of the mean, in units of the range: its noise, and the bias of unequal weights."""
        return predicted_error(self.weighting(counts, cell), counts, cell)


BASELINE, ARRAY_AVERAGING = Linear(baseline), Linear(array_averaging)


def release(weighting: Weighting, users: Users, cell: CellParameters, draws: Draws) -> Estimate:
    """The weighted mean, with one draw of noise."""
    scale = weighting.heaviest * cell.grid.steps / cell.epsilon
    noisy = weighting.total(users) + draws.noise_for("mean", scale)
    most = cell.grid.steps if cell.clamps else None
    noisy_mean = noised(cell.grid, noisy, weighting.weight, cell.law(scale), most, cell.coverage)
    return cell_estimate(
        noisy_mean.value, noisy_mean.noise_sd, noisy_mean.low, noisy_mean.high, sum(weighting.kept),
        predicted_error(weighting, [len(user) for user in users], cell), weighting.mechanism,
    )  # fmt: skip


def predicted_error(weighting: Weighting, counts: Counts, cell: CellParameters) -> float:
    """The error that `release` states, in units of the range, from counts alone."""
    return cell.grid.width_value(cell.grid.steps * weighting.error(counts, cell.dropped, cell.lone_epsilon))


def noised(
    grid: Grid, noisy: int, weight: int, law: Law, most: Fraction | int | None, coverage: float = COVERAGE
) -> Estimate:
    """The quotient noisy / weight with error bars of one draw, clamped to 0 .. `most` grid steps if that is set."""
    unclamped = estimate(grid, noisy, weight, law, None, coverage)
    if most is None:
        return unclamped
    return replace(unclamped, value=grid.mean_value(min(max(noisy, 0), most * weight), weight))
