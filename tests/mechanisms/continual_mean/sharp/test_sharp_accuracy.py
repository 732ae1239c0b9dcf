"""Data whose mean a clip range could destroy, at a small size: the error stays within what is stated.

Samples of all units follow one law, so the mean that is estimated is that of all samples, late ones included.
"""

import random
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from math import sqrt

import pytest

from shoal.mechanisms.continual_mean.sharp import Sharp
from shoal.mechanisms.counters.blue import GrowingBlue
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.noise.keyed import derive
from shoal.mechanisms.statistic import Contribution
from tests.mechanisms.continual_mean.sharp.sharp_cases import TOP
from tests.mechanisms.mechanism_cases import KEY, Sample, by_tick, merged
from tests.support.cover import in_a_loop

TICKS = 60
KEYS = 4
LAWS: dict[str, Callable[[random.Random], float]] = {
    "half": lambda numbers: numbers.random() < 0.5,
    "rare": lambda numbers: numbers.random() < 0.03,
    "heavy": lambda numbers: min(1.0, 0.002 * numbers.paretovariate(1.5)),
    "bell": lambda numbers: numbers.betavariate(2, 5),
}


def sharp(units: int, m: int, epsilon: int) -> Sharp:
    grid = Grid(Fraction(0), Fraction(1), TOP)
    return Sharp(grid=grid, epsilon=Fraction(epsilon), max_contributions=m, users=units, horizon=TICKS)


@cache
def stream(units: int, m: int, law: str) -> tuple[float, list[list[Contribution]]]:
    """The exact mean, and what bound sends: each unit has m samples, at random times."""
    numbers = random.Random(7)
    samples = sorted(
        Sample(numbers.randrange(TICKS), f"{unit:032x}", int(TOP * LAWS[law](numbers)))
        for unit in range(units)
        for _ in range(m)
    )
    exact = sum(sample.value for sample in samples) / len(samples) / TOP
    return exact, by_tick(merged(sharp(units, m, 1), samples))


def final(parameters: Sharp, law: str, key: int) -> tuple[float, float, bool]:
    """(error, stated standard deviation) of the last release, and whether blocks were clipped by octave."""
    exact, ticks = stream(parameters.users, parameters.max_contributions, law)
    releaser = parameters.releaser(derive(KEY, key), b"")
    for tick in ticks:
        for contribution in tick:
            releaser.add(contribution)
        releaser.close()
    estimate = releaser.estimate()
    assert estimate is not None
    assert estimate.value is not None
    assert releaser._beginning is not None
    return estimate.value - exact, estimate.noise_sd, releaser._beginning.alike


def naive_sd(parameters: Sharp) -> float:
    """The noise of the same counter for unclipped samples."""
    width = parameters.max_contributions * TOP
    counter = GrowingBlue(width, parameters.epsilon, horizon=TICKS)
    return sqrt(counter.variance(TICKS)) / (parameters.users * width)


@in_a_loop
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("units", "m"), [(1000, 8), (1000, 20)])
def test_few_samples_each_are_released_as_they_are(units: int, m: int, law: str) -> None:
    """No range is chosen that might leave much outside, so there is noise and nothing else."""
    parameters = sharp(units, m, 2)
    for key in range(KEYS):
        error, noise, alike = final(parameters, law, key)
        assert not alike
        assert abs(error) <= 4 * noise
        assert noise <= 1.001 * naive_sd(parameters)


@in_a_loop
@pytest.mark.parametrize("law", ["half", "bell"])
@pytest.mark.parametrize(("units", "m", "epsilon"), [(1000, 64, 5), (120, 512, 40)])
def test_many_samples_of_a_law_without_a_tail_are_kept_whole(units: int, m: int, epsilon: int, law: str) -> None:
    parameters = sharp(units, m, epsilon)
    found = [final(parameters, law, key) for key in range(KEYS)]
    assert all(abs(error) <= 4 * noise for error, noise, _ in found)
    # a tenth and the calls is what clipping costs at most; where block means differ little it gains far more
    noises = [noise / naive_sd(parameters) for _, noise, _ in found]
    assert max(noises) <= 1.25
    assert law == "half" or sorted(noises)[KEYS // 2] <= 0.5


@pytest.mark.parametrize("law", ["rare", "heavy"])
def test_of_many_samples_with_a_tail_less_is_lost_than_noise_would_cost(law: str) -> None:
    """What is clipped of a tail shows beside so little noise, but is less than the noise of the naive sum."""
    parameters = sharp(120, 1024, 40)
    for key in range(3):
        error, noise, _ = final(parameters, law, key)
        assert abs(error) <= naive_sd(parameters) + 3 * noise
        assert noise <= 0.75 * naive_sd(parameters)


@pytest.mark.parametrize(("units", "m", "epsilon"), [(1000, 64, 5), (120, 512, 40)])
def test_rare_samples_in_short_blocks_are_not_cut_off(units: int, m: int, epsilon: int) -> None:
    """Most first blocks have none: a scale of them says nothing of those that have."""
    parameters = sharp(units, m, epsilon)
    for key in range(KEYS):
        error, _, _ = final(parameters, "rare", key)
        assert abs(error) <= 4 * naive_sd(parameters)
