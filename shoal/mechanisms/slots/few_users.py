"""A mean of few users with many samples each: an exponential mechanism that may say "no release".

Guarantee    (epsilon, delta)-DP per release, delta > 0: pure noise for a handful of users would drown the mean
Relation     values: two cells differ in the samples of one user; who is in the cell, and how often, is public
Unit         all of a user's samples become one number, their mean in grid steps, which moves anywhere
Choice       a grid point near many means, or none (coverage.py); the points are not cut at the range
Accuracy     with probability 1 - failure all means lie within r0 of the true one. Then the point lies within R + r0 of
             it, R = 2 r0, and from `users_needed` users on there is one with probability 1 - failure. A minority of
             corrupt users, 49 % of many, hardly changes either
Proof        docs/proofs/few-users.md
Source       Esfandiari, Mirrokni and Narayanan (2021)

`release_with_prior` spends epsilon / 2 and delta so, for a place to clip at, and epsilon / 2 on the average of clipped
means: for cells where no useful range is known. Its error falls with the number of users.
"""

import math
from decimal import ROUND_CEILING
from fractions import Fraction
from functools import lru_cache

from shoal.mechanisms import check, interval
from shoal.mechanisms.grid import LARGEST
from shoal.mechanisms.laplace import DiscreteLaplace
from shoal.mechanisms.slots.cell import CellEstimate, CellParameters, Counts, Draws, Users
from shoal.mechanisms.slots.coverage import PointChoice, decimal, precise

PARTS = 1 << 16  # of a grid step, that clipped means are counted in
_DIGITS = 50


def release(users: Users, of: CellParameters, draws: Draws) -> CellEstimate:
    """A point near the means of most users, or no release.

    low and high are no quantiles of noise: the mean lies between them but for `failure`, if samples are independent and
    as the parameters say. noise_sd is that of a uniform point of a ball, which a point near all means stays below.
    """
    counts = _counts([len(samples) for samples in users], of)
    reach = reach_of(counts, of)
    point = point_choice(counts, of, of.epsilon).choose(_means(users, counts), draws.words("few-users"))
    if point is None:
        return _no_release(counts, "few-users")
    sd = interval.six_digits(math.sqrt(2 * reach * (2 * reach + 1) / 3))
    half = of.grid.width_value(3 * reach)
    return _released(of.grid.mean_value(point, 1), of.grid.width_value(sd), half, counts, of, "few-users")


def release_with_prior(users: Users, of: CellParameters, draws: Draws) -> CellEstimate:
    """The average of the users' means, clipped around a point that was chosen first; no release if none was."""
    counts = _counts([len(samples) for samples in users], of)
    point = point_choice(counts, of, of.epsilon / 2).choose(_means(users, counts), draws.words("few-users"))
    if point is None:
        return _no_release(counts, "few-users-prior")
    width, parts = _clip_width(counts, of), len(users) * PARTS
    low, high = point * PARTS - width // 2, point * PARTS + width // 2
    noise = DiscreteLaplace(width / (of.epsilon / 2), draws.subkey("few-users-mean"))
    total = sum(min(max(mean, low), high) for mean in _means(users, counts, PARTS)) + noise.draw(0)
    value, scales = of.grid.mean_value(Fraction(total, PARTS), len(users)), ((noise.scale, 1),)
    sd, half = (of.grid.width_value(size(scales)) / parts for size in (interval.noise_sd, interval.noise_quantile))
    return _released(value, sd, half, counts, of, "few-users-prior")


def predicted_error(counts: Counts, of: CellParameters) -> float:
    """R / 2, the error of a uniform point of a ball, if there is a release; the whole range if there is none."""
    counts = _counts(counts, of)
    return _or_nothing(Fraction(reach_of(counts, of)), no_release(counts, of, of.epsilon), of)


def predicted_error_with_prior(counts: Counts, of: CellParameters) -> float:
    """The expected size of the noise if there is a release, nothing being clipped; the whole range if there is none."""
    counts = _counts(counts, of)
    steps = _clip_width(counts, of) / (of.epsilon / 2) / (len(counts) * PARTS)
    return _or_nothing(steps, no_release(counts, of, of.epsilon / 2), of)


def no_release(counts: Counts, of: CellParameters, epsilon: Fraction) -> float:
    """The most that it is likely that there is no release, if all means lie within r0 of one point."""
    choice = point_choice(counts, of, epsilon)
    return choice.none_at_most(Fraction(choice.ball - 2 * reach_of(counts, of), choice.ball))


def users_needed(epsilon: Fraction, delta: Fraction, failure: Fraction, kappa: float = math.log(2)) -> int:
    """From how many users on there is a release but for `failure`, if their means lie within r0 of one point.

    n >= 1 + 2 / epsilon * (ln(1 / (delta * failure)) + kappa), exp(-kappa) being the part that all their balls share.

    >>> users_needed(Fraction(1), Fraction(1, 10**6), Fraction(1, 20))
    37
    """
    check.positive(epsilon=epsilon)
    check.probability(delta=delta, failure=failure)
    needed = 2 / float(epsilon) * (-math.log(delta) - math.log(failure) + kappa)
    return 1 + math.ceil(float(f"{needed:.9g}"))


def point_choice(counts: Counts, of: CellParameters, epsilon: Fraction) -> PointChoice:
    """The choice of a point, for all of the cell's epsilon or a part of it; a ValueError without a delta."""
    if of.delta <= 0:
        raise ValueError(f"delta must be greater than 0 for few users, not {of.delta}: one user may be far from all")
    return PointChoice(numbers=len(counts), radius=2 * reach_of(counts, of), epsilon=epsilon, delta=of.delta)


def reach_of(counts: Counts, of: CellParameters) -> int:
    """r0 of a cell: as of users who all have as many samples as the one with the fewest."""
    check.probability(failure=of.failure)
    return reach_steps(len(counts), min(counts), of.failure, _scatter(of))


@lru_cache(maxsize=1 << 12)
def reach_steps(users: int, samples: int, failure: Fraction, scatter: Fraction) -> int:
    """r0: how far the means of so many samples each are from the true one, in grid steps, but for `failure`.

    scatter * sqrt(2 ln(2n / failure) / samples), rounded up, and one step for the rounding of samples and of means.

    >>> reach_steps(40, 100, Fraction(1, 20), Fraction(1000))
    386
    """
    with precise(_DIGITS):
        steps = (2 * decimal(2 * users / failure).ln() / samples).sqrt() * decimal(scatter)
        return int(steps.to_integral_value(ROUND_CEILING)) + 1


def _scatter(of: CellParameters) -> Fraction:
    """In grid steps, the sigma that samples are subgaussian with: half the range (Hoeffding), or what is less."""
    half = Fraction(of.grid.steps, 2)
    return half if of.sigma is None else min(half, of.sigma * of.grid.steps / (of.grid.high - of.grid.low))


def _counts(counts: Counts, of: CellParameters) -> list[int]:
    """How many samples of each user count. A user's mean is one number, so leaving samples out saves no noise."""
    return [min(count, of.cap) for count in counts] if isinstance(of.cap, int) else list(counts)


def _means(users: Users, counts: Counts, parts: int = 1) -> list[int]:
    """Of each user the mean, to the nearest 1 / parts of a grid step."""
    totals = (sum(samples[:count]) for samples, count in zip(users, counts, strict=True))
    return [(2 * parts * total + count) // (2 * count) for total, count in zip(totals, counts, strict=True)]


def _clip_width(counts: Counts, of: CellParameters) -> int:
    """In 1 / PARTS of a step: R + r0 and one step more on either side of the point."""
    return 2 * (3 * reach_of(counts, of) + 1) * PARTS


def _or_nothing(steps: Fraction, nothing: float, of: CellParameters) -> float:
    expected = (1 - nothing) * float(steps) + nothing * of.grid.steps
    return of.grid.width_value(float(f"{expected:.9g}"))


def _no_release(counts: Counts, mechanism: str) -> CellEstimate:
    return CellEstimate(None, None, None, None, sum(counts), None, mechanism)


def _released(value: float, sd: float, half: float, counts: Counts, of: CellParameters, mechanism: str) -> CellEstimate:
    low, high = max(value - half, -LARGEST), min(value + half, LARGEST)
    if of.clamps:
        value = min(max(value, float(of.grid.low)), float(of.grid.high))
    # no bound on the error over all values: a user's mean may lie anywhere
    return CellEstimate(value, sd, low, high, sum(counts), None, mechanism)
