"""Means of few users: what is released, how near it is, and when there is no release."""

import dataclasses
import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.grid import Grid
from shoal.mechanisms.noise.keyed import Bits, derive
from shoal.mechanisms.selection.few_users_point import PointChoice, reach_steps, users_needed
from shoal.mechanisms.slot.cell import CellParameters, Counts, Draws, Users
from shoal.mechanisms.slot.means import few_users
from shoal.mechanisms.slot.means.few_users import (
    PARTS,
    no_release,
    part_for_average,
    part_for_point,
    point_choice,
    predicted_error,
    predicted_error_with_prior,
    release,
    release_with_prior,
)
from shoal.mechanisms.statistic import Estimate
from tests.mechanisms.mechanism_cases import KEY
from tests.support.cover import in_a_loop
from tests.support.effort import examples

GRID = Grid(Fraction(-10), Fraction(30), 1 << 16)


def cell(**more: Any) -> CellParameters:
    parameters: dict[str, Any] = {"grid": GRID, "epsilon": Fraction(1), "delta": Fraction(1, 10**6)}
    return CellParameters(**(parameters | {"failure": Fraction(1, 20)} | more))


def draws(slot: int) -> Draws:
    return Draws(KEY, b"cell", slot)


def reach_of(counts: Counts, of: CellParameters) -> int:
    return part_for_point(counts, of).reach


def speeds(users: int, samples: int, mean: float, sd: float, seed: int = 0) -> list[list[int]]:
    """Samples of one law: a sum of twelve uniform numbers is close to normal."""
    words, found = Bits(derive(KEY, "speeds", seed)).draw(0), []
    for _ in range(users):
        normal = (sum(next(words) for _ in range(12)) / 2**64 - 6 for _ in range(samples))
        found.append([GRID.clip(mean + sd * x) for x in normal])
    return found


def test_users_needed_are_those_of_the_formula() -> None:
    for epsilon, delta, failure in ((1, 1e-6, 0.05), (0.1, 1e-9, 0.001), (8, 1e-3, 0.5)):
        exact = 1 + 2 / epsilon * (math.log(1 / (delta * failure)) + math.log(2))
        assert users_needed(Fraction(epsilon), Fraction(delta), Fraction(failure)) == math.ceil(exact)
    # also where delta is no float
    exact = 1 + 2 * (400 * math.log(10) + 2 * math.log(2))
    assert users_needed(Fraction(1), Fraction(1, 10**400), Fraction(1, 2)) == math.ceil(exact)


@in_a_loop
@pytest.mark.parametrize(("users", "likely"), [(20, True), (32, True), (37, False), (60, False)])
def test_a_release_fails_as_often_as_the_law_says(users: int, likely: bool) -> None:
    """Means at both ends of what is near the true mean: the worst case; 400 slots each."""
    of, slots = cell(sigma=Fraction(2)), 400
    reach = reach_of([50] * users, of)
    people = [[30000 + (reach if i % 2 else -reach)] * 50 for i in range(users)]
    failed = sum(release(people, of, draws(slot)).value is None for slot in range(slots))
    told = no_release(part_for_point([50] * users, of), of, of.epsilon)
    assert abs(failed - slots * told) <= 4 * math.sqrt(slots * told * (1 - told)) + 1
    # then from as many users as are needed on, it fails no more often than it may
    assert (told > of.failure) is likely
    assert likely is (users < users_needed(of.epsilon, of.delta, of.failure))


@pytest.mark.slow
@pytest.mark.parametrize(("n", "mean"), [(40, 0.7), (60, 29.5)])
def test_a_release_is_as_near_as_claimed(n: int, mean: float) -> None:
    of = cell(sigma=Fraction(2), failure=Fraction(1, 20))
    errors, misses = [], 0
    for slot in range(80):
        estimate = release(speeds(n, 16, mean, 2.0, slot), of, draws(slot))
        if estimate.value is not None:
            errors.append(abs(estimate.value - mean))
            misses += not estimate.low <= mean <= estimate.high
    # then there is nearly always one, within the bounds, and by experience at half the radius
    assert len(errors) >= 80 * (1 - 2 / 20)
    assert misses == 0
    assert sum(errors) / len(errors) <= 1.05 * predicted_error([16] * n, of)


@pytest.mark.parametrize("failure", ["0.001", "0.3"])
def test_means_are_within_reach_but_for_the_failure(failure: str) -> None:
    of = cell(sigma=Fraction(2), failure=Fraction(failure))
    reach, far = reach_of([16] * 10, of), 0
    for seed in range(100):
        far += any(abs(sum(samples) / 16 - GRID.clip(5.0)) > reach for samples in speeds(10, 16, 5.0, 2.0, seed))
    assert far <= 100 * of.failure + 3


def test_reach_is_that_of_bounded_or_subgaussian_samples() -> None:
    counts, beta, step = [9, 4, 25], 1 / 20, 40 / (1 << 16)
    bounded = 40 * math.sqrt(math.log(2 * 3 / beta) / (2 * 4))
    assert 1 <= reach_of(counts, cell()) - bounded / step <= 2 + 1e-6
    subgaussian = 0.5 * math.sqrt(2 * math.log(2 * 3 / beta) / 4)
    assert 1 <= reach_of(counts, cell(sigma=Fraction(1, 2))) - subgaussian / step <= 2 + 1e-6
    # with a cap, as if that were all samples
    assert reach_of([2, 2, 2], cell()) == reach_of(counts, cell(cap=2))
    assert reach_steps(1, 1, Fraction(2) - Fraction(1, 100), Fraction(0)) == 1


def test_samples_scatter_no_more_than_their_range_lets_them() -> None:
    """With a sigma beyond it no float would hold the error bars."""
    of, wide = cell(), cell(sigma=Fraction(10**300))
    assert reach_of([3, 4], wide) == reach_of([3, 4], of)
    people = [[0] * 9, [1 << 16] * 9, [5] * 9]
    for make in (release, release_with_prior):
        assert make(people, wide, draws(1)) == make(people, of, draws(1))


def test_half_of_the_users_may_be_corrupt() -> None:
    """49 of 100 users lie about everything, all alike: the point stays with the others."""
    of = cell(sigma=Fraction(2), epsilon=Fraction(16))
    for lie in (0, GRID.steps, 40000):
        for slot in range(12):
            people = speeds(51, 8, 5.0, 2.0, slot) + [[lie] * 8] * 49
            estimate = release(people, of, draws(slot))
            assert estimate.value is not None
            assert estimate.low <= 5.0 <= estimate.high


MADE = [release, release_with_prior]


@pytest.mark.parametrize("make", MADE)
def test_one_user_has_a_release_with_probability_delta_at_most(make: Any) -> None:
    estimate = make([[7, 8, 9]], cell(), draws(1))
    # then it says so, and how much there was
    assert (estimate.value, estimate.noise_sd, estimate.low, estimate.high) == (None,) * 4
    assert (estimate.samples, estimate.details["error"]) == (3, None)
    # whatever epsilon is
    likely = cell(epsilon=Fraction(90), delta=Fraction(1, 2))
    assert 10 <= sum(make([[7, 8, 9]], likely, draws(slot)).value is not None for slot in range(60)) <= 30


@in_a_loop
@pytest.mark.parametrize("make", MADE)
@pytest.mark.parametrize("at", [0, 40000, GRID.steps])
def test_equal_samples_take_the_general_path_also_at_the_ends(make: Any, at: int) -> None:
    people, found = [[at] * 400] * 80, []
    for slot in range(30):
        estimate = make(people, cell(sigma=Fraction(1), epsilon=Fraction(2)), draws(slot))
        assert estimate.value is not None
        assert -10 <= estimate.value <= 30
        assert estimate.low <= GRID.mean_value(at, 1) <= estimate.high or make is release_with_prior
        found.append((estimate.low + estimate.high) / 2)
    # points beyond the range are possible, and what is published is clamped
    beyond = [x for x in found if not -10 <= x <= 30]
    assert bool(beyond) is (at != 40000)
    loose = make(people, cell(sigma=Fraction(1), epsilon=Fraction(2), clamps=False), draws(found.index(found[0])))
    assert loose.value == pytest.approx(found[0])


@pytest.mark.parametrize("make", [*MADE, predicted_error])
def test_without_a_delta_it_is_refused(make: Any) -> None:
    arguments = (
        ([3, 3], cell(delta=Fraction(0)))
        if make is predicted_error
        else ([[1], [2]], cell(delta=Fraction(0)), draws(0))
    )
    with pytest.raises(ValueError, match="delta must be greater than 0 for few users, not 0"):
        make(*arguments)


@pytest.mark.slow
def test_an_average_of_means_is_n_times_as_near_as_a_point() -> None:
    of, n = cell(sigma=Fraction(2), epsilon=Fraction(2)), 200
    errors = []
    for slot in range(40):
        people = speeds(n, 8, 5.0, 2.0, slot)
        true = sum(GRID.mean_value(sum(samples), 8) for samples in people) / n
        estimate = release_with_prior(people, of, draws(slot))
        errors.append(abs(estimate.value - true))
        assert estimate.samples == 8 * n
    told = predicted_error_with_prior([8] * n, of)
    assert sum(errors) / len(errors) == pytest.approx(told, rel=0.5)
    assert told < predicted_error([8] * n, of) / 15


@given(
    people=st.lists(st.lists(st.integers(0, 9000), min_size=1, max_size=4), min_size=2, max_size=6),
    other=st.integers(0, 9000),
    point=st.integers(-50, 9050),
    epsilon=st.sampled_from((Fraction("0.3"), Fraction(40))),
)
def test_one_user_moves_the_average_by_no_more_than_its_noise_is_for(
    people: list[list[int]], other: int, point: int, epsilon: Fraction
) -> None:
    """Whatever point was chosen, and whoever takes part; and the shares of the two steps are all of epsilon."""
    # with much epsilon two users are enough
    of = cell(sigma=Fraction(1, 100), epsilon=epsilon, delta=Fraction(1, 10), failure=Fraction(1, 2))
    part = part_for_average([len(samples) for samples in people], of)
    neighbour = [[other] * len(people[0]), *people[1:]]
    with pytest.MonkeyPatch.context() as patch:
        spent, scales, totals = [], [], []

        def choose(self: Any, numbers: object, words: object) -> int:
            spent.append(self.epsilon)
            return point

        class Silent:
            def __init__(self, scale: Fraction, subkey: bytes) -> None:
                self.scale = scale
                scales.append(scale)

            def draw(self, index: int) -> int:
                return 0

        patch.setattr(PointChoice, "choose", choose)
        patch.setattr(few_users, "DiscreteLaplace", Silent)
        loose = dataclasses.replace(of, clamps=False)
        for users in (people, neighbour):
            value = release_with_prior(users, loose, draws(0)).value
            totals.append(round((value + 10) / 40 * GRID.steps * part.users * PARTS))
    moved = abs(totals[0] - totals[1])
    assert Fraction(moved) / scales[0] + spent[0] <= of.epsilon
    # and one who goes from below the clip range to above it moves it by just so much
    assert part.width / scales[0] + spent[0] == of.epsilon


@examples(15)
@given(st.lists(st.integers(0, GRID.steps), min_size=1, max_size=5), st.integers(1, 3))
def test_a_user_is_its_mean_to_the_nearest_step(samples: list[int], parts: int) -> None:
    (mean,) = few_users.means([samples], parts)
    assert abs(Fraction(sum(samples) * parts, len(samples)) - mean) <= Fraction(1, 2)


def test_a_cap_leaves_later_samples_out() -> None:
    people: Users = [[30000] * 3 + [5] * 9] * 60
    capped = release(people, cell(sigma=Fraction(1, 10), cap=3), draws(0))
    assert capped.samples == 180
    assert capped.value == pytest.approx(GRID.mean_value(30000, 1), abs=1)


def test_the_same_key_and_cell_give_the_same_release() -> None:
    people = speeds(50, 9, 5.0, 2.0)
    for make in MADE:
        one, other, third = (make(people, cell(epsilon=Fraction(3)), draws(slot)) for slot in (3, 3, 4))
        assert isinstance(one, Estimate)
        assert one == other != third


def test_with_too_few_users_the_predicted_error_is_the_range() -> None:
    assert predicted_error([5, 5], cell()) == pytest.approx(40, rel=1e-3)
    assert predicted_error_with_prior([5, 5], cell()) == pytest.approx(40, rel=1e-3)
    assert point_choice(part_for_point([5, 5], cell()), cell(), Fraction(1)).radius == 2 * reach_of([5, 5], cell())
