"""Forward decay: weights, closed forms of the variance, silence, and the choice of a mechanism."""

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.error_bars import coverage_of, noise_quantile
from shoal.mechanisms.noise import laplace
from shoal.mechanisms.noise.keyed import derive
from shoal.mechanisms.sums.forward import ForwardSum, ForwardSummer, Steps
from shoal.mechanisms.sums.powers import BITS, Floats, Powers
from shoal.mechanisms.sums.running import RunningSum
from shoal.mechanisms.sums.steps.blue import node_coefficients
from shoal.mechanisms.sums.steps.growing import GrowingSteps
from shoal.mechanisms.sums.steps.laplace import LaplaceSteps
from tests.mechanisms.counters.counter_cases import Injected
from tests.mechanisms.mechanism_cases import KEY, epoch_key
from tests.support.cover import in_a_loop
from tests.support.effort import examples, tries

ONE, FINE = Fraction(1), 1 << 20
EXPONENTS = [Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(16)]
MAKES: dict[str, Any] = {
    "per-step": LaplaceSteps,
    "growing": GrowingSteps,
    "with a horizon": lambda width, epsilon: GrowingSteps(width, epsilon, 50),
    "with a short horizon": lambda width, epsilon: GrowingSteps(width, epsilon, 2),
}


def forward(exponent: Fraction, make: str, width: int = FINE) -> ForwardSum:
    return ForwardSum(Powers(exponent), MAKES[make](width, ONE))


# ---------------------------------------------------------------- weights


@in_a_loop
@pytest.mark.parametrize("exponent", EXPONENTS, ids=str)
def test_powers_are_exact_where_they_are_whole_and_else_to_the_last_place(exponent: Fraction) -> None:
    powers, places = Powers(exponent), 0 if exponent.denominator == 1 else BITS
    for step in (1, 2, 3, 64, 10**6, 1 << 40):
        part, root = powers.part(step), exponent.denominator
        exact = step**exponent.numerator << places * root
        # the part is the nearest integer to exact ** (1 / root), but for the last of 60 digits
        assert (2 * part - 1) ** root * 10**30 < exact * 2**root * (10**30 + 1)
        assert (2 * part + 1) ** root * (10**30 + 1) > exact * 2**root * 10**30
    assert all(powers.part(t) < powers.part(t + 1) for t in range(1, 100))


@examples(60)
@given(st.sampled_from(EXPONENTS), st.integers(1, 3000), st.data())
def test_sums_of_weights_are_those_of_all_weights(exponent: Fraction, t: int, data: st.DataObject) -> None:
    powers = Powers(exponent)
    ages = data.draw(st.integers(0, t))
    weights = [powers.weight(step, t) for step in range(1, t + 1)]
    assert powers.total(t, ages) == pytest.approx(math.fsum(weights[t - ages :]), rel=1e-9)
    assert powers.total(t) == pytest.approx(math.fsum(weights), rel=1e-9)
    assert powers.squares(t) == pytest.approx(math.fsum(weight**2 for weight in weights), rel=1e-7)
    assert powers.recent(ages, t).tolist() == pytest.approx(weights[t - ages :], rel=1e-9)


@pytest.mark.parametrize("exponent", [Fraction(1, 5), Fraction(17), Fraction(0)], ids=str)
def test_exponents_that_are_too_small_or_too_large_are_refused(exponent: Fraction) -> None:
    with pytest.raises(ValueError, match="exponent must"):
        Powers(exponent)


# ---------------------------------------------------------------- noise


@in_a_loop
@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("exponent", EXPONENTS, ids=str)
def test_the_variance_stated_is_that_of_all_draws_with_their_coefficients(exponent: Fraction, make: str) -> None:
    """Over the borders of several trees, and in the middle of blocks of every height."""
    steps = forward(exponent, make).steps
    for t in (1, 2, 9, 10, 11, 50, 99, 110, 111, 487, 1110, 1234, 2110):
        draws = list(steps.forward_draws(Powers(exponent), t))
        exact = sum(float(scale) ** 2 * float(np.sum(values**2)) for scale, values in draws)
        stated = steps.forward_squares(Powers(exponent), t, lambda scale: float(scale) ** 2)
        assert stated == pytest.approx(exact, rel=1e-6)
        assert max(float(np.max(np.abs(values))) for _, values in draws) <= 1 + 1e-12
        assert max(scale for scale, _ in draws) == steps.largest_scale(t)


def test_noise_of_growing_trees_grows_like_a_power_of_the_logarithm_and_of_a_draw_per_step_like_time() -> None:
    trees, steps = forward(Fraction(2), "growing"), forward(Fraction(2), "per-step")
    for t in (10**3, 10**4, 10**5, 10**6):
        assert steps.variance(t) / FINE**2 == pytest.approx(2 * t / 5, rel=0.01)
        assert trees.variance(t) < RunningSum(FINE, ONE).variance(t) * 1.01
        assert trees.variance(10 * t) < 2.5 * trees.variance(t)


@in_a_loop
@pytest.mark.parametrize("exponent", [Fraction(1, 2), Fraction(2), Fraction(8)], ids=str)
@pytest.mark.parametrize("horizon", [1, 7, 40, 300, 700])
def test_with_a_horizon_no_mechanism_has_less_variance_over_all_its_releases(exponent: Fraction, horizon: int) -> None:
    """But for what a sample of the releases hides."""

    def mean(steps: Steps) -> float:
        sums = ForwardSum(Powers(exponent), steps)
        return math.fsum(sums.variance(t) for t in range(1, horizon + 1)) / horizon

    best = ForwardSum.best(Powers(exponent), width=FINE, epsilon=ONE, horizon=horizon)
    others: tuple[Steps, ...] = LaplaceSteps(FINE, ONE), GrowingSteps(FINE, ONE), GrowingSteps(FINE, ONE, horizon)
    assert mean(best.steps) <= 1.03 * min(mean(steps) for steps in others)


@in_a_loop
@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("t", [1, 3, 17, 20, 150])
def test_intervals_are_those_of_the_draws(make: str, t: int) -> None:
    sums = forward(Fraction(3, 2), make)
    draws = [(scale, values[np.abs(values) > 1e-9]) for scale, values in sums.steps.forward_draws(sums.powers, t)]
    scales = tuple((scale * Fraction(float(abs(value))), 1) for scale, values in draws for value in values)
    assert sums.noise_quantile(t) == pytest.approx(noise_quantile(scales), rel=0.01)
    far = noise_quantile(scales, coverage_of(100))
    assert far <= 1.001 * sums.noise_quantile(t, coverage_of(100)) < 1.3 * far


@in_a_loop
@pytest.mark.parametrize("make", MAKES)
def test_where_draws_are_too_many_to_look_at_the_interval_is_a_little_wider(make: str) -> None:
    sums = forward(Fraction(3, 2), make)
    last, next_one = ((1 << 18) + more for more in (0, 1))
    narrow, wide = (sums.noise_quantile(t, coverage_of(100)) / sums.noise_sd(t) for t in (last, next_one))
    assert narrow < 1.01 * wide < 1.4 * narrow


# ---------------------------------------------------------------- silence


@in_a_loop
@pytest.mark.parametrize("make", MAKES)
def test_what_was_before_long_silence_weighs_what_it_should(make: str) -> None:
    far = 10**7 if make == "per-step" else 30_000
    with Injected().instead():
        sums = forward(Fraction(3, 2), make, width=1)
        for summer in (sums.summer(epoch_key), sums.counts()):
            summer.add(5 << 30)
            summer.skip(far)
            assert summer.add(0) / sums.denominator == pytest.approx((5 << 30) * (far + 2) ** -1.5, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("make", ["growing", "with a horizon"])
def test_noise_after_long_silence_is_as_large_as_stated(make: str) -> None:
    """Whole trees of silence have none, and pieces of others hardly less or more than single steps."""
    ratios = []
    for key in range(max(40, tries(100))):  # of fewer the mean is too far from its expectation by chance
        sums = forward(Fraction(2), make, width=1 << 10)
        summer = sums.summer(partial(derive, KEY, key))
        for pause in (3, 150, 300, 180):  # the trees have 10, 100 and 1000 steps
            for _ in range(30):
                noise = summer.add(0) / sums.denominator
            ratios.append(noise**2 / sums.variance(summer.t))
            summer.skip(pause)
    assert 0.5 < sum(ratios) / len(ratios) < 1.15


def weighed(sums: ForwardSum, pauses: Iterable[int]) -> tuple[int, Floats]:
    """The last step after these pauses, a step after each, and what every step weighs there."""
    pieces: list[tuple[int, int]] = []

    def noise(start: int, end: int) -> int:
        pieces.append((start, end))
        return 0

    summer = ForwardSummer(sums.powers, noise, sums.steps.borders)
    for pause in pauses:
        summer.skip(pause)
        summer.add(0)
    weights = np.zeros(summer.t)
    for start, end in pieces:
        weights[start:end] = ((start + 1) / summer.t) ** float(sums.powers.exponent)
    return summer.t, weights


@in_a_loop
@pytest.mark.parametrize(
    ("horizon", "pauses"),
    [(None, [0] * 20 + [1860] + [0] * 29), (300, [0, 2018, 0, 0, 0, 0]), (None, [0] * 20 + [1860])],
)
@pytest.mark.parametrize("exponent", [2, 8, 16])
def test_pieces_of_silence_add_hardly_any_noise_whatever_the_exponent(
    horizon: int | None, pauses: list[int], exponent: int
) -> None:
    """With the coefficients of all draws: in trees, weights that jump leave noise that would else cancel."""
    steps = GrowingSteps(1, ONE, horizon)
    sums = ForwardSum(Powers(Fraction(exponent)), steps)
    t, weights = weighed(sums, pauses)
    variance, before = 0.0, 0
    for tree, epochs in steps.trees.runs(steps.trees.position(t).epoch + 1):
        for _ in epochs:
            leaves = np.zeros(tree.leaves)
            part = weights[before : before + tree.leaves]
            leaves[: len(part)] = part
            variance += float(np.sum(node_coefficients(tree, leaves) ** 2)) * laplace.variance(steps.trees.scale(tree))
            before += tree.leaves
    assert variance <= 1.01 * sums.variance(t)


def test_borders_of_trees() -> None:
    growing = GrowingSteps(1, ONE)
    assert [growing.borders(t) for t in (0, 1, 9, 10, 11, 110, 111)] == [
        (0, 0), (0, 10), (0, 10), (10, 10), (10, 110), (110, 110), (110, 1110),
    ]  # fmt: skip
    assert LaplaceSteps(1, ONE).borders(7) == (7, 7)
