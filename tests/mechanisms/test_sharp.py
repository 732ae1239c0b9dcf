"""The sharp mean: what meets its noise, what its calls see, what it costs, and what it publishes."""

import itertools
from collections import Counter
from fractions import Fraction
from math import sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.mechanisms.keyed import derive
from shoal.mechanisms.sharp import HALVINGS, SHORT, Sharp
from shoal.mechanisms.sharp import LONG as LONG_SHARES
from shoal.mechanisms.statistic import Contribution
from tests.mechanisms.counter_cases import noise_in_release
from tests.mechanisms.mechanism_cases import KEY, Sample, by_tick, contributions, knows, merged, play, play_ticks
from tests.mechanisms.sharp_cases import (
    CASES,
    COARSE,
    FEW,
    HALF,
    LONG,
    ONE,
    SINGLE,
    Burst,
    Pair,
    Run,
    bursts,
    capped,
    sharp,
)

TOP = 1 << 20
VALUES = st.lists(st.integers(0, TOP) | st.sampled_from([0, TOP]), min_size=1, max_size=9)
CHOICES = st.lists(st.integers(0, 200), min_size=1, max_size=8)


class TestNeighbours:
    """Two streams that differ in one unit's values, in which all charged outputs happen to be the same."""

    @settings(max_examples=150)
    @given(st.sampled_from(CASES), bursts(), VALUES, st.integers(0, 5), CHOICES, st.integers(0, 1 << 20))
    def test_what_meets_the_counter_differs_by_its_width_at_most(
        self, parameters: Sharp, rows: list[Burst], values: list[int], changed: int, choices: list[int], restarts: int
    ) -> None:
        one, other = (capped(rows, parameters, values, unit) for unit in (-1, changed))
        pair = Pair(parameters, one, other, choices, restarts)
        assert pair.moved <= pair.left.releaser._counter.tree.width
        # and a call sees one number of the unit: it leaves one place and comes to another
        calls = list(zip(pair.left.calls.made, pair.right.calls.made, strict=True))
        for first, second in calls:
            assert (first.purpose, first.target, first.epsilon) == (second.purpose, second.target, second.epsilon)
            differences = [abs(a - b) for a, b in zip(first.counts, second.counts, strict=True)]
            assert max(differences) <= 1
            assert first.purpose == "scale" or sum(differences) <= 2
        # and calls and counter together cost what a group may
        spent = sum((call.epsilon for call, _ in calls), Fraction(0)) + pair.left.releaser._counter.tree.epsilon
        charged = sum((activation.epsilon for activation in pair.left.activations), Fraction(0))
        assert spent <= charged + pair.left.releaser._counter.tree.epsilon
        assert pair.left.releaser._cap == 0 or charged + pair.left.releaser._counter.tree.epsilon <= parameters.epsilon

    @pytest.mark.parametrize("spread", [1, 7, 1000])
    def test_a_unit_at_both_ends_moves_all_clip_widths(self, spread: int) -> None:
        """The bound is met: each sample and each block of open octaves moves by its width, whatever their ticks."""
        rows = [Burst(at // 3, at % 3, 400) for at in range(9)]
        rows += [Burst(3 + at // spread, 3, 1 + 15 * (spread == 1)) for at in range(1024)]
        middle = capped(rows, LONG, [TOP // 2])
        one, other = ([s._replace(value=end) if s.unit.endswith("3") else s for s in middle] for end in (0, TOP))
        pair = Pair(LONG, one, other, [60, 0, 1])
        releaser = pair.left.releaser
        assert releaser._cap == 1024
        assert len(releaser._clips) >= 2
        low, high = (LONG.buckets.boundaries[end] for end in releaser.head()[1][1:])
        assert pair.moved == 64 * (high - low) + sum(high - low for low, high in releaser._clips)
        assert pair.moved <= releaser._counter.tree.width
        assert spread == 1000 or pair.elements > 7

    def test_samples_over_the_cap_move_nothing(self) -> None:
        parameters = sharp(20, 64, users=180, horizon=1)
        rows = [Burst(0, unit, 1) for unit in range(90)] + [Burst(tick // 2, 1, 10) for tick in range(9)]
        one = capped(rows, parameters, [0])
        other = [s._replace(value=TOP) if s.unit.endswith("01") else s for s in one]
        pair = Pair(parameters, one, other, [3, 0])
        cap = pair.left.releaser._cap
        assert 1 <= cap < 64
        assert pair.moved == pair.left.releaser._counter.tree.width > 0
        low, high = pair.left.releaser.head()[1][1:]
        ends = parameters.buckets.boundaries
        assert pair.moved == cap * (ends[high] - ends[low])


def reached() -> Counter[str]:
    """What happens in streams as above."""
    found: Counter[str] = Counter()
    for parameters, each, choice in itertools.product(CASES, (1, 40, 300), ([0], [60, 0, 7, 7], [0, 70, 3, 0])):
        rows = [Burst(at // 6, at % 6, each) for at in range(60)]
        run = Run(parameters, choice)
        for tick in by_tick(contributions(parameters, capped(rows, parameters, [0, TOP, TOP // 3]))):
            run.tick(tick)
        releaser = run.releaser
        found["active"] += releaser._cap > 0
        found["whole range"] += releaser._cap > 0 and not releaser._ranged
        found["cap"] += 0 < releaser._cap < parameters.max_contributions
        found["octaves"] += len(releaser._clips) > 2
        found["half an octave"] += len(releaser._clips) % 2
        found["budget ended"] += releaser._cap > 64 and releaser._budget == 0 and len(releaser._clips) < 8
        found["budget left"] += releaser._budget > 0
        found["calls"] += len(run.calls.made) > 3
    return found


def test_the_streams_of_these_tests_reach_every_case() -> None:
    assert all(reached().values()), reached()


class TestBudget:
    """Parts of epsilon are exact, and add up on every path."""

    @pytest.mark.parametrize("ranged", [False, True])
    @pytest.mark.parametrize("blocks", [False, True])
    @pytest.mark.parametrize("shares", [SHORT, LONG_SHARES])
    def test_shares_add_up_to_one(self, ranged: bool, blocks: bool, shares: object) -> None:
        assert isinstance(shares, type(SHORT))
        calls = ranged * (shares.centre + shares.scale) + blocks * shares.octaves
        assert shares.counter(ranged=ranged, blocks=blocks) + calls == 1
        assert shares.counter(ranged=ranged, blocks=blocks) > Fraction(1, 2)

    @given(st.integers(1, 5000), st.fractions(Fraction(1, 1000), 1000), st.integers(1, 9))
    def test_octaves_share_theirs(self, m: int, epsilon: Fraction, groups: int) -> None:
        parameters = sharp(epsilon, m, groups=groups)
        assert parameters.group_epsilon * groups == epsilon
        assert (parameters.octaves == 0) == (m < 128)
        if parameters.octaves:
            each = parameters.octave_epsilon
            assert each * parameters.octaves == parameters.group_epsilon * LONG_SHARES.octaves

    @given(st.sampled_from(CASES), st.integers(1, 1 << 30))
    def test_the_budget_of_blocks_is_that_of_their_octaves(self, parameters: Sharp, width: int) -> None:
        budgets = [parameters.block_budget(width, blocks) for blocks in range(parameters.blocks + 1)]
        assert budgets == sorted(budgets)
        assert budgets[0] == 0
        assert budgets[-1] == parameters.block_budget(width)


class TestActivation:
    """When it begins to count, and with how much of each unit, is pattern."""

    def test_nothing_is_said_before(self) -> None:
        releaser = sharp(1, 16).releaser(KEY, b"")
        assert releaser.estimate() is None
        estimates, activations = play(releaser, contributions(sharp(1, 16), [Sample(0, "a", 3), Sample(1, "a", TOP)]))
        assert not activations
        assert {(e.value, e.noise_sd, e.low, e.high, e.samples, e.bounds) for e in estimates if e} == {
            (1.0, 2.0, -1.0, 3.0, 0, None)
        }

    @pytest.mark.parametrize(("parameters", "each"), [(FEW, 1), (ONE, 1), (LONG, 1), (SINGLE, 4), (LONG, 100)])
    def test_it_waits_for_units_or_for_samples(self, parameters: Sharp, each: int) -> None:
        rows = [Burst(at, at, each) for at in range(60)]
        run = Run(parameters, [0])
        for units, tick in enumerate(by_tick(contributions(parameters, capped(rows, parameters, [5]))), start=1):
            run.tick(tick)
            closed = sum(c.samples for c in tick) * units
            ready = units >= parameters.ready_units or closed >= parameters.ready_samples
            assert (run.releaser._cap > 0) == ready
            if ready:
                break
        assert run.releaser._cap
        assert run.releaser._ranged == (units >= parameters.least_units)

    def test_a_sample_that_overtakes_its_unit_s_first_waits_for_one(self) -> None:
        """Late samples count earlier: with a cap of 1, nothing but first samples would count."""
        releaser = sharp(10**6, 16).releaser(KEY, b"")
        assert releaser.add(Contribution(0, "a", 2, 1, 1, 7)) == ()
        assert releaser.close() == ()
        assert not knows(releaser.estimate())
        releaser.add(Contribution(1, "a", 1, 0, 1, 7))
        assert [activation.level for activation in releaser.close()] == [0]

    def test_with_fewer_units_than_a_centre_needs_none_is_chosen(self) -> None:
        rows = [Burst(0, unit, 30) for unit in range(4)]
        run = Run(FEW, [0])
        run.tick(contributions(FEW, capped(rows, FEW, [5])))
        assert run.releaser._cap
        assert not run.calls.made
        assert [activation.epsilon for activation in run.activations] == [0]
        assert run.releaser._counter.tree.epsilon == FEW.epsilon

    def test_a_block_that_comes_twice_stops(self) -> None:
        releaser = LONG.releaser(KEY, b"")
        releaser.add(Contribution(0, "a", 65, 7, 32, 1))
        with pytest.raises(ValueError, match="arrived twice"):
            releaser.add(Contribution(0, "a", 65, 7, 32, 1))


class TestReleases:
    """What is published is a clipped sum and noise, and nothing else of a value."""

    @settings(max_examples=60)
    @given(st.sampled_from([SINGLE, FEW, ONE]), bursts(), VALUES, CHOICES)
    def test_a_release_is_the_clipped_sum_and_the_noise_of_its_place(
        self, parameters: Sharp, rows: list[Burst], values: list[int], choices: list[int]
    ) -> None:
        samples, run, seen = capped(rows, parameters, values), Run(parameters, choices), 0
        numbered: Counter[str] = Counter()
        numbers = [numbered.update([s.unit]) or numbered[s.unit] for s in samples]
        for tick in by_tick(merged(parameters, samples)):
            run.tick(tick)
            seen += sum(c.samples for c in tick)
            releaser, estimate = run.releaser, run.releaser.estimate()
            if not releaser._cap or estimate is None:
                continue
            # given the clip range and the cap, by definition
            low, high = (parameters.buckets.boundaries[end] for end in releaser.head()[1][1:])
            top = 1 << (releaser._cap - 1).bit_length()
            included = [s.value for s, number in zip(samples[:seen], numbers[:seen], strict=True) if number <= top]
            exact = sum(min(max(value, low), high) for value in included)
            noise = releaser._counter.tree.counter(lambda epoch: derive(KEY, b"g", "tree", "mean", 0, 0, epoch)).noise(
                releaser._ticks
            )
            assert estimate.samples == len(included)
            assert estimate.value == parameters.grid.mean_value(exact + noise, len(included))
            assert estimate.bounds == tuple(parameters.grid.mean_value(end, 1) for end in (low, high))

    def test_blocks_are_clipped_around_the_release_before(self) -> None:
        # given units that differ, in blocks of two octaves
        rows = [Burst(tick, unit, 64) for tick in range(8) for unit in range(6)]
        samples = [s._replace(value=int(s.unit, 16) * 1000 + 400_000) for s in capped(rows, LONG, [0])]
        run = Run(LONG, [60, 0, 1])
        releases: list[Fraction] = []
        for tick in by_tick(contributions(LONG, samples)):
            before = len(run.releaser._clips)
            run.tick(tick)
            clips = run.releaser._clips[before:]
            for level, (low, high) in enumerate(clips, start=7 + before):
                size = 32 << (level - 7) // 2
                assert (low + high) // 2 == int(size * releases[-1])
                assert (high - low) % (2 * size) == 0
            if run.releaser._cap:
                releases.append(Fraction(run.noisy, run.releaser._samples))
        assert len(run.releaser._clips) >= 2

    @pytest.mark.parametrize("parameters", [sharp(700, 1024, horizon=60), sharp(50, 16, users=4, horizon=30)])
    def test_the_stated_noise_is_that_of_the_draws(self, parameters: Sharp) -> None:
        rows = [Burst(tick, unit, 16) for tick in range(25) for unit in range(6)]
        releaser = parameters.releaser(KEY, b"")
        for tick in by_tick(contributions(parameters, capped(rows, parameters, [0, TOP // 2, TOP]))):
            play_ticks(releaser, [tick])
        estimate = releaser.estimate()
        assert estimate is not None
        assert releaser._cap == parameters.max_contributions
        assert (parameters.blocks > 0) == (len(releaser._clips) > 0)
        assert estimate.noise_sd == pytest.approx(noise_in_release(parameters, releaser), rel=1e-4)

    def test_it_is_unbiased_where_nothing_is_clipped(self) -> None:
        """Over 400 keys; fewer units than a centre needs, so that the range is whole."""
        parameters = sharp(400, 16, users=4, horizon=4)
        samples = capped([Burst(tick, unit, 4) for tick in range(4) for unit in range(3)], parameters, [3, TOP, 70_000])
        mean = sum(s.value for s in samples) / len(samples)
        total = 0.0
        for key in range(400):
            releaser = parameters.releaser(derive(KEY, key), b"")
            for tick in by_tick(merged(parameters, samples)):
                play_ticks(releaser, [tick])
            estimate = releaser.estimate()
            assert estimate is not None
            assert estimate.value is not None
            assert estimate.samples == len(samples)
            total += (estimate.value - parameters.grid.mean_value(Fraction(mean), 1)) / estimate.noise_sd
        assert abs(total) <= 4 * sqrt(400)


@settings(max_examples=80)
@given(st.sampled_from(CASES), bursts(), VALUES, CHOICES)
def test_the_bias_is_within_its_bound(
    parameters: Sharp, rows: list[Burst], values: list[int], choices: list[int]
) -> None:
    """For any data and any clip range: what is left out, and how far what is in is clipped, in parts of the range."""
    samples, run, sent = capped(rows, parameters, values), Run(parameters, choices), 0
    for tick in by_tick(contributions(parameters, samples)):
        run.tick(tick)
    releaser, steps = run.releaser, parameters.grid.steps
    if not releaser._cap:
        return
    # given how far each kind of element may be clipped, per sample
    low, high = (parameters.buckets.boundaries[end] for end in releaser.head()[1][1:])
    clipped, blocks = Fraction(0), 0
    for contribution in contributions(parameters, samples):
        level, size = contribution.level, contribution.samples
        if size > 1 and level - 7 < len(releaser._clips):
            first, last = releaser._clips[level - 7]
            clipped += max(0, first, size * steps - last)
            blocks += size
        sent += size
    singles = releaser._samples - blocks
    clipped += singles * max(low, steps - high)
    left_out = 1 - Fraction(releaser._samples, len(samples))
    bias = Fraction(releaser._total, releaser._samples) - Fraction(sum(s.value for s in samples), len(samples))
    assert releaser._samples <= sent <= len(samples)
    assert abs(bias) <= left_out * steps + clipped / releaser._samples


def test_candidates_of_a_scale_reach_from_the_range_to_a_step() -> None:
    assert LONG.half_widths[0] == TOP
    assert len(LONG.half_widths) == HALVINGS
    assert COARSE.half_widths == (3, 2, 1)
    assert HALF.octaves == 2
    assert LONG.octaves == 4
