"""The sharp mean: what meets its noise, what its calls see, what it costs, and what it publishes."""

import itertools
from collections import Counter
from fractions import Fraction
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.continual_mean.sharp import Sharp
from shoal.mechanisms.continual_mean.sharp import parameters as sharp_parameters
from shoal.mechanisms.continual_mean.sharp.cap import Beginning
from shoal.mechanisms.continual_mean.sharp.parameters import HALVINGS
from shoal.mechanisms.counters.blue import GrowingBlue
from shoal.mechanisms.noise.keyed import derive
from shoal.mechanisms.selection import clip_range
from tests.mechanisms.continual_mean.sharp.sharp_cases import (
    CASES,
    COARSE,
    EVEN,
    FIRSTS,
    LONG,
    OFTEN,
    ONE,
    TOP,
    WHOLE,
    Burst,
    Pair,
    Run,
    bursts,
    capped,
    mode,
    rounds,
    sharp,
)
from tests.mechanisms.counters.counter_cases import noise_in_release
from tests.mechanisms.mechanism_cases import KEY, Sample, by_tick, contributions, merged, play, play_ticks
from tests.support.cover import in_a_loop
from tests.support.effort import examples

VALUES = st.lists(st.integers(0, TOP) | st.sampled_from([0, TOP]), min_size=1, max_size=9)
CHOICES = st.lists(st.integers(0, 200), min_size=1, max_size=8)
CHOSEN = [[0], [60, 0, 7, 7], [60, 12, 3, 7], [60, 20, 1], [0, 8, 0, 0, 0, 0, 0, 0]]


class TestNeighbours:
    """Two streams that differ in one unit's values, in which all charged outputs happen to be the same."""

    @examples(80)
    @given(
        st.sampled_from(CASES),
        bursts(),
        VALUES,
        st.integers(0, 4),
        CHOICES | st.sampled_from(CHOSEN),
        st.integers(0, 1 << 20),
    )
    def test_what_meets_the_counter_differs_by_its_width_at_most(
        self,
        parameters: Sharp,
        rows: list[Burst],
        values: list[int],
        changed: int,
        choices: list[int],
        restarts: int,
    ) -> None:
        one, other = (capped(rows, parameters, values, unit) for unit in (-1, changed))
        pair = Pair(parameters, one, other, choices, restarts)
        assert pair.moved <= pair.width
        # and a call sees one number of the unit: it leaves one place and comes to another
        calls = list(zip(pair.left.calls.made, pair.right.calls.made, strict=True))
        for first, second in calls:
            assert (first.purpose, first.target, first.epsilon) == (second.purpose, second.target, second.epsilon)
            differences = [abs(a - b) for a, b in zip(first.counts, second.counts, strict=True)]
            assert max(differences) <= 1
            assert first.purpose == "scale" or sum(differences) <= 2
        # and calls cost what was said, and with the counter no more than a group may
        charged = sum((activation.epsilon for activation in pair.left.activations), Fraction(0))
        assert sum((call.epsilon for call, _ in calls), Fraction(0)) == charged
        assert pair.left.charged <= parameters.group_epsilon

    @in_a_loop
    @pytest.mark.parametrize("spread", [1, 7, 1000])
    @pytest.mark.parametrize("choices", [[59, 10, 1], [59, 10, 0, 0, 0, 0], [20, 20, 0]])
    def test_where_units_are_alike_one_at_both_ends_moves_all_clip_widths(
        self, spread: int, choices: list[int]
    ) -> None:
        """The bound is met: each single sample and each block of open octaves moves by its width, in any tick."""
        rows = rounds(1, 3, 32) + [Burst(1 + at // spread, 3, 1 + 15 * (spread == 1)) for at in range(1024)]
        rows += [Burst(2000 + at, unit, 30) for at in range(40) for unit in range(3)]
        pair = self._ends(LONG, rows, choices)
        releaser = pair.left.releaser
        assert mode(releaser) == "alike"
        assert len(releaser._clips) > 3
        assert pair.moved == 16 * releaser._single + sum(high - low for low, high in filter(None, releaser._clips))
        assert 4 * pair.moved >= pair.width
        # and the counter's noise is made for all that could be opened
        assert pair.width == 16 * releaser._single + LONG.block_budget(releaser._width)
        assert spread == 1000 or pair.elements > 7

    def test_an_octave_s_centre_rests_on_what_was_released(self) -> None:
        """Not on what came since, even if that counts already: here it differs, when an octave opens."""
        rows = rounds(1, 4, 32) + [Burst(1, unit, 64) for unit in range(4)] + [Burst(1, 4, 20)]
        one, other = (capped(rows, LONG, [TOP // 2, 0], unit) for unit in (-1, 4))
        other = [s._replace(value=TOP) if s.unit.endswith("4") else s for s in other]
        pair = Pair(LONG, one, other, [59, 10, 1])
        assert len(pair.left.releaser._clips) == 5
        assert 0 < pair.moved <= pair.width

    @in_a_loop
    @pytest.mark.parametrize("choices", [[59, 0], [0, 1]])
    @pytest.mark.parametrize(("parameters", "rows", "begun"), [
        (LONG, rounds(12, 4, 100), "unalike"),
        (LONG, rounds(3, 4, 400), "unalike"),
        (FIRSTS, rounds(16, 5, 64), "unalike"),
        (OFTEN, rounds(12, 4, 10), "unalike"),
        (EVEN, rounds(40, 4, 8), "unalike"),
        (FIRSTS, rounds(3, 5, 1) + [Burst(3 + at // 4, at % 4, 64) for at in range(99)], "first samples"),
        (WHOLE, rounds(9, 4, 4), "whole range"),
        (ONE, rounds(9, 4, 4), "whole range"),
    ])  # fmt: skip
    def test_where_they_are_not_each_sample_up_to_the_cap_does(
        self, parameters: Sharp, rows: list[Burst], begun: str, choices: list[int]
    ) -> None:
        pair = self._ends(parameters, sorted(rows), choices)
        releaser = pair.left.releaser
        assert mode(releaser) == begun
        assert releaser._beginning is not None
        assert releaser._single == TOP or begun != "whole range"
        assert pair.moved == releaser._single * releaser._beginning.cap == pair.width > 0

    @staticmethod
    def _ends(parameters: Sharp, rows: list[Burst], choices: list[int]) -> Pair:
        """Unit 3 at either end, all others in the middle."""
        middle = capped(rows, parameters, [TOP // 2])
        one, other = ([s._replace(value=end) if s.unit.endswith("3") else s for s in middle] for end in (0, TOP))
        return Pair(parameters, one, other, choices)


@pytest.mark.slow
def test_the_streams_of_these_tests_reach_every_case() -> None:
    found: Counter[str] = Counter()
    for parameters, each, choice in itertools.product(CASES, (1, 8, 64, 400), CHOSEN):
        rows = [Burst(at // 5, at % 5, each) for at in range(60)]
        run = Run(parameters, choice).play(capped(rows, parameters, [0, TOP, TOP // 3]))
        releaser = run.releaser
        found[mode(releaser)] += 1
        found["cap"] += releaser._beginning is not None and releaser._beginning.cap < parameters.max_contributions // 2
        found["octaves"] += len(releaser._clips) > 3 and mode(releaser) == "alike"
        found["all octaves"] += len(releaser._clips) == parameters.shape.blocks > 0 and mode(releaser) == "alike"
        found["half an octave"] += len(releaser._clips) == 8
    assert set(found) > {"waits", "whole range", "first samples", "alike", "unalike"}
    assert all(found.values()), found


class TestBudgetOfBlocks:
    """The parts of a unit's width."""

    @given(st.sampled_from(CASES), st.integers(1, 1 << 30))
    def test_it_is_the_sum_of_what_each_may_move(self, parameters: Sharp, width: int) -> None:
        shape = parameters.shape
        budgets = [parameters.block_budget(width, blocks) for blocks in range(shape.blocks + 1)]
        assert budgets[0] == 0
        assert budgets[-1] == parameters.block_budget(width)
        for block, (one, two) in enumerate(itertools.pairwise(budgets)):
            weight = shape.weight(block)
            # never more than the range, and for a first block not less than its clip width
            assert 0 < two - one <= weight * parameters.grid.steps
            least = min(sqrt(weight) * width, weight * parameters.grid.steps)
            assert two - one >= least * (1 - 1e-9)

    def test_octaves_take_their_share_and_what_those_before_them_left(self) -> None:
        run = Run(LONG, [59, 10, 0, 0, 0, 0])
        for tick in by_tick(merged(LONG, capped(rounds(60, 4, 17), LONG, [TOP // 2, TOP // 3]))):
            run.tick(tick)
            clips = run.releaser._clips
            spent = sum(clip[1] - clip[0] for clip in clips if clip)
            assert spent <= LONG.block_budget(run.releaser._width, len(clips))
        assert mode(run.releaser) == "alike"
        assert len(clips) > 3
        assert run.charged <= LONG.epsilon


class TestBudget:
    """Parts of epsilon are exact, and add up on every path."""

    BEGINNINGS = st.one_of(
        st.just(Beginning(1, 0, 0, alike=False)),
        st.builds(lambda units: Beginning(1, units, 0, alike=False), st.integers(1, 10**9)),
        st.builds(lambda longs, alike: Beginning(1, 0, longs, alike=alike), st.integers(1, 10**9), st.booleans()),
    )

    @given(BEGINNINGS, st.integers(1, 5000) | st.integers(1, (1 << 32) - 1), st.fractions(Fraction(1, 1000), 1000))
    def test_shares_add_up_to_one(self, beginning: Beginning, m: int, epsilon: Fraction) -> None:
        parameters = sharp(epsilon, m)
        shares, calls = parameters.shares(beginning), max(0, parameters.shape.octaves - 1)
        assert shares.centre + shares.scale + calls * shares.octave + parameters.counter_share(beginning) == 1
        assert min(shares.centre, shares.scale, shares.octave) >= 0
        # and the counter has most of it, but for caps of many thousands
        assert parameters.counter_share(beginning) > (Fraction(1, 2) if m <= 5000 else Fraction(1, 3))
        assert shares.octave == 0 or beginning.alike
        assert (shares.scale > 0) == (beginning.firsts + beginning.longs > 0)

    @given(st.fractions(Fraction(1, 1000), 1000), st.integers(1, 9))
    def test_groups_share_it(self, epsilon: Fraction, groups: int) -> None:
        parameters, beginning = sharp(epsilon, 128, groups=groups), Beginning(128, 0, 9, alike=True)
        assert parameters.group_epsilon * groups == epsilon
        tree = parameters.counter(7, beginning)
        assert isinstance(tree, GrowingBlue)
        assert tree.epsilon * groups == epsilon * parameters.counter_share(beginning)
        assert tree.width == 7

    def test_when_all_octaves_are_open_all_is_spent_exactly(self) -> None:
        for parameters in (LONG, OFTEN, EVEN):
            run = Run(parameters, [59, 10, 1]).play(capped(rounds(150, 4, 7), parameters, [TOP // 2, TOP // 3]))
            assert len(run.releaser._clips) == parameters.shape.blocks
            assert len(run.activations) == parameters.shape.octaves
            assert run.charged == parameters.epsilon

    @given(st.fractions(Fraction(1, 1000), 5000), st.sampled_from([1, 3, TOP]), st.integers(0, 10**5))
    def test_a_scale_can_be_chosen_with_the_fewest_units_there_may_be(
        self, epsilon: Fraction, steps: int, more: int
    ) -> None:
        """Whatever epsilon, those left outside are a part that can be widened for: nothing stops."""
        parameters = sharp(epsilon, 128, steps=steps)
        longs = parameters.least_longs + more
        shares = parameters.shares(Beginning(128, 0, longs, alike=True))
        targets = [
            (len(parameters.half_widths), shares.scale, longs),
            (sharp_parameters.NARROWER, shares.octave, parameters.octave_units(longs, shares.octave)),
        ]
        for candidates, share, units in targets:
            target = clip_range.outside(candidates, share * epsilon, clip_range.SURE)
            assert Fraction(target, units) <= Fraction(9, 20)


class TestReleases:
    """What is published is a clipped sum and noise, and nothing else of a value."""

    def test_nothing_is_said_before(self) -> None:
        releaser = sharp(1, 16).releaser(KEY, b"")
        assert releaser.estimate() is None
        estimates, activations = play(releaser, contributions(sharp(1, 16), [Sample(0, "a", 3), Sample(1, "a", TOP)]))
        assert not activations
        assert {(e.value, e.noise_sd, e.low, e.high, e.samples) for e in estimates if e} == {(1.0, 2.0, -1.0, 3.0, 0)}
        assert releaser.bounds is None

    @examples(40)
    @given(st.sampled_from(CASES), bursts(), VALUES, CHOICES | st.sampled_from(CHOSEN))
    def test_a_release_is_the_clipped_sum_and_the_noise_of_its_place(
        self, parameters: Sharp, rows: list[Burst], values: list[int], choices: list[int]
    ) -> None:
        samples, run, seen = capped(rows, parameters, values), Run(parameters, choices), list[Sample]()
        by_time = {at: list(some) for at, some in itertools.groupby(samples, key=lambda s: s.effective)}
        for tick in by_tick(merged(parameters, samples)):
            run.tick(tick)
            seen += by_time[tick[0].effective]
            releaser, estimate = run.releaser, run.releaser.estimate()
            if releaser._beginning is None or estimate is None:
                continue
            # given the clip ranges and the cap, by definition
            exact, included = plain_sum(run, seen)
            tree = releaser._counter.tree
            noise = tree.counter(lambda epoch: derive(KEY, b"g", "tree", "mean", 0, 0, epoch)).noise(releaser._ticks)
            assert estimate.samples == included
            assert estimate.value == parameters.grid.mean_value(exact + noise, included)
            low, high = (parameters.buckets.boundaries[end] for end in releaser.head()[1][:2])
            assert releaser.bounds == (parameters.grid.mean_value(low, 1), parameters.grid.mean_value(high, 1))

    def test_octaves_are_clipped_around_the_release_before(self) -> None:
        # given units that differ
        samples = [s._replace(value=int(s.unit, 16) * 1000 + 400_000) for s in capped(rounds(60, 5, 8), LONG, [0])]
        run, releases, opened = Run(LONG, [55, 6, 1]), list[Fraction](), 0
        for tick in by_tick(merged(LONG, samples)):
            before = len(run.releaser._clips)
            run.tick(tick)
            for block, clip in list(enumerate(run.releaser._clips))[before:] if before else []:
                assert clip is not None
                low, high = clip
                size = LONG.shape.weight(block)
                assert low == int(size * releases[-1]) - (high - low) // 2
                assert (high - low) % (2 * size) == 0
                opened += 1
            if run.releaser._beginning:
                releases.append(Fraction(run.noisy, run.releaser._samples))
        assert opened >= 4

    @pytest.mark.parametrize("parameters", [sharp(700, 1024, horizon=60), sharp(50, 16, users=4, horizon=30)])
    def test_the_stated_noise_is_that_of_the_draws(self, parameters: Sharp) -> None:
        rows = [Burst(tick, unit, 16) for tick in range(25) for unit in range(6)]
        releaser = parameters.releaser(KEY, b"")
        for tick in by_tick(contributions(parameters, capped(rows, parameters, [0, TOP // 2, TOP]))):
            play_ticks(releaser, [tick])
        estimate = releaser.estimate()
        assert estimate is not None
        assert releaser._beginning is not None
        assert estimate.noise_sd == pytest.approx(noise_in_release(parameters, releaser), rel=1e-4)

    def test_it_is_unbiased_where_nothing_is_clipped(self) -> None:
        """Over 400 keys; fewer units than a centre needs, so that the range is whole."""
        parameters = sharp(4000, 16, users=4, horizon=4)
        samples = capped(rounds(4, 3, 4), parameters, [3, TOP, 70_000])
        mean, total = sum(s.value for s in samples) / len(samples), 0.0
        for key in range(400):
            releaser = parameters.releaser(derive(KEY, key), b"")
            play_ticks(releaser, by_tick(merged(parameters, samples)))
            estimate = releaser.estimate()
            assert estimate is not None
            assert estimate.value is not None
            assert estimate.samples == len(samples)
            total += (estimate.value - parameters.grid.mean_value(Fraction(mean), 1)) / estimate.noise_sd
        assert abs(total) <= 4 * sqrt(400)

    @examples(40)
    @given(st.sampled_from(CASES), bursts(), VALUES, CHOICES | st.sampled_from(CHOSEN))
    def test_the_bias_is_within_its_bound(
        self, parameters: Sharp, rows: list[Burst], values: list[int], choices: list[int]
    ) -> None:
        """For any data and clip range: what is left out, and how far what is in is clipped, in parts of the range."""
        samples, steps = capped(rows, parameters, values), parameters.grid.steps
        run = Run(parameters, choices).play(samples)
        releaser = run.releaser
        if releaser._beginning is None:
            return
        low, high = (parameters.buckets.boundaries[end] for end in releaser.head()[1][:2])
        clipped = Fraction(max(low, steps - high) * releaser._samples)
        for block, clip in enumerate(releaser._clips):
            clipped += max(0, clip[0], parameters.shape.weight(block) * steps - clip[1]) * 5 if clip else 0
        left_out = 1 - Fraction(releaser._samples, len(samples))
        bias = Fraction(releaser._total, releaser._samples) - Fraction(sum(s.value for s in samples), len(samples))
        assert releaser._samples <= len(samples)
        assert abs(bias) <= left_out * steps + clipped / releaser._samples


def plain_sum(run: Run, samples: list[Sample]) -> tuple[int, int]:
    """(sum, samples) that count by definition: singles up to where they end, and closed blocks that are open."""
    releaser, mean, total, included = run.releaser, run.parameters, 0, 0
    beginning = releaser._beginning
    assert beginning is not None
    low, high = (mean.buckets.boundaries[end] for end in releaser.head()[1][:2])
    # a cap of single samples is reached in whole levels, and those who have it may have no more
    last = min(mean.shape.alone if beginning.alike else beginning.cap, mean.shape.singles)
    by_unit: dict[str, list[int]] = {}
    for sample in samples:
        by_unit.setdefault(sample.unit, []).append(sample.value)
    for values in by_unit.values():
        singles = [min(max(value, low), high) for value in values[:last]]
        total, included = total + sum(singles), included + len(singles)
        for block, clip in enumerate(releaser._clips):
            end, weight = mean.shape.end(block), mean.shape.weight(block)
            if clip is not None and end <= len(values):
                total += min(max(sum(values[end - weight : end]), clip[0]), clip[1])
                included += weight
    return total, included


def test_candidates_of_a_scale_reach_from_the_range_to_a_step() -> None:
    assert LONG.half_widths[0] == TOP
    assert len(LONG.half_widths) == HALVINGS
    assert COARSE.half_widths == (3, 2, 1)
