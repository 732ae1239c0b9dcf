"""The small foundations: the grid, the blocks, the checks, the error bars."""

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import shoal.mechanisms
from shoal.mechanisms import check
from shoal.mechanisms.continual_mean import blocks
from shoal.mechanisms.error_bars import estimate, noise_quantile, noise_sd, six_digits
from shoal.mechanisms.grid import LARGEST, Grid
from shoal.mechanisms.noise.laplace import variance
from tests.mechanisms.mechanism_cases import unproved
from tests.support.cover import in_a_loop

GRID = Grid(Fraction(-1), Fraction("2.5"), 1000)


@example(math.inf)
@example(-math.inf)
@given(st.integers() | st.floats(allow_nan=False))
def test_a_value_becomes_the_nearest_index_or_the_nearer_end(x: int | float) -> None:
    index = GRID.clip(x)
    assert type(index) is int
    if x in (math.inf, -math.inf):
        assert index == (1000 if x > 0 else 0)
        return
    exact = min(max((Fraction(x) + 1) * 1000 / Fraction("3.5"), Fraction(0)), Fraction(1000))
    assert abs(index - exact) <= Fraction(1, 2) + Fraction(1, 10**9)


@pytest.mark.parametrize(("x", "index"), [(10**400, 1000), (-(10**400), 0), (1e308, 1000), (-1e308, 0), (-1, 0)])
def test_numbers_however_large_are_clipped(x: int | float, index: int) -> None:
    assert GRID.clip(x) == index


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=30))
def test_a_mean_is_exact_and_rounded_once(indices: list[int]) -> None:
    exact = sum(Fraction(-1) + Fraction("3.5") * i / 1000 for i in indices) / len(indices)
    assert GRID.mean_value(sum(indices), len(indices)) == float(exact)


def test_fractions_and_floats_of_a_step_are_exact_too() -> None:
    assert GRID.mean_value(Fraction(1, 3), 7) == float(-1 + Fraction("3.5") / 1000 / 21)
    assert GRID.width_value(0.1) == float(Fraction("3.5") / 1000 * Fraction(0.1))
    assert Grid(Fraction(1, 3), Fraction(1, 2), 7).mean_value(7, 1) == 0.5


def test_noise_beyond_all_floats_stays_a_number() -> None:
    assert GRID.mean_value(-(10**400), 1) == -LARGEST
    assert GRID.width_value(10**400) == LARGEST


@in_a_loop
@pytest.mark.parametrize(("low", "high"), [(1, 1), (2, 1), (0, 10**400), (0, Fraction(1, 10**320)), (10**400, 10**401)])
def test_a_range_must_be_one(low: int, high: int | Fraction) -> None:
    with pytest.raises(ValueError, match="low"):
        Grid(Fraction(low), Fraction(high), 4)


def test_checks_name_the_argument_and_refuse_floats() -> None:
    check.positive(epsilon=Fraction(1, 10))
    check.not_negative(t=0)
    check.below(5, index=4)
    check.probability(failure=Fraction(1, 2))
    refused: list[Callable[[], None]] = [
        lambda: check.positive(epsilon=0),
        lambda: check.not_negative(epsilon=-1),
        lambda: check.below(5, epsilon=5),
        lambda: check.below(5, epsilon=-1),
        lambda: check.probability(epsilon=1),
    ]
    for call in refused:
        with pytest.raises(ValueError, match="^epsilon must"):
            call()
    for wrong in (0.1, True, "1"):
        with pytest.raises(TypeError, match="^epsilon must be an int or a Fraction"):
            check.positive(epsilon=wrong)  # type: ignore[arg-type]


def test_blocks_cover_each_unit_s_samples_at_least_half() -> None:
    bounder, account, closed = blocks.BlockBounder(3000), 0, []
    for samples in range(1, 3000):
        account, block = bounder.add(account, 1)
        closed += [] if block is None else [block.level]
        assert closed == list(range(samples.bit_length()))
        assert 2 * sum(map(blocks.weight, closed)) > samples


def test_top_level_is_the_ceiling_of_the_binary_logarithm() -> None:
    assert [blocks.top_level(m) for m in range(1, 1000)] == [math.ceil(math.log2(m)) for m in range(1, 1000)]


def by_bisection(tail: dict[float, float]) -> float:
    """The 95 % quantile of a sum of different Laplace scales from its partial fractions."""
    low, high = 0.0, 1e6
    for _ in range(200):
        x = (low + high) / 2
        low, high = (x, high) if sum(c * math.exp(-x / b) for b, c in tail.items()) > 0.05 else (low, x)
    return low


@given(st.sets(st.integers(1, 40), min_size=2, max_size=4))
def test_the_quantile_of_different_scales_agrees_with_partial_fractions(scales: set[int]) -> None:
    tail = {b: math.prod(b * b / (b * b - c * c) for c in scales if c != b) for b in scales}
    found = noise_quantile(tuple((Fraction(1000 * b), 1) for b in sorted(scales)))
    assert found == pytest.approx(1000 * by_bisection({float(b): c for b, c in tail.items()}), rel=1e-4)


def test_the_quantile_of_equal_scales_agrees_with_closed_forms() -> None:
    x = noise_quantile(((Fraction(1000), 2),)) / 1000
    assert math.exp(-x) * (1 + x / 2) == pytest.approx(0.05, rel=1e-4)
    # many: nearly normal
    assert noise_quantile(((1000, 400),)) == pytest.approx(1.96 * noise_sd(((1000, 400),)), rel=2e-3)
    # one alone, also beside one that hardly matters
    assert noise_quantile(((1000, 1),)) == six_digits(1000 * math.log(20))
    assert noise_quantile(((1000, 1), (Fraction(1, 1000), 1))) == pytest.approx(1000 * math.log(20), rel=1e-5)
    assert noise_quantile(()) == noise_quantile(((1000, 0),)) == 0
    assert noise_sd(()) == 0


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2), Fraction(50)])
def test_the_variance_is_that_of_the_probabilities(scale: Fraction) -> None:
    p = math.exp(-1 / scale)
    exact = sum(2 * k * k * p**k for k in range(1, 3000)) * (1 - p) / (1 + p)
    assert variance(scale) == pytest.approx(exact, rel=1e-9)
    assert variance(Fraction(1, 10**30)) == 0


def test_an_estimate_is_in_units_of_the_range() -> None:
    made = estimate(Grid(Fraction(0), Fraction(200), 100), total=300, samples=5, scales=((Fraction(10), 1),))
    assert (made.value, made.samples) == (120, 5)
    assert made.noise_sd == pytest.approx(2 * 14.1362 / 5, rel=1e-5)
    assert (made.low, made.high) == pytest.approx((120 - 2 * 29.9573 / 5, 120 + 2 * 29.9573 / 5))


def test_every_guarantee_links_the_note_that_proves_it() -> None:
    assert unproved(shoal.mechanisms) == []
