"""What is foretold of a mean is what its releaser does with the same pattern."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from shoal.mechanisms.continual_mean.forecast import Expected
from shoal.mechanisms.continual_mean.mean import Counted, MeanParameters
from shoal.mechanisms.continual_mean.sharp import Sharp
from shoal.mechanisms.continual_mean.sharp.forecast import SharpProspect
from shoal.mechanisms.continual_mean.statistic import ALGORITHMS
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.statistic import Contribution, Estimate
from shoal.mechanisms.workload import Pattern, bias
from tests.support.cover import in_a_loop

GRID = Grid(Fraction(-10), Fraction(30), 1 << 16)
Part = tuple[str, int, int]  # of a tick: what may be summed


def mean_of(name: str, **said: Any) -> MeanParameters:
    if name in ("wishful", "single-tree", "multi-tree"):
        said["prior"] = Fraction(10)
    made: MeanParameters = ALGORITHMS[name](**{"grid": GRID, "epsilon": Fraction(1), **said})
    return made


def sharp(**said: Any) -> Sharp:
    mean = mean_of("sharp", **said)
    assert isinstance(mean, Sharp)
    return mean


def counts_at(pattern: Pattern, tau: float, cap: int) -> NDArray[np.int64]:
    """How many samples that may count each user has given, out of how many have given at least so many."""
    most = min(cap, int(max(size for _, size in pattern.classes)))
    reached = [pattern.reached(j, tau) for j in range(1, 1 + most)]
    return np.searchsorted(-np.array(reached), -np.arange(pattern.users) - 0.5)


def contributed(
    mean: MeanParameters, pattern: Pattern, ticks: int, spread: float = 1, *, apart: bool = False
) -> Iterator[Sequence[Contribution]]:
    """A stream with that pattern, tick by tick, from the real bounder."""
    draw, bounder = np.random.default_rng(0), mean.bounder()
    accounts, given = [0] * pattern.users, np.zeros(pattern.users, np.int64)
    for tick in range(1, ticks + 1):
        counts = counts_at(pattern, tick / ticks, mean.max_contributions)
        users = np.repeat(np.arange(pattern.users), counts - given)
        values = (GRID.steps * (0.5 + spread * (draw.beta(2, 2, len(users)) - 0.5))).astype(np.int64)
        waiting: dict[Part, list[int]] = defaultdict(lambda: [0, 0])
        for user, value in zip(users.tolist(), values.tolist(), strict=True):
            accounts[user], block = bounder.add(accounts[user], value)
            if block is None:
                continue
            if block.part is not None and bounder.merges and not apart:
                held = waiting["", block.part, block.level]
            else:
                held = waiting[str(user), block.number, block.level]
            held[0] += block.samples
            held[1] += block.total
        given = counts
        yield [Contribution(tick, *at, *held) for at, held in sorted(waiting.items())]


def released(
    mean: MeanParameters, stream: Iterable[Sequence[Contribution]], key: bytes = bytes(32), *, each: bool = False
) -> list[Estimate | None]:
    """The releases, tick by tick or contribution by contribution, from the real releaser."""
    releaser, estimates = mean.releaser(key, b""), []
    for tick in stream:
        for one in tick:
            releaser.add(one)
            if each:
                releaser.close()
                estimates.append(releaser.estimate())
        if not each:
            releaser.close()
            estimates.append(releaser.estimate())
    return estimates


def both(mean: MeanParameters, pattern: Pattern, ticks: int) -> Iterator[tuple[Expected, Estimate | None]]:
    ahead = mean.prospect(pattern, ticks)
    for tick, estimate in enumerate(released(mean, contributed(mean, pattern, ticks)), start=1):
        yield ahead.at(tick / ticks), estimate


@in_a_loop
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
    assert mean.prospect(EVEN, 16).likely(1) is None, "nothing is drawn"
    assert rests_on[-1][0] == 300 * 16, "every level counts in the end"
    assert any(foretold < 0.9 * EVEN.samples(None, tick / 16) for tick, (foretold, _) in enumerate(rests_on, 1))


def test_with_sigma_the_first_levels_wait_for_a_prior_too() -> None:
    mean = mean_of("full", max_contributions=4, users=1000, epsilon=Fraction(3, 2), sigma=Fraction(1))
    found = list(both(mean, Pattern.even(1000, 4), 16))
    assert [foretold.samples for foretold, _ in found] == [one.samples if one else 0 for _, one in found]
    assert found[0][0].noise_sd is None
    assert found[-1][0].noise_sd == (found[-1][1] and found[-1][1].noise_sd)


EVEN, WHOLE = Pattern.even(300, 16), Fraction(1)


SKEWED = True
# way to begin -> (cap, users, samples of each, skewed, epsilon, ticks, spread)
WAYS = {
    "whole": (4, 300, 4, not SKEWED, 16, 12, 1.0),
    "whole, with few units": (32, 60, 20, not SKEWED, 8, 8, 1.0),
    "whole, skewed": (16, 1000, 3, SKEWED, 4, 30, 0.2),
    "whole, skewed, and blocks": (96, 500, 40, SKEWED, 20, 20, 0.2),
    "clipped": (64, 3000, 1, not SKEWED, 4, 20, 0.6),
    "clipped to a part": (64, 3000, 3, not SKEWED, 20, 20, 0.05),
    "alike": (256, 250, 256, not SKEWED, 60, 16, 0.5),
    "alike, at any distance": (64, 500, 64, not SKEWED, 60, 20, 1.0),
    "alike, with little epsilon": (64, 2000, 64, not SKEWED, 1, 32, 0.2),
    "alike, skewed": (256, 300, 150, SKEWED, 20, 20, 0.2),
    "unalike": (256, 300, 200, not SKEWED, 1, 6, 0.2),
}


def way_of(ahead: SharpProspect) -> str:
    assert ahead.start is not None
    beginning = ahead.start.beginning
    if beginning.longs:
        return "alike" if beginning.alike else "unalike"
    return "clipped" if beginning.firsts else "whole"


@in_a_loop
@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_sharp_is_foretold_within_a_tenth_however_it_begins(way: str) -> None:
    cap, users, samples, skewed, epsilon, ticks, spread = WAYS[way]
    pattern = (Pattern.skewed if skewed else Pattern.even)(users, samples)
    mean = sharp(max_contributions=cap, users=users, epsilon=Fraction(epsilon), horizon=ticks)
    ahead = mean.prospect(pattern, ticks, Fraction(spread))
    assert isinstance(ahead, SharpProspect)
    # given that it begins in this way, and what it then does under several keys
    assert way_of(ahead) == way.partition(",")[0].partition(" ")[0]
    stream = list(contributed(mean, pattern, ticks, spread))
    runs = [released(mean, stream, bytes([key]) * 32) for key in range(11)]
    # then the median is foretold of every release: clip ranges are a private choice
    for tick in range(ticks):
        foretold, found = ahead.at((tick + 1) / ticks), [run[tick] for run in runs]
        known = [one for one in found if one is not None]
        assert foretold.samples == pytest.approx(np.median([one.samples for one in known]), rel=0.02, abs=3)
        assert foretold.noise_sd == pytest.approx(np.median([one.noise_sd for one in known]), rel=0.1)
    assert ahead.at(1).samples
    # and so is how far off it may be: in four cases out of five it is no further
    low, high = ahead.likely(1) or (0, 0)
    last = [run[-1].noise_sd for run in runs if run[-1] is not None]
    assert sum(0.99 * low <= noise <= 1.01 * high for noise in last) >= 0.6 * len(last)
    assert 0.99 * low <= np.median(last) <= 1.01 * high


@pytest.mark.slow
@pytest.mark.parametrize("cap", [2, 96])
def test_a_release_per_contribution_is_foretold_too(cap: int) -> None:
    pattern = Pattern.even(60, cap)
    mean = sharp(max_contributions=cap, users=60, epsilon=Fraction(40), horizon=60 * cap)
    ahead = SharpProspect(mean, pattern, None, WHOLE)
    found = released(mean, contributed(mean, pattern, 100, apart=True), each=True)
    assert len(found) == ahead.ticks
    last = found[-1]
    assert last is not None
    assert ahead.at(1).samples == last.samples
    assert ahead.at(1).noise_sd == pytest.approx(last.noise_sd, rel=0.1)


def test_before_it_begins_the_middle_of_the_range_is_released_and_counts_for_nothing() -> None:
    mean = sharp(max_contributions=4, users=1000)
    ahead = SharpProspect(mean, Pattern.even(100, 1), 10, WHOLE)
    assert ahead.start is None
    assert ahead.opened == ()
    assert ahead.at(0.5) == Expected(0, 50, 20.0, 20.0)
    assert ahead.likely(0.5) == (20.0, 20.0)
    assert ahead.likely(0.0) is None
    assert ahead.at(0.0) == Expected(0, 0, None, None)
    assert (ahead.at(1).left_out, ahead.at(0).left_out) == (1, 1)


def test_octaves_that_too_few_units_reach_stay_closed() -> None:
    mean = sharp(max_contributions=256, users=250, horizon=16, epsilon=Fraction(60))
    all_, some = (SharpProspect(mean, Pattern(250, ((0.1, 64.0), (0.9, float(m)))), 16, WHOLE / 2) for m in (256, 120))
    assert way_of(all_) == way_of(some) == "alike"
    assert len(all_.opened) == mean.shape.blocks
    assert [mean.shape.end(block) for block in range(len(some.opened))][-1] in (96, 128)
    assert some.at(1).samples == 25 * 64 + 225 * 96


def test_where_each_contribution_has_a_release_there_are_more_of_them() -> None:
    mean = sharp(max_contributions=2, users=2000, epsilon=Fraction(4))
    each = SharpProspect(mean, Pattern.even(2000, 2), None, WHOLE)
    daily = SharpProspect(mean, Pattern.even(2000, 2), 10, WHOLE)
    assert (each.ticks, daily.ticks) == (4000, 10)
    assert (each.at(1).noise_sd or 0) > (daily.at(1).noise_sd or 0) > 0


def test_a_skewed_pattern_has_the_samples_that_were_asked_for() -> None:
    for users, samples in ((1, 1), (10, 0.5), (1000, 1.5), (10**9, 64)):
        pattern = Pattern.skewed(users, samples)
        assert pattern.samples(None, 1) == pytest.approx(users * samples, rel=1e-6, abs=1)
        assert pattern.reached(1, 1) == pytest.approx(users * min(samples, 1), abs=1)
    assert Pattern.skewed(1000, 64).samples(64, 1) < 0.7 * Pattern.even(1000, 64).samples(64, 1)


def test_the_narrower_the_values_lie_the_narrower_the_clip_range() -> None:
    mean = sharp(max_contributions=64, users=3000, epsilon=Fraction(20), horizon=20)
    wide, narrow = (SharpProspect(mean, Pattern.even(3000, 3), 20, WHOLE / part).start for part in (2, 100))
    assert wide is not None
    assert narrow is not None
    assert wide.tick == narrow.tick
    assert narrow.width < wide.width / 8


def test_what_is_left_out_biases_by_its_square() -> None:
    assert bias(1, 30) == 4 * bias(0.5, 30) == 1


def test_what_is_not_planned_here_is_refused() -> None:
    mean = sharp(max_contributions=1, users=1)  # which has a forecast of its own
    with pytest.raises(TypeError, match="not planned"):
        Counted(mean, EVEN).at(1)
