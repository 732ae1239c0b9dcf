"""Geometric draws: the inverse of their distribution function, to the last bit."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.noise.geometric import Rate, exactly, geometric, until_success
from shoal.mechanisms.noise.keyed import Bits, derive
from tests.mechanisms.mechanism_cases import KEY
from tests.support.effort import examples, tries

WORDS = st.lists(st.integers(1, 2**64 - 1), min_size=6, max_size=6)
EXPONENTS = st.fractions(Fraction(1, 10**9), 60)


def decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / value.denominator


def endless(words: list[int]) -> Iterator[int]:
    return itertools.chain(words, itertools.repeat(1))


def uniform(words: list[int]) -> Decimal:
    """The number with these digits, to 115 decimal places."""
    return sum((Decimal(word) / Decimal(2) ** (64 * place) for place, word in enumerate(words, 1)), Decimal(0))


@examples(60)
@given(WORDS, EXPONENTS)
def test_it_is_the_whole_part_of_an_exponential(words: list[int], rate: Fraction) -> None:
    with localcontext(prec=200):
        k = geometric(exactly(rate), endless(words))
        assert (-decimal(rate) * (k + 1)).exp() <= uniform(words) <= (-decimal(rate) * k).exp()


@examples(60)
@given(WORDS, EXPONENTS)
def test_failures_end_by_the_law_of_a_toss_each(words: list[int], exponent: Fraction) -> None:
    with localcontext(prec=200):
        failure = 1 - (-decimal(exponent)).exp()
        k = geometric(until_success(exponent), endless(words))
        below, above = failure.ln() * (k + 1), failure.ln() * k
        assert below <= uniform(words).ln() <= above


@pytest.mark.parametrize("k", [1, 7])
def test_where_64_bits_leave_it_open_more_are_read(k: int) -> None:
    """The uniform number lies at a border of two outcomes: its first three words are those of exp(-k / 3)."""
    with localcontext(prec=200):
        digits = int((-Decimal(k) / 3).exp() * (1 << 192))
    words = [digits >> 128, digits >> 64 & (1 << 64) - 1, digits & (1 << 64) - 1]
    further = iter([*words, 0, *words, (1 << 64) - 1])  # the border's further digits are neither nothing nor all
    assert geometric(exactly(Fraction(1, 3)), further) == k
    assert len(list(further)) == 4, "four words, for three say nothing"
    above = [words[0], words[1], words[2] + 1, 0]
    assert geometric(exactly(Fraction(1, 3)), iter(above)) == k - 1


def test_a_uniform_number_of_no_ones_is_read_on() -> None:
    assert geometric(exactly(Fraction(1)), iter([0, 1 << 63])) == 45  # 2**-65


@pytest.mark.parametrize(
    ("rate", "failure"),
    [
        (exactly(Fraction(1, 2)), math.exp(-0.5)),
        (until_success(Fraction(1, 5)), 1 - math.exp(-0.2)),
        (until_success(Fraction(2)), 1 - math.exp(-2)),
    ],
)
def test_draws_have_the_law(rate: Rate, failure: float) -> None:
    runs, bits = tries(3000), Bits(derive(KEY, "geometric"))
    found = Counter(min(geometric(rate, bits.draw(index)), 8) for index in range(runs))
    law = np.array([(1 - failure) * failure**k for k in range(8)] + [failure**8]) * runs
    squares = sum((found[k] - expected) ** 2 / expected for k, expected in enumerate(law) if expected > 0.5)
    assert squares < 50  # eight degrees of freedom: in one of 10 million


def test_a_rate_must_be_above_0() -> None:
    with pytest.raises(ValueError, match="rate must be greater than 0"):
        exactly(Fraction(0))
    with pytest.raises(ValueError, match="exponent must be greater than 0"):
        until_success(Fraction(0))
