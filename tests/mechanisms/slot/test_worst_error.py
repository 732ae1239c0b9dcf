"""Bias and sensitivity of mean and variance by brute force over all values of few samples."""

import itertools
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.slot.worst_error import (
    mean_and_variance_error,
    mean_error,
    variance_bias,
    variance_error,
    variance_sensitivity,
)
from tests.mechanisms.slot.cell_cases import EPSILONS
from tests.support.cover import in_a_loop


def variance(values: tuple[int, ...]) -> Fraction:
    mean = Fraction(sum(values), len(values))
    return sum(((value - mean) ** 2 for value in values), Fraction(0)) / len(values)


@in_a_loop
@pytest.mark.parametrize("samples", range(1, 7))
def test_what_is_left_out_can_do_just_what_is_said(samples: int) -> None:
    cells = list(itertools.product(range(3), repeat=samples))
    for kept in range(1, samples + 1):
        means = max(abs(Fraction(sum(x), samples) - Fraction(sum(x[:kept]), kept)) for x in cells)
        assert means == 2 * (1 - Fraction(kept, samples))
        variances = max(abs(variance(x) - variance(x[:kept])) for x in cells)
        assert variances == Fraction(4 * variance_bias(kept, samples), samples**2)


def test_one_sample_of_six_tells_nothing_of_the_variance() -> None:
    """In print the two cases of the bias are exchanged, which would state 5/36 here, and 1/4 for five of six."""
    assert Fraction(variance_bias(kept=1, samples=6), 36) == Fraction(1, 4)
    assert Fraction(variance_bias(kept=5, samples=6), 36) == Fraction(5, 36)


@given(st.integers(1, 10**6))
def test_one_sample_moves_the_variance_by_the_square_of_the_range(users: int) -> None:
    """Of users with one sample each: U**2 (L - 1) / L**2; in print the last square is missing."""
    assert Fraction(variance_sensitivity(users, 1), users**2) == Fraction(users - 1, users**2)


@given(st.integers(1, 400), st.integers(0, 400), st.data(), EPSILONS, st.fractions(Fraction(1, 100), 100))
def test_errors_are_the_worst_bias_and_the_size_of_the_noise(
    kept: int, dropped: int, data: st.DataObject, epsilon: Fraction, width: Fraction
) -> None:
    most, samples = data.draw(st.integers(1, kept)), kept + dropped
    biases = 1 - Fraction(kept, samples), Fraction(variance_bias(kept, samples), samples**2)
    moves = Fraction(most, kept), Fraction(variance_sensitivity(kept, most), kept**2)
    assert mean_error(kept, most, samples, epsilon) == biases[0] + moves[0] / epsilon
    assert variance_error(kept, most, samples, epsilon) == biases[1] + moves[1] / epsilon
    # jointly with half of epsilon each, and in units of the range
    expected = width * biases[0] + width**2 * biases[1] + 2 * (width * moves[0] + width**2 * moves[1]) / epsilon
    assert mean_and_variance_error(kept, most, samples, epsilon, width) == expected
