"""Weighted means of users' samples, with noise for the user who weighs most: one mechanism for any public weights.

    value   (T + noise) / W    T = sum of w_l * (sum of the first k_l samples of user l),  W = sum of w_l k_l

Guarantee    pure epsilon-DP
Relation     values: two cells differ in the values of one user; how many samples each user has is public
Unit         all samples of a user in the cell
Sensitivity  of the integer T, exact: steps * max w_l k_l
Noise        discrete Laplace, one draw of scale b = steps * max w_l k_l / epsilon
Variance     of the value, in squared grid steps: 2p / (1 - p)**2 / W**2 with p = exp(-1 / b)
Bias         against all M samples, kept or not; at worst, exact: sum of k_l max(0, w_l / W - 1 / M) of the range
Proof        docs/proofs/slots.md
Source       Rameshwar, Tandon, Gupta, Singh, Chakraborty and Sharma (2024), for the weights that its users choose
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from shoal.mechanisms.error_bars import estimate
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.slot.cell import CellParameters, Counts, Draws, Users, cell_estimate
from shoal.mechanisms.statistic import Estimate


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
        """The greatest weight of one user."""
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


def release(weighting: Weighting, users: Users, cell: CellParameters, draws: Draws) -> Estimate:
    """The weighted mean with noise."""
    scale = weighting.heaviest * cell.grid.steps / cell.epsilon
    noisy = weighting.total(users) + draws.laplace("mean", scale)
    noisy_mean = noised(cell.grid, noisy, weighting.weight, scale, cell.grid.steps if cell.clamps else None)
    return cell_estimate(
        noisy_mean.value, noisy_mean.noise_sd, noisy_mean.low, noisy_mean.high, sum(weighting.kept),
        predicted_error(weighting, [len(user) for user in users], cell), weighting.mechanism,
    )  # fmt: skip


def predicted_error(weighting: Weighting, counts: Counts, cell: CellParameters) -> float:
    """The error that `release` states, in units of the range: it needs no values."""
    return cell.grid.width_value(cell.grid.steps * weighting.error(counts, cell.dropped, cell.epsilon))


def noised(grid: Grid, noisy: int, weight: int, scale: Fraction, most: Fraction | int | None) -> Estimate:
    """The quotient noisy / weight with error bars of one draw, clamped to 0 .. `most` grid steps if that is set."""
    unclamped = estimate(grid, noisy, weight, ((scale, 1),))
    if most is None:
        return unclamped
    return replace(unclamped, value=grid.mean_value(min(max(noisy, 0), most * weight), weight))
