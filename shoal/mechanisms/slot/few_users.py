"""A mean of few users with many samples each: an exponential mechanism that may say "no release".

Guarantee    (epsilon, delta)-DP per release, delta > 0: pure noise for a handful of users would drown the mean
Relation     values: two cells differ in the samples of one user; who is in the cell, and how often, is public
Taking part  those with `least` samples or more: a function of the counts, never of values. Others have no say at all
Unit         all of a user's samples become one number, their mean in grid steps, which moves anywhere
Choice       a grid point near many means, or none (few_users_point.py); the points are not cut at the range
Accuracy     with probability 1 - failure all means lie within r0 of the true one. Then the point lies within R + r0 of
             it, R = 2 r0, and from `users_needed` users on there is one with probability 1 - failure. Of those who take
             part a corrupt minority, 49 % of many, hardly changes either; of no more than are needed, few do
Proof        docs/proofs/few-users.md
Source       Esfandiari, Mirrokni and Narayanan (2021)

`release_with_prior` spends epsilon / 2 and delta so, for a place to clip at, and epsilon / 2 on the average of clipped
means: for cells where no useful range is known. Its error falls with the number of users.

r0 is that of users who all have as many samples as the one with the fewest: one user with a single sample would widen
the ball for all. So a point is chosen by as few users as it needs, those with most samples; for an average, where many
users pay as well, there are as many as make its noise least.
"""

import math
from bisect import bisect_left
from collections.abc import Iterator
from decimal import ROUND_CEILING
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from shoal.mechanisms import check, error_bars
from shoal.mechanisms.grid import LARGEST
from shoal.mechanisms.noise.laplace import DiscreteLaplace
from shoal.mechanisms.slot.cell import CellParameters, Counts, Draws, Users, cell_estimate
from shoal.mechanisms.slot.few_users_point import PointChoice, decimal, precise
from shoal.mechanisms.statistic import Estimate

PARTS = 1 << 16  # of a grid step, that clipped means are counted in
_DIGITS = 50


class Part(NamedTuple):
    """Who takes part in a cell's release: all users with enough samples."""

    least: int  # samples that are enough
    users: int  # who have them
    reach: int  # r0 of these users, in grid steps

    @property
    def width(self) -> int:
        """Of the range that their means are clipped to, in 1 / PARTS of a step: R + r0 and a step more on each side."""
        return 2 * (3 * self.reach + 1) * PARTS


def release(users: Users, of: CellParameters, draws: Draws) -> Estimate:
    """A point near the means of most users who take part, or no release.

    low and high are no quantiles of noise: the mean lies between them but for `failure`, if samples are independent and
    as the parameters say. noise_sd is that of a uniform point of a ball, which a point near all means stays below.
    """
    part = part_for_point([len(samples) for samples in users], of)
    users, said = _those_of(part, users, of), _said("few-users", part)
    point = point_choice(part, of, of.epsilon).choose(_means(users), draws.words("few-users"))
    if point is None:
        return _no_release(users, said)
    sd = error_bars.six_digits(math.sqrt(2 * part.reach * (2 * part.reach + 1) / 3))
    half = of.grid.width_value(3 * part.reach)
    return _released(of.grid.mean_value(point, 1), of.grid.width_value(sd), half, users, of, said)


def release_with_prior(users: Users, of: CellParameters, draws: Draws) -> Estimate:
    """The average of the means of users who take part, clipped around a point chosen first; no release if none was."""
    part = part_for_average([len(samples) for samples in users], of)
    users, said = _those_of(part, users, of), _said("few-users-prior", part)
    point = point_choice(part, of, of.epsilon / 2).choose(_means(users), draws.words("few-users"))
    if point is None:
        return _no_release(users, said)
    width, parts = part.width, len(users) * PARTS
    low, high = point * PARTS - width // 2, point * PARTS + width // 2
    noise = DiscreteLaplace(width / (of.epsilon / 2), draws.subkey("few-users-mean"))
    total = sum(min(max(mean, low), high) for mean in _means(users, PARTS)) + noise.draw(0)
    value, scales = of.grid.mean_value(Fraction(total, PARTS), len(users)), ((noise.scale, 1),)
    sd, half = (of.grid.width_value(size(scales)) / parts for size in (error_bars.noise_sd, error_bars.noise_quantile))
    return _released(value, sd, half, users, of, said)


def predicted_error(counts: Counts, of: CellParameters) -> float:
    """R / 2, the error of a uniform point of a ball, if there is a release; the whole range if there is none."""
    part = part_for_point(counts, of)
    return _or_nothing(Fraction(part.reach), no_release(part, of, of.epsilon), of)


def predicted_error_with_prior(counts: Counts, of: CellParameters) -> float:
    """The expected size of the noise if there is a release, nothing being clipped; the whole range if there is none."""
    part = part_for_average(counts, of)
    steps = part.width / (of.epsilon / 2) / (part.users * PARTS)
    return _or_nothing(steps, no_release(part, of, of.epsilon / 2), of)


def no_release(part: Part, of: CellParameters, epsilon: Fraction) -> float:
    """The most that it is likely that there is no release, if all means lie within r0 of one point."""
    choice = point_choice(part, of, epsilon)
    return choice.none_at_most(Fraction(choice.ball - 2 * part.reach, choice.ball))


def part_for_point(counts: Counts, of: CellParameters) -> Part:
    """Those whose r0 is least, of all parts that are large enough for a release: the most samples, as r0 goes by them.

    >>> from shoal.mechanisms.grid import Grid
    >>> of = CellParameters(grid=Grid(Fraction(0), Fraction(65), 1000), epsilon=Fraction(1), delta=Fraction(1, 10**6))
    >>> part_for_point([1] * 5 + [40] * 30 + [90] * 30, of)
    Part(least=40, users=60, reach=384)
    """
    return min(possible_parts(counts, of, of.epsilon), key=lambda part: part.reach)


def part_for_average(counts: Counts, of: CellParameters) -> Part:
    """Those whose average has the least noise, of all parts that are large enough for a release of the prior.

    >>> from shoal.mechanisms.grid import Grid
    >>> of = CellParameters(grid=Grid(Fraction(0), Fraction(65), 1000), epsilon=Fraction(1), delta=Fraction(1, 10**6))
    >>> part_for_average([1] * 5 + [40] * 99 + [90] * 99, of)
    Part(least=40, users=198, reach=403)
    """
    return min(possible_parts(counts, of, of.epsilon / 2), key=lambda part: Fraction(part.width, part.users))


def possible_parts(counts: Counts, of: CellParameters, epsilon: Fraction) -> Iterator[Part]:
    """All that have as many users as a release with that epsilon needs, the largest first; all users if there is none.

    Raises:
        ValueError: there is no delta.
    """
    if of.delta <= 0:
        raise ValueError(f"delta must be greater than 0 for few users, not {of.delta}: one user may be far from all")
    needed = users_needed(epsilon, of.delta, of.failure)
    ordered = sorted(_counts(counts, of))
    for least in sorted(set(ordered)):
        users = len(ordered) - bisect_left(ordered, least)
        if users >= needed or users == len(ordered):
            yield Part(least, users, reach_steps(users, least, of.failure, _scatter(of)))


def users_needed(epsilon: Fraction, delta: Fraction, failure: Fraction, kappa: float = math.log(2)) -> int:
    """From how many users on there is a release but for `failure`, if their means lie within r0 of one point.

    n >= 1 + 2 / epsilon * (ln(1 / (delta * failure)) + kappa), exp(-kappa) being the part that all their balls share.

    >>> users_needed(Fraction(1), Fraction(1, 10**6), Fraction(1, 20))
    37
    """
    check.positive(epsilon=epsilon)
    check.probability(delta=delta, failure=failure)
    needed = 2 / float(epsilon) * (_log_inverse(delta) + _log_inverse(failure) + kappa)
    return 1 + math.ceil(float(f"{needed:.9g}"))


def point_choice(part: Part, of: CellParameters, epsilon: Fraction) -> PointChoice:
    """The choice of a point, for all of the cell's epsilon or a part of it."""
    return PointChoice(numbers=part.users, radius=2 * part.reach, epsilon=epsilon, delta=of.delta)


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


def _log_inverse(value: Fraction) -> float:
    """ln(1 / value), also of what is too small for a float."""
    return math.log(value.denominator) - math.log(value.numerator)


def _scatter(of: CellParameters) -> Fraction:
    """In grid steps, the sigma that samples are subgaussian with: half the range (Hoeffding), or what is less."""
    half = Fraction(of.grid.steps, 2)
    return half if of.sigma is None else min(half, of.sigma * of.grid.steps / (of.grid.high - of.grid.low))


def _counts(counts: Counts, of: CellParameters) -> list[int]:
    """How many samples of each user count. A user's mean is one number, so leaving samples out saves no noise."""
    return [min(count, of.cap) for count in counts] if isinstance(of.cap, int) else list(counts)


def _those_of(part: Part, users: Users, of: CellParameters) -> Users:
    """The samples that count of users who take part; a cap leaves `least` of them at least."""
    cap = of.cap if isinstance(of.cap, int) else None
    return [samples[:cap] for samples in users if len(samples) >= part.least]


def _means(users: Users, parts: int = 1) -> list[int]:
    """Of each user the mean, to the nearest 1 / parts of a grid step."""
    return [(2 * parts * sum(samples) + len(samples)) // (2 * len(samples)) for samples in users]


def _said(name: str, part: Part) -> str:
    return f"{name}, {part.users} user{'s' * (part.users > 1)} with {part.least} or more samples"


def _or_nothing(steps: Fraction, nothing: float, of: CellParameters) -> float:
    expected = (1 - nothing) * float(steps) + nothing * of.grid.steps
    return of.grid.width_value(float(f"{expected:.9g}"))


def _no_release(users: Users, said: str) -> Estimate:
    return cell_estimate(None, None, None, None, sum(map(len, users)), None, said)


def _released(value: float, sd: float, half: float, users: Users, of: CellParameters, said: str) -> Estimate:
    low, high = max(value - half, -LARGEST), min(value + half, LARGEST)
    if of.clamps:
        value = min(max(value, float(of.grid.low)), float(of.grid.high))
    # no bound on the error over all values: a user's mean may lie anywhere
    return cell_estimate(value, sd, low, high, sum(map(len, users)), None, said)
