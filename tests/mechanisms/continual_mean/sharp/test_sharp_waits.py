"""When the sharp mean begins, and how: a function of the pattern; and it does not wait for ever."""

from collections.abc import Callable
from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.continual_mean.sharp import Sharp
from shoal.mechanisms.continual_mean.sharp.cap import Beginning
from shoal.mechanisms.counters.blue import GrowingBlue
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.statistic import Contribution
from tests.mechanisms.continual_mean.sharp.sharp_cases import LONG, sharp
from tests.mechanisms.mechanism_cases import KEY, knows
from tests.support.cover import in_a_loop

GRID = Grid(Fraction(0), Fraction(1), 64)
Pattern = Callable[[int], tuple[int, int, int]]  # ticks -> (units, first blocks, samples), by then


def mean(users: int, m: int, horizon: int | None = 1000, epsilon: Fraction | int = 1) -> Sharp:
    return Sharp(grid=GRID, epsilon=Fraction(epsilon), max_contributions=m, users=users, horizon=horizon)


def first(parameters: Sharp, pattern: Pattern, most: int = 10**4) -> tuple[int, Beginning | None]:
    """The tick in which it begins, and how."""
    for ticks in range(1, most + 1):
        beginning = parameters.begin(*pattern(ticks), ticks)
        if beginning is not None:
            return ticks, beginning
    return most, None


def at_least(count: int, m: int, part: float) -> float:
    """Probability of that many of m samples, each of which has come with this one."""
    return 1 - sum(comb(m, i) * part**i * (1 - part) ** (m - i) for i in range(count))


def evenly(users: int, m: int, long: int) -> Pattern:
    """Every unit has m samples, at random times of a thousand ticks; a first block has so many."""

    def pattern(ticks: int) -> tuple[int, int, int]:
        part = min(1.0, ticks / 1000)
        return int(users * at_least(1, m, part)), int(users * at_least(long, m, part)), int(users * m * part)

    return pattern


def unevenly(units: int, each: int, long: int) -> Pattern:
    """With a long tail: few have many."""

    def pattern(ticks: int) -> tuple[int, int, int]:
        mean_ = each * ticks / 1000
        return int(units * mean_ / (mean_ + 1)), int(units * (mean_ / (mean_ + long)) ** 2), int(units * mean_) + 1

    return pattern


def few(ticks: int) -> tuple[int, int, int]:
    """One more unit in each tick."""
    return ticks, 0, ticks


def crowd(ticks: int) -> tuple[int, int, int]:
    return 500 * ticks, 0, 520 * ticks


class TestPatterns:
    """A table of cases."""

    @in_a_loop
    @pytest.mark.parametrize("users", [20_000, 65_536, 10**6])
    @pytest.mark.parametrize("horizon", [365, 1000, 2200])
    def test_where_all_have_few_samples_nothing_is_clipped(self, users: int, horizon: int) -> None:
        """Then it is the naive mean with a better counter: no epsilon for calls, all samples, the whole range."""
        parameters = mean(users, 8, horizon)
        ticks, beginning = first(parameters, evenly(users, 8, 9))
        assert beginning == Beginning(8, 0, 0, alike=False)
        assert parameters.counter_share(beginning) == 1
        tree = parameters.counter(8 * 64, beginning)
        assert isinstance(tree, GrowingBlue)
        assert tree.epsilon == parameters.epsilon
        assert ticks <= parameters.patience

    @pytest.mark.parametrize(("users", "m", "long"), [(1024, 1024, 32), (8192, 64, 8), (2000, 300, 8)])
    def test_where_all_have_many_blocks_are_clipped_by_octave(self, users: int, m: int, long: int) -> None:
        parameters = mean(users, m)
        ticks, beginning = first(parameters, evenly(users, m, long))
        assert beginning is not None
        assert beginning.alike
        assert beginning[:2] == (m, 0)
        # a scale of first blocks can be chosen, and only then it began
        assert beginning.longs >= parameters.least_longs
        assert beginning.longs >= parameters.wanted_longs(users) or ticks >= 2 * parameters.patience

    @pytest.mark.parametrize(("m", "long"), [(64, 8), (1024, 32)])
    def test_where_few_have_many_single_samples_are_clipped(self, m: int, long: int) -> None:
        parameters = mean(25_000, m)
        _, beginning = first(parameters, unevenly(25_000, 20, long))
        assert beginning is not None
        assert (beginning.longs, beginning.alike) == (0, False)
        assert beginning.cap <= m
        shares = parameters.shares(beginning)
        assert parameters.counter_share(beginning) == 1 - shares.centre - shares.scale

    def test_first_samples_give_the_range_where_noise_is_more_than_the_part_outside(self) -> None:
        # given a high cap that few units come near: unclipped noise is many ranges
        parameters = mean(25_000, 1024)
        _, beginning = first(parameters, unevenly(25_000, 20, 32))
        assert beginning is not None
        assert beginning.firsts >= parameters.least_units
        assert beginning.cap < 1024
        # that of a low one, with as many units, is less than what those outside might be off
        _, beginning = first(mean(25_000, 4), unevenly(25_000, 20, 32))
        assert beginning is not None
        assert beginning.firsts == 0

    @in_a_loop
    @pytest.mark.parametrize("m", [8, 64, 1024])
    @pytest.mark.parametrize("horizon", [80, 1000, None])
    @pytest.mark.parametrize("users", [1, 300, 10**5])
    def test_with_few_units_it_begins_by_an_eighth_of_the_horizon(
        self, m: int, horizon: int | None, users: int
    ) -> None:
        parameters = mean(users, m, horizon)
        ticks, beginning = first(parameters, few)
        assert beginning is not None
        assert (beginning.firsts, beginning.longs) == (0, 0)
        assert ticks <= 2 * parameters.patience == 2 * -(-(horizon or 365) // 16)

    @given(
        st.integers(1, 10**6),
        st.integers(0, 10**6),
        st.integers(1, 10**9),
        st.sampled_from(
            [mean(users, m, 1000, e) for users in (1, 2000) for m in (1, 8, 64, 1024) for e in (1, 9, 300)]
        ),
    )
    def test_whatever_the_pattern_it_begins_by_then(
        self, units: int, longs: int, samples: int, parameters: Sharp
    ) -> None:
        longs = min(longs, units, samples)
        beginning = parameters.begin(units, longs, max(units, samples), 2 * parameters.patience)
        assert beginning is not None
        assert 1 <= beginning.cap <= parameters.max_contributions
        assert 0 in (beginning.firsts, beginning.longs)
        assert beginning.firsts in (0, units)
        assert beginning.longs == (longs if beginning.alike else 0)
        assert 0 < parameters.counter_share(beginning) <= 1

    def test_unknown_users_are_waited_for_like_many(self) -> None:
        unknown = mean(1, 8)
        assert unknown.ready_units == mean(10**6, 8).ready_units == 4000
        ticks, beginning = first(unknown, crowd)
        assert beginning is not None
        assert ticks >= unknown.patience
        # while a group of which at most 900 are expected cannot be asked at all, and is not waited for
        assert first(mean(900, 8), crowd)[0] < ticks

    def test_without_units_it_never_begins(self) -> None:
        """Late samples may overtake a unit's first: with a cap of 1 there would be nothing to count."""
        parameters = mean(100, 1024)
        assert first(parameters, lambda ticks: (0, 9, 10**6), 500) == (500, None)

    def test_after_127_ticks_it_is_asked_seldom(self) -> None:
        """But often enough: each doubling of the ticks has 64 to 128 questions; the answer takes a long time."""
        parameters = mean(100, 8, 1)
        asked = [ticks for ticks in range(1, 5000) if parameters.begin(10**5, 0, 10**6, ticks)]
        assert asked[:127] == list(range(1, 128))
        for size in range(8, 13):
            within = [ticks for ticks in asked if ticks.bit_length() == size]
            assert within == list(range(1 << size - 1, min(1 << size, 5000), 1 << size - 7))

    def test_answers_that_are_forgotten_are_found_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("shoal.mechanisms.continual_mean.sharp.parameters.MOST_ANSWERS", 3)
        forgetful, fresh = mean(100, 8, 1), mean(100, 8, 1)
        for ticks in (*range(1, 9), *range(1, 9)):
            assert forgetful.begin(90, 0, 500, ticks) == fresh._begin(90, 0, 500, ticks)
            assert len(forgetful._answers) <= 3


class TestNumbersOfUnits:
    """How many are waited for."""

    def test_it_waits_for_enough_units_or_samples(self) -> None:
        parameters = mean(100_000, 8, 80)
        assert (parameters.least_units, parameters.ready_units, parameters.patience) == (1400, 4000, 5)
        assert parameters.ready_samples == 1200
        assert [mean(users, 8).ready_units for users in (2, 1000, 4000, 8000, 80_000)] == [1400, 1400, 2000, 4000, 4000]

    @given(st.integers(1, 10**7), st.fractions(Fraction(1, 1000), 1000))
    def test_blocks_are_waited_for_in_proportion(self, units: int, epsilon: Fraction) -> None:
        parameters = mean(units, 1024, epsilon=epsilon)
        wanted = parameters.wanted_longs(units)
        assert wanted >= parameters.least_longs
        assert wanted <= max(parameters.least_longs, units)
        assert mean(units, 1024, epsilon=2 * epsilon).wanted_longs(units) <= wanted

    @given(st.integers(1, 10**7), st.fractions(Fraction(1, 10**4), 1))
    def test_so_are_those_of_octaves(self, units: int, share: Fraction) -> None:
        few_, many = (mean(units, 1024).octave_units(count, share) for count in (units, 2 * units))
        assert few_ <= many <= -(-40 // share) + 3
        assert few_ * share >= 28


def test_a_group_that_few_visit_says_something_in_the_end() -> None:
    # given a unit per tick, of whom nothing can be asked privately
    parameters = mean(100_000, 8, 80)
    releaser = parameters.releaser(bytes(32), b"")
    samples = []
    for tick in range(30):
        releaser.add(Contribution(tick, "", parameters.buckets.of(40), 0, 1, 40))
        activations = releaser.close()
        assert len(activations) == (tick == 9)
        assert all(activation.epsilon == 0 for activation in activations)
        estimate = releaser.estimate()
        assert estimate is not None
        samples.append(estimate.samples)
    # then it says that it knows nothing, until an eighth of the horizon; from then on it counts everyone
    assert samples == [0] * 9 + list(range(10, 31))


def test_a_sample_that_overtakes_its_unit_s_first_waits_for_one() -> None:
    releaser = sharp(10**6, 16).releaser(KEY, b"")
    assert releaser.add(Contribution(0, "a", 2, 1, 1, 7)) == ()
    assert releaser.close() == ()
    assert not knows(releaser.estimate())
    releaser.add(Contribution(1, "a", 1, 0, 1, 7))
    assert [activation.level for activation in releaser.close()] == [0]
    estimate = releaser.estimate()
    assert estimate is not None
    assert estimate.samples == 2


@pytest.mark.parametrize("level", [7, 9, 11])
def test_a_block_that_comes_twice_stops(level: int) -> None:
    """Bound sends each once. Counting one twice would cost privacy, so nothing goes on."""
    releaser = LONG.releaser(KEY, b"")
    releaser.add(Contribution(0, "a", 99, level, 1, 1))
    releaser.add(Contribution(0, "b", 99, level, 1, 1))
    with pytest.raises(ValueError, match=f"block number {level - 7} arrived twice"):
        releaser.add(Contribution(0, "a", 99, level, 1, 1))
