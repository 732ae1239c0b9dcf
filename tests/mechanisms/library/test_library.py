"""The library's parameters and streams: what they refuse, what they cost, and that their error bars hold."""

from collections.abc import Iterator
from fractions import Fraction
from statistics import fmean, pvariance
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal.mechanisms
from shoal.mechanisms import (
    Budget,
    Concentrated,
    Counter,
    DecayedCounter,
    DecayedStatistic,
    Exponential,
    FewUsersMean,
    GaussianMechanism,
    Key,
    KeySelection,
    LaplaceMechanism,
    Loss,
    PresenceStatistic,
    SharpMean,
    SlotMean,
    Undecayed,
    Window,
    largest_rho,
)
from shoal.mechanisms.library import keys
from tests.support.cover import in_a_loop
from tests.support.effort import examples

DELTA = Fraction(1, 10**6)
SURE = 10**12  # an epsilon without noise
KEY = Key(bytes(range(32)))
OF_UNIT: dict[str, Any] = {"low": 0, "high": 1, "epsilon": 1, "max_contributions": 2}
HUGE = DecayedCounter(decay=Window(400), epsilon=1, delta=Fraction(1, 1000), width=100)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Each test stands for a process of its own."""
    keys._RELEASED.clear()
    yield
    keys._RELEASED.clear()


REFUSED: dict[str, Any] = {
    "epsilon must be an int or a Fraction, not float": [
        lambda: Counter(epsilon=0.1),  # type: ignore[arg-type]
        lambda: DecayedCounter(decay=Window(3), epsilon=0.1),  # type: ignore[arg-type]
        lambda: LaplaceMechanism(epsilon=0.1),  # type: ignore[arg-type]
        lambda: SharpMean(**OF_UNIT | {"epsilon": 0.1}),
        lambda: DecayedStatistic(statistic="sum", decay=Window(3), **OF_UNIT | {"epsilon": 0.1}),
        lambda: SlotMean(**OF_UNIT | {"epsilon": 0.1}),
        lambda: PresenceStatistic(statistic="sum", **OF_UNIT | {"epsilon": 0.1}),
        lambda: KeySelection(epsilon=0.1, delta=DELTA, horizon=9),  # type: ignore[arg-type]
        lambda: Budget(epsilon=0.1),  # type: ignore[arg-type]
    ],
    "delta must be an int or a Fraction, not float": [
        lambda: Counter(epsilon=1, delta=1e-6, algorithm="square-root", horizon=9),  # type: ignore[arg-type]
        lambda: DecayedCounter(decay=Window(3), epsilon=1, delta=1e-6),  # type: ignore[arg-type]
        lambda: DecayedStatistic(statistic="sum", decay=Window(3), delta=1e-6, **OF_UNIT),  # type: ignore[arg-type]
        lambda: FewUsersMean(delta=1e-6, **OF_UNIT),  # type: ignore[arg-type]
        lambda: PresenceStatistic(statistic="sum", delta=1e-6, **OF_UNIT),  # type: ignore[arg-type]
        lambda: Budget(epsilon=1, delta=1e-6),  # type: ignore[arg-type]
    ],
    "low must be an int or a Fraction, not float": [lambda: SharpMean(**OF_UNIT | {"low": 0.5})],
    "low must be less than high": [lambda: SharpMean(**OF_UNIT | {"low": 1})],
    "rho must be greater than 0": [lambda: GaussianMechanism(rho=0)],
    "epsilon must be greater than 0": [lambda: DecayedCounter(decay=Window(3), epsilon=0)],
    "delta must be 0: the noise is Laplace": [
        lambda: DecayedCounter(decay=Window(3), epsilon=1, delta=DELTA),
        lambda: DecayedStatistic(statistic="sum", decay=Undecayed(), delta=DELTA, **OF_UNIT),
        lambda: PresenceStatistic(statistic="sum", delta=DELTA, **OF_UNIT),
    ],
    "delta must be 0: blue is pure": [lambda: Counter(epsilon=1, delta=DELTA)],
    "delta must be 0 or more": [lambda: DecayedCounter(decay=Undecayed(), epsilon=1, delta=-1)],
    "horizon is missing": [lambda: Counter(epsilon=1, algorithm="binary")],
    "delta must lie between 0 and 1": [
        lambda: FewUsersMean(delta=0, **OF_UNIT),
        lambda: Counter(epsilon=1, algorithm="square-root", horizon=9),
    ],
    "algorithm is": [
        lambda: Counter(epsilon=1, algorithm="tree"),  # type: ignore[arg-type]
        lambda: SlotMean(algorithm="few-users", **OF_UNIT),  # type: ignore[arg-type]
    ],
    "statistic is": [
        lambda: DecayedStatistic(statistic="count", decay=Window(3), **OF_UNIT),  # type: ignore[arg-type]
        lambda: PresenceStatistic(statistic="median", epsilon=1, max_contributions=1),  # type: ignore[arg-type]
    ],
    "a sum needs low and high": [lambda: PresenceStatistic(statistic="sum", epsilon=1, max_contributions=1, low=0)],
    "a count has no low": [lambda: PresenceStatistic(statistic="count", **OF_UNIT)],
    "not both": [
        lambda: PresenceStatistic(
            statistic="count", epsilon=1, max_contributions=1, groups=("a",),
            selection=KeySelection(epsilon=1, delta=DELTA, horizon=9),
        )
    ],
    "users are counted once": [
        lambda: PresenceStatistic(statistic="users", epsilon=1, max_contributions=1, decay=Window(2))
    ],
}  # fmt: skip


@in_a_loop
@pytest.mark.parametrize(("message", "make"), [(said, make) for said, those in REFUSED.items() for make in those])
def test_what_decides_privacy_is_exact_and_complete(message: str, make: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        make()


def test_samples_have_what_the_statistic_needs() -> None:
    mean = SharpMean(**OF_UNIT).open(KEY)
    cells = SlotMean(**OF_UNIT, max_groups=1).open(KEY)
    count = PresenceStatistic(statistic="count", epsilon=1, max_contributions=1).open(KEY)
    for add, message in (
        (lambda: mean.add("ann", 1, "a"), "has no groups"),
        (lambda: cells.add("ann", 1), "has groups: say which"),
        (lambda: mean.add("ann"), "is of values"),
        (lambda: count.add("ann", 1), "takes no value"),
        (lambda: mean.add("ann", float("nan")), "value is not a number"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            add()
    assert (mean.close(), mean.latest(), cells.close()) == ({}, None, {})  # nothing came, and nothing was noted


@pytest.mark.parametrize("x", [1.0, True, Fraction(1)])
def test_what_is_counted_are_integers(x: Any) -> None:
    for take in (Counter(epsilon=1).open(KEY).add, HUGE.open(KEY).add, LaplaceMechanism(epsilon=1).open(KEY).release):
        with pytest.raises(TypeError, match="x must be an int"):
            take(x)


COUNTERS = [
    Counter(epsilon=SURE), Counter(epsilon=SURE, horizon=5), Counter(epsilon=SURE, algorithm="binary", horizon=5),
    Counter(epsilon=10**20, delta=DELTA, algorithm="square-root", horizon=5),
]  # fmt: skip


@in_a_loop
@pytest.mark.parametrize("counter", COUNTERS, ids=lambda counter: counter.algorithm)
@examples(20)
@given(st.lists(st.integers(-9, 9), max_size=12))
def test_a_counter_without_noise_is_exact(counter: Counter, xs: list[int]) -> None:
    keys._RELEASED.clear()
    stream = counter.open(KEY)
    assert [stream.add(x) for x in xs] == [sum(xs[: t + 1]) for t in range(len(xs))]
    assert stream.t == len(xs)


@examples(20)
@given(st.lists(st.integers(-9, 9), max_size=12), st.integers(1, 5))
def test_a_window_without_noise_is_exact(xs: list[int], length: int) -> None:
    keys._RELEASED.clear()
    stream = DecayedCounter(decay=Window(length), epsilon=SURE).open(KEY)
    made = [stream.add(x) for x in xs]
    assert made == [sum(xs[max(0, t + 1 - length) : t + 1]) for t in range(len(xs))]


NOISY: list[Any] = [
    Counter(epsilon=1),
    Counter(epsilon=1, algorithm="binary", horizon=20),
    Counter(epsilon=1, algorithm="square-root", horizon=20, delta=DELTA),
    DecayedCounter(decay=Exponential(Fraction(9, 10)), epsilon=1),
]


@in_a_loop
@pytest.mark.parametrize("counter", NOISY, ids=lambda one: getattr(one, "algorithm", "decayed"))
def test_the_planned_error_is_that_of_the_releases(counter: Any) -> None:
    # given many streams of zeros, each with noise of its own
    runs = 600
    streams = [counter.open(KEY.named("run", number)) for number in range(runs)]
    ends = [float([stream.add(0) for _ in range(13)][-1]) for stream in streams]
    # then their noise has the variance that was planned, and 95 % of the intervals hold what is exact
    assert abs(fmean(ends)) < 5 * counter.noise_sd(13) / runs**0.5
    assert pvariance(ends) == pytest.approx(counter.variance(13), rel=0.25)
    assert counter.noise_sd(13) ** 2 == pytest.approx(counter.variance(13), rel=1e-3)
    held = [low <= 0 <= high for low, high in (stream.interval() for stream in streams)]
    assert 0.92 < fmean(held) < 0.98


def test_before_anything_is_released_there_is_no_interval() -> None:
    for parameters in (Counter(epsilon=1), HUGE):
        with pytest.raises(ValueError, match="nothing was released yet"):
            parameters.open(KEY).interval()


def test_single_numbers_have_the_noise_that_they_say() -> None:
    mechanisms: list[Any] = [LaplaceMechanism(epsilon=1), GaussianMechanism(rho=Fraction(1, 8))]
    for mechanism in mechanisms:
        stream = mechanism.open(KEY)
        made = [stream.release(7) - 7 for _ in range(2000)]
        assert pvariance(made) == pytest.approx(mechanism.variance, rel=0.15)
        assert mechanism.noise_sd**2 == pytest.approx(mechanism.variance)
        assert stream.released == 2000
    assert LaplaceMechanism(epsilon=1).noise_quantile == pytest.approx(3, rel=0.01)  # ln 20


def test_losses_are_what_was_asked_for() -> None:
    assert Counter(epsilon=1, delta=DELTA, horizon=9, algorithm="square-root").loss == Loss(Fraction(1), DELTA)
    assert HUGE.loss == Loss(Fraction(1), Fraction(1, 1000))
    assert HUGE.mechanism == "square-root"
    assert HUGE.variance(500) == pytest.approx(HUGE.noise_sd(500) ** 2, rel=1e-3)
    assert GaussianMechanism(rho=largest_rho(1, DELTA)).loss == Concentrated(largest_rho(1, DELTA))
    assert SlotMean(**OF_UNIT, max_groups=3).loss == Loss(Fraction(1))
    assert LaplaceMechanism(epsilon=2).loss == Loss(Fraction(2))
    found = KeySelection(epsilon=2, delta=DELTA, horizon=9)
    assert (
        found.threshold(1)
        == found.crossing.threshold(1)
        > KeySelection(epsilon=2, delta=1 - DELTA, horizon=9).threshold(1)
    )
    assert PresenceStatistic(statistic="sum", **OF_UNIT, selection=found).loss == Loss(Fraction(3), DELTA)
    assert PresenceStatistic(statistic="sum", **OF_UNIT).loss == Loss(Fraction(1))


def test_a_budget_is_charged_or_refused_as_a_whole() -> None:
    budget = Budget(epsilon=1, delta=DELTA)
    assert budget.charge(Loss(Fraction(1), DELTA / 2)) == Loss(Fraction(0), DELTA / 2)
    for loss in (Loss(Fraction(1, 10**9)), Loss(Fraction(0), DELTA)):
        with pytest.raises(ValueError, match="is more than the epsilon 0 and delta 1/2000000 that are left"):
            budget.charge(loss)
    assert budget.charged == Loss(Fraction(1), DELTA / 2)


def test_plans_grow_better_with_users_and_worse_with_less_epsilon() -> None:
    mean = SharpMean(**OF_UNIT, users=10_000)
    less = SharpMean(**OF_UNIT | {"epsilon": Fraction(1, 10)}, users=10_000)
    few, many = (mean.expected_noise_sd(users=users, samples=2, releases=30) for users in (1000, 10_000))
    worse = less.expected_noise_sd(users=10_000, samples=2, releases=30)
    assert few > many < worse
    assert mean.expected_noise_sd(users=1, samples=1, releases=1) == 0.5
    slots = SlotMean(**OF_UNIT)
    assert slots.expected_error([2] * 100) < slots.expected_error([2] * 10)
    sums = DecayedStatistic(statistic="sum", decay=Window(7), **OF_UNIT)
    assert sums.sum_noise_sd(1) <= sums.sum_noise_sd(7)
    assert PresenceStatistic(statistic="mean", **OF_UNIT).count_sd(9) > 0


def test_who_is_over_a_cap_is_told_so_and_does_not_count() -> None:
    mean = SharpMean(**OF_UNIT, max_groups=1).open(KEY)
    assert [mean.add("ann", 1, group) for group in "aaab"] == [None, None, "over_cap", "groups_left_out"]
    cells = SlotMean(**OF_UNIT, max_groups=1).open(KEY)
    assert [cells.add("ann", 1, "a") for _ in range(3)] == [None, None, "over_cap"]
    assert cells.close()["a"].samples == 2
    assert cells.add("ann", 1, "a") is None  # another slot
    count = PresenceStatistic(statistic="count", epsilon=SURE, max_contributions=2, groups=("a", "b")).open(KEY)
    assert [count.add("ann", group=group) for group in "acab"] == [None, "undeclared", None, "over_cap"]
    assert {group: estimate.value for group, estimate in count.close().items()} == {"a": 2, "b": 0}
    assert count.latest("b") is not None


def test_silent_ticks_release_what_they_do_in_a_run() -> None:
    sums = DecayedStatistic(statistic="sum", decay=Window(2), **OF_UNIT | {"epsilon": SURE}).open(KEY, first=5)
    assert sums.close() == {}
    sums.add("ann", 1)
    values = [round(estimate.value, 6) for _ in range(3) for estimate in sums.close().values()]
    assert (values, sums.tick) == ([1, 1, 0], 9)
    means = DecayedStatistic(statistic="mean", decay=Window(1), **OF_UNIT | {"epsilon": SURE}).open(KEY)
    means.add("ann", 1)
    assert [means.close()[""].value for _ in range(2)] == [1, None]


def test_what_is_no_stable_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = shoal.mechanisms.nothing
    assert set(shoal.mechanisms.__all__) < set(dir(shoal.mechanisms))


def test_a_counter_has_no_window_of_updates() -> None:
    with pytest.raises(ValueError, match="a window of updates is for DecayedStatistic"):
        DecayedCounter(decay=Window(3, of_updates=True), epsilon=1)
