"""Noise intervals that hold for several releases together: quantiles, bounds of tails, and what is seen in all.

The oracle of a quantile is the law of a weighted sum of Laplace draws by its Fourier series with very many terms, of
the coefficients that each release really has.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.mechanisms.error_bars import COVERAGE, coverage_of, noise_quantile, tail_bound
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.kinds import statistic_of
from shoal.mechanisms.noise.keyed import derive
from shoal.mechanisms.parts.of import Variance
from shoal.mechanisms.sums.decays import Exponential, Window
from shoal.mechanisms.sums.gaussian_window import RootWindow
from shoal.mechanisms.sums.running import RunningSum
from shoal.mechanisms.sums.sums import DecayedSum
from shoal.models.config.metric import MetricSection
from tests.mechanisms.linear.value_cases import of_values, variance_of
from tests.mechanisms.sums.decay_cases import Case, linear, some_cases
from tests.support.cover import in_a_loop
from tests.support.effort import examples, tries

ONE, FINE = Fraction(1), 1 << 16
_TERMS = np.pi * np.arange(1, 60_001)


def beyond(x: float, scales: Sequence[float]) -> float:
    """The chance that the size of a sum of Laplace draws of these scales exceeds x."""
    far = 4 * x
    frequencies = _TERMS / far
    log_phi = np.zeros(len(frequencies))
    for scale in scales:
        log_phi -= np.log1p((scale * frequencies) ** 2)
    return 1 - (x + 2 * float(np.sum(np.exp(log_phi) * np.sin(frequencies * x) / frequencies))) / far


@in_a_loop
@some_cases
def test_each_interval_has_its_part_of_what_may_fail(case: Case) -> None:
    """Exactly that part for sums of few draws; less where it is a bound that goes by the variance."""
    sums, noise = case.sums(1 << 20), linear(case)
    wide = (1 << 20) / case.sums().width
    for t in {1, case.length // 2, case.length}:
        scales = [float(noise.scales[at] * wide) * abs(row[t - 1]) for at, row in noise.coefficients.items()]
        there = [scale for scale in scales if scale > 1e-9 * max(scales)]
        for q, failure in ((None, 0.063), (1, 0.0505), (100, 0.000505)):  # by itself: known-limits.md
            assert beyond(sums.noise_quantile(t, coverage_of(q)), there) <= failure


@examples(20)
@given(st.lists(st.integers(1, 100), min_size=2, max_size=6, unique=True), st.sampled_from([1, 2, 50, 10**4, 1 << 20]))
def test_quantiles_far_out_are_those_of_the_exponentials_that_the_tail_consists_of(scales: list[int], q: int) -> None:
    quantile, failure = noise_quantile(tuple((scale, 1) for scale in sorted(scales)), coverage_of(q, 2)), 0.05 / q / 2
    squares = [scale**2 for scale in scales]
    parts = [math.prod(Fraction(a, a - b) for b in squares if b != a) for a in squares]
    tail = math.fsum(float(part) * math.exp(-quantile / scale) for part, scale in zip(parts, scales, strict=True))
    rounding = 1e-15 * max(abs(float(part)) for part in parts)
    assert 0.97 * failure - rounding <= tail <= 1.001 * failure + rounding


@examples(20)
@given(st.lists(st.integers(1, 50), min_size=1, max_size=30), st.sampled_from([2, 100, 10**4]))
def test_a_bound_by_variance_and_largest_draw_is_never_too_small(scales: list[int], q: int) -> None:
    squares, largest = float(sum(scale**2 for scale in scales)), float(max(scales))
    exact = noise_quantile(tuple((scale, 1) for scale in scales), coverage_of(q))
    known, at_most = (tail_bound(squares, largest, coverage_of(q), has_largest=has) for has in (True, False))
    assert exact < 1.001 * known <= 1.001 * at_most < 1.8 * exact


SUMS: dict[str, DecayedSum] = {
    "per step": Window(4).sharp(FINE, ONE),
    "hats": Window(4096).sharp(FINE, ONE),
    "gaussian": RootWindow(FINE, ONE, Fraction(1, 10**6), 8),
    "running": RunningSum(FINE, ONE),
    "exponential": Exponential(Fraction(9, 10)).sharp(FINE, ONE),
    "patent": Window(16).patent(FINE, ONE),
}


@in_a_loop
@pytest.mark.parametrize("name", SUMS)
def test_so_many_releases_stay_within_their_intervals_together(name: str) -> None:
    """More runs fail than by chance in a million, if each may with 5 %, nowhere; few of single intervals' runs hold."""
    sums, q, runs = SUMS[name], 40, tries(60)
    coverage, failed, alone = coverage_of(q), 0, 0
    for run in range(runs):
        summer = sums.summer(partial(derive, bytes(32), "together", run))
        noise = [(t, abs(summer.add(0)) / sums.denominator) for t in range(1, q + 1)]
        failed += any(size > sums.noise_quantile(t, coverage) for t, size in noise)
        alone += any(size > sums.noise_quantile(t) for t, size in noise)
    assert failed <= most_failures(runs)
    assert alone > failed


def most_failures(runs: int) -> int:
    """The number that is exceeded with less than 1e-6, if each of the runs fails with 0.05."""
    chances = [math.comb(runs, k) * (1 - COVERAGE) ** k * COVERAGE ** (runs - k) for k in range(runs + 1)]
    return next(k for k in range(runs + 1) if math.fsum(chances[k + 1 :]) < 1e-6)


# ---------------------------------------------------------------- what a configuration says

COMMON: dict[str, Any] = {"name": "m", "topic": "t", "user": "u", "value": "x", "range": (0, 10), "epsilon": 1}
STEPPED = COMMON | {"every": "1h", "max_contributions": 2}
MEAN = COMMON | {"statistic": "mean", "every": "1h", "max_contributions": 2, "users": 9}
SLOT = COMMON | {"slot": "1h", "max_contributions": 2}


def metric(given: dict[str, Any], **more: Any) -> Any:
    return MetricSection.model_validate(given | more)


@in_a_loop
@pytest.mark.parametrize(
    ("given", "numbers"),
    [
        (STEPPED | {"statistic": "sum"}, 1),
        (STEPPED | {"statistic": "variance"}, 2),
        (MEAN, 1),
        (MEAN | {"value": ["x", "y"], "range": [(0, 1), (0, 2)], "algorithm": "naive"}, 2),
        (SLOT | {"statistic": "mean"}, 1),
        (SLOT | {"statistic": "variance"}, 2),
        (SLOT | {"statistic": "distribution", "bins": 8}, 15),
    ],
)
def test_all_numbers_of_a_release_count(given: dict[str, Any], numbers: int) -> None:
    def coverage(**more: Any) -> float:
        statistic: Any = statistic_of(metric(given, **more).parts)
        return float(getattr(statistic, "parts", (statistic,))[0].coverage)

    assert coverage() == COVERAGE
    assert coverage(simultaneous=10) == pytest.approx(1 - 0.05 / 10 / numbers, rel=1e-12)


def test_bounds_of_few_users_fail_less_often_each() -> None:
    few = SLOT | {"statistic": "mean", "algorithm": "few-users", "delta": "1e-6", "failure": "0.01"}
    made: list[Any] = [statistic_of(metric(few, simultaneous=q).parts) for q in (None, 1, 100)]
    assert [statistic.failure for statistic in made] == [Fraction(1, 100), Fraction(1, 100), Fraction(1, 2000)]


def test_a_count_has_no_noise_to_be_within() -> None:
    count = {"name": "m", "topic": "t", "user": "u", "statistic": "count", "every": "1h", "max_contributions": 2}
    with pytest.raises(ValueError, match="simultaneous is for noise intervals, and a count is exact"):
        metric(count, simultaneous=5)


@examples(50)
@example([10, 20, 20, 10], 1.0, -1.0)
@example([10, 20, 20, 10], -1.0, 1.0)
@given(st.lists(st.integers(0, 100), min_size=1, max_size=9), st.floats(-1, 1), st.floats(-1, 1))
def test_a_variance_lies_between_low_and_high_wherever_both_sums_are_within_their_bars(
    values: list[int], first: float, second: float
) -> None:
    grid = Grid(Fraction(0), Fraction(10), 100)
    statistic = of_values(
        statistic=Variance,
        decay=Window(2),
        grid=grid,
        epsilon=200 * ONE,
        max_contributions=1,
        coverage=coverage_of(9, 2),
    )
    n, bars = len(values), statistic.bars(1)
    moved = [int(part * bar / unit) for part, bar, unit in ((first, bars[1], 0.1), (second, bars[3], 0.01))]
    noisy = sum(values) + moved[0], sum(i * (100 - i) for i in values) + moved[1]
    estimate = statistic.estimate((n, *noisy), bars, {})
    truth = float(np.var(values)) / 100
    assert estimate is not None
    estimate = variance_of(estimate)
    assert estimate.low - 1e-6 <= truth <= estimate.high + 1e-6
