"""Means of several coordinates of few users: what is released, how near it is, and how many users it takes."""

import math
import random
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.grid import Grid
from shoal.mechanisms.noise.keyed import Bits, derive
from shoal.mechanisms.selection.few_users_point import users_needed
from shoal.mechanisms.slot.cell import CellParameters, Draws
from shoal.mechanisms.slot.means.few_users import Part
from shoal.mechanisms.slot.means.few_users_ball import ROUNDS, BallChoice, near_to, offsets_in_ball
from shoal.mechanisms.slot.means.few_users_values import (
    choice_of,
    is_enough,
    kappa,
    part_of,
    points_of,
    predicted_error,
    radius_of,
    reach_steps,
    release,
)
from tests.mechanisms.mechanism_cases import KEY
from tests.mechanisms.slot.means.test_few_users_ball import ball
from tests.support.cover import in_a_loop
from tests.support.effort import examples, tries

GRID = Grid(Fraction(-10), Fraction(30), 1 << 16)
WIDE = Grid(Fraction(0), Fraction(4000), 1 << 16)


def cell(d: int = 2, **more: Any) -> CellParameters:
    """Coordinates alternate between two ranges, of which the second is a hundred times as wide."""
    axes = tuple((WIDE, Fraction(200)) if axis % 2 else (GRID, Fraction(2)) for axis in range(d))
    parameters: dict[str, Any] = {"epsilon": Fraction(1), "delta": Fraction(1, 10**6), "failure": Fraction(1, 20)}
    return CellParameters(grid=GRID, axes=axes, **(parameters | more))


def draws(slot: int) -> Draws:
    return Draws(KEY, b"cell", slot)


def people(users: int, samples: int, of: CellParameters, seed: int = 0, mean: float = 0.4) -> list[list[list[int]]]:
    """Samples whose mean lies at this part of each range; each is uniform, with the sigma that is stated."""
    words, found = Bits(derive(KEY, "people", seed)).draw(0), []
    for _ in range(users):
        samples_of = []
        for _ in range(samples):
            sample = []
            for grid, sigma in of.axes:
                assert sigma is not None
                off = (next(words) / 2**63 - 1) * math.sqrt(3) * float(sigma)
                sample.append(grid.clip(float(grid.low) + mean * float(grid.high - grid.low) + off))
            samples_of.append(sample)
        found.append(samples_of)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("d", [2, 3, 8])
def test_a_release_is_as_near_as_claimed(d: int) -> None:
    of = cell(d)
    truth = [float(grid.low) + 0.4 * float(grid.high - grid.low) for grid, _ in of.axes]
    for slot in range(tries(20)):
        estimate = release(people(110, 16, of, slot), of, draws(slot))
        assert all(len(part) == d for part in (estimate.value, estimate.noise_sd, estimate.low, estimate.high))
        assert all(low <= at <= high for low, at, high in zip(estimate.low, truth, estimate.high, strict=True))
        # together they are within R + r0, in parts of the ranges
        part = part_of([16] * 110, of)
        steps = [
            (value - at) / float(grid.high - grid.low) * grid.steps
            for value, at, (grid, _) in zip(estimate.value, truth, of.axes, strict=True)
        ]
        assert math.hypot(*steps) <= radius_of(part.reach, d) + part.reach
        assert (estimate.samples, estimate.details["error"]) == (1760, None)
        assert estimate.details["mechanism"] == "few-users, 110 users with 16 or more samples"


@pytest.mark.slow
def test_the_standard_deviation_is_that_of_a_ball() -> None:
    """All users' means are equal, and their ball is what is near all of them."""
    of = cell(3, epsilon=Fraction(8))
    estimates = [release([[[30000] * 3] * 9] * 60, of, draws(slot)) for slot in range(tries(300))]
    for axis, (grid, _) in enumerate(of.axes):
        off = [estimate.value[axis] - grid.mean_value(30000, 1) for estimate in estimates]
        sd = math.sqrt(math.fsum(x * x for x in off) / len(off))
        assert sd == pytest.approx(estimates[0].noise_sd[axis], rel=2 / math.sqrt(len(off)))
        mean = math.fsum(map(abs, off)) / len(off)
        at = CellParameters(**{field: getattr(of, field) for field in of.__dataclass_fields__} | {"grid": grid})
        assert mean == pytest.approx(predicted_error([9] * 60, at), rel=3 / math.sqrt(len(off)))


def test_without_an_answer_there_is_none_in_any_coordinate() -> None:
    estimate = release([[[7, 8]] * 3], cell(), draws(1))
    assert (estimate.value, estimate.noise_sd, estimate.low, estimate.high) == (None,) * 4
    assert estimate.details == {"mechanism": "few-users, no answer, 1 user with 3 or more samples", "error": None}
    assert estimate.samples == 3
    # and one user alone has an answer with a probability of delta at most, whatever epsilon is
    likely = cell(epsilon=Fraction(90), delta=Fraction(1, 2))
    answered = sum(release([[[7, 8]] * 3], likely, draws(slot)).value is not None for slot in range(60))
    assert 10 <= answered <= 30


def test_users_who_are_far_apart_have_no_answer() -> None:
    of, rng = cell(2, epsilon=Fraction(2)), random.Random(3)
    far = [[[rng.randint(0, 1 << 16), rng.randint(0, 1 << 16)]] * 400 for _ in range(60)]
    assert [release(far, of, draws(slot)).value for slot in range(10)] == [None] * 10


@pytest.mark.parametrize("d", [2, 8])
def test_49_of_100_users_may_be_corrupt(d: int) -> None:
    of = cell(d, epsilon=Fraction(16))
    truth = [float(grid.low) + 0.4 * float(grid.high - grid.low) for grid, _ in of.axes]
    rng = random.Random(5)
    apart = [[[rng.choice((0, 1 << 16)) for _ in range(d)]] * 8 for _ in range(49)]
    for lies in ([[[1 << 16] * d] * 8] * 49, apart):
        for slot in range(tries(10)):
            estimate = release(people(51, 8, of, slot) + lies, of, draws(slot))
            assert estimate.value is not None
            assert all(low <= at <= high for low, at, high in zip(estimate.low, truth, estimate.high, strict=True))


def test_the_number_of_users_does_not_grow_with_the_coordinates() -> None:
    """What it takes is 2 kappa / epsilon more; kappa is below 6, whatever d is, where r0 is many steps."""

    def needed(d: int) -> int:
        of, users = cell(d), 1
        while not is_enough(Part(1, users, 10**6), of):
            users += 1
        return users

    by_coordinates = {d: needed(d) for d in (2, 8, 32, 128)}
    on_a_line = users_needed(Fraction(1), Fraction(1, 10**6), Fraction(1, 20))
    assert on_a_line / 0.51 <= by_coordinates[2] <= by_coordinates[8]
    # levels off
    assert by_coordinates[128] - by_coordinates[32] <= 2
    assert by_coordinates[128] <= (on_a_line + 2 * 6) / 0.51
    # in between the first bound is the better one
    assert by_coordinates[32] - by_coordinates[8] <= 6


@in_a_loop
@pytest.mark.parametrize(("radius", "coordinates", "reach"), [(12, 2, 6), (6, 2, 2), (8, 3, 4), (5, 4, 2)])
def test_balls_share_what_is_said_of_them(radius: int, coordinates: int, reach: int) -> None:
    """Centres at the ends of all axes, r0 from the middle: all that is near all of them is counted."""
    centres = [
        tuple(sign * reach if axis == at else 0 for at in range(coordinates))
        for axis in range(coordinates)
        for sign in (-1, 1)
    ]
    inside = ball(radius, coordinates)
    shared = sum(near_to(point, centres, radius) == len(centres) for point in inside)
    told = math.exp(-kappa(len(centres), reach, radius, coordinates))
    assert told <= shared / len(inside)


@pytest.mark.slow
@pytest.mark.parametrize("d", [8, 32])
def test_in_many_dimensions_balls_share_more_than_is_said(d: int) -> None:
    """Of a uniform point of a ball around the middle; centres are as far from it as they may be, any way."""
    reach, rng, users = 1000, random.Random(d), 40
    radius = radius_of(reach, d)
    centres = []
    for _ in range(users):
        way = [rng.gauss(0, 1) for _ in range(d)]
        size = reach / math.hypot(*way)
        centres.append([round(size * x) for x in way])
    offsets, count = offsets_in_ball(radius, d, KEY, Bits(KEY).draw(9)), tries(200)
    shared = sum(near_to(next(offsets), centres, radius) == users for _ in range(count)) / count
    assert shared >= math.exp(-kappa(users, reach + d, radius, d)) - 3 / count


def test_reach_is_that_of_all_coordinates() -> None:
    exact = math.sqrt(2 * math.log(2 * 40 * 3 / 0.05) * (300**2 + 400**2 + 1200**2) / 100)
    steps = reach_steps(40, 100, Fraction(1, 20), (Fraction(300), Fraction(400), Fraction(1200)))
    assert 2 <= steps - exact <= 3
    # each coordinate has its own range and sigma, or half the range
    of = CellParameters(
        grid=GRID, epsilon=Fraction(1), delta=Fraction(1, 9), failure=Fraction(1, 20),
        axes=((GRID, Fraction(2)), (WIDE, None), (WIDE, Fraction(10**9))),
    )  # fmt: skip
    scatters = Fraction(2 * (1 << 16), 40), Fraction(1 << 15), Fraction(1 << 15)
    assert part_of([7, 7], of) == Part(7, 2, reach_steps(2, 7, Fraction(1, 20), scatters))


@pytest.mark.slow
def test_means_lie_within_the_reach_as_often_as_said() -> None:
    of, far = cell(4, failure=Fraction(1, 20)), 0
    reach, middle = part_of([16] * 10, of).reach, [round(0.4 * (1 << 16))] * 4
    for seed in range(100):
        far += near_to(middle, points_of(people(10, 16, of, seed)), reach) < 10
    assert far <= 100 * of.failure + 3


@examples(30)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=8), st.data())
def test_a_neighbour_has_the_same_part(counts: list[int], data: Any) -> None:
    """All that is published but the value and the place of its interval, and all that is weighed, is the same."""
    sample = st.lists(st.sampled_from((0, 1, 9, 40000, 1 << 16)), min_size=2, max_size=2)
    users = [[data.draw(sample) for _ in range(count)] for count in counts]
    user = data.draw(st.integers(0, len(users) - 1))
    other = [*users[:user], [data.draw(sample) for _ in range(counts[user])], *users[user + 1 :]]
    of = cell(
        epsilon=Fraction(40), delta=Fraction(1, 10), failure=Fraction(1, 2), cap=data.draw(st.sampled_from((3, 9)))
    )
    seen: list[tuple[Any, ...]] = []

    def choose(self: BallChoice, points: list[Any], subkey: bytes, words: object) -> list[int]:
        seen.append((self, len(points), subkey))
        return [700, 800]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BallChoice, "choose", choose)
        one, two = (release(those, of, draws(3)) for those in (users, other))
    assert one == two
    assert seen[0] == seen[1]
    # with all of the cell's epsilon and delta, and no more
    part = part_of(counts, of)
    assert seen[0][0] == BallChoice(part.users, radius_of(part.reach, 2), of.epsilon, of.delta, 2)


def test_those_who_come_often_are_enough() -> None:
    of = cell(2)
    assert part_of([1] * 9 + [64] * 200, of) == Part(64, 200, part_of([64] * 200, of).reach)
    # a cap counts as if that were all samples
    assert part_of([100] * 200, cell(2, cap=64)) == part_of([64] * 200, of)
    # with too few users all take part, and what is foretold is all of the range
    assert part_of([1, 9], of).users == 2
    assert predicted_error([1, 9], of) == pytest.approx(40, rel=1e-3)


def test_points_may_lie_beyond_the_range_and_what_is_published_does_not() -> None:
    corner = [[[0, 1 << 16]] * 9] * 90
    of, loose = (cell(2, epsilon=Fraction(4), clamps=clamps) for clamps in (True, False))
    beyond = 0
    for slot in range(20):
        made, free = release(corner, of, draws(slot)), release(corner, loose, draws(slot))
        assert made.value == [max(free.value[0], -10.0), min(free.value[1], 4000.0)]
        assert (made.low, made.high) == (free.low, free.high)
        beyond += made.value != free.value
    assert beyond


def test_the_same_key_and_cell_give_the_same_release() -> None:
    of, users = cell(2, epsilon=Fraction(3)), people(80, 9, cell(2))
    one, other, third = (release(users, of, draws(slot)) for slot in (3, 3, 4))
    assert one == other != third


def test_without_a_delta_it_is_refused() -> None:
    with pytest.raises(ValueError, match="delta must be greater than 0 for few users, not 0"):
        predicted_error([3, 3], cell(delta=Fraction(0)))


def test_what_stopping_adds_is_little() -> None:
    """With very many users "none" is as likely as two balls' share in ROUNDS, and no likelier."""
    of = cell(2)
    part = part_of([64] * 5000, of)
    choice = choice_of(part, of)
    common = kappa(part.users, part.reach, choice.radius, 2)
    assert choice.none_at_most(common) <= 2 * math.exp(common) / ROUNDS
