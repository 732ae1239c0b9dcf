"""Who takes part in a release of few users: by counts alone, as many as are needed, and those who serve it best."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.selection.few_users_point import PointChoice, reach_steps, users_needed
from shoal.mechanisms.slot.cell import CellParameters
from shoal.mechanisms.slot.means.few_users import (
    Part,
    part_for_average,
    part_for_point,
    possible_parts,
    predicted_error,
    predicted_error_with_prior,
    release,
    release_with_prior,
)
from tests.mechanisms.slot.means.test_few_users import GRID, cell, draws, speeds
from tests.support.effort import examples

MADE = [(release, "few-users"), (release_with_prior, "few-users-prior")]
COUNTS = st.lists(st.one_of(st.integers(1, 6), st.integers(1, 300)), min_size=1, max_size=40)
# from two users on, or from some dozen
EPSILONS = st.sampled_from((Fraction(40), Fraction(2), Fraction("0.7"), Fraction("0.1")))


def easy(**more: Any) -> CellParameters:
    """A cell where few are enough."""
    return cell(**({"delta": Fraction(1, 10), "failure": Fraction(1, 2), "epsilon": Fraction(40)} | more))


@pytest.mark.parametrize(("make", "name"), MADE)
def test_a_user_with_a_single_sample_no_longer_matters(make: Any, name: str) -> None:
    of = cell(sigma=Fraction(2), epsilon=Fraction(3))
    people = speeds(60, 50, 5.0, 2.0)
    more = [*people[:9], [GRID.steps], *people[9:]]
    # then all is as without that user, whatever the sample was; and the release says who took part
    alone = make(people, of, draws(0))
    assert alone == make(more, of, draws(0))
    assert (alone.samples, alone.details["mechanism"]) == (3000, f"{name}, 60 users with 50 or more samples")
    for foretell in (predicted_error, predicted_error_with_prior):
        assert foretell([50] * 60 + [1], of) == foretell([50] * 60, of)


def test_those_who_come_often_find_a_nearer_point() -> None:
    """800 users with a sample each and 45 with 64: the reach is a ninth, and the mean is where it is said to be."""
    of = cell(sigma=Fraction(2))
    counts = [1] * 800 + [64] * 45
    part = part_for_point(counts, of)
    assert (part.least, part.users) == (64, 45)
    assert part.reach < reach_steps(845, 1, of.failure, Fraction(2 * GRID.steps, 40)) / 9
    for slot in range(10):
        people = speeds(800, 1, 5.0, 2.0, slot) + speeds(45, 64, 5.0, 2.0, slot)
        estimate = release(people, of, draws(slot))
        assert estimate.low <= 5.0 <= estimate.high
    # an average takes everybody, as many users have less noise
    assert part_for_average(counts, of).least == 1


@examples(30)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=8), st.data())
def test_a_neighbour_has_the_same_part(counts: list[int], data: Any) -> None:
    """All that is published but the value and the place of its interval, and all that noise goes by, is the same."""
    samples = st.sampled_from((0, 1, 9, 40000, GRID.steps))
    people = [[data.draw(samples) for _ in range(count)] for count in counts]
    user = data.draw(st.integers(0, len(people) - 1))
    other = [*people[:user], [data.draw(samples) for _ in range(counts[user])], *people[user + 1 :]]
    of = easy(cap=data.draw(st.sampled_from(("optimal", 3))))
    for make, name in MADE:
        choices: list[PointChoice] = []

        def choose(self: PointChoice, numbers: object, words: object, seen: list[PointChoice] = choices) -> int:
            seen.append(self)
            return 700

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(PointChoice, "choose", choose)
            one, two = (make(users, of, draws(1)) for users in (people, other))
        assert choices[0] == choices[1]
        assert (one.samples, one.noise_sd, one.details) == (two.samples, two.noise_sd, two.details)
        # and it is the part that the counts alone give
        part = (part_for_point if make is release else part_for_average)(counts, of)
        assert one.details["mechanism"].startswith(f"{name}, {part.users} user")
        assert one.details["mechanism"].endswith(f" with {part.least} or more samples")
        assert choices[0].numbers == part.users
        assert one.samples == sum(min(n, 3) if of.cap == 3 else n for n in counts if n >= part.least)
        # who is left out has no say at all
        assert counts[user] >= part.least or one == two


@given(COUNTS, EPSILONS, st.randoms())
def test_as_many_take_part_as_are_needed_or_all(counts: list[int], epsilon: Fraction, rng: Any) -> None:
    of = easy(epsilon=epsilon)
    for part_for, share in ((part_for_point, epsilon), (part_for_average, epsilon / 2)):
        part = part_for(counts, of)
        # they are all who have so many samples
        assert part.users == sum(count >= part.least for count in counts)
        assert part.users >= min(users_needed(share, of.delta, of.failure), len(counts))
        # in whatever order users come
        assert part_for(rng.sample(counts, len(counts)), of) == part


@given(COUNTS, EPSILONS, st.sampled_from(("optimal", 1, 7)), st.sampled_from((None, Fraction(1, 50))))
def test_no_other_threshold_serves_better(counts: list[int], epsilon: Fraction, cap: Any, sigma: Any) -> None:
    """All thresholds, tried one by one, by the definitions."""
    of = easy(epsilon=epsilon, cap=cap, sigma=sigma)
    capped = [min(count, 7 if cap == 7 else 1 if cap == 1 else 300) for count in counts]
    scatter = Fraction(GRID.steps, 2) if sigma is None else sigma * GRID.steps / 40

    def tried(share: Fraction) -> list[tuple[int, int]]:
        sizes = {least: sum(count >= least for count in capped) for least in range(min(capped), max(capped) + 1)}
        enough = {n for n in sizes.values() if n >= users_needed(share, of.delta, of.failure)}
        # of thresholds that leave the same users, those users' own
        parts = [(n, max(least for least in sizes if sizes[least] == n)) for n in enough or {len(counts)}]
        return [(n, reach_steps(n, least, of.failure, scatter)) for n, least in parts]

    point, average = part_for_point(counts, of), part_for_average(counts, of)
    assert (-point.reach, point.users) == max((-reach, n) for n, reach in tried(epsilon))
    noise = {n: Fraction(3 * reach + 1, n) for n, reach in tried(epsilon / 2)}
    assert (Fraction(3 * average.reach + 1, average.users), -average.users) == min((noise[n], -n) for n in noise)


@given(COUNTS, EPSILONS)
def test_the_higher_the_threshold_the_nearer(counts: list[int], epsilon: Fraction) -> None:
    """Hence the point is left to the smallest part that is large enough, but for the rounding of steps."""
    of = easy(epsilon=epsilon)
    parts = list(possible_parts(counts, of, epsilon))
    for wide, near in zip(parts, parts[1:], strict=False):
        assert wide.least < near.least
        assert wide.users > near.users
        assert wide.reach >= near.reach
    assert part_for_point(counts, of).reach == parts[-1].reach


def test_one_user_is_spoken_of_as_one() -> None:
    assert release([[7, 8, 9]], cell(), draws(1)).details["mechanism"] == "few-users, 1 user with 3 or more samples"
    assert part_for_point([3], cell()) == Part(3, 1, reach_steps(1, 3, Fraction(1, 20), Fraction(GRID.steps, 2)))
