"""Listed weights, and formulas that list them: exact, the same on every machine, refused where they are no decay."""

import math
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.sums.formula import formula_weights
from shoal.mechanisms.sums.patent.table_windows import TableWindows
from shoal.mechanisms.sums.weights import MOST, Weights
from tests.support.cover import in_a_loop
from tests.support.effort import examples

LISTS = st.lists(st.fractions(0, 1, max_denominator=20), min_size=1, max_size=12).map(
    lambda weights: [Fraction(1), *sorted(weights, reverse=True)]
)


@examples(60)
@given(LISTS, st.integers(1, 9), st.integers(1, 40))
def test_sums_of_weights_in_blocks_are_those_of_a_loop(listed: list[Fraction], size: int, t: int) -> None:
    weights = Weights.of(listed)
    exact = [weights.weight(age) for age in range(80)]
    assert [Fraction(part, weights.denominator) for part in weights.parts] == [weight for weight in listed if weight]

    def by_blocks(t: int) -> float:
        blocks: dict[int, float] = {}
        for step in range(1, t + 1):
            blocks[(step - 1) // size] = blocks.get((step - 1) // size, 0.0) + exact[t - step]
        return sum(block**2 for block in blocks.values())

    assert weights.block_squares(size, t) == pytest.approx(by_blocks(t))
    assert weights.mean_block_squares(size) == pytest.approx(np.mean([by_blocks(60 + i) for i in range(size)]))
    assert weights.squares(t) == pytest.approx(sum(weight**2 for weight in exact[:t]))
    assert weights.total(t) == pytest.approx(sum(exact[:t]))
    assert weights.recent(t).tolist() == pytest.approx(exact[:t])


@examples(60)
@given(LISTS, st.sampled_from([Fraction(1, 5), Fraction(1, 2), Fraction(1, 20)]))
def test_windows_weigh_no_more_than_the_weights_and_hardly_less(listed: list[Fraction], error: Fraction) -> None:
    """(1 - r) F <= F' <= F, and the budgets of all windows are epsilon."""
    sums = TableWindows(1, Fraction(1), Weights.of(listed), error)
    flat = {aged.age + step: aged.weight / 2**96 for aged in sums.windows for step in range(aged.window.length)}
    for age, weight in enumerate(listed):
        assert float((1 - error) * weight) - 1e-12 <= flat.get(age, 0.0) <= float(weight) + 1e-12
    assert sum(aged.window.epsilon for aged in sums.windows) == 1


@in_a_loop
@pytest.mark.parametrize(
    ("formula", "ages", "weight"),
    [
        ("1/(1+i)^1.5", 400, lambda i: (1 + i) ** -1.5),
        ("exp(-i/20)", 300, lambda i: math.exp(-i / 20)),
        ("0.5 ^ i", 30, lambda i: 0.5**i),
        ("1 / sqrt(1 + i ^ 4 * 9)", 100, lambda i: (1 + 9 * i**4) ** -0.5),
        ("1 - ln(1 + i) / ln(64)", 64, lambda i: 1 - math.log(1 + i) / math.log(64)),
        ("(1000 - i) / 1000 - -0", 1000, lambda i: 1 - i / 1000),
    ],
)
def test_a_formula_is_its_values_rounded_down_to_steps_of_a_trillionth(formula, ages, weight) -> None:
    weights = formula_weights(formula, ages)
    values = [weights.weight(age) for age in range(ages)]
    assert values == pytest.approx([weight(age) for age in range(ages)], abs=2**-40 + 1e-12)
    assert 2**40 % weights.denominator == 0


def test_exact_weights_stay_exact() -> None:
    assert formula_weights("0.5^i", 12).parts == tuple(2**k for k in range(11, -1, -1))


@in_a_loop
@pytest.mark.parametrize(
    ("formula", "ages", "refusal"),
    [
        ("1", 100, "weight at the horizon is still 1, and older steps weigh nothing: it must be at most 1 / 1000"),
        ("1/ln(i+3)", 1000, "weight at the horizon is still 0.145, and older steps weigh nothing"),
        ("1/i", 10, "weight has no value at an age of 0 steps"),
        ("sqrt(0-i)", 10, "weight has no value at an age of 1 steps"),
        ("2/(1+i)", 10, "weight does not lie in [0, 1] at an age of 0 steps"),
        ("1 - i", 10, "weight does not lie in [0, 1] at an age of 2 steps"),
        ("i^0", 11, "weight has no value at an age of 0 steps"),
        ("(i / 10) ^ 2 * (10 - i) / 10", 11, "weight of age 1 rises"),
        ("i / 10 - i * i / 100", 11, "weight of age 1 rises; weights lie in [0, 1] and never rise"),
        ("age", 10, "weight: age is not for formulas; they have numbers, i, + - * / ^, exp, ln and sqrt"),
        ("i < 3", 10, "weight: i < 3 is not for formulas"),
        ("cos(i)", 10, "weight: cos(i) is not for formulas"),
        ("1/(1+i", 10, "character 7: an operator or ) is missing before the end"),
        ("1/(1+i)", MOST + 1, "horizon is 4097 steps; weights by a formula reach at most 4096; make step longer"),
    ],
)
def test_what_is_no_decay_is_refused(formula: str, ages: int, refusal: str) -> None:
    with pytest.raises(ValueError, match=re.escape(refusal)):
        formula_weights(formula, ages)


@in_a_loop
@pytest.mark.parametrize(
    ("weights", "refusal"),
    [
        ([], "weights must be a list of 1 to 4096, one for each age in steps"),
        ([Fraction(1)] * 4097, "weights must be a list of 1 to 4096, one for each age in steps"),
        ([Fraction(1, 2), Fraction(2, 3)], "weight of age 1 rises; weights lie in [0, 1] and never rise"),
        ([Fraction(3, 2)], "weight of age 0 does not lie in [0, 1]; weights lie in [0, 1] and never rise"),
        ([Fraction(1), Fraction(-1, 2)], "weight of age 1 does not lie in [0, 1]; weights lie"),
        ([Fraction(0), Fraction(0)], "weights are all 0; the first is that of the step itself"),
        ([Fraction(1, 10**13 + 1), Fraction(1, 10**14 + 1)], "weights need a common denominator above 1e+24"),
    ],
)
def test_a_list_that_is_no_decay_is_refused(weights: list[Fraction], refusal: str) -> None:
    with pytest.raises(ValueError, match=re.escape(refusal)):
        Weights.of(weights)
