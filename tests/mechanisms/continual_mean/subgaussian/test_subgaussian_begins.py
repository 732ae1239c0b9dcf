"""The sharp mean with sigma: when it begins and how, what it costs, and how near it comes to the mean."""

import random
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.continual_mean.sharp.cap import Forecast
from shoal.mechanisms.continual_mean.sharp.parameters import RELEASES
from shoal.mechanisms.continual_mean.statistic import ContinualMean
from shoal.mechanisms.continual_mean.subgaussian import Subgaussian
from shoal.mechanisms.continual_mean.subgaussian.bounder import Doubling
from shoal.mechanisms.continual_mean.subgaussian.forecast import SubgaussianProspect
from shoal.mechanisms.continual_mean.subgaussian.parameters import LEAST_SHARE, MOST_SHARE, REACHES
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.statistic import Contribution
from shoal.mechanisms.workload import Pattern
from shoal.models.config.metric import MetricSection
from tests.mechanisms.continual_mean.subgaussian.subgaussian_cases import run, subgaussian
from tests.mechanisms.mechanism_cases import Sample, lowest
from tests.support.cover import in_a_loop
from tests.support.effort import examples

TICKS = 40
STEPS = 1 << 16


def wide(**more: Any) -> Subgaussian:
    """A range a hundred times as wide as sigma."""
    settings: dict[str, Any] = {"users": 500, "max_contributions": 16, "horizon": TICKS, "clamps": True}
    settings |= {"grid": Grid(Fraction(0), Fraction(100), STEPS), "epsilon": Fraction(1), "sigma": Fraction(1)}
    return Subgaussian(**(settings | more))


def stream(parameters: Subgaussian, users: int, each: int, mean: float = 40.0, seed: int = 1) -> list[Sample]:
    """Normal samples of so many users, at constant rates."""
    drawn, grid = random.Random(seed), parameters.sample_grid
    return sorted(
        Sample(TICKS * (index * users + user) // (users * each), f"{user:032x}",
               grid.clip(drawn.gauss(mean, 1.0)) - lowest(parameters))
        for user in range(users) for index in range(each)
    )  # fmt: skip


# ---------------------------------------------------------------- blocks


@given(st.integers(1, 5000))
def test_blocks_double_and_end_with_the_cap(m: int) -> None:
    doubling = Doubling(m)
    assert doubling.ends[0] == 1
    assert doubling.ends[-1] == sum(doubling.weights) == m
    assert all(2 * before >= end for before, end in zip(doubling.ends, doubling.ends[1:], strict=False))
    assert sum(doubling.gains) == int((m << 16) ** 0.5)


# ---------------------------------------------------------------- when it begins


def test_it_waits_for_units_then_until_a_sixteenth_of_the_time_is_over_then_for_half_of_it() -> None:
    parameters = wide(horizon=64)
    assert (parameters.least_units, parameters.ready_units, parameters.patience) == (200, 250, 4)
    assert parameters.begin([0] * 5, 1) is None
    assert parameters.begin([199, 0, 0, 0, 0], 31) is None
    assert parameters.begin([200, 100, 0, 0, 0], 3) is None
    begun = parameters.begin([200, 100, 0, 0, 0], 4)
    assert begun is not None
    assert begun.units == 200
    unknown = parameters.begin([199, 0, 0, 0, 0], 32)
    assert unknown is not None
    assert (unknown.units, unknown.slack) == (0, STEPS // 2)
    # and with many units whose means are exact at once
    assert parameters.begin([4000] * 5, 1) is not None


@pytest.mark.parametrize(("users", "ticks"), [(50, 4), (1, 8)])
def test_with_too_few_users_expected_it_does_not_wait_for_more(users: int, ticks: int) -> None:
    parameters = wide(users=users, horizon=64)
    assert parameters.begin([40, 0, 0, 0, 0], ticks - 1) is None
    assert parameters.begin([40, 0, 0, 0, 0], ticks) is not None


def test_without_a_horizon_it_is_as_long_as_other_sharp_means_expect() -> None:
    assert wide(horizon=None).releases == RELEASES
    assert wide(horizon=16_000, each=True).patience == 250


def test_it_decides_less_often_the_longer_it_waits() -> None:
    parameters = wide(horizon=100_000)
    assert parameters.begin([100] * 5, 50_000 + 255) is None
    assert parameters.begin([100] * 5, 50_176) is not None


def test_a_range_as_narrow_as_sigma_needs_no_centre() -> None:
    narrow = wide(grid=Grid(Fraction(0), Fraction(1), STEPS), users=100_000)
    begun = narrow.begin([100_000] * 5, 3)
    assert begun is not None
    assert begun.units == narrow.share(begun) == 0


def test_without_noise_to_speak_of_nothing_is_chosen() -> None:
    begun = wide(epsilon=Fraction(10**9)).begin([1, 0, 0, 0, 0], 1)
    assert begun is not None
    assert (begun.cap, begun.units) == (16, 0)


@examples(60)
@given(
    reached=st.lists(st.integers(0, 10**6), min_size=5, max_size=5),
    ticks=st.integers(1, 127),
    epsilon=st.sampled_from([Fraction(1, 100), Fraction(1), Fraction(30)]),
    users=st.sampled_from([1, 90, 10**5]),
)
def test_every_beginning_is_one_that_can_be_paid(reached: list[int], ticks: int, epsilon: Fraction, users: int) -> None:
    parameters = wide(epsilon=epsilon, users=users)
    begun = parameters.begin(reached, ticks)
    if begun is None:
        assert not reached[0] or ticks < 8 * parameters.patience
        return
    assert begun.cap in parameters.doubling.ends
    assert begun.units in (0, reached[0])
    assert begun.slack > 0
    share = parameters.share(begun)
    assert share == 0 if not begun.units else LEAST_SHARE <= share <= MOST_SHARE
    assert 0 < parameters.counter(begun).epsilon == epsilon * (1 - share)


def test_the_reach_grows_with_units_and_epsilon() -> None:
    found = [wide(users=users).begin([users] * 5, 5) for users in (300, 3000, 10**6, 10**8)]
    reaches = [begun.reach for begun in found if begun is not None]
    assert len(reaches) == 4
    assert reaches == sorted(reaches)
    assert reaches[0] < 3 < reaches[-1]


def test_what_lies_beyond_the_reach_is_bounded_by_the_tail() -> None:
    """The integral of exp(-t**2 / 2) beyond z, from above, as the table says it, and no larger than it must be."""
    for z, beyond in REACHES:
        start, step = float(z), 1e-4
        area = sum(step * 2.718281828459045 ** (-((start + i * step) ** 2) / 2) for i in range(70_000))
        assert 0.99 * float(beyond) <= area <= float(beyond)


def test_the_slack_is_that_of_the_formula() -> None:
    parameters = wide()
    sigma = STEPS / 100 + 0.5  # of a sample on the grid
    bucket = (STEPS + 2 * -(-8 * STEPS // 100)) / 4096
    begun = parameters.begin([400, 400, 400, 0, 0], 30)  # all units have four samples
    assert begun is not None
    expected = sigma / 2 * (6 / 80 * 2.51 + 1.25 / 20) + bucket
    assert begun.slack == pytest.approx(expected, abs=1.001)


def test_a_cap_weighs_the_width_of_blocks_not_their_number() -> None:
    """Sixteen samples in blocks cost as much as some nine one by one, so more of them pay."""
    parameters = wide(max_contributions=1024, epsilon=Fraction(2), users=1000)
    forecast = Forecast(units=400, samples=3200, users=1000, longer=Fraction(4), releases=TICKS)
    start = parameters._start(forecast, 400, 0, 0)
    assert start.cap >= 2 * parameters._start(forecast, 0, 100 * STEPS, 0).cap


# ---------------------------------------------------------------- what comes of it


@pytest.mark.parametrize(("users", "each", "mean"), [(500, 16, 40.0), (300, 5, 99.5), (2000, 2, 0.0)])
def test_it_comes_nearer_than_noise_for_the_range_would(users: int, each: int, mean: float) -> None:
    parameters = wide(users=users, max_contributions=each)
    samples = stream(parameters, users, each, mean)
    found = run(parameters, samples)
    # given a centre within three sigma of the mean, which costs a part of epsilon once
    ((tick, activation),) = found.activations
    assert abs(activation.prior - mean) < 3
    assert 0 < activation.epsilon <= parameters.epsilon * MOST_SHARE
    # then before it nothing is known
    assert all(one is not None and one.samples == 0 for one in found.estimates[:tick])
    # and the last release is within what noise explains, which is far below a hundredth of the range
    last = found.estimates[-1]
    assert last is not None
    truth = sum(parameters.grid.mean_value(sample.value, 1) for sample in samples) / len(samples)
    assert last.noise_sd < 0.3
    assert abs(last.value - truth) < 4 * last.noise_sd + 0.05


def test_a_release_is_clamped_to_what_the_mean_of_its_blocks_can_be_and_to_the_range() -> None:
    parameters = wide(users=400, max_contributions=1)
    found = run(parameters, stream(parameters, 400, 1, 0.1))
    bounds = found.releaser.bounds
    assert bounds is not None
    low, high = bounds
    assert low == 0 < high < 20
    for one in found.estimates[-20:]:
        assert one is not None
        assert low <= one.value <= high
    assert run(wide(), []).releaser.bounds is None


def test_users_who_differ_or_lie_at_the_margin_cost_accuracy_alone() -> None:
    """All samples at the end of the margin: the mean is cut off at the range, and says so in no interval."""
    parameters = wide(users=300)
    end = parameters.grid.steps + parameters.margin
    rows = [Sample(row.effective, row.unit, end) for row in stream(parameters, 300, 16)]
    found = run(parameters, rows)
    last = found.estimates[-1]
    assert last is not None
    assert 90 < last.value <= 100
    assert sum(found.elements) == sum(
        high * count for (_, high), count in zip(found.releaser._intervals, found.releaser._counts, strict=False)
    )


def test_a_late_sample_may_bring_a_later_block_first() -> None:
    """A unit's second block comes with an earlier time than its first: it counts, once, with its unit or alone."""
    parameters = wide(epsilon=Fraction(500), horizon=1, users=1)
    samples = [Sample(1, f"{unit:032x}", 30_000) for unit in range(8)]
    released = parameters.releaser(bytes(32), b"")
    at = lowest(parameters) + 30_000
    released.add(Contribution(0, "late", 2, 1, 1, at))
    assert released.close() == ()
    for sample in samples:
        released.add(Contribution(1, sample.unit, 1, 0, 1, at))
    (activation,) = released.close()
    assert activation.samples == 8
    assert released.samples == 9


# ---------------------------------------------------------------- plans


@in_a_loop
@pytest.mark.parametrize(("users", "each", "m"), [(250, 16, 16), (300, 4, 7), (50, 3, 4)])
@pytest.mark.parametrize("every", ["tick", "contribution"])
def test_a_prospect_foretells_the_releases(users: int, each: int, m: int, every: str) -> None:
    is_each = every == "contribution"
    horizon = users * m if is_each else TICKS
    parameters = wide(users=users, max_contributions=m, horizon=horizon, each=is_each, epsilon=Fraction(2))
    samples = stream(parameters, users, each)
    if is_each:
        samples = [Sample(at, sample.unit, sample.value) for at, sample in enumerate(samples)]
    found = run(parameters, samples)
    ahead = parameters.prospect(Pattern.even(users, each), None if is_each else TICKS)
    assert isinstance(ahead, SubgaussianProspect)
    last, told = found.estimates[-1], ahead.at(1.0)
    assert last is not None
    assert told.samples == last.samples
    # users who are in step leave ticks without a block, in which there is no release
    assert told.noise_sd == pytest.approx(last.noise_sd, rel=0.05 if is_each else 0.3)
    early = ahead.at(0.01)
    assert early.samples == 0
    assert early.half_interval == pytest.approx(50)


def test_before_anything_came_nothing_is_foretold() -> None:
    ahead = wide().prospect(Pattern.even(2, 2), 10)
    assert ahead.at(0.0).noise_sd is None
    assert (ahead.at(1.0).samples, ahead.at(1.0).noise_sd) == (0, 50)


def test_parameters_without_a_sigma_are_refused() -> None:
    with pytest.raises(ValueError, match="sigma is missing; add it"):
        subgaussian(sigma=None)


def test_a_metric_says_that_its_guarantee_does_not_rest_on_sigma() -> None:
    given = {
        "name": "m", "topic": "t", "user": "u", "value": "x", "statistic": "mean", "range": [0, 5], "sigma": "1/3",
        "epsilon": 1, "max_contributions": 9, "every": "1h",
    }  # fmt: skip
    section = MetricSection.model_validate(given)
    parameters = ContinualMean.of(section.parts)
    assert isinstance(parameters, Subgaussian)
    assert parameters.sigma == Fraction(1, 3)
    assert parameters.clamps
    assert parameters.epsilon == 1
    assert "it holds whatever values are like, also if they scatter more than sigma says" in ContinualMean.clauses(
        section.parts, ""
    )
