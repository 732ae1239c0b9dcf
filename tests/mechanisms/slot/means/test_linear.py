"""Baseline and array averaging: sensitivity and bias by brute force, and what public counts alone decide."""

import random
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.error_bars import noise_quantile, noise_sd
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.slot.cell import Cap
from shoal.mechanisms.slot.means import linear
from shoal.mechanisms.slot.means.linear import ARRAY_AVERAGING, BASELINE, Linear
from tests.mechanisms.slot.cell_cases import (
    COUNTS,
    EPSILONS,
    PATTERNS,
    STEPS,
    Watched,
    all_cells,
    cells,
    draws,
    farthest_neighbours,
    parameters,
)
from tests.support.cover import covered, in_a_loop

MEANS = [BASELINE, ARRAY_AVERAGING]
every = pytest.mark.parametrize("mean", MEANS, ids=["baseline", "array-averaging"])
CAPS: list[Cap] = [1, 2, 3, "median", "optimal"]


@covered(
    keep=["counts3-1-array-averaging", "counts5-1-array-averaging", "counts5-3-array-averaging", "counts5-3-baseline"]
)
@every
@pytest.mark.parametrize("cap", CAPS)
@pytest.mark.parametrize("counts", PATTERNS)
def test_a_user_moves_the_sum_by_what_the_noise_is_for(mean: Linear, cap: Cap, counts: tuple[int, ...]) -> None:
    steps, epsilon = 1 if sum(counts) > 4 else 2, Fraction(1, 3)
    of = parameters(steps=steps, epsilon=epsilon, cap=cap, clamps=False)
    weighting, found, scales = mean.weighting(counts, of), {}, set()
    for users in all_cells(counts, steps):
        watched = Watched()
        estimate = mean.release(users, of, watched)
        found[users] = weighting.total(users)
        scales.add(watched.scales["mean"])
        # what is released is this sum, its noise, and public numbers
        assert estimate.value == of.grid.mean_value(found[users], weighting.weight)
    # over all cells and all neighbours: no more, and no less
    assert {farthest_neighbours(found) / epsilon} == scales


@in_a_loop
@every
@pytest.mark.parametrize("dropped", [0, 2])
@pytest.mark.parametrize("cap", CAPS)
@pytest.mark.parametrize("counts", PATTERNS)
def test_the_bias_is_the_worst_there_is(mean: Linear, cap: Cap, counts: tuple[int, ...], dropped: int) -> None:
    of = parameters(steps=1, cap=cap, dropped=dropped)
    weighting, samples = mean.weighting(counts, of), sum(counts) + dropped
    worst = max(
        abs(Fraction(weighting.total(users), weighting.weight) - Fraction(sum(map(sum, users)) + rest, samples))
        for users in all_cells(counts, 1)
        for rest in range(dropped + 1)
    )
    assert weighting.bias(counts, dropped) == worst
    # it is no less than what is left out
    assert weighting.bias(counts, dropped) >= 1 - Fraction(sum(weighting.kept), samples)


@every
@given(COUNTS, EPSILONS, st.sampled_from(CAPS), st.integers(0, 100))
def test_the_error_stated_was_predicted(
    mean: Linear, counts: list[int], epsilon: Fraction, cap: Cap, dropped: int
) -> None:
    of = parameters(epsilon=epsilon, cap=cap, dropped=dropped)
    found = mean.release([[0] * count for count in counts], of, draws())
    weighting = mean.weighting(counts, of)
    exact = weighting.bias(counts, dropped) + Fraction(weighting.heaviest, weighting.weight) / epsilon
    assert found.details["error"] == mean.predicted_error(counts, of) == float(65 * exact)
    assert found.samples == sum(weighting.kept)


@every
@given(cells(), EPSILONS, st.sampled_from(CAPS), st.booleans())
def test_a_release_is_the_sum_with_one_draw_of_noise(
    mean: Linear, users: list[list[int]], epsilon: Fraction, cap: Cap, clamps: bool
) -> None:
    of = parameters(epsilon=epsilon, cap=cap, clamps=clamps)
    weighting = mean.weighting([len(user) for user in users], of)
    scale = Fraction(STEPS * max(w * k for w, k in zip(weighting.weights, weighting.kept, strict=True))) / epsilon
    found = mean.release(users, of, draws())
    value = of.grid.mean_value(weighting.total(users) + draws().laplace("mean", scale), weighting.weight)
    assert found.value == (min(max(value, 0.0), 65.0) if clamps else value)
    # error bars are those of that draw, around the value before it is clamped
    half = of.grid.width_value(noise_quantile(((scale, 1),))) / weighting.weight
    assert (found.low, found.high) == (value - half, value + half)
    assert found.noise_sd == of.grid.width_value(noise_sd(((scale, 1),))) / weighting.weight
    # and the same again, byte for byte
    assert repr(mean.release(users, of, draws())) == repr(found)


@every
def test_each_cell_and_slot_has_noise_of_its_own(mean: Linear) -> None:
    of, places = parameters(clamps=False), [(cell, slot) for cell in (b"a", b"b", b"ab") for slot in (0, 1, 2)]
    values = {mean.release([[5, 6], [7]], of, draws(*place)).value for place in places}
    assert len(values) == len(places)


@every
@given(cells(), st.sampled_from(CAPS), st.data())
def test_nothing_but_the_value_depends_on_values(
    mean: Linear, users: list[list[int]], cap: Cap, data: st.DataObject
) -> None:
    of = parameters(cap=cap, clamps=False)
    # given a neighbour: one user's values are others
    changed = data.draw(st.integers(0, len(users) - 1))
    others = [[STEPS - value for value in user] if at == changed else user for at, user in enumerate(users)]
    one, other = Watched(), Watched()
    found, neighbour = mean.release(users, of, one), mean.release(others, of, other)
    assert one.scales == other.scales
    assert replace(found, value=0, low=0, high=0) == replace(neighbour, value=0, low=0, high=0)
    assert found.high - found.low == pytest.approx(neighbour.high - neighbour.low, rel=1e-9)


@given(cells(), st.randoms(use_true_random=False))
def test_the_order_of_users_does_not_matter(users: list[list[int]], shuffle: random.Random) -> None:
    shuffled = users.copy()
    shuffle.shuffle(shuffled)
    assert BASELINE.release(shuffled, parameters(cap=3), draws()) == BASELINE.release(users, parameters(cap=3), draws())
    # with arrays it is the canonical one: who shares one does, and all that is public does not, depend on it
    one, other = (ARRAY_AVERAGING.release(these, parameters(cap=3), draws()) for these in (users, shuffled))
    assert (one.noise_sd, one.details) == (other.noise_sd, other.details)


@every
@given(cells(), st.sampled_from(CAPS))
def test_samples_that_are_all_alike_have_their_value_as_the_mean(
    mean: Linear, users: list[list[int]], cap: Cap
) -> None:
    of = parameters(epsilon=Fraction(10**30), cap=cap)
    alike = [[users[0][0]] * len(user) for user in users]
    for these in (alike, alike[:1]):  # of one user, too
        found = mean.release(these, of, draws())
        assert found.value == of.grid.mean_value(users[0][0], 1)
        assert found.noise_sd == 0


def test_samples_beyond_the_cap_do_not_count() -> None:
    of = parameters(epsilon=Fraction(10**30), steps=100, cap=2)
    for mean in MEANS:
        assert mean.release([[1, 3, 100], [2, 2, 0]], of, draws()).value == 2
    # without a number the baseline takes all
    assert BASELINE.release([[1, 3, 8], [2]], replace(of, cap="median"), draws()).value == 3.5


def test_arrays_count_alike_however_full() -> None:
    # given an array of 4 and one of 2
    found = ARRAY_AVERAGING.release(
        [[8, 8, 8, 8], [2, 2]], parameters(epsilon=Fraction(10**30), steps=10, cap=4), draws()
    )
    assert found.value == 5
    assert found.details["mechanism"] == "array-averaging, 2 arrays of 4"
    assert ARRAY_AVERAGING.weighting([3], parameters()).mechanism == "array-averaging, 1 array of 3"
    assert BASELINE.weighting([3], parameters()).mechanism == "baseline, up to 3 of a user's samples"


@given(COUNTS, EPSILONS, st.integers(0, 100))
def test_optimal_arrays_are_never_worse_than_median_ones(counts: list[int], epsilon: Fraction, dropped: int) -> None:
    best, median = (parameters(cap=cap, epsilon=epsilon, dropped=dropped) for cap in ("optimal", "median"))
    assert ARRAY_AVERAGING.predicted_error(counts, best) <= ARRAY_AVERAGING.predicted_error(counts, median)


@every
def test_however_much_noise_there_is_a_clamped_mean_is_possible(mean: Linear) -> None:
    of = parameters(epsilon=Fraction(1, 10**60))
    found, free = (mean.release([[1], [2]], replace(of, clamps=clamps), draws()) for clamps in (True, False))
    assert found.value == (65 if free.value > 65 else 0)
    assert abs(free.value) > 1e50
    assert replace(found, value=free.value) == free


def test_weights_may_be_any() -> None:
    weighting = linear.Weighting([1, 2], [3, 1], "by hand")
    grid = Grid(Fraction(-1), Fraction(1), 10)
    found = linear.release(weighting, [[10], [0, 0, 9]], replace(parameters(), grid=grid), Watched())
    assert found.value == 0.2  # 3/5 of the way from -1 to 1
    assert (found.samples, found.details["mechanism"]) == (3, "by hand")
