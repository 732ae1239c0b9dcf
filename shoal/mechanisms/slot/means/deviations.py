"""Deviations: what users' samples sum to beyond a private centre, clipped as far out as a private spread says.

    centre   c: the mean of users' means, with noise
    spread   half of the |E_l| / s_l are below it: E_l = (sum of k_l samples) - k_l c, s_l the usual size of such a sum
    value    c + (sum of clip(E_l, -t, t) + noise) / M     M = sum of k_l; t follows from the spread and public counts

All samples count, alike, and yet the noise is not for what a user could have said but for what users do say. With all
users' means at c this is a mean whose noise is for 2 t; with c far from them all are clipped on one side, so t is
chosen with the noise of c in mind (deviations_forecast.py).

Guarantee    pure epsilon-DP: `spread_share` of epsilon or less for centre (two thirds) and spread, the rest for noise
Relation     values: two cells differ in the values of one user; how many samples each user has is public
Unit         all samples of a user in the cell
Sensitivity  all exact: the range, of the sum of users' means; 1, of the cost of a spread; 2 t at most, of the sum
Noise        discrete Laplace, of scale range / epsilon_c; exponential mechanism over RUNGS spreads, P(j) proportional
             to exp(-epsilon_s / 2 * cost); discrete Laplace of scale (high - low) / epsilon_r
Cap          if given as a number, that many first samples of each user count; else all do
Proof        docs/proofs/clipping.md
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from math import isqrt

from shoal.mechanisms.error_bars import estimate
from shoal.mechanisms.selection import clip_range
from shoal.mechanisms.slot.cell import CellParameters, Counts, Draws, Users, cell_estimate
from shoal.mechanisms.slot.means import deviations_forecast
from shoal.mechanisms.slot.means.clipping import BITS, noised_clip
from shoal.mechanisms.slot.means.deviations_forecast import LOWEST, RUNGS, Forecast, Shares
from shoal.mechanisms.statistic import Estimate

GAIN = 1.1  # of another mechanism's error over this one's, from which on it is worth measuring
UNIT = 10_000  # of USUAL, in squares of the range
USUAL = (9, 400)  # per squared sample, as users' means differ; per sample, as a user's samples do


def kept(counts: Counts, cell: CellParameters) -> list[int]:
    """How many samples of each user count."""
    return [min(count, cell.cap) for count in counts] if isinstance(cell.cap, int) else list(counts)


def divided(counts: Counts, cell: CellParameters) -> tuple[Shares, Forecast]:
    """The parts of the cell's epsilon, and how far to clip with them: public, for samples that count.

    Raises:
        ValueError: no part may be set aside for centre and spread.
    """
    if cell.spread_share is None:
        raise ValueError("spread_share is missing: deviations need a centre and a spread")
    return deviations_forecast.divided(tuple(sorted(counts)), cell.epsilon, cell.spread_share, cell.coordinates)


@dataclass(frozen=True)
class Around:
    """Deviations from a centre, in 2**-16 of the grid's steps; only `deviations` holds what is private."""

    full: int  # the range
    centre: int
    kept: Sequence[int]
    deviations: Sequence[int]

    def spread(self, epsilon: Fraction, words: Iterator[int]) -> int:
        """The rung that is chosen for the spread: about half of the deviations are beyond it."""
        beyond = [0] * (RUNGS + 1)
        for count, deviation in zip(self.kept, self.deviations, strict=True):
            beyond[rung(deviation, count, self.full)] += 1
        upto = list(accumulate(beyond[:-1]))
        outside = [len(self.kept) - below for below in upto]
        return clip_range.scale(outside, len(self.kept) // 2, epsilon, words)

    def clipped(self, step: int) -> tuple[int, int]:
        """The interval to which deviations are clipped: no user's could lie beyond, or none beyond t counts in full."""
        most = max(self.kept)
        t = far(most * self.full, step)
        return max(-t, -most * self.centre), min(t, most * (self.full - self.centre))


def rung(deviation: int, count: int, full: int) -> int:
    """The least j with |deviation| at most 2**((j + LOWEST) / 2) times what is usual; RUNGS if there is none.

    >>> [rung(deviation, 1, 1000) for deviation in (0, 12, 13, 202, 203, 1000, 9999)]
    [0, 0, 1, 8, 9, 13, 15]
    """
    usual = full**2 * (USUAL[0] * count**2 + USUAL[1] * count)
    parts = -(-(deviation**2 * UNIT << -LOWEST) // usual)
    return min(max(parts - 1, 0).bit_length(), RUNGS)


def far(most: int, step: int) -> int:
    """The integer below most / 2**(step / 4), and at least 1.

    >>> far(1000, 0), far(1000, 2), far(1000, 4), far(1000, 99)
    (1000, 707, 500, 1)
    """
    return max(1, isqrt(isqrt(most**4 >> step)))


def noised_sum(total: int, scale: Fraction, draws: Draws) -> int:
    """The sum of users' means, with the noise of the centre."""
    return total + draws.noise_for("centre", scale)


def around(users: Users, counts: Counts, cell: CellParameters, epsilon: Fraction, draws: Draws) -> Around:
    """The deviations of so many samples of each user from a centre that is drawn for this epsilon."""
    full = cell.grid.steps << BITS
    sums = [sum(user[:count]) << BITS for user, count in zip(users, counts, strict=True)]
    means = sum(total // count for total, count in zip(sums, counts, strict=True))
    noisy = noised_sum(means, full / epsilon, draws)
    centre = min(max(noisy // len(users), 0), full)
    deviations = [total - count * centre for total, count in zip(sums, counts, strict=True)]
    return Around(full, centre, counts, deviations)


def release(users: Users, cell: CellParameters, draws: Draws) -> Estimate:
    """The centre, and the mean of what deviations from it are clipped to."""
    counts = kept([len(user) for user in users], cell)
    parts, expected = divided(counts, cell)
    found = around(users, counts, cell, parts.centre, draws)
    chosen = found.spread(parts.spread, draws.words("spread"))
    low, high = found.clipped(expected.steps[chosen])
    scale, samples = (high - low) / parts.rest, sum(counts)
    noisy = samples * found.centre + noised_clip(found.deviations, low, high, scale, cell, draws, "deviations")
    unclamped = estimate(cell.grid, noisy, samples << BITS, cell.law(scale), None, cell.coverage)
    value = unclamped.value
    if cell.clamps:
        value = cell.grid.mean_value(min(max(noisy, 0), samples * found.full), samples << BITS)
    mechanism = f"deviations, {len(users)} {'user' if len(users) == 1 else 'users'}"
    return cell_estimate(value, unclamped.noise_sd, unclamped.low, unclamped.high, samples, None, mechanism)


def likely_error(counts: Counts, cell: CellParameters) -> float:
    """The likely error for these counts, in parts of the range, and a tenth more, as it has to pay by that."""
    return GAIN * divided(kept(counts, cell), cell)[1].error
