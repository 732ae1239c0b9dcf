"""Mean and variance jointly: sensitivities by brute force, shares of epsilon, and what public counts alone decide."""

import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.error_bars import noise_quantile, noise_sd
from shoal.mechanisms.slot import mean_variance
from shoal.mechanisms.slot.cell import Cap
from shoal.mechanisms.slot.mean_variance import sums
from shoal.mechanisms.slot.worst_error import mean_and_variance_error, mean_error, variance_error
from shoal.mechanisms.statistic import Estimate, holding
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

CAPS: list[Cap] = [1, 2, 3, "median", "optimal"]
LARGE = Fraction(10**40)  # an epsilon for which there is no noise


def exact(users: list[list[int]], cap: int) -> tuple[Fraction, Fraction]:
    """Mean and variance of the samples that count, in grid steps, by their definition."""
    kept = [value for user in users for value in user[:cap]]
    mean = Fraction(sum(kept), len(kept))
    return mean, sum(((value - mean) ** 2 for value in kept), Fraction(0)) / len(kept)


def stated(found: Estimate) -> Any:
    """Its errors, an object like the value."""
    return found.details["error"]


@pytest.mark.parametrize("cap", CAPS)
@pytest.mark.parametrize("counts", PATTERNS)
def test_a_user_moves_both_numbers_by_what_the_noise_is_for(cap: Cap, counts: tuple[int, ...]) -> None:
    steps, epsilon = 1 if sum(counts) > 4 else 2, Fraction(1, 3)
    of = parameters(steps=steps, epsilon=epsilon, cap=cap, clamps=False)
    most, found, scales = mean_variance.cap(counts, of), {}, set()
    for users in all_cells(counts, steps):
        watched = Watched()
        estimate = mean_variance.release(users, of, watched)
        found[users] = sums([user[:most] for user in users])
        scales.add((watched.scales["mean"], watched.scales.get("variance", 0)))
        # what is released are these two, their noise, and public numbers
        n = estimate.samples
        assert estimate.value == {"mean": found[users][0] / n, "variance": found[users][1] / n**2}
    # over all cells and all neighbours: no more, and no less, at half of epsilon each
    moves = (farthest_neighbours({users: pair[part] for users, pair in found.items()}) for part in (0, 1))
    assert {tuple(move / (epsilon / 2) for move in moves)} == scales


@given(cells(), st.sampled_from(CAPS))
def test_without_noise_they_are_mean_and_variance(users: list[list[int]], cap: Cap) -> None:
    of = parameters(epsilon=LARGE, cap=cap)
    found = mean_variance.release(users, of, draws())
    mean, variance = exact(users, mean_variance.cap([len(user) for user in users], of))
    step = Fraction(65, STEPS)
    assert found.value == {"mean": float(mean * step), "variance": float(variance * step**2)}
    assert found.noise_sd == {"mean": 0, "variance": 0}


@given(cells(), EPSILONS, st.sampled_from(CAPS), st.booleans())
def test_a_release_has_one_draw_of_noise_for_each(
    users: list[list[int]], epsilon: Fraction, cap: Cap, clamps: bool
) -> None:
    of = parameters(epsilon=epsilon, cap=cap, clamps=clamps)
    most = mean_variance.cap([len(user) for user in users], of)
    found = mean_variance.release(users, of, draws())
    kept = found.samples
    numbers = sums([user[:most] for user in users])
    highest = {"mean": 65.0, "variance": 65**2 / 4}
    for name, grid, number, scale, weight in zip(
        ("mean", "variance"), (of.grid, of.grid.squares), numbers,
        mean_variance.scales(kept, most, of), (kept, kept**2), strict=True,
    ):  # fmt: skip
        noise = draws().laplace(name, scale) if scale else 0
        value = grid.mean_value(number + noise, weight)
        assert found.value[name] == (min(max(value, 0.0), highest[name]) if clamps else value)
        # error bars are those of that draw, around the value before it is clamped
        half = grid.width_value(noise_quantile(((scale, 1),))) / weight
        assert (found.low[name], found.high[name]) == (value - half, value + half)
        assert found.noise_sd[name] == grid.width_value(noise_sd(((scale, 1),))) / weight
    # and the same again, byte for byte
    assert repr(mean_variance.release(users, of, draws())) == repr(found)


@given(COUNTS, EPSILONS, st.sampled_from(CAPS), st.integers(0, 100))
def test_the_errors_stated_were_predicted(counts: list[int], epsilon: Fraction, cap: Cap, dropped: int) -> None:
    of = parameters(epsilon=epsilon, cap=cap, dropped=dropped)
    found = mean_variance.release([[0] * count for count in counts], of, draws())
    most, samples = mean_variance.cap(counts, of), sum(counts) + dropped
    mean, variance = (error(found.samples, most, samples, epsilon / 2) for error in (mean_error, variance_error))
    assert stated(found) == {"mean": float(65 * mean), "variance": float(65**2 * variance)}
    assert found.details["mechanism"] == f"mean and variance, up to {most} of a user's samples"


@given(COUNTS, EPSILONS)
def test_the_optimal_cap_is_never_worse_than_another(counts: list[int], epsilon: Fraction) -> None:
    of = parameters(epsilon=epsilon)
    best = mean_variance.predicted_error(counts, of)
    others: list[Cap] = ["median", *counts]
    assert all(best <= mean_variance.predicted_error(counts, replace(of, cap=cap)) for cap in others)


@given(cells(), st.sampled_from(CAPS), st.data())
def test_nothing_but_the_values_depends_on_values(users: list[list[int]], cap: Cap, data: st.DataObject) -> None:
    of = parameters(cap=cap, clamps=False)
    # given a neighbour: one user's values are others
    changed = data.draw(st.integers(0, len(users) - 1))
    others = [[STEPS - value // 2 for value in user] if at == changed else user for at, user in enumerate(users)]
    one, other = Watched(), Watched()
    found, neighbour = mean_variance.release(users, of, one), mean_variance.release(others, of, other)
    assert one.scales == other.scales
    assert replace(found, value=0, low=0, high=0) == replace(neighbour, value=0, low=0, high=0)
    for name in ("mean", "variance"):
        widths = (each.high[name] - each.low[name] for each in (found, neighbour))
        assert next(widths) == pytest.approx(next(widths), rel=1e-9)


@given(cells(), st.randoms(use_true_random=False))
def test_the_order_of_users_does_not_matter(users: list[list[int]], shuffle: random.Random) -> None:
    shuffled = users.copy()
    shuffle.shuffle(shuffled)
    one, other = (mean_variance.release(these, parameters(cap=3), draws()) for these in (users, shuffled))
    assert one == other


def test_samples_that_are_all_alike_have_no_variance_but_noise() -> None:
    for users in ([[5] * 3, [5], [5] * 2], [[5] * 3]):  # of one user, too
        found = mean_variance.release(users, parameters(steps=10, epsilon=LARGE), draws())
        assert found.value == {"mean": 5, "variance": 0}
        noised = mean_variance.release(users, parameters(steps=10), draws())
        assert noised.noise_sd["variance"] > 0


def test_one_sample_has_no_variance_and_needs_no_noise() -> None:
    found = mean_variance.release([[5]], parameters(steps=10), draws())
    assert (found.value["variance"], found.noise_sd["variance"]) == (0, 0)
    assert found.noise_sd["mean"] > 0
    assert stated(found) == {"mean": 20, "variance": 0}
    # where others were left out it may still be far from theirs
    dropped = mean_variance.release([[5]], parameters(steps=10, dropped=5), draws())
    assert stated(dropped) == {"mean": pytest.approx(20 + 50 / 6), "variance": 25}


def test_however_much_noise_there_is_clamped_values_are_possible() -> None:
    of, seen = parameters(epsilon=Fraction(1, 10**60)), set()
    for slot in range(20):
        found, free = (
            mean_variance.release([[1], [2]], replace(of, clamps=clamps), draws(slot=slot)) for clamps in (True, False)
        )
        assert found.value["mean"] == (65 if free.value["mean"] > 65 else 0)
        assert found.value["variance"] == (65**2 / 4 if free.value["variance"] > 65**2 / 4 else 0)
        assert (found.low, found.high) == holding(found.value, free.low, free.high)
        assert found.noise_sd == free.noise_sd
        seen.add((found.value["mean"], found.value["variance"]))
    # all four corners: the draws are not one another's
    assert len(seen) == 4


@given(COUNTS, EPSILONS, st.integers(0, 50))
def test_the_prediction_is_the_sum_that_the_cap_makes_least(counts: list[int], epsilon: Fraction, dropped: int) -> None:
    of = parameters(epsilon=epsilon, dropped=dropped)
    most, samples = mean_variance.cap(counts, of), sum(counts) + dropped
    kept = sum(min(count, most) for count in counts)
    expected = float(mean_and_variance_error(kept, most, samples, epsilon, Fraction(65)))
    assert mean_variance.predicted_error(counts, of) == expected
