"""Error bounds of the papers, with their constants written out, against what is released with real noise.

A bound that is to hold with probability 1 - failure is tried with many keys and streams. All of them have room to
spare: what is seen is that no term is missing, not that none could be smaller.
"""

import math
import random
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import pytest

from shoal.mechanisms.continual_mean.full import Full
from shoal.mechanisms.continual_mean.mean import MeanParameters
from shoal.mechanisms.continual_mean.multi_tree import MultiTree
from shoal.mechanisms.continual_mean.naive import Naive
from shoal.mechanisms.continual_mean.single_tree import SingleTree
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.noise.keyed import derive
from shoal.mechanisms.sums.patent.exponential_sum import ExponentialSum
from shoal.mechanisms.sums.patent.window_sum import DyadicWindow
from shoal.mechanisms.sums.sums import UNIT
from tests.documents import continual_mean_reading as reading
from tests.documents.continual_mean_reading import Given
from tests.mechanisms.mechanism_cases import Sample, contributions
from tests.support.effort import tries

STEPS = 1 << 16
MEAN, FAILURE = Fraction(3, 10), 0.2
RUNS = tries(40)


def tail(scales: list[tuple[float, int]], failure: float) -> float:
    """Lemma A.2 with the constants of Chan, Shi and Song: what a sum of Laplace draws, (scale, number), stays below."""
    log = math.log(2 / failure)
    return max(math.sqrt(8 * log * sum(count * scale**2 for scale, count in scales)), 4 * log * max(scales)[0])


def errors(parameters: MeanParameters, n: int, m: int) -> Iterator[list[tuple[int, float]]]:
    """(t, error) of some releases of runs over users whose samples are 1 with probability MEAN, in any order."""
    for run in range(RUNS):
        rng = random.Random(run)
        users = [f"{user:032x}" for user in range(n) for _ in range(m)]
        rng.shuffle(users)
        samples = [Sample(t, user, STEPS * (rng.random() < MEAN)) for t, user in enumerate(users)]
        releaser, found = parameters.releaser(derive(bytes(32), "run", run), b""), []
        for number, block in enumerate(contributions(parameters, samples)):
            releaser.add(block)
            estimate = releaser.estimate() if number % 50 == 49 else None
            if estimate:
                found.append((block.effective + 1, abs(estimate.value - float(MEAN))))
        yield found


def over_unit(cls: type[MeanParameters], n: int, m: int, **more: Any) -> MeanParameters:
    grid = Grid(Fraction(0), Fraction(1), STEPS)
    return cls(grid=grid, max_contributions=m, users=n, failure=Fraction(FAILURE), **more)


def test_equation_1() -> None:
    n, m, epsilon = 30, 8, 2
    scale = m * reading.depth(n * m) / epsilon
    failed = 0
    for releases in errors(over_unit(Naive, n, m, epsilon=Fraction(epsilon)), n, m):
        for t, error in releases[-1:]:
            noise = tail([(scale, reading.depth(n * m))], FAILURE / 2)
            failed += error > math.sqrt(math.log(4 / FAILURE) / (2 * t)) + noise / t
    assert failed <= FAILURE * RUNS


@pytest.mark.parametrize("cls", [SingleTree, MultiTree])
def test_theorems_3_1_and_3_2(cls: type[MeanParameters]) -> None:
    """With failure / 3 each for clipping, for the samples, of which t / 2 count, and for the noise."""
    n, m, epsilon = 12, 64, 4
    told = Given(n, m, epsilon, FAILURE / 3, float(MEAN))
    halves = [told.half_width(reading.weight(level), told.top) for level in range(told.top + 1)]
    levels = [(2 * half * reading.depth(n) * (told.top + 1) / epsilon, reading.depth(n)) for half in halves]
    elements = reading.depth(n * (told.top + 1))
    if cls is SingleTree:
        levels = [(2 * halves[-1] * (told.top + 1) * elements / epsilon, elements)]
    failed = 0
    for releases in errors(over_unit(cls, n, m, epsilon=Fraction(epsilon), prior=MEAN), n, m):
        t, error = releases[-1]
        failed += error > math.sqrt(math.log(6 / FAILURE) / t) + tail(levels, FAILURE / 3) / (t / 2)
    assert failed <= FAILURE * RUNS


def test_theorem_3_4_where_all_levels_are_active() -> None:
    n, m, epsilon = 60, 16, 400
    parameters = over_unit(Full, n, m, epsilon=Fraction(epsilon))
    read = reading.Full(n, m, epsilon, FAILURE, lambda level, costs: 0.0)
    # given users enough for an array of each level each
    assert all(reading.arrays_needed(level, read.top, epsilon, FAILURE) <= n for level in range(2, read.top + 1))
    widths = [1.0, 1.0, *(2 * read.half_width(level) for level in range(2, read.top + 1))]
    levels = [(read.scale(width), reading.depth(n)) for width in widths]
    failed = 0
    for releases in errors(parameters, n, m):
        t, error = releases[-1]
        failed += error > math.sqrt(math.log(6 / FAILURE) / t) + tail(levels, FAILURE / 3) / (t / 2)
    assert failed <= FAILURE * RUNS


@pytest.mark.parametrize("q", [5, 200])
def test_theorem_3_of_windows_at_q_releases_together(q: int) -> None:
    """(11) and (12), with probability 2/3, by Lemma 1 with constants, for q below and above W."""
    length, fine = 64, 1 << 16
    sums, w = DyadicWindow(fine, Fraction(1), length), 6
    bound = tail([(float(w + 1), 2 * w + 1)], 1 / (3 * q))
    failed = 0
    for run in range(RUNS):
        summer = sums.summer(partial(derive, bytes(32), "window", run))
        noise = [abs(summer.add(0)) / fine for _ in range(length + q)][-q:]
        failed += max(noise) > bound
    assert failed <= RUNS / 3


@pytest.mark.parametrize("q", [5, 200])
def test_theorem_5_of_exponential_sums_at_q_releases_together(q: int) -> None:
    alpha, fine = 0.99, 1 << 16
    sums = ExponentialSum(fine, Fraction(1), Fraction(99, 100))
    sensitivity = sum(alpha ** (2**k - 1) for k in range(20))
    # by Assertion 2 the nodes of a release, ends first, weigh at most alpha**(2**k - 1)
    nodes = [(sensitivity * alpha ** (2**k - 1), 1) for k in range(20)]
    failed = 0
    for run in range(RUNS):
        summer = sums.summer(partial(derive, bytes(32), "exponential", run))
        noise = [abs(summer.add(0)) / fine / UNIT for _ in range(100 + q)][-q:]
        failed += max(noise) > tail(nodes, 1 / (3 * q))
    assert failed <= RUNS / 3
