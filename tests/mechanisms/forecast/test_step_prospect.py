"""Plans of stepped statistics: expected samples, and noise over time."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from shoal.mechanisms.forecast.step_prospect import Flow, by_hand, mean_variance, prospect
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.linear.statistic import LinearStatistic
from shoal.mechanisms.sums.decays import AllWindows, Exponential, Forward, Polynomial, Undecayed, Window
from shoal.mechanisms.workload import Pattern
from shoal.models.config import forms
from tests.mechanisms.linear.value_cases import of_values
from tests.support.cover import in_a_loop

MANY = 10**9  # users: so many that a pattern's rounding to whole samples does not matter
GRID = Grid(Fraction(-10), Fraction(30), 1 << 10)
STEPS = 24
WEIGHTS: dict[Any, Callable[[int, int], float]] = {  # of a step at step t
    Undecayed(STEPS): lambda step, t: 1.0,
    Window(5): lambda step, t: float(t - step < 5),
    AllWindows(STEPS): lambda step, t: 1.0,
    Exponential(Fraction(4, 5)): lambda step, t: float(0.8 ** (t - step)),
    Polynomial(Fraction(3, 2)): lambda step, t: float((t - step + 1) ** -1.5),
    Forward(Fraction(3, 2), STEPS): lambda step, t: float((step / t) ** 1.5),
}
NOT_OF_PATENT = Undecayed | Forward


def stepped(decay: Any, statistic: str = "sum", algorithm: str = "sharp") -> LinearStatistic:
    cls: Any = forms.SUMS.statistics[statistic]
    return of_values(
        statistic=cls, decay=decay, algorithm=algorithm, grid=GRID, epsilon=Fraction(1), max_contributions=3
    )


@in_a_loop
@pytest.mark.parametrize("decay", WEIGHTS)
@pytest.mark.parametrize("pattern", [Pattern.even(MANY, 7.3), Pattern.skewed(MANY, 7.3), Pattern.even(MANY, 2)])
def test_samples_that_count_are_those_of_each_step_with_their_weights(decay: Any, pattern: Pattern) -> None:
    of, weigh = stepped(decay), WEIGHTS[decay]
    flow = Flow(pattern, STEPS, cap=3)

    def decayed(cap: int | None, t: int) -> float:
        came = [pattern.samples(cap, s / STEPS) - pattern.samples(cap, (s - 1) / STEPS) for s in range(1, t + 1)]
        return sum(weigh(s, t) * count for s, count in enumerate(came, start=1))

    for t in range(1, STEPS + 1):
        expected = [decayed(3, t), decayed(None, t)]
        assert flow.samples(of.sums, decay, t) == pytest.approx(expected, rel=1e-5, abs=20)
    counted, there = flow.rates()
    assert (counted * STEPS, there * STEPS) == pytest.approx((pattern.samples(3, 1), pattern.samples(None, 1)))


def test_a_cap_of_a_period_leaves_out_as_much_of_each_and_none_leaves_out_nothing() -> None:
    pattern = Pattern.even(100, 24)
    running = stepped(Undecayed())
    capped = Flow(pattern, STEPS, cap=2, periods=6.0)  # 4 samples in each, of which 2 count
    assert capped.samples(running.sums, running.decay, 12) == (600.0, 1200.0)
    assert [rate * STEPS for rate in capped.rates()] == [1200.0, 2400.0]
    free = Flow(pattern, STEPS)
    assert free.samples(running.sums, running.decay, 12) == (1200.0, 1200.0)
    assert free.rates() == (100.0, 100.0)


@in_a_loop
@pytest.mark.parametrize("algorithm", ["sharp", "patent"])
@pytest.mark.parametrize("decay", WEIGHTS)
def test_weights_are_those_of_the_releases(decay: Any, algorithm: str) -> None:
    if isinstance(decay, NOT_OF_PATENT) and algorithm == "patent":
        return
    of = stepped(decay, algorithm=algorithm)
    summer = of.sums.counts()
    flow = Flow(Pattern.even(1, 1000 * STEPS), STEPS)  # a thousand samples in each step
    for t in range(1, STEPS + 1):
        assert flow.samples(of.sums, decay, t)[0] == pytest.approx(summer.add(1000) / of.sums.denominator, rel=1e-5)


def test_a_mean_has_the_noise_of_the_sum_over_its_samples_and_a_count_none() -> None:
    flow = Flow(Pattern.even(50, 2), STEPS)
    sums, means, counts = (prospect(stepped(Window(5), kind), flow) for kind in ("sum", "mean", "count"))
    total, mean, count = (one.at(7) for one in (sums, means, counts))
    assert total.samples == mean.samples == count.samples == pytest.approx(50 * 2 * 5 / STEPS)
    assert mean.noise_sd == pytest.approx((total.noise_sd or 0) / total.samples)
    assert mean.half_interval == pytest.approx((total.half_interval or 0) / total.samples)
    assert (count.noise_sd, count.half_interval, counts.mechanism) == (0, 0, "exact")
    far = counts.long_run()
    assert far is not None
    assert far.samples == pytest.approx(total.samples)
    assert (far.noise_sd, far.left_out) == (0, 0)
    # Nobody is left whose samples count: there is no mean, and everything is left out.
    spent = prospect(stepped(Window(5), "mean"), Flow(Pattern.even(50, 4 * STEPS), STEPS, cap=1)).at(STEPS)
    assert (spent.noise_sd, spent.half_interval, spent.left_out) == (None, None, 1)
    assert prospect(stepped(Window(5), "mean"), Flow(Pattern.even(0, 1), STEPS)).at(3).left_out == 0


@in_a_loop
@pytest.mark.parametrize("decay", [Window(5), Window(200), Exponential(Fraction(9, 10)), Polynomial(Fraction(3, 2))])
@pytest.mark.parametrize("algorithm", ["sharp", "patent"])
def test_in_the_long_run_noise_is_the_mean_of_that_of_releases(decay: Any, algorithm: str) -> None:
    of = stepped(decay, algorithm=algorithm)
    far = prospect(of, Flow(Pattern.even(50, 2), STEPS)).long_run()
    assert far is not None
    period = range(1 << 14, (1 << 14) + (1 << 10))
    measured = sum(of.sums.variance(t) for t in period) / len(period)
    assert far.noise_sd == pytest.approx(GRID.width_value(math.sqrt(measured)), rel=0.02)
    assert mean_variance(of.sums) == pytest.approx(measured, rel=0.04)


def test_noise_that_grows_has_no_long_run() -> None:
    flow = Flow(Pattern.even(50, 2), STEPS)
    for decay in (Undecayed(), AllWindows(), Forward(Fraction(2))):
        assert prospect(stepped(decay), flow).long_run() is None
        assert by_hand(stepped(decay), flow).long_run() is None


@in_a_loop
@pytest.mark.parametrize("decay", WEIGHTS)
def test_by_hand_each_step_has_a_draw(decay: Any) -> None:
    found = by_hand(stepped(decay), Flow(Pattern.even(50, 2), STEPS))
    draw = found.sums.variance(1)
    assert found.mechanism == "per-step"
    for t in (1, 3, 9, STEPS):
        squares = sum(WEIGHTS[decay](step, t) ** 2 for step in range(1, t + 1))
        assert found.sums.variance(t) == pytest.approx(draw * squares, rel=1e-5)


@pytest.mark.parametrize("algorithm", ["sharp", "patent"])
def test_noise_of_a_window_is_the_mean_over_where_it_ends(algorithm: str) -> None:
    flow = Flow(Pattern.even(50, 2), STEPS)
    of = stepped(AllWindows(STEPS), algorithm=algorithm)
    ahead = prospect(of, flow)
    sums: Any = of.sums
    ends = range(12, STEPS + 1)
    expected = math.sqrt(sum(sums.window_variance(end, 4) for end in ends) / len(ends))
    assert ahead.window(4) == pytest.approx(GRID.width_value(expected))
    assert ahead.window(STEPS) == pytest.approx(GRID.width_value(math.sqrt(sums.window_variance(STEPS, STEPS))))
    hand = by_hand(of, flow)
    assert hand.window(4) == pytest.approx(GRID.width_value(math.sqrt(4 * hand.sums.variance(1))))
    mean = prospect(stepped(AllWindows(STEPS), "mean", algorithm), flow)
    assert mean.window(4) == pytest.approx((ahead.window(4) or 0) / (100 * 4 / STEPS))
