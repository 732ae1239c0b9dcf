"""Subgaussian data: where samples are clipped, what waits for a prior, and that wider data cost accuracy alone."""

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.mechanisms.continual_mean import full as full_module
from shoal.mechanisms.continual_mean.full import Full, FullReleaser
from shoal.mechanisms.continual_mean.levels import TAIL, BlockMean
from shoal.mechanisms.continual_mean.multi_tree import MultiTree
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.selection.median import bins, costs
from shoal.mechanisms.statistic import Contribution
from tests.mechanisms.mechanism_cases import KEY, Sample, contributions, lowest, mean, play
from tests.support.cover import in_a_loop
from tests.support.effort import examples

UNITS = 6


def full(**more: Any) -> Full:
    """The algorithm over [-1, 3], sigma 1/2."""
    parameters = mean(Full, **({"sigma": Fraction(1, 2)} | more))
    assert isinstance(parameters, Full)
    return parameters


@in_a_loop
@pytest.mark.parametrize("sigma", [Fraction(1, 10**5), Fraction(1, 3), Fraction(1), Fraction(10**4)])
def test_samples_are_clipped_far_outside_the_range_on_the_same_grid_points(sigma: Fraction) -> None:
    parameters = mean(MultiTree, sigma=sigma, steps=1000)
    assert isinstance(parameters, BlockMean)
    grid, samples, step = parameters.grid, parameters.sample_grid, Fraction(4, 1000)
    assert (samples.high - samples.low) / samples.steps == step
    assert (grid.low - samples.low) / step == parameters.margin
    assert 0 <= parameters.margin * step - TAIL * sigma < step
    assert samples.high - grid.high == grid.low - samples.low
    # a value inside and its mirror image outside are both themselves; one beyond 64 sigma is not
    assert samples.clip(-1) == parameters.margin
    assert abs(samples.mean_value(samples.clip(float(-1 - 63 * sigma)), 1) - float(-1 - 63 * sigma)) < float(step)
    assert samples.clip(-(10**300)) == 0
    assert samples.clip(10**300) == samples.steps


def test_bounded_data_stay_in_the_range() -> None:
    parameters = mean(Full)
    assert isinstance(parameters, BlockMean)
    assert (parameters.margin, parameters.sample_grid) == (0, parameters.grid)


@pytest.mark.parametrize(
    ("n", "m", "epsilon", "sigma"), [(1000, 100, 1, "0.02"), (7, 1000, 3, "1"), (10**6, 2, 1, "9")]
)
def test_constants_scale_with_sigma_and_all_levels_clip(n: int, m: int, epsilon: int, sigma: str) -> None:
    parameters = Full(
        grid=Grid(Fraction(-2), Fraction(2), 1 << 20),
        epsilon=Fraction(epsilon),
        max_contributions=m,
        users=n,
        sigma=Fraction(sigma),
    )
    top, step = math.ceil(math.log2(m)), 4 / 2**20
    spread, beta = 2 * (float(sigma) + step / 2), 1e-3 / (3 * top)
    assert len(parameters.levels) == top + 1
    for level in parameters.levels:
        ell = max(1, level.index)
        choices = max(1.0, 2 ** (ell / 2) * 4 / spread)
        assert level.bins == math.ceil(2 ** (ell / 2) * 4 / spread / 2)
        k = 16 * 2 * top / epsilon * math.log(choices / beta)
        assert level.arrays == math.floor(k / 2)
        hoeffding = spread / 2 * math.sqrt(2 * level.weight * math.log(2 * n * (1 + top) / (1e-3 / 3)))
        prior = spread * math.sqrt(2**ell * math.log(2 * level.arrays / beta))
        assert 0 <= level.half_width * step - hoeffding - prior < 2e-5
        assert level.tree.width == 2 * level.half_width
        assert level.tree.scale == level.tree.width * n.bit_length() * 2 * (top + 1) / Fraction(epsilon)


@in_a_loop
@pytest.mark.parametrize("level", range(1, 12))
@pytest.mark.parametrize("scatter", [Fraction(1, 97), Fraction(1, 2), Fraction(2, 3), Fraction(1), Fraction(5)])
def test_half_a_bin_is_no_wider_than_the_claim_allows(level: int, scatter: Fraction) -> None:
    count = bins(level, scatter)
    assert Fraction(1, 2 * count) ** 2 * 2**level <= scatter**2
    assert count == 1 or Fraction(1, 2 * (count - 1)) ** 2 * 2**level > scatter**2


def test_means_outside_the_range_count_for_the_bin_at_that_end() -> None:
    assert costs([-90, -1, 0, 3, 99], full=10, count=2) == [1, 4]


@in_a_loop
@pytest.mark.parametrize("m", [1, 2, 3, 8, 9])
def test_the_budget_is_used_up_to_the_last_prior(m: int) -> None:
    parameters = full(m=m, groups=3, epsilon=Fraction("0.7"))
    priors = [level for level in parameters.levels if level.index >= parameters.first]
    trees = sum((level.tree.epsilon for level in parameters.levels), Fraction(0))
    assert 3 * (trees + parameters.prior_epsilon * len(priors)) == parameters.epsilon
    assert len(priors) == parameters.top


def test_nothing_is_released_before_the_first_prior_and_then_both_first_levels_are() -> None:
    parameters = full(epsilon=Fraction(100), users=40, m=8)
    releaser = parameters.releaser(KEY, b"")
    arrays = parameters.levels[1].arrays
    assert arrays > 1
    # given first samples, of which one too few, and second samples
    for user in range(arrays - 1):
        assert releaser.add(Contribution(0, f"{user:032x}", 1, 0, 1, parameters.margin)) == ()
        assert releaser.add(Contribution(0, f"{user:032x}", 2, 1, 1, parameters.margin)) == ()
    assert releaser.estimate() is None
    # when one more comes, then levels 0 and 1 count
    (first,) = releaser.add(Contribution(1, "x", 1, 0, 1, parameters.margin))
    assert (first.level, first.samples, first.epsilon) == (1, arrays, parameters.prior_epsilon)
    assert -1 <= first.prior <= 3
    estimate = releaser.estimate()
    assert estimate is not None
    assert estimate.samples == 2 * arrays - 1


@pytest.mark.parametrize("mu", [-1.0, 0.3, 2.9])
def test_a_mean_far_from_the_middle_is_found_although_samples_leave_the_range(mu: float) -> None:
    """Values mu -/+ sigma, of which some are outside the range; nothing is cut off."""
    parameters = full(sigma=Fraction(1, 4), epsilon=Fraction(10**6), users=300, m=8)
    grid = parameters.sample_grid
    rows = [
        Sample(j, f"{i:032x}", grid.clip(mu + (0.25 if (i + j) % 2 else -0.25)) - lowest(parameters))
        for j in range(8)
        for i in range(300)
    ]
    sent = contributions(parameters, rows)
    estimates, activations = play(parameters.releaser(KEY, b""), sent)
    assert [activation.level for _, activation in activations] == [1, 2, 3]
    assert estimates[-1] is not None
    assert estimates[-1].samples == 2400
    assert estimates[-1].value == pytest.approx(mu, abs=1e-3)


ROWS = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, UNITS - 1), st.integers(-600, 600)), min_size=1, max_size=60
)


@examples(30)
@given(rows=ROWS, unit=st.integers(0, UNITS - 1), other_value=st.sampled_from([-600, 0, 16, 600]))
@example(rows=[(at, at % 3, -600) for at in range(24)], unit=0, other_value=600)
def test_neighbours_however_far_outside_differ_by_no_more_than_the_noise_is_for(
    rows: list[tuple[int, int, int]], unit: int, other_value: int
) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(Full, "half_width", lambda _, level: level)
        # given the same priors in both streams: over their choice the mechanism composes
        seen: list[tuple[int, ...]] = []

        def choose(totals: list[int], full: int, count: int, epsilon: Fraction, words: object) -> int:
            seen.append(tuple(totals))
            return 0

        monkeypatch.setattr(full_module, "median_bin", choose)
        parameters = full(epsilon=Fraction(3000), users=2, m=8, steps=16)
        counts = [0] * UNITS
        one = []
        for at, who, value in rows:
            counts[who] += 1
            if counts[who] <= 8:
                one.append(Sample(at, f"{who:032x}", value))
        name = f"{unit:032x}"
        two = [s._replace(value=other_value) if s.unit == name else s for s in one]
        states, calls = [], []
        for samples in (one, two):
            releaser = parameters.releaser(KEY, b"")
            assert isinstance(releaser, FullReleaser)
            state = []
            for contribution in contributions(parameters, samples):
                activated = releaser.add(contribution)
                state.append(([a.level for a in activated], *releaser.head()[1:]))
            states.append(state)
            calls.append(seen[:])
            seen.clear()
        # then as many arrays were asked, and one of each prior differs at most
        assert [len(totals) for totals in calls[0]] == [len(totals) for totals in calls[1]]
        for totals, others in zip(*calls, strict=True):
            assert sum(a != b for a, b in zip(totals, others, strict=True)) <= 1
        # and each level's sums move at most once, by its width
        before = [0] * len(parameters.levels)
        moved = [0] * len(parameters.levels)
        for (levels, left, sums), (same, right, others_sums) in zip(*states, strict=True):
            assert (levels, left) == (same, right)
            changes = [a - b for a, b in zip(sums, others_sums, strict=True)]
            moved = [m + abs(now - old) for m, now, old in zip(moved, changes, before, strict=True)]
            before = changes
        for level, most in zip(parameters.levels, moved, strict=True):
            assert most <= level.tree.width == 2 * level.half_width


def test_a_sigma_that_cannot_be_served_is_refused() -> None:
    with pytest.raises(ValueError, match="sigma must be greater than 0"):
        full(sigma=Fraction(0))
    with pytest.raises(ValueError, match="sigma is too large for so many grid steps"):
        full(sigma=Fraction(10**12), m=2**20)
    with pytest.raises(ValueError, match="narrow range, or raise sigma"):
        full(sigma=Fraction(1, 10**5), m=2**20)
    assert mean(MultiTree, sigma=Fraction(1, 10**9), m=2**20)
