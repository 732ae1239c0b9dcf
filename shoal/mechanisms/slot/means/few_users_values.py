"""A mean of several coordinates of few users with many samples each: an exponential mechanism that may say "no answer".

Guarantee    (epsilon, delta)-DP per release, of all coordinates together, delta > 0
Relation     values: two cells differ in the samples of one user; who is in the cell, and how often, is public
Taking part  those with `least` samples or more, as on a line (few_users.py): a function of the counts alone
Unit         all of a user's samples become one point, their mean in grid steps, which moves anywhere
Choice       a grid point near many means, or none (few_users_ball.py); the points are not cut at the range
Accuracy     with probability 1 - failure all means lie within r0 of the true one, in the Euclidean distance, r0 being
             sqrt(sum of sigma_j**2 * 2 ln(2nd / failure) / m). Then the point lies within R + r0 of it, R = max(2,
             sqrt(d)) r0. How many users that takes does not grow with d (`is_enough`). A corrupt minority, 49 % of
             many, hardly changes either
Distance     in grid steps: each coordinate in parts of its range, all of which have as many steps
Proof        docs/proofs/few-users.md
Source       Esfandiari, Mirrokni and Narayanan (2021)
"""

import math
from collections.abc import Iterator
from decimal import ROUND_CEILING
from fractions import Fraction
from functools import lru_cache

from shoal.mechanisms import error_bars
from shoal.mechanisms.decimals import decimal
from shoal.mechanisms.grid import LARGEST, Grid
from shoal.mechanisms.noise.uniform import precise
from shoal.mechanisms.selection.few_users_point import users_needed
from shoal.mechanisms.slot.cell import CellParameters, Counts, Draws, Users, cell_estimate
from shoal.mechanisms.slot.means.few_users import (
    Part,
    means,
    mechanism_of,
    scatter,
    those_of,
    thresholds_of,
)
from shoal.mechanisms.slot.means.few_users_ball import BallChoice, capped
from shoal.mechanisms.statistic import Estimate

_DIGITS = 50


def release(users: Users, cell: CellParameters, draws: Draws) -> Estimate:
    """A point near the means of most users who take part, or no answer.

    Value, noise_sd, low and high have a number for each coordinate; without an answer each is None. low and high are no
    quantiles of noise: all coordinates of the mean lie between them, together, except with probability `failure`, if
    samples are independent and as the parameters say. noise_sd is that of a uniform point of a ball.
    """
    part = part_of([len(samples) for samples in users], cell)
    users, choice = those_of(part, users, cell), choice_of(part, cell)
    point = choice.choose(points_of(users), draws.subkey("few-users-ball"), draws.words("few-users"))
    samples = sum(map(len, users))
    if point is None:
        return cell_estimate(None, None, None, None, samples, None, mechanism_of("few-users, no answer", part))
    sd, half = error_bars.six_digits(choice.radius / math.sqrt(choice.coordinates + 2)), choice.radius + part.reach
    each = (_released(at, grid, sd, half, clamps=cell.clamps) for at, (grid, _) in zip(point, cell.axes, strict=True))
    value, noise_sd, low, high = map(list, zip(*each, strict=True))
    return cell_estimate(value, noise_sd, low, high, samples, None, mechanism_of("few-users", part))


def points_of(users: Users) -> list[tuple[int, ...]]:
    """Each user's mean, to the nearest grid step in each coordinate."""
    axes = range(len(users[0][0]))
    by_coordinate = (means([[sample[axis] for sample in samples] for samples in users]) for axis in axes)
    return list(zip(*by_coordinate, strict=True))


def predicted_error(counts: Counts, cell: CellParameters) -> float:
    """The error of a uniform point of a ball, in the coordinate of the cell's grid; without an answer all its range."""
    part = part_of(counts, cell)
    choice, d = choice_of(part, cell), len(cell.axes)
    inside = math.exp(math.lgamma(d / 2 + 1) - math.lgamma(d / 2 + 1.5)) / math.sqrt(math.pi) * choice.radius
    nothing = choice.none_at_most(kappa(part.users, part.reach, choice.radius, d))
    return cell.grid.width_value(float(f"{(1 - nothing) * inside + nothing * cell.grid.steps:.9g}"))


def part_of(counts: Counts, cell: CellParameters) -> Part:
    """The part with the least r0, of those large enough for an answer; all users if none is.

    >>> grid = Grid(Fraction(0), Fraction(65), 1000)
    >>> cell = CellParameters(grid=grid, epsilon=Fraction(1), delta=Fraction(1, 10**6), axes=((grid, None),) * 3)
    >>> part_of([1] * 5 + [40] * 60 + [90] * 80, cell)
    Part(least=40, users=140, reach=718)
    """
    return min(_possible_parts(counts, cell), key=lambda part: part.reach)


def _possible_parts(counts: Counts, cell: CellParameters) -> Iterator[Part]:
    of = tuple(scatter(grid, sigma) for grid, sigma in cell.axes)
    for least, users in thresholds_of(counts, cell):
        part = Part(least, users, reach_steps(users, least, cell.failure, of))
        if users == len(counts) or is_enough(part, cell):
            yield part


def is_enough(part: Part, cell: CellParameters) -> bool:
    """Whether "none" because of delta has a probability of `failure` at most, if all means lie within r0 of one point.

    What stopping adds is bounded by n / c * exp(kappa) / ROUNDS, whatever the number of users is.
    """
    common = kappa(part.users, part.reach, radius_of(part.reach, len(cell.axes)), len(cell.axes))
    return capped(part.users) >= users_needed(cell.epsilon, cell.delta, cell.failure, common)


def choice_of(part: Part, cell: CellParameters) -> BallChoice:
    """The choice of a point, for all of the cell's epsilon and delta."""
    d = len(cell.axes)
    return BallChoice(part.users, radius_of(part.reach, d), cell.epsilon, cell.delta, d)


def radius_of(reach: int, coordinates: int) -> int:
    """R: max(2, sqrt(d)) r0, rounded up.

    >>> radius_of(10, 2), radius_of(10, 9), radius_of(10, 10)
    (20, 30, 32)
    """
    return max(2 * reach, 1 + math.isqrt(coordinates * reach * reach - 1))


def kappa(users: int, reach: int, radius: int, coordinates: int) -> float:
    """A bound for which the balls of all means share exp(-kappa) of a ball's points, if all lie within r0 of one point.

    The better of a ball of radius R - r0, and of half of the ball of radius rho R, rho below 1, whose points are mostly
    within R of all: that one does not grow with d. Grid points take sqrt(d) / 2 off a radius, or add as much.

    >>> [round(kappa(100, 10**6, radius_of(10**6, d), d), 2) for d in (1, 2, 8, 32, 1000)]
    [0.69, 1.39, 3.49, 4.4, 4.45]
    """
    d, half = coordinates, math.sqrt(coordinates) / 2
    ratio = reach / (radius - half)
    aside = ratio * math.sqrt(2 * math.log(2 * users) / (d + 2))
    rho = math.sqrt(aside * aside + 1 - ratio * ratio) - aside
    inner = max(rho / 2 ** (1 / d), 1 - ratio)
    return -d * math.log(inner) + d * math.log((radius + half) / (radius - half))


@lru_cache(maxsize=1 << 12)
def reach_steps(users: int, samples: int, failure: Fraction, scatters: tuple[Fraction, ...]) -> int:
    """r0: how far, in grid steps, the users' means are from the true one, except with probability `failure`.

    It is sqrt(sum of scatter**2 * 2 ln(2nd / failure) / samples), rounded up, and sqrt(d) steps for rounding
    samples and means.

    >>> reach_steps(40, 100, Fraction(1, 20), (Fraction(300), Fraction(400)))
    203
    """
    d, squares = len(scatters), sum(scatter * scatter for scatter in scatters)
    with precise(_DIGITS):
        steps = (2 * decimal(2 * users * d / failure).ln() * decimal(Fraction(squares)) / samples).sqrt()
        return int(steps.to_integral_value(ROUND_CEILING)) + 1 + math.isqrt(d - 1)


def _released(at: int, grid: Grid, sd: float, half: int, *, clamps: bool) -> tuple[float, float, float, float]:
    value, width = grid.mean_value(at, 1), grid.width_value(half)
    low, high = max(value - width, -LARGEST), min(value + width, LARGEST)
    if clamps:
        value = min(max(value, float(grid.low)), float(grid.high))
    return value, grid.width_value(sd), low, high
