"""Cells of a slot against an independent reading of the slides of Rameshwar et al. (2024), in floats.

BestFit, sensitivities by brute force, CHOP-USER and trees have readings of their own in tests/mechanisms/slot/.
"""

import math
import random
import statistics
from fractions import Fraction

import pytest

from shoal.mechanisms.bins.tree import prefix_variance
from shoal.mechanisms.noise.laplace import DiscreteLaplace
from shoal.mechanisms.slot.means import clipping, levy, linear
from shoal.mechanisms.slot.means.quantile import DEPENDENT, FIXED, Quantile
from tests.mechanisms.slot.cell_cases import STEPS, Watched, parameters
from tests.support.cover import in_a_loop

U = 65.0  # km/h


def speeds(seed: int, users: int = 12) -> list[list[int]]:
    """Of each user some samples, as grid indices."""
    rng = random.Random(seed)
    return [[rng.randrange(STEPS + 1) for _ in range(rng.choice([1, 2, 5, 9]))] for _ in range(users)]


def array_means(users: list[list[int]], most: int) -> list[float]:
    """BestFit: each user's first samples, at most `most`, into the array that is filled the most and has room."""
    arrays: list[list[float]] = []
    for user in sorted(users, key=lambda user: -min(len(user), most)):
        own = [x / STEPS * U for x in user[:most]]
        fitting = [array for array in arrays if len(array) + len(own) <= most]
        if not fitting:
            arrays.append([])
            fitting = [arrays[-1]]
        max(fitting, key=len).extend(own)
    return [statistics.fmean(array) for array in arrays]


@in_a_loop
@pytest.mark.parametrize("seed", range(5))
def test_the_mean_of_a_single_cell(seed: int) -> None:
    users, watched = speeds(seed), Watched()
    samples = [x / STEPS * U for user in users for x in user]
    found = linear.BASELINE.release(users, parameters(cap="optimal", clamps=False, epsilon=Fraction(2)), watched)
    assert found.value == pytest.approx(statistics.fmean(samples))
    # Lap(U m* / (epsilon sum of m)), on the sum of all samples in grid steps
    most = max(map(len, users))
    noise = float(watched.scales["mean"]) / STEPS * U / len(samples)
    assert noise == pytest.approx(U * most / (2 * len(samples)))


@in_a_loop
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("cap", [1, 3, "median"])
def test_array_averaging(seed: int, cap: int | str) -> None:
    users, watched = speeds(seed), Watched()
    most = statistics.median_low(map(len, users)) if isinstance(cap, str) else cap
    means = array_means(users, most)
    found = linear.ARRAY_AVERAGING.release(users, parameters(cap=cap, clamps=False, epsilon=Fraction(2)), watched)
    assert found.value == pytest.approx(statistics.fmean(means), rel=1e-6)
    # Lap(U / (K epsilon)) at most, and less where each user shares an array
    weight = linear.ARRAY_AVERAGING.weighting([len(user) for user in users], parameters(cap=cap)).weight
    noise = float(watched.scales["mean"]) / STEPS * U / weight
    assert noise <= U / (len(means) * 2) * (1 + 1e-6)
    assert len(means) >= sum(min(len(user), most) for user in users) // most


@in_a_loop
@pytest.mark.parametrize("seed", range(4))
def test_levy_clips_two_taus_around_the_middle_of_a_bin(seed: int) -> None:
    cell, users = parameters(cap=3, epsilon=Fraction(40), clamps=False), [user * 60 for user in speeds(seed, 30)]
    arrays = clipping.arranged([len(user) for user in users], cell)
    means = array_means(users, 3)
    assert sorted(means) == pytest.approx(sorted(x / (STEPS << 16) * U for x in arrays.means(users)), abs=1e-6)
    tau = U * math.sqrt(math.log(2 * len(means) / float(cell.failure)) / (2 * 3))
    bins = levy.bins(arrays, cell)
    assert bins.tau / (STEPS << 16) * U == pytest.approx(tau, rel=1e-9)
    assert bins.count == math.ceil(U / (2 * tau))
    for index in range(bins.count):
        low, high = (end / (STEPS << 16) * U for end in bins.interval(index))
        middle = (index + 0.5) * U / bins.count
        assert (low, high) == pytest.approx((max(0, middle - 2 * tau), min(U, middle + 2 * tau)), abs=1e-6)


@pytest.mark.parametrize("way", [FIXED, DEPENDENT])
def test_clipping_to_an_interval_leaves_half_of_epsilon_for_noise(way: Quantile) -> None:
    cell, users = parameters(cap=4, epsilon=Fraction(3), clamps=False), speeds(7)
    arrays, watched = clipping.arranged([len(user) for user in users], cell), Watched()
    low, high = (STEPS // 4) << 16, (STEPS // 2) << 16
    found = clipping.release(arrays.means(users), low, high, cell.epsilon / 2, arrays, cell, watched, way.name)
    means = array_means(users, 4)
    assert found.value == pytest.approx(statistics.fmean(min(max(x, U / 4), U / 2) for x in means), abs=1e-4)
    # 2 (b - a) / (K epsilon)
    scale = float(watched.scales["clipped mean"]) / (STEPS << 16) * U / len(means)
    assert scale == pytest.approx(2 * (U / 2 - U / 4) / (len(means) * 3))


def test_the_laplace_mechanism_is_as_near_as_its_theorem_says() -> None:
    """|Z| <= b ln(1 / delta) with probability 1 - delta; of discrete noise delta is larger by a part below 1 / b."""
    for scale in (Fraction(2), Fraction(30), Fraction(1000)):
        b = float(DiscreteLaplace(scale, bytes(32)).scale)
        p = math.exp(-1 / b)
        for delta in (0.5, 0.1, 0.001):
            beyond = math.floor(b * math.log(1 / delta)) + 1
            assert 2 * p**beyond / (1 + p) <= delta * (1 + 1 / b)


def test_a_branching_of_17_is_best_where_it_may_be_any_number() -> None:
    """Equal branching n has log K / log n levels, each with a part of epsilon and (n - 1) / 2 nodes of a prefix."""
    variance = {n / 100: (n / 100 - 1) / math.log(n / 100) ** 3 for n in range(110, 10_000)}
    assert min(variance, key=variance.__getitem__) == pytest.approx(16.8, abs=0.01)
    # of whole numbers 17, and of equal shapes for a large power of it no other shares are better
    assert min(range(2, 100), key=lambda n: variance[float(n)]) == 17
    assert prefix_variance((17,) * 3) == pytest.approx(3**3 * 16)
