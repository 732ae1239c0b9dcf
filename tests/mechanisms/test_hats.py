"""Hat functions in levels: the quick solver against dense linear algebra, and noise that is what it says."""

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from shoal.mechanisms.decayed_steps import DecayedSteps
from shoal.mechanisms.exponentials import Exponentials
from shoal.mechanisms.hat_steps import LARGEST, HatSteps, Profile, _profile, _variance
from shoal.mechanisms.hats import Hats
from tests.mechanisms.mechanism_cases import epoch_key

Floats = NDArray[np.float64]
SHAPES = [((4,), 40), ((4, 3), 120), ((5, 3, 2), 300), ((3, 3, 3), 243)]
every_shape = pytest.mark.parametrize(("ratios", "steps"), SHAPES)
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


@pytest.mark.parametrize(("alpha", "ratios"), [(Fraction(99, 100), (19,)), (Fraction(99, 100), (5, 4))])
def test_the_variance_stated_is_near_the_true_one_at_every_t(alpha: Fraction, ratios: tuple[int, ...]) -> None:
    """From the first step on: to 12 %, which is 6 % of a standard deviation; later to 3 %."""
    decay, top = Exponentials.exponential(alpha), math.prod(ratios)
    profile: Profile = _profile(ratios, decay)
    for t in [*range(1, 60, 2), *range(100, 140, 3), *range(500, 540, 3)]:
        exact = _variance(ratios, decay, t, (t // top + 4) * top, begins=True)
        assert profile.at(t) == pytest.approx(exact, rel=0.12 if t < 150 else 0.03)


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(1, 10**8), Fraction(1, 10**30)], ids=str)
def test_noise_of_any_size_is_the_sum_of_its_steps(epsilon: Fraction) -> None:
    """Beyond 64 bits it is Python's integers, and the same numbers whichever part is asked for first."""
    steps = HatSteps(1 << 20, epsilon, (4, 2))
    one, other = steps.drawn(epoch_key), steps.drawn(epoch_key)
    single = [one.between(t, t + 1) for t in range(100)]
    for start, end in ((0, 100), (40, 90), (31, 33), (5, 64)):
        assert other.between(start, end) == sum(single[start:end])
    size = max(map(abs, single)) / steps.denominator
    assert 0.5 * steps.scale < size < 20 * steps.scale


def test_real_noise_has_the_variance_stated() -> None:
    decay = Exponentials.exponential(Fraction(19, 20))
    sums, ratios = DecayedSteps(decay, HatSteps(1 << 20, Fraction(1), (8,))), []
    for key in range(20):
        summer = sums.summer(lambda number, key=key: epoch_key(100 * key + number))  # type: ignore[misc]
        noise = [summer.add(0) / sums.denominator for _ in range(320)]
        ratios += [noise[t - 1] ** 2 / sums.variance(t) for t in range(20, 321)]
    assert sum(ratios) / len(ratios) == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize("ratios", [(), (1,), (4, 1), (0,), (2, LARGEST)])
def test_ratios_that_make_no_hats_are_refused(ratios: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="ratios must be 2 or more, and their product at most 32768"):
        HatSteps(1, Fraction(1), ratios)
