"""The private centre: its exact law against e**epsilon, over all small inputs and all changes of one unit's samples."""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.selection import clip_range, exponential
from tests.mechanisms.continual_mean.subgaussian.subgaussian_cases import Call, run, subgaussian
from tests.mechanisms.mechanism_cases import Sample
from tests.support.cover import in_a_loop

EPSILON = Fraction(3, 2)
BUCKETS = 5


def call(counts: Sequence[int], epsilon: Fraction = EPSILON) -> Call:
    """What is asked of the exponential mechanism."""
    seen: list[Call] = []

    def choose(costs: Sequence[int], rate: Fraction, words: object) -> int:
        seen.append(Call(list(costs), rate))
        return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exponential, "choose", choose)
        clip_range.bucket(counts, epsilon, iter(()))
    (only,) = seen
    return only


def logs(asked: Call) -> list[float]:
    """The logarithms of the candidates' probabilities."""
    weights = [-float(asked.rate) * cost for cost in asked.costs]
    whole = math.log(sum(map(math.exp, weights)))
    return [weight - whole for weight in weights]


def histogram(values: Sequence[int]) -> list[int]:
    return [values.count(bucket) for bucket in range(BUCKETS)]


def worst(epsilon: Fraction, size: int) -> float:
    """The largest log ratio over all data sets of that many values and all replacements of one of them."""
    sets = list(itertools.combinations_with_replacement(range(BUCKETS), size))
    laws = {values: logs(call(histogram(values), epsilon)) for values in sets}
    pairs = (
        (laws[values], laws[tuple(sorted((*values[:i], value, *values[i + 1 :])))])
        for values in sets
        for i in range(size)
        for value in range(BUCKETS)
    )
    return max(abs(a - b) for one, other in pairs for a, b in zip(one, other, strict=True))


@in_a_loop
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_the_law_is_within_epsilon(size: int) -> None:
    assert worst(EPSILON, size) <= EPSILON + Fraction(1, 10**9)


def told(before: Sequence[int], after: Sequence[int], buckets: int = 4000) -> float:
    """The largest log ratio where these values lie in so many buckets."""
    both = []
    for values in (before, after):
        counts = [0] * buckets
        for value in values:
            counts[value] += 1
        both.append(logs(call(counts)))
    return max(abs(a - b) for a, b in zip(both[0], both[1], strict=True))


def test_the_law_reaches_epsilon_where_buckets_are_many() -> None:
    """The rate could not be larger: a value below another one moves far above it, and most buckets lie between."""
    assert 0.998 * EPSILON < told([0, 2], [3999, 2]) <= EPSILON


@given(st.lists(st.integers(0, BUCKETS - 1), min_size=1, max_size=9), st.integers(0, BUCKETS - 1))
def test_one_value_moves_costs_by_two_at_most(values: list[int], value: int) -> None:
    one, two = (call(histogram(v)).costs for v in (values, [value, *values[1:]]))
    assert max(abs(a - b) for a, b in zip(one, two, strict=True)) <= 2


@given(st.lists(st.integers(0, BUCKETS - 1), min_size=1, max_size=9))
def test_the_bucket_of_the_median_costs_nothing_and_others_by_rank(values: list[int]) -> None:
    asked, ordered, n = call(histogram(values)), sorted(values), len(values)
    assert asked.rate == EPSILON / 4
    for bucket, cost in enumerate(asked.costs):
        below, above = (sum(v < bucket for v in values), sum(v > bucket for v in values))
        assert cost == max(0, 2 * below - n, 2 * above - n)
    assert asked.costs[ordered[n // 2]] == asked.costs[ordered[(n - 1) // 2]] == 0


def test_if_all_values_share_a_bucket_it_is_chosen_and_no_boundary_far_away() -> None:
    asked = call([0, 0, 60, 0, 0])
    assert asked.costs == [60, 60, 0, 60, 60]


def test_two_numbers_of_a_unit_would_break_it() -> None:
    """Why a unit gives its mean, and not its blocks."""
    assert told([0, 0, 2, 2], [3999, 3999, 2, 2]) > 1.9 * EPSILON


def test_each_unit_gives_one_number_whatever_it_gave() -> None:
    """All samples of one unit change, of up to five blocks: there is one value of each unit, and one moves."""
    parameters = subgaussian(epsilon=Fraction(60), m=16, users=6, steps=64, sigma=Fraction(1, 8), horizon=3)
    found = []
    for value in (-600, 64 + 600):
        samples = [
            Sample(0, f"{unit:032x}", value if unit == 0 else 8 * unit) for unit in range(6) for _ in range(16 - unit)
        ]
        found.append(run(parameters, samples))
    (one,), (two,) = (each.calls for each in found)
    assert one.rate == two.rate == parameters.share(found[0].releaser._start) * 60 / 4  # type: ignore[arg-type]
    moved = [a - b for a, b in zip(one.costs, two.costs, strict=True)]
    assert max(map(abs, moved)) == 2
    assert max(one.costs) <= 6
