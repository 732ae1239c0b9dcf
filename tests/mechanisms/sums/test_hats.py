"""Hat functions in levels: the quick solver against dense linear algebra, and noise that is what it says."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from shoal.mechanisms.sums.decayed import DecayedSteps
from shoal.mechanisms.sums.exponentials import Exponentials
from shoal.mechanisms.sums.steps.hat_least_squares import Hats
from shoal.mechanisms.sums.steps.hat_variance import LARGEST, Flat, Weights, mean_squares, squares
from shoal.mechanisms.sums.steps.hats import HatSteps
from shoal.mechanisms.sums.window import WindowSum
from tests.mechanisms.mechanism_cases import epoch_key
from tests.support.cover import in_a_loop
from tests.support.effort import tries

Floats = NDArray[np.float64]
SHAPES = [((4,), 40), ((4, 3), 120), ((5, 3, 2), 300), ((3, 3, 3), 243)]
every_shape = pytest.mark.parametrize(("ratios", "steps"), SHAPES)
MADE: list[Callable[[HatSteps], object]] = [
    lambda steps: DecayedSteps(Exponentials.exponential(Fraction(19, 20)), steps),
    lambda steps: WindowSum(24, steps),
]
both_ends = pytest.mark.parametrize("begins", [True, False])


def dense(ratios: tuple[int, ...], steps: int, begins: bool) -> list[Floats]:
    """H_1, H_2, ..., entry by entry."""
    found, stride, places = [], 1, np.arange(steps) + 0.5
    for ratio in ratios:
        stride *= ratio
        hats = np.maximum(0, 1 - np.abs(places[None] - stride * np.arange(steps // stride + 1)[:, None]) / stride)
        hats[-1] = 0
        hats[0] *= begins
        found.append(hats)
    return found


@in_a_loop
@every_shape
@both_ends
def test_the_solver_finds_what_dense_algebra_finds(ratios: tuple[int, ...], steps: int, begins: bool) -> None:
    levels, hats = dense(ratios, steps, begins), Hats(ratios, begins)
    m = np.eye(steps) + sum(h.T @ h for h in levels)
    weights = np.cumsum(np.sin(np.arange(steps) ** 2))
    exact = np.linalg.solve(m, weights)
    assert hats.variance(weights) == pytest.approx(float(weights @ exact), rel=1e-3)
    found = hats.estimate(weights)
    for one, other in zip(found, [exact, *(h @ exact for h in levels)], strict=True):
        assert np.abs(one - other).max() < 0.01 * np.abs(other).max()
    residuals = [h @ np.cos(np.arange(steps) * (i + 2.0)) for i, h in enumerate(levels)]
    exact = np.linalg.solve(m, sum(h.T @ r for h, r in zip(levels, residuals, strict=True)))
    assert np.abs(hats.correction(residuals) - exact).max() < 0.01 * np.abs(exact).max()


def noise_of(sums: Any, key: int, count: int) -> list[float]:
    """The noise of the first sums, under draws of a key's own."""
    summer = sums.summer(lambda number: epoch_key(100 * key + number))
    return [summer.add(0) / sums.denominator for _ in range(count)]


LONG = Exponentials.exponential(Fraction(99, 100))


@in_a_loop
@pytest.mark.parametrize(
    ("weights", "ratios"),
    [(LONG, (19,)), (LONG, (5, 4)), (Flat(100), (12,)), (Flat(1 << 60), (5, 4)), (Flat(30), (10,)), (Flat(17), (5, 4))],
    ids=str,
)
def test_the_variance_stated_is_near_the_true_one_at_every_t(weights: Weights, ratios: tuple[int, ...]) -> None:
    """From the first step on: to 15 %, which is 7 % of a standard deviation; later to 3 %."""
    top = math.prod(ratios)
    for t in [*range(1, 60, 2), *range(100, 140, 3), *range(500, 540, 3)]:
        size = (t // top + 4) * top
        recent = np.concatenate((weights.recent(t)[::-1], np.zeros(size - t)))
        exact = Hats(ratios, begins=True).variance(recent)
        assert squares(ratios, weights, t) == pytest.approx(exact, rel=0.15 if t < 150 else 0.03)


@pytest.mark.parametrize("weights", [LONG, Flat(100), Flat(23)], ids=str)
def test_the_mean_variance_is_the_mean_of_the_variances(weights: Weights) -> None:
    mean = sum(squares((4, 3), weights, t) for t in range(10_000, 10_012)) / 12
    assert mean_squares((4, 3), weights) == pytest.approx(mean, rel=0.01)


def test_the_mean_variance_of_a_window_is_the_mean_of_its_variances() -> None:
    sums = WindowSum(23, HatSteps(1, Fraction(1), (4, 3), segment=1))
    mean = sum(sums.variance(t) for t in range(10_000, 10_012)) / 12
    assert sums.mean_variance == pytest.approx(mean, rel=0.01)


@pytest.mark.parametrize("make", MADE)
def test_no_more_noise_than_is_allowed_lies_beyond_the_bound_of_its_tail(make: Callable[[HatSteps], object]) -> None:
    sums: Any = make(HatSteps(1 << 20, Fraction(1), (8,)))
    bounds = [sums.noise_quantile(100, coverage) for coverage in (0.95, 0.99, 0.999)]
    assert bounds == sorted(set(bounds))
    noise = [noise_of(sums, key, 100)[-1] for key in range(tries(200))]
    assert sum(abs(one) > bounds[1] for one in noise) <= 0.03 * len(noise)


@in_a_loop
@pytest.mark.parametrize(
    ("weights", "ratios"), [(Flat(64), (5, 4)), (Flat(64), (15,)), (LONG, (19,)), (LONG, (4, 5))], ids=str
)
def test_the_variance_stated_is_that_of_what_segments_estimate(weights: Weights, ratios: tuple[int, ...]) -> None:
    """Each from its own steps and some around it, by dense algebra: what lies further away hardly matters."""
    steps = HatSteps(1, Fraction(1), ratios, segment=1)
    size, margin, segments = steps.size, 2 * steps.strides[-1], 420 // steps.size + 2
    length = segments * size + margin
    measured = np.concatenate((np.eye(length), *dense(ratios, length, begins=True)))
    estimate = np.zeros((segments * size, len(measured)))
    for start in range(0, segments * size, size):
        first, last = max(start - margin, 0), start + size + margin
        whole = measured.sum(axis=1) > 0
        inside = whole & (measured[:, first:last].sum(axis=1) >= measured.sum(axis=1) - 1e-9)
        r = measured[inside][:, first:last]
        rows = np.linalg.inv(r.T @ r)[start - first : start - first + size] @ r.T
        estimate[start : start + size, inside] = rows
    covariance = estimate @ estimate.T
    for t in range(380, 420, 3):
        a = np.concatenate((weights.recent(t)[::-1], np.zeros(segments * size - t)))
        assert squares(ratios, weights, t) == pytest.approx(float(a @ covariance @ a), rel=0.03)


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(1, 10**8), Fraction(1, 10**30)], ids=str)
def test_noise_of_any_size_is_the_sum_of_its_steps(epsilon: Fraction) -> None:
    """Beyond 64 bits it is Python's integers, and the same numbers whichever part is asked for first."""
    steps = HatSteps(1 << 20, epsilon, (4, 2), segment=1)
    one, other = steps.drawn(epoch_key), steps.drawn(epoch_key)
    single = [one.between(t, t + 1) for t in range(100)]
    for start, end in ((0, 100), (40, 90), (31, 33), (5, 64)):
        assert other.between(start, end) == sum(single[start:end])
    size = max(map(abs, single)) / steps.denominator
    assert 0.5 * steps.scale < size < 20 * steps.scale


@pytest.mark.parametrize("make", MADE)
def test_real_noise_has_the_variance_stated(make: Callable[[HatSteps], object]) -> None:
    sums: Any = make(HatSteps(1 << 20, Fraction(1), (8,)))
    ratios = []
    for key in range(20):
        noise = noise_of(sums, key, 320)
        ratios += [noise[t - 1] ** 2 / sums.variance(t) for t in range(20, 321)]
    assert sum(ratios) / len(ratios) == pytest.approx(1, abs=0.15)


@in_a_loop
@pytest.mark.parametrize("ratios", [(), (1,), (4, 1), (0,), (2, LARGEST)])
def test_ratios_that_make_no_hats_are_refused(ratios: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="ratios must be 2 or more, and their product at most 32768"):
        HatSteps(1, Fraction(1), ratios)
