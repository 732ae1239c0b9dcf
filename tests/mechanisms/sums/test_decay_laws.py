"""Laws of every decayed sum of the package, over its blocks' borders, by brute force.

docs/proofs/decay.md: all that is released is a function of R x + z, so a unit that changes the steps by d pays at most
the sum over draws of |R d| / scale. R is what the sum says of its draws; that it is true is the first law.
"""

import itertools
from fractions import Fraction
from math import lcm

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.noise import laplace
from shoal.mechanisms.sums.steps.blue import BlueSteps
from shoal.mechanisms.sums.steps.laplace import LaplaceSteps
from shoal.mechanisms.sums.steps.steps import NoisedSteps
from shoal.mechanisms.sums.sums import Kept
from tests.mechanisms.counters.counter_cases import Injected
from tests.mechanisms.mechanism_cases import Draws, epoch_key
from tests.mechanisms.sums.decay_cases import (
    ALL,
    CASES,
    Case,
    copied,
    every_case,
    linear,
    losses,
    moved,
    name,
    outputs,
    places,
    release,
    some_cases,
    sum_classes,
)
from tests.support.cover import covered, in_a_loop
from tests.support.effort import examples

IN_MUTANTS = (
    "all-windows-patent", "exponential-patent", "polynomial-patent", "table-patent", "window-4-blue-2-2",
    "window-8-patent",
)  # fmt: skip


def test_every_decayed_sum_is_here() -> None:
    assert sum_classes() == set(CASES)
    assert all(type(case.sums()) in CASES for case in ALL)
    assert {case.sums().mechanism for case in ALL} == {"per-step", "blue", "hats", "patent"}


# ---------------------------------------------------------------- privacy


@every_case
@examples(6)
@given(data=st.data())
def test_what_is_released_is_a_function_of_noised_numbers(case: Case, data: st.DataObject) -> None:
    """Steps x + d with draws z, or steps x with draws z + R d: the same releases, bit for bit, for all integers.

    So it is if public silence lies between the steps.
    """
    size = data.draw(st.sampled_from([3, 10**3, 10**18, 10**25]))
    rests = data.draw(st.dictionaries(st.integers(0, case.length - 1), st.integers(1, 25), max_size=3))
    random = data.draw(st.randoms(use_true_random=False))
    sums, times = case.sums(), places(case, rests)
    names = {(node.subkey, node.place) for step in range(1, times[-1] + 1) for node in sums.column(step)}
    draws = {name(*at): random.randint(-size, size) for at in names}
    steps = [random.randint(-size, size) for _ in range(case.length)]
    change = [random.randint(-size, size) for _ in range(case.length)]
    other = [x + d for x, d in zip(steps, change, strict=True)]
    noised = moved(case, draws, dict(zip(times, change, strict=True)))
    assert outputs(case, other, draws, rests) == outputs(case, steps, noised, rests)


@every_case
def test_every_draw_is_one_of_those_said_and_has_the_scale_said(case: Case) -> None:
    injected, sums = Injected(), case.sums(7, Fraction(2, 3))
    with injected.instead():
        summer = sums.summer(epoch_key)
        for _ in range(case.length):
            summer.add(1)
    said = {name(n.subkey, n.place): n.scale for step in range(1, 3 * case.length + 120) for n in sums.column(step)}
    for at in injected.asked:
        assert injected.scales[at[0]] == {said[at]}


@covered(strength=1, keep=[f"1-epsilon0-{name}" for name in IN_MUTANTS])
@every_case
@pytest.mark.parametrize(("width", "epsilon"), [(1, Fraction(1)), (7, Fraction(2, 3))])
def test_the_worst_step_costs_epsilon(case: Case, width: int, epsilon: Fraction) -> None:
    worst = max(width * sum(costs.values()) for costs in losses(case, width, epsilon))
    assert worst == epsilon if case.spends_all else epsilon * Fraction(3, 10) < worst <= epsilon
    sums = case.sums(width, epsilon)
    assert (sums.width, sums.epsilon) == (width, epsilon)


@in_a_loop
@every_case
def test_a_unit_with_several_contributions_pays_no_more(case: Case) -> None:
    """Three contributions, all in one step or over blocks and their borders, up or down by 1 each."""
    steps = losses(case, 3, Fraction(1))[:12]
    # exact: all costs as integers over one denominator, a row of nodes for each step
    common = lcm(*(cost.denominator for costs in steps for cost in costs.values()))
    nodes = sorted({node for costs in steps for node in costs})
    costs = np.array([[int(costs.get(node, 0) * common) for node in nodes] for costs in steps], dtype=np.object_)
    one, two, three = np.array(list(itertools.combinations_with_replacement(range(len(steps)), 3))).T
    worst = max(
        abs(a * costs[one] + b * costs[two] + c * costs[three]).sum(axis=1).max()
        for a, b, c in ((1, 1, 1), (1, 1, -1), (1, -1, 1), (-1, 1, 1))
    )
    assert worst <= common
    assert worst == common or not case.spends_all


@every_case
def test_no_two_draws_have_one_name(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """A draw that stood for two nodes would show as one number seen under one name, with two scales or twice."""
    draws = Draws(monkeypatch)
    summer = case.sums(1 << 20).summer(epoch_key)
    for _ in range(case.length):
        summer.add(0)
    assert len(draws.seen) == len(set(draws.seen.values()))
    sums = case.sums()
    for step in range(1, case.length + 1):
        names = [(node.subkey, node.place) for node in sums.column(step)]
        assert len(names) == len(set(names))


# ---------------------------------------------------------------- what is released


@in_a_loop
@every_case
def test_without_noise_a_release_is_the_decayed_sum(case: Case) -> None:
    steps = [3, 0, 1, 4, 1, 5, 9, 2, 6, 5] * 12
    steps = [x << 20 for x in steps[: case.length]]
    denominator = case.sums().denominator
    counts = case.sums().counts()
    for t, (value, *_) in enumerate(outputs(case, steps, {}), start=1):
        exact = sum(case.weighs(s, t) * steps[s - 1] for s in range(1, t + 1))
        assert value / denominator == pytest.approx(exact, rel=case.tolerance)
        assert counts.add(steps[t - 1]) / denominator == pytest.approx(exact, rel=case.tolerance)


@in_a_loop
@some_cases
def test_variance_is_that_of_the_draws_used(case: Case) -> None:
    """The second moment, by linear algebra: every draw's coefficient in every release."""
    found, sums = linear(case), case.sums()
    for t in range(1, case.length + 1):
        exact = sum(found.coefficients[at][t - 1] ** 2 * laplace.variance(scale) for at, scale in found.scales.items())
        assert sums.variance(t) == pytest.approx(exact, rel=case.stated)


@in_a_loop
@every_case
@pytest.mark.parametrize("t", [1, 5, 16, 1000])
def test_error_bars_follow_the_variance(case: Case, t: int) -> None:
    sums = case.sums(1 << 20)
    sd = sums.variance(t) ** 0.5
    assert sums.noise_sd(t) == pytest.approx(sd, rel=2e-4)
    assert 1.93 * sd < sums.noise_quantile(t) < 2.13 * sd


# ---------------------------------------------------------------- restarts


@covered(strength=1, keep=["1-exponential-per-step", "1-forward-per-step"])
@every_case
@pytest.mark.parametrize("every", [1, 7])
def test_a_restart_changes_no_release(case: Case, every: int) -> None:
    """After each step, and now and then, silence between: from what was written, in the order in which it was."""
    steady, kept = case.sums(1 << 20).summer(epoch_key), dict[int, int]()
    stopping = case.sums(1 << 20).summer(epoch_key)
    for place, x in enumerate([3, 0, 0, -4, 1, 0, 5, 9, 0, 0, 0, 0, 2] * 3):
        if place % every == 0:
            added, dropped = stopping.take_changes()
            kept = {step: y for step, y in kept.items() if step not in set(dropped)} | added
            assert kept == dict(stopping.kept)
            stopping = copied(case, stopping, kept)
        if place in {8, 20, 30}:
            stopping.skip(place)
            steady.skip(place)
        assert release(stopping, x) == release(steady, x)
        assert stopping.t == steady.t


@in_a_loop
@every_case
def test_other_keys_give_other_noise(case: Case) -> None:
    one = case.sums(1 << 20).summer(epoch_key)
    other = case.sums(1 << 20).summer(lambda number: epoch_key(number + 10**6))
    assert all(one.add(0) != other.add(0) for _ in range(case.length))


def test_kept_steps_that_came_and_went_between_two_writes_are_not_written() -> None:
    steps = Kept(2)
    for t, x in enumerate([5, 6, 7, 0], start=1):
        steps.push(t, x)
    assert steps.take_changes() == ({3: 7}, [])
    steps.push(5, 8)
    assert steps.take_changes() == ({5: 8}, [3])
    steps.restore({7: 1, 6: 2})
    assert (list(steps.held), steps.forget(9), steps.take_changes()) == ([6, 7], 3, ({}, [6, 7]))


@pytest.mark.parametrize(
    "steps", [LaplaceSteps(5, Fraction(1)), BlueSteps(5, Fraction(1), 13, 2), BlueSteps(5, Fraction(1), 3, 2)]
)
def test_noise_of_a_span_is_the_sum_of_its_steps_however_one_gets_there(steps: NoisedSteps) -> None:
    """Step by step, in one leap over many trees, forth and back: the same noise."""
    slow, fast = steps.drawn(epoch_key), steps.drawn(epoch_key)
    single = [slow.between(t, t + 1) for t in range(700)]
    for start, end in ((0, 700), (0, 5), (170, 690), (171, 691), (2, 3), (600, 610), (169, 338), (300, 301), (27, 500)):
        assert fast.between(start, end) == sum(single[start:end])


# ---------------------------------------------------------------- silence


@in_a_loop
@every_case
@pytest.mark.parametrize("silent", [1, 3, 10, 40])
def test_skipped_steps_hold_nothing(case: Case, silent: int) -> None:
    """Without noise, to skip is to add 0s, whatever comes before and after."""
    denominator = case.sums().denominator
    with Injected().instead():
        skipping, adding = case.sums().summer(epoch_key), case.sums().summer(epoch_key)
        for summer in (skipping, adding):
            for x in (5 << 30, 0, 7 << 30, 1 << 30, 2 << 30):
                summer.add(x)
        before = skipping.t
        skipping.skip(silent)
        for _ in range(silent):
            adding.add(0)
        for x in (3 << 30, 0, 1 << 30):
            assert skipping.add(x) / denominator == pytest.approx(adding.add(x) / denominator, rel=1e-6)
    assert skipping.t == adding.t == before + silent + 3


@in_a_loop
@pytest.mark.slow
@some_cases
def test_silence_makes_no_variance_larger_than_is_stated(case: Case) -> None:
    """Often and for long, in parts of trees and over whole ones: each release has the variance of its number."""
    rests = {1: 1, 2: 2, 4: 7, 10: 35, 12: 1, 13: 1}
    found, sums = linear(case, rests), case.sums()
    for count, t in enumerate(places(case, rests)):
        exact = sum(found.coefficients[at][count] ** 2 * laplace.variance(b) for at, b in found.scales.items())
        assert exact <= sums.variance(t) * (1 + case.stated)


@in_a_loop
@every_case
def test_a_skip_survives_a_restart(case: Case) -> None:
    summer = case.sums(1 << 20).summer(epoch_key)
    for x in (5, 0, 7):
        summer.add(x)
    summer.skip(6)
    again = copied(case, summer, summer.kept)
    assert [release(again, x) for x in (1, 0, 2)] == [release(summer, x) for x in (1, 0, 2)]


# ---------------------------------------------------------------- arguments


@in_a_loop
@every_case
def test_a_sum_refuses_what_makes_no_sense(case: Case) -> None:
    for width, epsilon in ((0, 1), (1, 0), (1, -1)):
        with pytest.raises(ValueError, match="must be greater than 0"):
            case.sums(width, epsilon)
    with pytest.raises(TypeError, match="must be an int or a Fraction"):
        case.make(1, 0.5)  # type: ignore[arg-type]


@in_a_loop
@every_case
def test_the_key_does_not_show(case: Case) -> None:
    assert "bytes" not in repr(case.sums())
    assert repr(epoch_key(0)) not in repr(case.sums().summer(epoch_key))
