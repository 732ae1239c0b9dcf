"""The sharp mean with sigma against neighbours: all small inputs with every outcome of the choice, and random ones."""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.continual_mean.subgaussian import Subgaussian
from shoal.mechanisms.continual_mean.subgaussian.parameters import REACHES, Start
from shoal.mechanisms.counters.blue import GrowingBlue
from shoal.mechanisms.statistic import Contribution
from tests.mechanisms.continual_mean.subgaussian.subgaussian_cases import Call, Run, run, subgaussian
from tests.mechanisms.mechanism_cases import KEY, Sample
from tests.support.cover import in_a_loop
from tests.support.effort import examples

STARTS = [
    Start(cap=3, units=2, slack=0, reach=0),
    Start(cap=3, units=2, slack=1, reach=0),
    Start(cap=2, units=2, slack=1, reach=3),
    Start(cap=1, units=2, slack=0, reach=0),
    Start(cap=3, units=0, slack=1, reach=0),
]


def tiny(epsilon: int = 150) -> Subgaussian:
    """Four steps for the range, one on either side for samples: seven values that a sample may have."""
    parameters = subgaussian(epsilon=Fraction(epsilon), m=3, users=2, steps=4, sigma=Fraction(1, 64), horizon=3)
    assert (parameters.margin, parameters.sample_grid.steps, parameters.candidates) == (1, 6, (0, 6, 6))
    assert parameters.half_widths(0, slack=0) == (2, 2, 2)
    return parameters


def logs(asked: Call) -> list[float]:
    weights = [-float(asked.rate) * cost for cost in asked.costs]
    most = max(weights)
    whole = most + math.log(sum(math.exp(weight - most) for weight in weights))
    return [weight - whole for weight in weights]


def beginning(monkeypatch: pytest.MonkeyPatch, start: Start, tick: int) -> None:
    """The group begins in this way at this tick: whatever the pattern says, it does not depend on values."""
    monkeypatch.setattr(Subgaussian, "begin", lambda _, reached, ticks: start if ticks >= tick else None)


def losses(parameters: Subgaussian, start: Start, others: Sequence[int], tick: int) -> Iterator[float]:
    """For each outcome, the largest loss between any two sequences of samples of unit 0, by brute force."""
    for chosen in range(parameters.candidates[2] if start.units else 1):
        laws, elements = [], []
        for values in product((-1, 0, 3, 5), repeat=3):
            samples = [Sample(at, "0" * 32, value) for at, value in enumerate(values)]
            samples += [Sample(at, "1" * 32, value) for at, value in enumerate(others)]
            found = run(parameters, sorted(samples), chosen)
            laws.append(logs(found.calls[0])[chosen] if found.calls else 0.0)
            elements.append(found.elements)
        assert all(not any(row[: tick - 1]) for row in elements)
        counter = parameters.counter(start)
        law, moved = np.array(laws), np.array(elements)
        far = np.abs(moved[:, None, :] - moved[None, :, :]).sum(axis=2)
        yield float((np.abs(law[:, None] - law[None, :]) + far * float(counter.epsilon) / counter.width).max())


@in_a_loop
@pytest.mark.parametrize(
    ("start", "others", "tick"),
    [
        (STARTS[0], (3, 5), 3),
        (STARTS[0], (0, 2, 2), 1),
        (STARTS[1], (-1, 3, 0), 1),
        (STARTS[2], (0, 0, 0), 2),
        (STARTS[4], (-1, 3), 1),
    ],
    ids=str,
)
def test_no_inputs_of_one_unit_lose_more_than_epsilon(
    monkeypatch: pytest.MonkeyPatch, start: Start, others: Sequence[int], tick: int
) -> None:
    """All inputs of a unit beside each other, with every outcome: choice and counter together."""
    parameters = tiny()
    beginning(monkeypatch, start, tick)
    found = list(losses(parameters, start, others, tick))
    assert max(found) <= float(parameters.epsilon) * (1 + 1e-9)
    # and the counter's part is reached: its noise could not be smaller
    assert max(found) >= float(parameters.counter(start).epsilon) * (1 - 1e-9)


@in_a_loop
@pytest.mark.parametrize("start", STARTS, ids=str)
@pytest.mark.parametrize("groups", [1, 3, 7])
def test_the_shares_sum_to_epsilon_exactly(start: Start, groups: int) -> None:
    for units, epsilon in product((1, 2, 1000, 10**9), (Fraction(1, 3), Fraction(77, 10))):
        parameters = subgaussian(epsilon=epsilon, groups=groups)
        begun = start._replace(units=units if start.units else 0)
        calls = parameters.group_epsilon * parameters.share(begun)
        assert groups * (calls + parameters.counter(begun).epsilon) == epsilon
        assert calls >= 0 if start.units else calls == 0


ROWS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3), st.integers(-9000, 9000)), min_size=1, max_size=70)


@examples(60)
@given(
    rows=ROWS,
    other=st.lists(st.sampled_from([-9000, -40, 0, 7, 16, 60, 9000]), min_size=70, max_size=70),
    cap=st.sampled_from([1, 2, 4, 8, 16, 19]),
    units=st.sampled_from([0, 1, 4]),
    slack=st.integers(0, 40),
    reach=st.integers(0, len(REACHES) - 1),
    tick=st.integers(1, 7),
    chosen=st.integers(0, 4095),
    restarts=st.sets(st.integers(0, 6)),
)
def test_neighbours_differ_by_no_more_than_is_paid_for(
    rows: list[tuple[int, int, int]], other: list[int], cap: int, units: int, slack: int, reach: int, tick: int,
    chosen: int, restarts: set[int],
) -> None:  # fmt: skip
    parameters = subgaussian(epsilon=Fraction(40), m=19, steps=64, horizon=6)
    counts, one, two = [0] * 4, [], []
    for (at, who, value), instead in zip(sorted(rows, key=lambda row: row[0]), other, strict=False):
        counts[who] += 1
        if counts[who] <= 19:
            one.append(Sample(at, f"{who:032x}", clipped(parameters, value)))
            two.append(one[-1]._replace(value=clipped(parameters, instead)) if who == 0 else one[-1])
    with pytest.MonkeyPatch.context() as monkeypatch:
        beginning(monkeypatch, Start(cap, units, slack, reach), tick)
        first, second = (run(parameters, samples, chosen, restarts) for samples in (one, two))
    assert public(first) == public(second)
    for mine, theirs in zip(first.calls, second.calls, strict=True):
        assert max(abs(a - b) for a, b in zip(mine.costs, theirs.costs, strict=True)) <= 2
        assert mine.rate == theirs.rate == parameters.group_epsilon * parameters.share(Start(cap, units, 0, 0)) / 4
    if first.releaser._start is None:
        assert not first.calls
        return
    moved = sum(abs(a - b) for a, b in zip(first.elements, second.elements, strict=True))
    counter = parameters.counter(first.releaser._start)
    assert isinstance(counter, GrowingBlue)
    assert moved <= counter.width


@in_a_loop
@pytest.mark.parametrize("cap", [1, 2, 8, 19])
def test_a_unit_with_all_its_blocks_at_the_ends_moves_exactly_the_width(
    monkeypatch: pytest.MonkeyPatch, cap: int
) -> None:
    """The bound above is met, and by no other unit's doing: samples lie 64 sigma outside the range, on either side."""
    parameters = subgaussian(epsilon=Fraction(40), m=19, steps=64, horizon=6)
    beginning(monkeypatch, Start(cap, 0, 3, 0), 2)
    ends = -parameters.margin, parameters.grid.steps + parameters.margin
    low, high = (run(parameters, [Sample(at // 4, "0" * 32, end) for at in range(19)]).elements for end in ends)
    counter = parameters.counter(Start(cap, 0, 3, 0))
    assert sum(b - a for a, b in zip(low, high, strict=True)) == counter.width


@pytest.mark.parametrize("epsilon", [Fraction(2), Fraction(60), Fraction(10**9)])
def test_when_it_begins_and_how_depends_on_no_value(epsilon: Fraction) -> None:
    """Unit 0 is one of five, and its samples lie below the range, above it, or in it."""
    parameters = subgaussian(epsilon=epsilon, m=16, users=5, steps=64, horizon=8, sigma=Fraction(1, 8))
    pattern = [(at // 20, at % 5) for at in range(80)]
    published = []
    for value in (-parameters.margin, 64 + parameters.margin, 20):
        samples = [Sample(at, f"{unit:032x}", 20 + unit if unit else value) for at, unit in pattern]
        found = run(parameters, samples, 1600)
        published.append(public(found))
    assert published[0] == published[1] == published[2]
    ((_, activation),) = found.activations
    spent = parameters.group_epsilon - parameters.counter(published[0][2]).epsilon
    assert activation.epsilon == spent


def clipped(parameters: Subgaussian, value: int) -> int:
    """A value in steps above the range's low end, on the samples' grid."""
    return min(max(value, -parameters.margin), parameters.grid.steps + parameters.margin)


def public(found: Run) -> list[Any]:
    """All that is published, but for the values: pattern, and what was charged."""
    releases = [one and (one.noise_sd, one.samples, one.details) for one in found.estimates]
    start = found.releaser._start
    return [releases, found.activations, start, found.releaser.bounds, found.releaser.head()[2]]


def test_a_block_that_comes_twice_while_it_waits_stops() -> None:
    parameters = subgaussian()
    releaser = parameters.releaser(KEY, b"")
    releaser.add(Contribution(0, "a", 1, 0, 1, 5))
    with pytest.raises(ValueError, match="a unit's block number 0 arrived twice"):
        releaser.add(Contribution(1, "a", 1, 0, 1, 5))


@pytest.mark.parametrize(("sigma", "steps", "m"), [("0.001", 64, 100), ("1", 1000, 1), ("50", 7, 33)])
def test_intervals_are_as_wide_as_the_noise_is_made_for(sigma: str, steps: int, m: int) -> None:
    parameters = subgaussian(sigma=Fraction(sigma), steps=steps, m=m)
    for reach, slack, bucket in product(range(len(REACHES)), (0, 3, steps), (0, 5, parameters.candidates[2] - 1)):
        start = Start(m, 1, slack, reach)
        intervals = parameters.intervals(start, parameters.middle(bucket))
        assert len(intervals) == len(parameters.doubling.ends)
        for (low, high), width, weight in zip(
            intervals, parameters.widths(start), parameters.doubling.weights, strict=True
        ):
            assert 0 <= low <= high <= weight * parameters.sample_grid.steps
            assert high - low <= width
        # nobody's values are asked: a width is a function of sigma, cap, slack and reach
        assert sum(parameters.widths(start)) == parameters.counter(start).width


def test_a_cap_leaves_blocks_beyond_it_out() -> None:
    parameters = subgaussian(m=19, horizon=1, epsilon=Fraction(500), steps=64)
    samples = [Sample(0, "0" * 32, 60) for _ in range(19)]
    for cap, expected in ((19, 19), (16, 16), (4, 4), (1, 1)):
        with pytest.MonkeyPatch.context() as monkeypatch:
            beginning(monkeypatch, Start(cap, 0, 200, 6), 1)
            (estimate,) = run(parameters, samples).estimates
        assert estimate is not None
        assert estimate.samples == expected
