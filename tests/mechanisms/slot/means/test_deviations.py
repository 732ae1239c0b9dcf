"""Deviations: sensitivity by brute force, the shares of epsilon, what is clipped, and when `best` takes it."""

import itertools
import math
import random
import statistics
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.error_bars import noise_quantile, noise_sd
from shoal.mechanisms.selection import clip_range
from shoal.mechanisms.slot.cell import Cap, CellParameters, Draws, Users
from shoal.mechanisms.slot.means import best, deviations
from shoal.mechanisms.slot.means.clipping import ONE, clip
from shoal.mechanisms.slot.means.deviations import GAIN, Around, far, rung
from shoal.mechanisms.slot.means.deviations_forecast import LOWEST, PARTS, RUNGS, Shares, forecast
from tests.mechanisms.slot.cell_cases import (
    COUNTS,
    EPSILONS,
    KEY,
    PATTERNS,
    STEPS,
    all_cells,
    cells,
    draws,
    farthest_neighbours,
    few,
    parameters,
)
from tests.support.cover import in_a_loop

SHARES = st.fractions(Fraction(1, 1000), Fraction(9, 10))
CAPS: list[Cap] = [1, 2, "median", "optimal"]
ALIKE = [10] * 300


class Quiet(Draws):
    """Draws of a cell without noise but for a shift of the centre, which tell what they were asked for."""

    def __init__(self, shift: int = 0) -> None:
        super().__init__(KEY, b"cell", 7)
        self.shift = shift
        self.scales: dict[str, Fraction] = {}
        self.words_of: list[str] = []

    def words(self, purpose: str, part: int = 0) -> Iterator[int]:
        self.words_of.append(purpose)
        return super().words(purpose, part)

    def laplace(self, purpose: str, scale: Fraction, part: int = 0) -> int:
        assert purpose not in self.scales
        self.scales[purpose] = scale
        return self.shift if purpose == "centre" else 0


def sharing(share: Fraction = Fraction(3, 10), **more: Any) -> CellParameters:
    """A cell with a share for centre and spread."""
    return parameters(spread_share=share, **more)


# --- sensitivity


@pytest.mark.parametrize("cap", [1, "optimal"])
@pytest.mark.parametrize("counts", PATTERNS)
def test_a_user_moves_the_sum_of_means_by_the_range(
    cap: Cap, counts: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = 1 if sum(counts) > 4 else 2
    seen: list[int] = []

    def noting(total: int, scale: Fraction, draws: Draws) -> int:
        seen.append(total)
        return 0

    monkeypatch.setattr(deviations, "noised_sum", noting)
    of = sharing(steps=steps, cap=cap)
    users = list(all_cells(counts, steps))
    for one in users:
        deviations.around(one, deviations.kept(counts, of), of, Fraction(1), draws())
    assert farthest_neighbours(dict(zip(users, seen, strict=True))) == steps * ONE


@pytest.mark.parametrize("cap", [1, "optimal"])
@pytest.mark.parametrize("counts", PATTERNS)
def test_a_user_moves_each_cost_by_one_and_the_clipped_sum_by_the_width(
    cap: Cap, counts: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a centre, wherever its noise has put it."""
    steps = 1 if sum(counts) > 4 else 2
    full, asked = steps * ONE, []

    def noting(outside: list[int], target: int, epsilon: Fraction, words: object) -> int:
        asked.append([abs(count - target) for count in outside])
        return 0

    monkeypatch.setattr(clip_range, "scale", noting)
    for centre in (0, full // 3, full):
        monkeypatch.setattr(deviations, "noised_sum", lambda *_, centre=centre: centre * len(counts))
        of = sharing(steps=steps, cap=cap)
        kept = deviations.kept(counts, of)
        found = {users: deviations.around(users, kept, of, Fraction(1), draws()) for users in all_cells(counts, steps)}
        assert {one.centre for one in found.values()} == {centre}
        costs = {}
        for users, one in found.items():
            one.spread(Fraction(1), iter([]))
            costs[users] = asked.pop()
        for place in range(RUNGS):
            assert farthest_neighbours({users: cost[place] for users, cost in costs.items()}) <= 1
        for step in (0, 3, 12):
            ends = {one.clipped(step) for one in found.values()}
            assert len(ends) == 1  # public, given the centre
            low, high = ends.pop()
            sums = {users: clip(one.deviations, low, high) for users, one in found.items()}
            assert farthest_neighbours(sums) <= high - low
            if max(counts) == counts[-1] or step == 0:  # all the way where a user has as much as any
                assert farthest_neighbours(sums) == high - low


@pytest.mark.parametrize("share", [Fraction(1, 10), Fraction(9, 10)])
def test_centre_spread_and_noise_cost_epsilon_together(share: Fraction) -> None:
    """All cells of three users with a sample each, all neighbours, all centres, rungs and noisy sums: never more."""
    epsilon, full = Fraction(5), 2
    parts, worst = Shares.of(epsilon, share), 0.0

    def law(found: Around) -> list[float]:
        outside = [sum(rung(d, 1, full) > j for d in found.deviations) for j in range(RUNGS)]
        weights = [math.exp(-float(parts.spread) / 2 * abs(count - 1)) for count in outside]
        return [weight / sum(weights) for weight in weights]

    for centre, values in itertools.product(range(full + 1), itertools.product(range(full + 1), repeat=3)):
        for value in range(full + 1):
            other = (value, *values[1:])
            one, two = (Around(full, centre, (1,) * 3, [v - centre for v in vs]) for vs in (values, other))
            loss = abs(values[0] - value) * float(parts.centre) / full
            for step, (p, q) in enumerate(zip(law(one), law(two), strict=True)):
                low, high = one.clipped(step)
                moved = abs(clip(one.deviations, low, high) - clip(two.deviations, low, high))
                worst = max(worst, loss + abs(math.log(p / q)) + moved * float(parts.rest) / (high - low))
    assert epsilon * Fraction(9, 10) <= worst <= epsilon + Fraction(1, 10**9)


@few
@given(cells(), EPSILONS, SHARES)
def test_the_shares_sum_to_epsilon_exactly(users: Users, epsilon: Fraction, share: Fraction) -> None:
    of, quiet, asked = sharing(share, epsilon=epsilon), Quiet(), []

    def noting(outside: list[int], target: int, epsilon: Fraction, words: Iterator[int]) -> int:
        asked.append((len(outside), target, epsilon))
        return RUNGS // 2

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clip_range, "scale", noting)
        deviations.release(users, of, quiet)
    counts = [len(user) for user in users]
    # each has a subkey of its own
    assert [*quiet.scales, *quiet.words_of] == ["centre", "deviations", "spread"]
    ((rungs, target, spread),) = asked
    assert (rungs, target) == (RUNGS, len(users) // 2)
    parts, expected = deviations.divided(counts, of)
    centre = STEPS * ONE / quiet.scales["centre"]
    low, high = deviations.around(users, counts, of, centre, Quiet()).clipped(expected.steps[RUNGS // 2])
    assert centre + spread + (high - low) / quiet.scales["deviations"] == sum(parts) == epsilon
    assert (epsilon - parts.rest) / (share * epsilon) in {Fraction(1, part) for part in PARTS}


def test_without_a_share_there_is_no_centre() -> None:
    with pytest.raises(ValueError, match="spread_share is missing"):
        deviations.release([[1]], parameters(), draws())


# --- rungs and clips


@given(st.integers(-(10**9), 10**9), st.integers(1, 5000), st.integers(1, 10**9))
def test_a_rung_is_the_first_that_a_deviation_does_not_pass(deviation: int, count: int, full: int) -> None:
    usual = full**2 * (Fraction(9, 10000) * count**2 + Fraction(4, 100) * count)
    below = [j for j in range(RUNGS) if deviation**2 <= usual * Fraction(2) ** (j + LOWEST)]
    assert rung(deviation, count, full) == min(below, default=RUNGS)


@given(st.integers(1, 10**12), st.integers(0, 90))
def test_a_clip_is_a_power_of_the_fourth_root_of_two_rounded_down(most: int, step: int) -> None:
    t = far(most, step)
    assert t**4 << step <= most**4 < (t + 1) ** 4 << step or (t == 1 and most**4 >> step == 0)


@few
@given(COUNTS, EPSILONS, SHARES)
def test_a_clip_is_foretold_for_each_rung(counts: list[int], epsilon: Fraction, share: Fraction) -> None:
    found = forecast(tuple(sorted(counts)), Shares.of(epsilon, share))
    assert len(found.steps) == RUNGS
    assert min(found.steps) >= 0
    assert 0 < found.error <= 0.5


@in_a_loop
@pytest.mark.parametrize("counts", [(1,), (5, 5), tuple(range(1, 200)), (3,) * 40 + (2000,)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10**60), Fraction(1, 10), Fraction(10**9), Fraction(10**300)])
def test_a_forecast_exists_at_any_epsilon(counts: tuple[int, ...], epsilon: Fraction) -> None:
    assert 0 <= forecast(counts, Shares.of(epsilon, Fraction(1, 2))).error <= 0.5


def test_less_is_set_aside_where_it_is_enough() -> None:
    most = Fraction(1, 2)
    for counts, part in (((4,) * 12, 1), ((4,) * 20_000, PARTS[-1])):
        of = sharing(most, epsilon=Fraction(4))
        parts, expected = deviations.divided(counts, of)
        assert parts == Shares.of(of.epsilon, most / part)
        assert expected.error <= min(forecast(counts, Shares.of(of.epsilon, most / each)).error for each in PARTS)


def test_with_enough_users_a_wider_spread_is_clipped_further_out() -> None:
    steps = forecast((10,) * 5000, Shares.of(Fraction(4), Fraction(3, 10))).steps
    assert list(steps) == sorted(steps, reverse=True)
    assert steps[0] > steps[-1] + 8


# --- what is released


@few
@given(cells(), st.sampled_from(CAPS), EPSILONS, SHARES, st.booleans())
def test_a_release_is_the_mean_of_clipped_deviations_around_the_centre(
    users: list[list[int]], cap: Cap, epsilon: Fraction, share: Fraction, clamps: bool
) -> None:
    of = sharing(share, epsilon=epsilon, cap=cap, clamps=clamps)
    quiet = Quiet(shift=12345 * ONE)
    kept = [user[:cap] if isinstance(cap, int) else user for user in users]
    counts = [len(user) for user in kept]
    parts, _ = deviations.divided(counts, of)
    found = deviations.release(users, of, quiet)
    around = deviations.around(users, counts, of, parts.centre, Quiet(12345 * ONE))
    scale, samples = quiet.scales["deviations"], sum(map(len, kept))
    # the interval is one of those that there are, as wide as the noise is for
    ends = [around.clipped(step) for step in range(200)]
    fits = [(low, high) for low, high in ends if (high - low) / parts.rest == scale]
    sums = [sum(user) * ONE - len(user) * around.centre for user in kept]
    means = [
        (samples * around.centre + sum(min(max(one, low), high) for one in sums)) / (samples * ONE) * 65 / STEPS
        for low, high in fits
    ]
    unclamped = (found.low + found.high) / 2
    assert any(unclamped == pytest.approx(mean, rel=1e-6, abs=1e-6) for mean in means)
    assert found.value == pytest.approx(min(max(unclamped, 0), 65) if clamps else unclamped, rel=1e-6, abs=1e-6)
    unit = 65 / (STEPS * ONE * samples)
    assert found.noise_sd == pytest.approx(noise_sd(((scale, 1),)) * unit, rel=1e-12)
    assert (found.high - found.low) / 2 == pytest.approx(noise_quantile(((scale, 1),)) * unit, rel=1e-6, abs=1e-12)
    assert found.samples == samples
    assert found.details["error"] is None


@few
@given(cells())
def test_with_epsilon_enough_the_mean_is_exact(users: list[list[int]]) -> None:
    found = deviations.release(users, sharing(epsilon=Fraction(10**12)), draws())
    samples = [sample for user in users for sample in user]
    assert found.value == pytest.approx(statistics.fmean(samples) * 65 / STEPS, abs=0.01 * 65)


def test_the_centre_stays_in_the_range() -> None:
    for shift, centre in ((-(10**15), 0), (10**15, STEPS * ONE)):
        found = deviations.around([[5], [9, 9]], [1, 2], sharing(), Fraction(1), Quiet(shift))
        assert found.centre == centre


# --- what best makes of it


@few
@given(cells(), st.sampled_from(CAPS), EPSILONS, SHARES)
def test_best_has_one_candidate_more_and_releases_what_it_chose(
    users: list[list[int]], cap: Cap, epsilon: Fraction, share: Fraction
) -> None:
    without, of = parameters(cap=cap, epsilon=epsilon), sharing(share, cap=cap, epsilon=epsilon)
    counts = [len(user) for user in users]
    *others, last = best.candidates(counts, of)
    assert others == list(best.candidates(counts, without))
    assert (last.name, last.cap) == ("deviations", cap)
    if best.chosen(counts, of).name != "deviations":  # nothing is spent on what is not used
        assert best.release(users, of, draws()) == best.release(users, without, draws())


def test_best_takes_it_by_counts_alone() -> None:
    of, rng = sharing(epsilon=Fraction(2)), random.Random(3)
    cell = [[rng.randrange(STEPS) for _ in range(count)] for count in ALIKE]
    found = best.release(cell, of, draws())
    assert found.details["mechanism"] == "best: deviations, 300 users"
    assert best.release([[0] * 10 for _ in ALIKE], of, draws()).details == found.details
    assert best.predicted_error(ALIKE, of) < best.predicted_error(ALIKE, replace(of, spread_share=None))


def error(users: list[list[int]], of: CellParameters) -> float:
    mean = statistics.fmean(sample for user in users for sample in user) * 65 / STEPS
    return statistics.fmean(abs(best.release(users, of, draws(slot=slot)).value - mean) for slot in range(60))


@pytest.mark.slow
@pytest.mark.parametrize(("between", "within"), [(0.0, 0.05), (0.03, 0.2), (0.1, 0.1)])
def test_it_errs_less_whether_users_are_alike_or_not(between: float, within: float) -> None:
    rng, users = random.Random(1), []
    for count in [1, 2, 4, 8, 16, 60] * 40:
        centre = 0.4 + between * rng.gauss(0, 1)
        users.append([int(STEPS * min(max(rng.gauss(centre, within), 0), 1)) for _ in range(count)])
    of = sharing(epsilon=Fraction(2))
    assert error(users, of) < error(users, replace(of, spread_share=None))
    if (between, within) == (0.03, 0.2):  # as is foretold
        assert error(users, of) == pytest.approx(
            best.predicted_error([len(user) for user in users], of) / GAIN, rel=0.35
        )
