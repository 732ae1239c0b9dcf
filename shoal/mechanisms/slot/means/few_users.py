"""A mean of few users with many samples each: an exponential mechanism that may say "no release".

Guarantee    (epsilon, delta)-DP per release, delta > 0: pure noise for a handful of users would drown the mean
Relation     values: two cells differ in the samples of one user; who is in the cell, and how often, is public
Taking part  those with `least` samples or more: a function of the counts, never of values. Others have no say at all
Unit         all of a user's samples become one number, their mean in grid steps, which moves anywhere
Choice       a grid point near many means, or none (selection/few_users_point.py); the points are not cut at the range
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
from fractions import Fraction
from typing import NamedTuple

from shoal.mechanisms import error_bars
from shoal.mechanisms.grid import LARGEST, Grid
from shoal.mechanisms.noise.laplace import DiscreteLaplace
from shoal.mechanisms.selection.few_users_point import PointChoice, reach_steps, users_needed
from shoal.mechanisms.slot.cell import CellParameters, Counts, Draws, Users, cell_estimate
from shoal.mechanisms.statistic import Estimate

PARTS = 1 << 16  # of a grid step, that clipped means are counted in


class Part(NamedTuple):
    """The users who take part in a cell's release: all with enough samples."""

    least: int  # samples that are enough
    users: int  # who have them
    reach: int  # r0 of these users, in grid steps

    @property
    def width(self) -> int:
        """The width of the range to which their means are clipped, in 1 / PARTS of a step.

        It is R + r0, and one step more, on each side.
        """
        return 2 * (3 * self.reach + 1) * PARTS


def release(users: Users, cell: CellParameters, draws: Draws) -> Estimate:
    """A point near the means of most users who take part, or no release.

    low and high are not quantiles of noise: the mean lies between them except with probability `failure`, if samples
    are independent and as the parameters say. noise_sd is that of a uniform point of a ball, which a point near all
    means stays below.
    """
    part = part_for_point([len(samples) for samples in users], cell)
    users, mechanism = those_of(part, users, cell), mechanism_of("few-users", part)
    point = point_choice(part, cell, cell.epsilon).choose(means(users), draws.words("few-users"))
    if point is None:
        return _no_release(users, mechanism)
    sd = error_bars.six_digits(math.sqrt(2 * part.reach * (2 * part.reach + 1) / 3))
    half = cell.grid.width_value(3 * part.reach)
    return _released(cell.grid.mean_value(point, 1), cell.grid.width_value(sd), half, users, cell, mechanism)


def release_with_prior(users: Users, cell: CellParameters, draws: Draws) -> Estimate:
    """The average of the users' means, clipped around a point chosen first; no release if no point was chosen."""
    part = part_for_average([len(samples) for samples in users], cell)
    users, mechanism = those_of(part, users, cell), mechanism_of("few-users-prior", part)
    point = point_choice(part, cell, cell.epsilon / 2).choose(means(users), draws.words("few-users"))
    if point is None:
        return _no_release(users, mechanism)
    width, parts = part.width, len(users) * PARTS
    low, high = point * PARTS - width // 2, point * PARTS + width // 2
    noise = DiscreteLaplace(width / (cell.epsilon / 2), draws.subkey("few-users-mean"))
    total = sum(min(max(mean, low), high) for mean in means(users, PARTS)) + noise.draw(0)
    value, scales = cell.grid.mean_value(Fraction(total, PARTS), len(users)), ((noise.scale, 1),)
    bars = error_bars.noise_sd(scales), error_bars.noise_quantile(scales, cell.coverage)
    sd, half = (cell.grid.width_value(bar) / parts for bar in bars)
    return _released(value, sd, half, users, cell, mechanism)


def predicted_error(counts: Counts, cell: CellParameters) -> float:
    """R / 2, the error of a uniform point of a ball, if there is a release; otherwise the whole range."""
    part = part_for_point(counts, cell)
    return _or_nothing(Fraction(part.reach), no_release(part, cell, cell.epsilon), cell)


def predicted_error_with_prior(counts: Counts, cell: CellParameters) -> float:
    """The expected size of the noise if there is a release and nothing is clipped; otherwise the whole range."""
    part = part_for_average(counts, cell)
    steps = part.width / (cell.epsilon / 2) / (part.users * PARTS)
    return _or_nothing(steps, no_release(part, cell, cell.epsilon / 2), cell)


def no_release(part: Part, cell: CellParameters, epsilon: Fraction) -> float:
    """An upper bound on the probability of no release, if all means lie within r0 of one point."""
    choice = point_choice(part, cell, epsilon)
    return choice.none_at_most(Fraction(choice.ball - 2 * part.reach, choice.ball))


def part_for_point(counts: Counts, cell: CellParameters) -> Part:
    """The part with the least r0, of those large enough for a release: with the most samples, as r0 goes by them.

    >>> from shoal.mechanisms.grid import Grid
    >>> speeds = Grid(Fraction(0), Fraction(65), 1000)
    >>> cell = CellParameters(grid=speeds, epsilon=Fraction(1), delta=Fraction(1, 10**6))
    >>> part_for_point([1] * 5 + [40] * 30 + [90] * 30, cell)
    Part(least=40, users=60, reach=384)
    """
    return min(possible_parts(counts, cell, cell.epsilon), key=lambda part: part.reach)


def part_for_average(counts: Counts, cell: CellParameters) -> Part:
    """The part whose average has the least noise, of those large enough for a release of the prior.

    >>> from shoal.mechanisms.grid import Grid
    >>> speeds = Grid(Fraction(0), Fraction(65), 1000)
    >>> cell = CellParameters(grid=speeds, epsilon=Fraction(1), delta=Fraction(1, 10**6))
    >>> part_for_average([1] * 5 + [40] * 99 + [90] * 99, cell)
    Part(least=40, users=198, reach=403)
    """
    return min(possible_parts(counts, cell, cell.epsilon / 2), key=lambda part: Fraction(part.width, part.users))


def possible_parts(counts: Counts, cell: CellParameters, epsilon: Fraction) -> Iterator[Part]:
    """All parts with the users that a release at this epsilon needs, the largest first; all users if there is none.

    Raises:
        ValueError: delta is 0.
    """
    thresholds, of = thresholds_of(counts, cell), scatter(cell.grid, cell.sigma)
    needed = users_needed(epsilon, cell.delta, cell.failure)
    for least, users in thresholds:
        if users >= needed or users == len(counts):
            yield Part(least, users, reach_steps(users, least, cell.failure, of))


def thresholds_of(counts: Counts, cell: CellParameters) -> list[tuple[int, int]]:
    """Every number of samples that any user has, the least first, and how many users have as many or more.

    Raises:
        ValueError: delta is 0.
    """
    if cell.delta <= 0:
        raise ValueError(f"delta must be greater than 0 for few users, not {cell.delta}: one user may be far from all")
    ordered = sorted(counted(counts, cell))
    return [(least, len(ordered) - bisect_left(ordered, least)) for least in sorted(set(ordered))]


def point_choice(part: Part, cell: CellParameters, epsilon: Fraction) -> PointChoice:
    """The choice of a point, for all of the cell's epsilon or a part of it."""
    return PointChoice(numbers=part.users, radius=2 * part.reach, epsilon=epsilon, delta=cell.delta)


def scatter(grid: Grid, sigma: Fraction | None) -> Fraction:
    """The sigma, in grid steps, of which samples are subgaussian: half the range (Hoeffding), or less if so stated."""
    half = Fraction(grid.steps, 2)
    return half if sigma is None else min(half, sigma * grid.steps / (grid.high - grid.low))


def counted(counts: Counts, cell: CellParameters) -> list[int]:
    """The number of samples of each user that count. A user's mean is one number, so fewer samples save no noise."""
    return [min(count, cell.cap) for count in counts] if isinstance(cell.cap, int) else list(counts)


def those_of(part: Part, users: Users, cell: CellParameters) -> Users:
    """The samples that count of the users who take part; a cap leaves at least `least` of them."""
    cap = cell.cap if isinstance(cell.cap, int) else None
    return [samples[:cap] for samples in users if len(samples) >= part.least]


def means(users: Users, parts: int = 1) -> list[int]:
    """Each user's mean, to the nearest 1 / parts of a grid step."""
    return [(2 * parts * sum(samples) + len(samples)) // (2 * len(samples)) for samples in users]


def mechanism_of(name: str, part: Part) -> str:
    """What a release says of how it was made."""
    return f"{name}, {part.users} user{'s' * (part.users > 1)} with {part.least} or more samples"


def _or_nothing(steps: Fraction, nothing: float, cell: CellParameters) -> float:
    expected = (1 - nothing) * float(steps) + nothing * cell.grid.steps
    return cell.grid.width_value(float(f"{expected:.9g}"))


def _no_release(users: Users, mechanism: str) -> Estimate:
    return cell_estimate(None, None, None, None, sum(map(len, users)), None, mechanism)


def _released(value: float, sd: float, half: float, users: Users, cell: CellParameters, mechanism: str) -> Estimate:
    low, high = max(value - half, -LARGEST), min(value + half, LARGEST)
    if cell.clamps:
        value = min(max(value, float(cell.grid.low)), float(cell.grid.high))
    # no bound on the error over all values: a user's mean may lie anywhere
    return cell_estimate(value, sd, low, high, sum(map(len, users)), None, mechanism)
