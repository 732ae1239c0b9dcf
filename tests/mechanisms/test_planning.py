"""What is foretold of a mean is what its releaser does with the same pattern."""

from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from shoal.mechanisms.grid import Grid
from shoal.mechanisms.planning import Counted, Expected, Pattern, bias, prospect
from shoal.mechanisms.planning_sharp import SharpProspect
from shoal.mechanisms.sharp import Sharp
from shoal.mechanisms.statistic import ALGORITHMS, Contribution, Estimate, MeanParameters

GRID = Grid(Fraction(-10), Fraction(30), 1 << 16)
Part = tuple[str, int, int, int]  # of a tick: what may be summed


def mean_of(name: str, **said: Any) -> MeanParameters:
    if name in ("wishful", "single-tree", "multi-tree"):
        said["prior"] = Fraction(10)
    made: MeanParameters = ALGORITHMS[name](**{"grid": GRID, "epsilon": Fraction(1), **said})
    return made


def sharp(**said: Any) -> Sharp:
    mean = mean_of("sharp", **said)
    assert isinstance(mean, Sharp)
    return mean


def counts_at(pattern: Pattern, tau: float) -> Iterator[int]:
    """How many samples each user has given, out of how many have given at least so many."""
    reached = [pattern.reached(j, tau) for j in range(1, 1 + int(max(size for _, size in pattern.classes)))]
    return (sum(user < one for one in reached) for user in range(pattern.users))


def released(
    mean: MeanParameters, pattern: Pattern, ticks: int, key: bytes = bytes(32), spread: float = 1
) -> list[Estimate | None]:
    """The releases of a stream with that pattern, tick by tick, from the real bounder and releaser."""
    draw = np.random.default_rng(0)
    bounder, releaser = mean.bounder(), mean.releaser(key, b"")
    accounts, given = [0] * pattern.users, [0] * pattern.users
    estimates = []
    for tick in range(1, ticks + 1):
        waiting: dict[Part, list[int]] = defaultdict(lambda: [0, 0])
        for user, count in enumerate(counts_at(pattern, tick / ticks)):
            for number in range(given[user], count):
                if number >= mean.max_contributions:
                    break
                value = int(GRID.steps * (0.5 + spread * (draw.beta(2, 2) - 0.5)))
                accounts[user], block = bounder.add(accounts[user], value)
                if block is None:
                    continue
                merged = block.part is not None and bounder.merges
                at = ("", block.part, block.level, 0) if merged else (str(user), block.number, block.level, user)
                waiting[at][0] += block.samples  # type: ignore[index]
                waiting[at][1] += block.total  # type: ignore[index]
            given[user] = count
        for (pseudonym, number, level, _), (samples, total) in sorted(waiting.items()):
            releaser.add(Contribution(tick, pseudonym, number, level, samples, total))
        releaser.close()
        estimates.append(releaser.estimate())
    return estimates


def both(mean: MeanParameters, pattern: Pattern, ticks: int) -> Iterator[tuple[Expected, Estimate | None]]:
    ahead = prospect(mean, pattern, ticks)
    for tick, estimate in enumerate(released(mean, pattern, ticks), start=1):
        yield ahead.at(tick / ticks), estimate


@pytest.mark.parametrize("skewed", [False, True], ids=["even", "skewed"])
@pytest.mark.parametrize("name", sorted(ALGORITHMS.keys() - {"sharp"}))
def test_the_noise_foretold_is_that_of_every_release(name: str, skewed: bool) -> None:
    pattern = Pattern.skewed(60, 5) if skewed else Pattern.even(60, 8)
    mean = mean_of(name, max_contributions=8, users=60, epsilon=Fraction(40))
    found = list(both(mean, pattern, ticks=8))
    assert any(estimate is not None for _, estimate in found)
    for foretold, estimate in found:
        if estimate is None:
            assert (foretold.samples, foretold.noise_sd) == (0, None)
        else:
            # rounded once for all users, or number by number
            assert foretold.samples == pytest.approx(estimate.samples, rel=0.02, abs=3)
            if foretold.samples == estimate.samples:
                assert foretold.noise_sd == estimate.noise_sd
                assert foretold.half_interval == pytest.approx((estimate.high - estimate.low) / 2, rel=1e-9)


def test_levels_of_full_activate_when_foretold() -> None:
    mean = mean_of("full", max_contributions=16, users=300, epsilon=Fraction(300))
    rests_on = [(foretold.samples, estimate and estimate.samples) for foretold, estimate in both(mean, EVEN, 16)]
    assert all(foretold == found for foretold, found in rests_on)
    assert rests_on[-1][0] == 300 * 16, "every level counts in the end"
    assert any(foretold < 0.9 * EVEN.samples(None, tick / 16) for tick, (foretold, _) in enumerate(rests_on, 1))


def test_with_sigma_the_first_levels_wait_for_a_prior_too() -> None:
    mean = mean_of("full", max_contributions=4, users=1000, epsilon=Fraction(3), sigma=Fraction(1))
    found = list(both(mean, Pattern.even(1000, 4), 16))
    assert [foretold.samples for foretold, _ in found] == [one.samples if one else 0 for _, one in found]
    assert found[0][0].noise_sd is None
    assert found[-1][0].noise_sd == (found[-1][1] and found[-1][1].noise_sd)


EVEN, WHOLE = Pattern.even(300, 16), Fraction(1)


@pytest.mark.parametrize(
    ("cap", "users", "samples", "epsilon", "ticks", "spread"),
    [
        (4, 300, 4, 16, 12, 1.0),  # the whole range is needed
        (4, 3000, 1, 8, 2, 0.44),  # a part of it
        (32, 60, 20, 8, 8, 1.0),  # too few units for a range
        (256, 250, 256, 60, 16, 0.5),  # blocks
    ],
)
def test_sharp_is_foretold_within_a_tenth(
    cap: int, users: int, samples: int, epsilon: int, ticks: int, spread: float
) -> None:
    pattern = Pattern.even(users, samples)
    mean = mean_of("sharp", max_contributions=cap, users=users, epsilon=Fraction(epsilon), horizon=ticks)
    ahead = prospect(mean, pattern, ticks, Fraction(spread))
    runs = [released(mean, pattern, ticks, bytes([key]) * 32, spread) for key in range(3)]
    for tick in range(ticks):
        foretold, found = ahead.at((tick + 1) / ticks), [run[tick] for run in runs]
        assert {one and one.samples for one in found} == {foretold.samples}
        sd = np.median([one.noise_sd for one in found if one is not None])
        assert foretold.noise_sd == pytest.approx(sd, rel=0.1)
    assert ahead.at(1).samples


def test_before_activation_the_middle_of_the_range_is_released_and_counts_for_nothing() -> None:
    mean = sharp(max_contributions=4, users=1000)
    ahead = SharpProspect(mean, Pattern.even(100, 1), 10, WHOLE)
    assert ahead.start is None
    assert ahead.at(0.5) == Expected(0, 50, 20.0, 20.0)
    assert ahead.at(0.0) == Expected(0, 0, None, None)
    assert (ahead.at(1).left_out, ahead.at(0).left_out) == (1, 1)


def test_octaves_that_too_few_units_reach_stay_closed() -> None:
    mean = sharp(max_contributions=1024, users=2000, horizon=20, epsilon=Fraction(4))
    all_, half = (SharpProspect(mean, Pattern(2000, ((0.1, 64.0), (0.9, m))), 20, WHOLE) for m in (1024, 700))
    assert (all_.cap, all_.at(1).samples) == (1024, 200 * 64 + 1800 * 1024)
    assert half.at(1).samples in (2000 * 64, 200 * 64 + 1800 * 512)


def test_a_release_per_contribution_counts_contributions() -> None:
    mean = sharp(max_contributions=2, users=2000, epsilon=Fraction(4))
    each = SharpProspect(mean, Pattern.even(2000, 2), None, WHOLE)
    daily = SharpProspect(mean, Pattern.even(2000, 2), 10, WHOLE)
    assert each.ticks == 4000
    assert daily.ticks == 10
    assert (each.at(1).noise_sd or 0) > (daily.at(1).noise_sd or 0) > 0


def test_a_skewed_pattern_has_the_samples_that_were_asked_for() -> None:
    for users, samples in ((1, 1), (10, 0.5), (1000, 1.5), (10**9, 64)):
        pattern = Pattern.skewed(users, samples)
        assert pattern.samples(None, 1) == pytest.approx(users * samples, rel=1e-6, abs=1)
        assert pattern.reached(1, 1) == pytest.approx(users * min(samples, 1), abs=1)
    assert Pattern.skewed(1000, 64).samples(64, 1) < 0.7 * Pattern.even(1000, 64).samples(64, 1)


def test_with_too_few_units_for_a_choice_the_range_is_whole() -> None:
    mean = sharp(max_contributions=2, users=9, epsilon=Fraction(20))
    assert SharpProspect(mean, Pattern.even(30, 2), 2, WHOLE / 10).width == GRID.steps
    assert SharpProspect(mean, Pattern.even(3000, 2), 2, WHOLE / 10).width < GRID.steps


def test_what_is_left_out_biases_by_its_square() -> None:
    assert bias(1, 8) == 4 * bias(0.5, 8) == 1


def test_what_is_not_planned_here_is_refused() -> None:
    mean = MeanParameters(grid=GRID, epsilon=Fraction(1), max_contributions=1, users=1)
    with pytest.raises(TypeError, match="not planned"):
        Counted(mean, EVEN).at(1)
