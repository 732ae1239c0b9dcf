"""How good a variance is: its error is the one stated, its interval covers, and one budget goes further than two."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from shoal.mechanisms.forecast.step_prospect import Flow, by_hand, prospect
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.parts.of import Variance
from shoal.mechanisms.sums.decays import Exponential, Listed, Undecayed, Window
from shoal.mechanisms.sums.weights import Weights
from shoal.mechanisms.workload import Pattern
from tests.mechanisms.linear.test_variance_laws import step
from tests.mechanisms.linear.value_cases import of_values, variance_of
from tests.support.cover import covered

STEPS = 1 << 10
GRID = Grid(Fraction(0), Fraction(1), STEPS)
RUNS = 800
SAMPLES = 200


def released(decay: Any, epsilon: str, values: list[int], steps: int = 1) -> list[Any]:
    """The last release of many groups, which all have these samples in each of the steps."""
    of = of_values(statistic=Variance, decay=decay, grid=GRID, epsilon=Fraction(epsilon), max_contributions=1)
    found = []
    for group in range(RUNS):
        releaser = of.releaser(b"k" * 32, b"%d" % group)
        for _ in range(steps):
            last = step(releaser, values, STEPS)
        found.append(variance_of(last))
    return found


@pytest.mark.slow
@covered(strength=1, keep=["decay0-1-0.5-2", "decay1-8-0.0-2"])
@pytest.mark.parametrize("epsilon", ["2", "0.05", "0.002"])
@pytest.mark.parametrize("place", [0.5, 0.25, 0.0])
@pytest.mark.parametrize(
    ("decay", "steps"),
    [
        (Window(4), 1),
        (Exponential(Fraction(9, 10)), 8),
        (Listed(Weights.of([Fraction(1), Fraction(1, 2)])), 3),
        (Undecayed(), 6),
    ],
)
def test_releases_are_right_on_average_and_their_error_bars_too(
    decay: Any, steps: int, place: float, epsilon: str
) -> None:
    # given samples of which nine in ten are at one place of the range, from its middle to its end
    each = SAMPLES // steps
    values = [round(place * STEPS)] * (each - each // 10) + [STEPS] * (each // 10)
    x = np.array(values) / STEPS
    truth = float(np.mean((x - np.mean(x)) ** 2))
    of = released(decay, epsilon, values, steps)
    errors = np.array([one.value for one in of]) - truth
    sds = np.array([one.noise_sd for one in of])
    # then the value is right on average, and its error is the one that is stated or less
    assert abs(np.mean(errors)) < 4.5 * np.std(errors) / math.sqrt(RUNS)
    stated = math.sqrt(float(np.mean(sds**2)))
    assert np.std(errors) < 1.12 * stated
    assert np.std(errors) > (0.9 if epsilon == "2" else 0.6) * stated  # noise near a normal law is squared to less
    # and the truth lies in 95 of 100 intervals
    covered = np.mean([one.low <= truth <= one.high for one in of])
    assert covered > 0.95 - 4.5 * math.sqrt(0.05 * 0.95 / RUNS)
    assert all(one.low <= one.value <= one.high for one in of)


def test_one_budget_for_both_sums_goes_further_than_two() -> None:
    """Against halves of epsilon, but for means near the middle; far from it no split is better."""
    joint = of_values(statistic=Variance, decay=Window(4), grid=GRID, epsilon=Fraction(1))
    first, second = (one.epsilon for one in joint.decayed)
    assert first + second == Fraction(4, 3)

    def error(off: float, first: float, second: float) -> float:
        """Of a release, by how far the mean lies from the middle in half ranges, and by the scales of the noise."""
        return math.hypot(off * first, second)

    def scales(a: float) -> tuple[float, float]:
        """Of the noise where a sample's change of a i + i (W - i), taken absolutely, is what the budget is for."""
        most = (a + 1) ** 2 / 4 if a <= 1 else a  # parts of the range
        return most / a, most

    built = scales(1 / 2)
    assert built == pytest.approx((float(1 / first), float(Fraction(1, 4) / second)), rel=1e-3)
    halves = (2.0, 0.5)
    for off in np.linspace(0, 1, 21):
        assert error(off, *built) < (halves_error := error(off, *halves)) * 1.13
        if off >= 0.2:
            assert error(off, *built) < halves_error
        if off >= 0.5:
            assert error(off, *built) < 1.02 * min(error(off, *scales(a)) for a in np.linspace(0.1, 1, 91))


@pytest.mark.parametrize(
    "decay", [Window(5), Exponential(Fraction(9, 10)), Listed(Weights.of([Fraction(1), Fraction(1, 2)]))]
)
def test_a_plan_foretells_the_error_bars_of_a_mean_half_way_to_an_end(decay: Any) -> None:
    of = of_values(statistic=Variance, decay=decay, grid=GRID, epsilon=Fraction(1), max_contributions=1)
    flow = Flow(Pattern.even(10**6, 1), steps=20)
    planned, hand = prospect(of, flow).at(20), by_hand(of, flow).at(20)
    releaser = of.releaser(b"k" * 32, b"")
    for _ in range(20):
        last = variance_of(step(releaser, [STEPS // 4] * 500, STEPS))
    # per sample: both go by the number of samples alone, to first order
    assert planned.noise_sd is not None
    assert planned.noise_sd * planned.samples == pytest.approx(last.noise_sd * last.samples, rel=0.02)
    assert hand.noise_sd == pytest.approx(planned.noise_sd, rel=0.02)
    assert planned.half_interval == pytest.approx((last.high - last.value) * last.samples / planned.samples, rel=0.02)
    nobody = prospect(of, Flow(Pattern.even(0, 1), 20)).at(3)
    assert (nobody.noise_sd, nobody.half_interval) == (None, None)
