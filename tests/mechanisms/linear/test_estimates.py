"""What is published of noisy sides: values, bars and intervals, against brute force and simulation."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.error_bars import noise_quantile, noise_sd
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.linear import estimates
from shoal.mechanisms.linear.estimates import Sided, fieller
from shoal.mechanisms.linear.sides import ThreeSides, TwoSides
from shoal.mechanisms.sums.decays import Undecayed, Window
from tests.mechanisms.linear.presence_cases import KEY, step, two_sided
from tests.support.cover import covered, in_a_loop
from tests.support.effort import examples, tries

GRID = Grid(Fraction(-10), Fraction(30), 1000)
PLACES = {2: TwoSides.places, 3: ThreeSides.places}


@examples(100)
@given(
    st.integers(2, 3).flatmap(lambda k: st.tuples(*[st.integers(-100, 400)] * k)),
    st.floats(0.5, 200).map(lambda q: round(q, 3)),
)
def test_the_interval_of_a_mean_is_all_means_that_the_noise_may_have_hidden(noisy: Any, quantile: float) -> None:
    places, sided = PLACES[len(noisy)], Sided(noisy, 1, 1, quantile / 2, quantile)
    found = fieller(places, sided)

    def may_be(m: float) -> bool:
        off = sum((float(u) - m) * b for u, b in zip(places, noisy, strict=True))
        return bool(abs(off) <= quantile * math.sqrt(sum((float(u) - m) ** 2 for u in places)) * (1 + 1e-6) + 1e-9)

    if found is None:
        # then there are too few samples, or noise may have hidden means that are as far out as you like
        assert sum(noisy) <= 0 or (may_be(1e9) and may_be(-1e9))
        return
    low, high = found
    assert low <= high
    assert may_be(low)
    assert may_be(high)
    width = high - low + 1
    assert not may_be(low - 1e-3 * width)
    assert not may_be(high + 1e-3 * width)


def test_a_mean_is_told_only_where_the_released_count_is_three_of_its_deviations() -> None:
    """Judged by what is released, whatever the exact number is."""
    for noisy, is_told in (((60, 60), True), ((30, 30), False), ((-500, 400), False), ((0, 0), False)):
        made = estimates.mean(GRID, TwoSides.places, Sided(noisy, 1, 1, 20.0, 40.0), clamps=True)
        assert (made.value is not None) == (made.noise_sd is not None) == is_told
        assert (made.counts["count"] >= 3 * made.counts["count_sd"]) == is_told
        assert made.counts == {"count": sum(noisy), "count_sd": pytest.approx(20 * math.sqrt(2), rel=1e-5)}
        assert GRID.low <= made.low <= made.high <= GRID.high
    assert (made.low, made.high) == (-10, 30)
    nothing = estimates.mean_and_variance(GRID, ThreeSides.places, Sided((0, 0, 1), 1, 1, 9.0, 9.0), clamps=True)
    none = {"mean": None, "variance": None}
    assert (nothing.value, nothing.noise_sd) == (none, none)
    assert (nothing.low, nothing.high) == ({"mean": -10, "variance": 0}, {"mean": 30, "variance": 400})


@pytest.mark.parametrize("noisy", [(-80, 400), (400, -80), (120, 240)])
def test_a_mean_and_its_interval_stay_in_the_range_unless_told_not_to(noisy: tuple[int, int]) -> None:
    sided = Sided(noisy, 1, 1, 20.0, 40.0)
    free = estimates.mean(GRID, TwoSides.places, sided, clamps=False)
    held = estimates.mean(GRID, TwoSides.places, sided, clamps=True)
    place = noisy[0] / sum(noisy)
    assert free.value == pytest.approx(-10 + 40 * place)
    assert free.low < free.value < free.high
    for one, other in ((free.value, held.value), (free.low, held.low), (free.high, held.high)):
        assert other == min(max(one, -10), 30)
    assert free.noise_sd == pytest.approx(40 * 20 / sum(noisy) * math.hypot(place, 1 - place), rel=1e-5)


def test_sums_and_counts_have_the_bars_of_their_side() -> None:
    up, down, both = ((Fraction(low), Fraction(high)) for low, high in ((0, 40), (-40, 0), (-10, 40)))
    for ends in (up, down, both):
        of = two_sided("sum", Window(1), steps=1000, ends=ends, m=3)
        released = step(of, of.releaser(KEY, b""), [])
        assert released.value != 0
        assert released.noise_sd == pytest.approx(40 * 3 * math.sqrt(2), rel=1e-3)
        assert released.high - released.value == pytest.approx(40 * 3 * math.log(20), rel=1e-3)
        assert released.value - released.low == pytest.approx(40 * 3 * math.log(20), rel=1e-3)
        assert set(released.counts) == (set() if ends == both else {"count", "count_sd"})
    of = two_sided("count", Window(1), m=3)
    released = step(of, of.releaser(KEY, b""), [])
    assert (released.noise_sd, released.counts) == (noise_sd(((Fraction(3), 1),)), {})
    assert released.high - released.value == noise_quantile(((Fraction(3), 1),))
    assert isinstance(released.value, int)


def test_the_noise_of_a_mean_is_what_is_stated() -> None:
    """With noise far below the count: the deviation of many releases, and of mean and variance likewise."""
    samples = [1, 1, 2, 5] * 50
    names: tuple[str, ...] = ("mean", "variance")
    for name in names:
        of = two_sided(name, Window(1), steps=8, m=1, epsilon=1)
        made = [step(of, of.releaser(KEY, b"%d" % key), samples) for key in range(tries(2000))]
        values, stated = ([part(each) for each in made] for part in (lambda e: e.value, lambda e: e.noise_sd))
        for part in ("mean", "variance") if name == "variance" else (None,):
            found = np.array([value if part is None else value[part] for value in values])
            said = np.array([value if part is None else value[part] for value in stated])
            assert np.std(found) == pytest.approx(np.median(said), rel=5 / math.sqrt(2 * len(found)))
            truth = {"mean": 0.125, "variance": np.var([-0.5, -0.5, 0, 1.5]), None: 0.125}[part]
            assert np.mean(found) == pytest.approx(truth, abs=5 * np.median(said) / math.sqrt(len(found)) + 0.02)


@in_a_loop
@covered(strength=1)
@pytest.mark.parametrize("draws", [1, 4, 60])
@pytest.mark.parametrize("counts", [5, 20])
def test_95_of_100_intervals_cover_the_truth_where_the_count_is_five_deviations(draws: int, counts: int) -> None:
    """Noise is so many Laplace draws a side; the mean lies from the middle of the range to its end."""
    random, scale = np.random.default_rng(draws), 1000.0
    law = ((Fraction(1000), draws),)
    sd, quantile, runs = noise_sd(law), noise_quantile(law), tries(1500)
    for sides, mean in ((k, mean) for k in (2, 3) for mean in (0.0, 0.05, 0.3, 0.5)):
        size = counts * math.sqrt(sides) * sd
        upper = mean**2 + (0.5 * mean * (1 - mean) if sides == 3 else 0)
        exact = [mean, 1 - mean] if sides == 2 else [1 - 2 * mean + upper, 2 * (mean - upper), upper]
        covered = [0, 0]
        told = 0
        for _ in range(runs):
            noise = random.laplace(0, scale, (sides, draws)).sum(1)
            sided = Sided([round(size * part + z) for part, z in zip(exact, noise, strict=True)], 1, 1, sd, quantile)
            if not sided.is_enough:
                continue
            told += 1
            if sides == 2:
                made = estimates.mean(GRID, TwoSides.places, sided, clamps=True)
                covered[0] += made.low <= -10 + 40 * mean <= made.high
            else:
                pair = estimates.mean_and_variance(GRID, ThreeSides.places, sided, clamps=True)
                covered[0] += pair.low["mean"] <= -10 + 40 * mean <= pair.high["mean"]
                variance = 1600 * (upper - mean**2)
                covered[1] += pair.low["variance"] <= variance + 1e-9 <= pair.high["variance"] + 1e-6
        room = 4 * math.sqrt(0.05 * 0.95 / told)
        assert covered[0] / told >= 0.94 - room
        if sides == 3:
            assert covered[1] / told >= 0.935 - room


def test_a_running_mean_has_the_bars_of_its_sums() -> None:
    of = two_sided("mean", Undecayed(), steps=1000, m=1, epsilon=50)
    releaser = of.releaser(KEY, b"")
    for t in range(1, 30):
        released = step(of, releaser, [250] * 40)
        assert released.counts["count_sd"] == pytest.approx(of.sums.noise_sd(t) * math.sqrt(2) / 1000, rel=1e-5)
        assert released.counts["count"] == sum(releaser.released) / 1000
        assert released.value == pytest.approx(-1 + 4 * releaser.released[0] / sum(releaser.released))
