"""What is told of a distribution: projection, quantiles, bins, and the width of intervals."""

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.bins.shares import WHOLE, bin_of, edges, isotonic, one_draw, quantile, shares
from shoal.mechanisms.error_bars import COVERAGE, coverage_of, noise_quantile
from shoal.mechanisms.grid import Grid
from tests.support.effort import examples

GRID = Grid(Fraction(0), Fraction(64), 1 << 12)


def test_a_single_draw_has_the_widest_quantile_for_its_deviation() -> None:
    for count, part in itertools.product((1, 2, 5, 20), (0, 1, 3, 6, 10)):
        scales = ((Fraction(1000), 1), (Fraction(100 * part + 1), count))
        sd = math.sqrt(sum(2 * float(scale) ** 2 * n for scale, n in scales))
        for coverage in (COVERAGE, coverage_of(100)):
            assert noise_quantile(scales, coverage) <= one_draw(coverage) * sd * (1 + 1e-3)


@examples(30)
@given(st.lists(st.integers(-6, 6), min_size=1, max_size=5))
def test_isotonic_regression_is_the_nearest_that_never_falls(values: list[int]) -> None:
    """Brute force: the nearest is constant on some consecutive pieces, with the mean of each."""
    n = len(values)
    best = math.inf, [0.0]
    for cuts in itertools.product((False, True), repeat=n - 1):
        ends = [0, *(i + 1 for i, cut in enumerate(cuts) if cut), n]
        fit = [sum(values[a:b]) / (b - a) for a, b in itertools.pairwise(ends) for _ in range(b - a)]
        if fit == sorted(fit):
            best = min(best, (sum((x - y) ** 2 for x, y in zip(fit, values, strict=True)), fit))
    assert isotonic(values) == pytest.approx(best[1])


def test_shares_are_isotonic_and_clamped() -> None:
    assert shares([-0.5, 0.25, 0.125, 1.5, 7.0]) == [0, 187_500_000, 187_500_000, WHOLE, WHOLE]


def test_quantiles_are_where_the_cdf_crosses() -> None:
    grid = Grid(Fraction(-1), Fraction(3), 400)
    whole = [0, 250_000_000, 250_000_000, WHOLE]
    told = [quantile(whole, Fraction(q), grid) for q in ("0.125", "0.25", "0.5", "0.999999999")]
    assert told == pytest.approx([0.5, 1.0, 2 + 1 / 3, 3], abs=1e-8)
    assert quantile([WHOLE], Fraction(1, 4), grid) == 0


@examples(20)
@given(st.integers(0, 4096), st.integers(2, 100))
def test_a_grid_index_is_between_the_edges_of_its_bin(index: int, bins: int) -> None:
    place, ends = bin_of(index, bins, GRID), edges(GRID, bins)
    assert ends[place] <= GRID.mean_value(index, 1) <= ends[place + 1]
