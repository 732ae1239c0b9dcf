"""The full continual mean: reference figures, activation, and neighbouring streams replayed with one key."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms import error_bars
from shoal.mechanisms.continual_mean import full as full_module
from shoal.mechanisms.continual_mean.full import AS_PRINTED, Full, FullReleaser
from shoal.mechanisms.continual_mean.levels import Level, scales_of
from shoal.mechanisms.continual_mean.mean import MeanParameters
from shoal.mechanisms.continual_mean.naive import Naive, NaiveReleaser
from shoal.mechanisms.counters.binary import BinaryTree
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.statistic import Contribution
from tests.mechanisms.mechanism_cases import KEY, Draws, Sample, contributions, mean, play
from tests.support.cover import in_a_loop
from tests.support.effort import examples

STEPS = 16
UNITS = 6


@pytest.mark.parametrize(("size", "sd"), [(1024, 0.236), (4096, 0.0825)])
def test_the_noise_of_the_literal_algorithm_where_two_levels_are_active(size: int, sd: float) -> None:
    """n users with m = n samples each, epsilon = 1, failure = 1e-3, values in [0, 1]."""
    parameters = Full(
        grid=Grid(Fraction(0), Fraction(1), 1 << 20), epsilon=Fraction(1), max_contributions=size, users=size,
        sensitivity=AS_PRINTED,
    )  # fmt: skip
    releaser = parameters.releaser(KEY, b"")
    for level, user in itertools.product(range(4), range(size)):
        weight = 1 << max(0, level - 1)
        block = Contribution(level, f"{user:032x}", level + 1, level, weight, weight << 19)
        assert releaser.add(block) == ()
    estimate = releaser.estimate()
    assert estimate is not None
    assert estimate.samples == 2 * size
    assert estimate.noise_sd == pytest.approx(sd, rel=2e-3)


def test_a_level_says_what_it_holds_and_how_much_of_it_waits() -> None:
    parameters = Full(grid=Grid(Fraction(0), Fraction(1), STEPS), epsilon=Fraction(1), max_contributions=4, users=UNITS)
    releaser = parameters.releaser(KEY, b"")
    # given blocks of the first level, and one of a higher level, whose prior is not there yet
    for at, (level, total) in enumerate([(0, 3), (0, STEPS), (2, 5)]):
        releaser.add(Contribution(at, f"{at:032x}", at + 1, level, 1 << max(0, level - 1), total))
    # then the first counter has taken its blocks, and the other one waits
    assert releaser.levels[0][:2] == (2, 3 + STEPS)
    assert (releaser.levels[2].elements, releaser.levels[2].waiting) == (0, 1)


@in_a_loop
@pytest.mark.parametrize("sensitivity", [AS_PRINTED, 1])
@pytest.mark.parametrize(("n", "m", "epsilon"), [(1000, 100, 1), (7, 1000, 3), (10**6, 2, 1), (10**6, 4, 1)])
def test_constants_are_those_of_the_paper(n: int, m: int, epsilon: int, sensitivity: int) -> None:
    grid = Grid(Fraction(0), Fraction(1), 1 << 20)
    parameters = Full(grid=grid, epsilon=Fraction(epsilon), max_contributions=m, users=n, sensitivity=sensitivity)
    assert parameters.median_epsilon == parameters.prior_epsilon * 2 / sensitivity
    top = math.ceil(math.log2(m))
    assert len(parameters.levels) == top + 1
    for level in parameters.levels[2:]:
        w, ell = level.weight, level.index
        k = 16 * 2 * top / epsilon * math.log(3 * top * 2 ** (ell / 2) / 1e-3)
        assert level.arrays == (math.ceil(k) if sensitivity == AS_PRINTED else math.floor(k / 2))
        delta = math.sqrt(w / 2 * math.log(2 * n * top / (1e-3 / 3))) + math.sqrt(
            2**ell * math.log(2 * level.arrays * 3 * top / 1e-3)
        )
        assert 0 <= level.half_width / 2**20 - delta < 2e-6
        assert level.tree.width == 2 * level.half_width
        assert level.tree.scale == level.tree.width * n.bit_length() * 2 * (top + 1) / Fraction(epsilon)
    for level in parameters.levels[:2]:
        assert (level.tree.width, level.arrays) == (1 << 20, 0)


def small(monkeypatch: pytest.MonkeyPatch | None = None, *, users: int = 3, m: int = 8) -> Full:
    """A mean whose levels activate after a few blocks, with clip intervals that really clip."""
    parameters = mean(Full, epsilon=Fraction(2000), users=users, m=m, steps=STEPS)
    assert isinstance(parameters, Full)
    if monkeypatch:
        monkeypatch.setattr(Full, "half_width", lambda _, level: level)
    return parameters


SAMPLES = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, UNITS - 1), st.integers(0, STEPS)), min_size=1, max_size=60
)


def capped(rows: list[tuple[int, int, int]], m: int) -> list[Sample]:
    """In the order of arrival, at most m per unit; several of a unit may share a time."""
    seen = [0] * UNITS
    samples = []
    for at, unit, value in rows:
        seen[unit] += 1
        if seen[unit] <= m:
            samples.append(Sample(at, f"{unit:032x}", value))
    return samples


@examples(30)
@given(rows=SAMPLES, unit=st.integers(0, UNITS - 1), flip=st.booleans())
@pytest.mark.parametrize("users", [1, 4])
def test_neighbours_with_one_key_differ_by_no_more_than_the_noise_is_for(
    rows: list[tuple[int, int, int]], unit: int, flip: bool, users: int
) -> None:
    """All values of a unit change; noise, times and arrays stay, each counter's input moves within its width, once."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        parameters = small(monkeypatch, users=users)
        # given the same prior in both streams: over its choice the mechanism composes
        monkeypatch.setattr(full_module, "median_bin", lambda totals, full, count, epsilon, words: 0)
        one = capped(rows, 8)
        name = f"{unit:032x}"
        other = [s._replace(value=(STEPS - s.value if flip else 0)) if s.unit == name else s for s in one]
        left, right = parameters.releaser(KEY, b""), parameters.releaser(KEY, b"")
        moved: dict[int, int] = {}
        before = [0] * len(parameters.levels)
        for a, b in zip(contributions(parameters, one), contributions(parameters, other), strict=True):
            assert a[:5] == b[:5]
            assert left.add(a) == right.add(b)
            # then the counts, hence the noise, are the same
            assert left._counts == right._counts
            for level, count in enumerate(left._counts):
                assert left._counter(parameters.levels[level]).noise(count) == right._counter(
                    parameters.levels[level]
                ).noise(count)
                change = left._sums[level] - right._sums[level]
                if change != before[level]:  # one element moved, and no other ever will
                    moved[level] = moved.get(level, 0) + 1
                    assert abs(change - before[level]) <= parameters.levels[level].tree.width
                before[level] = change
        assert all(times == 1 for times in moved.values())


@examples(15)
@given(rows=SAMPLES, unit=st.integers(0, UNITS - 1))
def test_neighbours_of_the_naive_mean_differ_by_the_unit_s_samples(rows: list[tuple[int, int, int]], unit: int) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        parameters = mean(Naive, users=2, m=4, steps=STEPS)
        assert isinstance(parameters, Naive)
        one, name = capped(rows, 4), f"{unit:032x}"
        other = [s._replace(value=STEPS - s.value) if s.unit == name else s for s in one]
        left, right = parameters.releaser(KEY, b""), parameters.releaser(KEY, b"")
        draws = Draws(monkeypatch)
        moved = previous = 0
        for a, b in zip(contributions(parameters, one), contributions(parameters, other), strict=True):
            left.add(a)
            right.add(b)
            change = left._total - right._total
            moved, previous = moved + abs(change - previous), change
            first = left.estimate(), dict(draws.seen)
            second = right.estimate(), dict(draws.seen)
            assert first[0] is not None
            assert second[0] is not None
            assert first[1] == second[1]  # the same nodes, the same noise
            assert first[0].noise_sd == second[0].noise_sd
        assert isinstance(parameters.tree, BinaryTree)
        assert moved <= parameters.tree.width


def condition(parameters: Full, sent: list[Contribution]) -> dict[int, int]:
    """When each level activates by the definition: sum over j < l of n_j w_j >= 2**(l-1) k_l."""
    found: dict[int, int] = {}
    for at in range(len(sent)):
        for level in parameters.levels[2:]:
            ready = sum(c.samples for c in sent[: at + 1] if c.level < level.index)
            if ready >= level.array_size * level.arrays:
                found.setdefault(level.index, at)
    return found


def test_levels_activate_when_the_blocks_below_hold_enough_samples() -> None:
    parameters = mean(Full, epsilon=Fraction(3000), users=40, m=32)
    assert isinstance(parameters, Full)
    samples = [Sample(j, f"{i:032x}", (i * 37 + j) % 1000) for j in range(32) for i in range(40) if j < 10 + i]
    sent = contributions(parameters, samples)
    _, activations = play(parameters.releaser(KEY, b""), sent)
    assert {activation.level: at for at, activation in activations} == condition(parameters, sent)
    assert [activation.level for _, activation in activations] == [2, 3, 4, 5]
    for _, activation in activations:
        assert activation.epsilon == parameters.epsilon / 10
        assert activation.samples == parameters.levels[activation.level].arrays << (activation.level - 1)
        assert -1 < activation.prior < 3


def test_a_block_that_overtakes_an_earlier_one_waits_for_it() -> None:
    """Late samples count earlier: a unit's blocks may come out of number. Gaps are no power of two, so they wait."""
    parameters = mean(Full, epsilon=Fraction(10**9), m=8, steps=STEPS)
    releaser = parameters.releaser(KEY, b"")
    arrays = parameters.levels[2].arrays  # type: ignore[attr-defined]
    assert arrays == 1
    # given levels 1 and 2 of a unit, whose level 0 comes last
    assert releaser.add(Contribution(0, "a", 2, 1, 1, 3)) == ()
    assert releaser.add(Contribution(1, "a", 3, 2, 2, 9)) == ()
    estimate = releaser.estimate()
    assert estimate is not None
    assert estimate.samples == 1
    # then level 2 activates with it, and level 3, for which all four samples count
    assert [a.level for a in releaser.add(Contribution(2, "a", 1, 0, 1, 5))] == [2, 3]
    estimate = releaser.estimate()
    assert estimate is not None
    assert estimate.samples == 4
    assert releaser.kept == {}


def test_projection_clips_to_the_interval_on_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = small(monkeypatch, m=4)
    monkeypatch.setattr(full_module, "median_bin", lambda *_: 0)
    monkeypatch.setattr(Full, "arrays", lambda *_: 1)
    releaser = parameters.releaser(KEY, b"")
    assert isinstance(releaser, FullReleaser)
    # given a block of level 2 that waits, then the samples that activate the level, then blocks that arrive later
    releaser.add(Contribution(0, "a", 3, 2, 2, 2 * STEPS))
    releaser.add(Contribution(0, "b", 1, 0, 1, 0))
    (activation,) = releaser.add(Contribution(0, "b", 2, 1, 1, 0))
    # then the interval is 2 * 16 / 2 -/+ 2, for one bin with its middle at a half
    assert activation.prior == 1
    assert releaser._clips[2] == (14, 18)
    assert releaser._sums[2] == 18
    releaser.add(Contribution(1, "b", 3, 2, 2, 0))
    releaser.add(Contribution(1, "c", 3, 2, 2, 17))
    assert releaser._sums[2] == 18 + 14 + 17


def test_a_block_that_comes_twice_stops() -> None:
    releaser = small().releaser(KEY, b"")
    releaser.add(Contribution(0, "a", 3, 2, 2, 1))
    with pytest.raises(ValueError, match="arrived twice"):
        releaser.add(Contribution(0, "a", 3, 2, 2, 1))


def test_a_release_waits_for_an_active_level() -> None:
    releaser = small().releaser(KEY, b"")
    releaser.add(Contribution(0, "a", 3, 2, 2, 1))
    assert releaser.estimate() is None


@pytest.mark.parametrize("m", [1, 2])
def test_without_a_third_level_nothing_is_kept(m: int) -> None:
    parameters = mean(Full, m=m)
    releaser = parameters.releaser(KEY, b"")
    for level in range(m):
        assert releaser.add(Contribution(0, "a", level + 1, level, 1, 3)) == ()
    assert releaser.kept == {}
    assert releaser.take_changes() == ([], [])


def test_kept_blocks_that_the_head_no_longer_needs_are_ignored() -> None:
    parameters = mean(Full, epsilon=Fraction(10**9), m=4, steps=STEPS)
    releaser, other = parameters.releaser(KEY, b""), parameters.releaser(KEY, b"")
    old = [Contribution(0, "a", 1, 0, 1, 5), Contribution(0, "a", 2, 1, 1, 5)]
    assert [a.level for c in old for a in releaser.add(c)] == [2]
    other.restore(releaser.head(), old)
    assert other.kept == {}
    assert other.head() == releaser.head()


def test_public_parts_are_public() -> None:
    assert {type(level) for level in small().levels} == {Level}
    assert isinstance(mean(Naive).releaser(KEY, b""), NaiveReleaser)
    assert isinstance(small(), MeanParameters)


blocks_of_any = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.integers(-(2**57), 2**57), st.integers(-9, 2**70)),
    unique_by=lambda block: block[:2],
)


@given(blocks_of_any)
def test_blocks_of_any_time_and_size_are_kept_as_they_came(came: list[tuple[str, int, int, int]]) -> None:
    # given a prior that wants more than comes
    parameters = mean(Full, epsilon=Fraction(1, 100), m=8, steps=STEPS)
    releaser, again = parameters.releaser(KEY, b""), parameters.releaser(KEY, b"")
    given_blocks = [Contribution(at, who, level + 1, level, 1 << max(0, level - 1), n) for who, level, at, n in came]
    assert all(releaser.add(block) == () for block in given_blocks)
    # then all are there, those of a level in the order in which they came, and so they are after a restart
    assert list(releaser.kept.values()) == sorted(given_blocks, key=lambda block: block.level)
    again.restore(releaser.head(), releaser.kept.values())
    assert (again.kept, again.head()) == (releaser.kept, releaser.head())
    assert isinstance(again, FullReleaser)
    assert isinstance(releaser, FullReleaser)
    assert again.levels == releaser.levels


@given(st.lists(st.integers(0, 40), min_size=1, max_size=4), st.integers(1, 40))
def test_error_bars_that_groups_share_are_those_of_each(counts: list[int], t: int) -> None:
    full, small_tree = mean(Full, m=8, users=UNITS), mean(Naive, users=3)
    assert isinstance(full, Full)
    assert isinstance(small_tree, Naive)
    law = scales_of(full.levels, counts)
    assert full.widths(counts) == error_bars.widths(full.sample_grid.step, law, full.coverage)
    for naive in (small_tree, replace(small_tree, rho=Fraction(1, 8))):
        for _ in range(2):
            assert naive.widths(t) == error_bars.widths(naive.grid.step, naive.tree.scales(t), naive.coverage)


def test_no_more_error_bars_are_kept_than_the_limit_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(full_module, "MOST_WIDTHS", 2)
    full = mean(Full, m=8, users=UNITS)
    assert isinstance(full, Full)
    for count in (1, 3, 7, 15, 1):
        assert full.widths([count]) == error_bars.widths(
            full.sample_grid.step, scales_of(full.levels, [count]), full.coverage
        )
        assert len(full._widths) <= 2
