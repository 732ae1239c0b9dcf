"""The private quantile: its runs of cells, its costs, and its exact law, bit by bit and against e**epsilon."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.mechanisms.noise.keyed import Bits, derive
from shoal.mechanisms.selection.exact_quantile import choose, exp, nearest, pick, powers, runs, weights
from tests.mechanisms.mechanism_cases import KEY
from tests.support.cover import in_a_loop
from tests.support.effort import examples

few = examples(15)
CELLS, COUNT = 5, 3
QS = [Fraction(0), Fraction(1, 10), Fraction(1, 3), Fraction(1, 2), Fraction(9, 10), Fraction(1)]
VALUES = st.lists(st.integers(0, 40), min_size=1, max_size=12)
WORDS = st.lists(st.integers(0, 2**64 - 1), min_size=8, max_size=8)


def cost(values: Sequence[int], cell: int, q: Fraction) -> Fraction:
    """From the definition: how far the rank wanted is from the ranks of a cell."""
    below, upto = sum(value < cell for value in values), sum(value <= cell for value in values)
    return max(below - q * len(values), q * len(values) - upto, Fraction(0))


def law(values: Sequence[int], cells: int, q: Fraction, epsilon: Fraction) -> list[Decimal]:
    """The probability of each cell, to 60 digits."""
    exponents = [-epsilon / 2 * cost(values, cell, q) for cell in range(cells)]
    found = [(Decimal(x.numerator) / x.denominator).exp() for x in exponents]
    return [weight / sum(found) for weight in found]


def endless(words: Sequence[int]) -> Iterator[int]:
    return itertools.chain(words, itertools.repeat(words[-1]))


@few
@given(VALUES, st.sampled_from(QS))
def test_runs_are_all_cells_and_cost_what_their_cells_cost(values: list[int], q: Fraction) -> None:
    found = runs(values, 41)
    assert [cell for run in found for cell in range(run.start, run.start + run.cells)] == list(range(41))
    for run in found:
        for cell in (run.start, run.start + run.cells - 1):
            assert abs(nearest(run, q * len(values)) - q * len(values)) == cost(values, cell, q)


@in_a_loop
@pytest.mark.parametrize("q", QS)
def test_one_value_moves_each_cost_by_one_at_most_and_at_best(q: Fraction) -> None:
    worst = Fraction(0)
    for values in itertools.product(range(CELLS), repeat=COUNT):
        for value in range(CELLS):
            for cell in range(CELLS):
                moved = abs(cost(values, cell, q) - cost((value, *values[1:]), cell, q))
                worst = max(worst, moved)
    assert worst == 1


@in_a_loop
@pytest.mark.parametrize("q", QS)
@pytest.mark.parametrize("epsilon", [Fraction(1, 8), Fraction(2), Fraction(20)])
def test_neighbours_differ_by_at_most_epsilon(q: Fraction, epsilon: Fraction) -> None:
    """All data sets of a few values, all changes of one: analytically, without a sample."""
    with localcontext(prec=60):
        laws = {values: law(values, 4, q, epsilon) for values in itertools.product(range(4), repeat=3)}
        worst = max(
            abs((one / other).ln())
            for values, ones in laws.items()
            for value in range(4)
            for one, other in zip(ones, laws[value, *values[1:]], strict=True)
        )
        bound = Decimal(epsilon.numerator) / epsilon.denominator
        assert bound / 3 < worst <= bound * (1 + Decimal(10) ** -50)


@few
@given(st.fractions(0, 10**6), st.sampled_from([64, 128, 300]))
def test_two_integers_enclose_an_exponential(x: Fraction, bits: int) -> None:
    with localcontext(prec=200):
        true = (-Decimal(x.numerator) / x.denominator).exp() * (1 << bits)
        least, most = exp(x, bits)
        assert 0 <= least <= true <= most <= 1 << bits
        assert most - least <= 3


@few
@given(st.fractions(Fraction(1, 10**6), 100), st.fractions(0, 1), st.sampled_from([64, 192]))
def test_powers_stay_enclosed(rate: Fraction, first: Fraction, bits: int) -> None:
    least, most = powers(rate, first, 20, bits)
    with localcontext(prec=200):
        for k in range(20):
            x = rate * (first + k)
            assert least[k] <= (-Decimal(x.numerator) / x.denominator).exp() * (1 << bits) <= most[k]
            assert most[k] - least[k] <= 5 * (k + 1)


@few
@given(VALUES, st.sampled_from(QS), st.fractions(Fraction(1, 100), 50))
def test_weights_of_runs_enclose_those_of_their_cells(values: list[int], q: Fraction, epsilon: Fraction) -> None:
    found = runs(values, 41)
    least, most = weights(found, q * len(values), epsilon / 2, 128)
    with localcontext(prec=100):
        for run, low, high in zip(found, least, most, strict=True):
            x = epsilon / 2 * cost(values, run.start, q)
            assert low <= (-Decimal(x.numerator) / x.denominator).exp() * (1 << 128) <= high
            assert high - low < 1 << 20


@few
@given(VALUES, st.sampled_from(QS), st.fractions(Fraction(1, 100), 50), WORDS)
@example([20], Fraction(1, 2), Fraction(10), [1 << 62] * 8)  # the cells below 20 have 38 %, and 20 has 23 %
def test_a_run_is_where_the_distribution_passes_the_real_that_the_words_spell(
    values: list[int], q: Fraction, epsilon: Fraction, words: list[int]
) -> None:
    found, wanted = runs(values, 41), q * len(values)
    expected = pick(found, wanted, epsilon, endless(words))
    # by the definition, to 150 digits
    with localcontext(prec=150):
        uniform = Decimal(sum(word << 64 * (7 - i) for i, word in enumerate(words))) / (1 << 512)
        single = law(values, 41, q, epsilon)
        upto = [sum(single[: run.start + run.cells]) for run in found]
        assert next(i for i, total in enumerate(upto) if total > uniform) == expected
    # and at whatever precision it begins
    assert {pick(found, wanted, epsilon, endless(words), precision) for precision in (1, 64, 500)} == {expected}


@pytest.mark.parametrize(("beyond", "run"), [(0, 0), (1, 1)])
def test_what_the_first_bits_leave_open_is_decided_by_more(beyond: int, run: int) -> None:
    # given words that spell the border of two runs to 320 bits
    values, q, epsilon = [1, 2], Fraction(1, 3), Fraction(1)
    with localcontext(prec=150):
        border = int(law(values, 4, q, epsilon)[0] * (1 << 320)) + beyond
    words = [border >> 64 * (4 - i) & (2**64 - 1) for i in range(5)]
    # when a run is picked, which 128 bits cannot tell
    rest = iter([*words, *[0] * 20])
    assert pick(runs(values, 4), q * 2, epsilon, rest) == run
    # then it took 256 bits, and 512
    assert sum(1 for _ in rest) == 25 - 8


def test_cells_are_drawn_with_their_exact_law() -> None:
    values, q, epsilon, bits = [2, 2, 3, 7], Fraction(1, 3), Fraction(2), Bits(derive(KEY, "quantile"))
    drawn = Counter(choose(values, 12, q, epsilon, bits.draw(index)) for index in range(2000))
    for cell, probability in enumerate(map(float, law(values, 12, q, epsilon))):
        assert abs(drawn[cell] - 2000 * probability) <= 5 * math.sqrt(2000 * probability * (1 - probability))


def test_equal_values_and_a_single_cell_take_the_general_path() -> None:
    bits = Bits(derive(KEY, "equal"))
    assert {choose([7] * 9, 1 << 40, Fraction(1, 10), Fraction(200), bits.draw(i)) for i in range(50)} == {7}
    assert {choose([0], 1, Fraction(1, 2), Fraction(1), bits.draw(i)) for i in range(5)} == {0}
    # a quantile of few private draws may be anywhere
    assert len({choose([7] * 9, 1 << 40, Fraction(1, 10), Fraction(1), bits.draw(i)) for i in range(50)}) == 50


def test_what_makes_no_sense_stops() -> None:
    with pytest.raises(ValueError, match="values must be greater than 0"):
        choose([], 4, Fraction(1, 2), Fraction(1), iter([]))
    with pytest.raises(ValueError, match="epsilon must be greater than 0"):
        choose([1], 4, Fraction(1, 2), Fraction(0), iter([]))
    with pytest.raises(ValueError, match="least_value must be at least 0 and below 4"):
        choose([4], 4, Fraction(1, 2), Fraction(1), iter([]))
