"""Decays as sums of exponentials: how near they are to what they stand for, and that they cost the same for ever."""

import json
from fractions import Fraction

import numpy as np
import pytest

from shoal.mechanisms.decimals import most, power
from shoal.mechanisms.sums.exponentials import RATE_BITS, Exponentials, Running
from tests.support.cover import in_a_loop

EXPONENTS = [Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(101, 100), Fraction(3, 2), Fraction(2), Fraction(16)]


@in_a_loop
@pytest.mark.parametrize("exponent", EXPONENTS, ids=str)
@pytest.mark.parametrize("horizon", [1, 100, 10**7])
def test_polynomial_weights_are_right_to_a_millionth_up_to_the_horizon(exponent: Fraction, horizon: int) -> None:
    decay = Exponentials.polynomial(exponent, horizon)
    ages = np.unique(np.concatenate([np.arange(min(horizon, 300) + 1), np.geomspace(1, horizon, 300).astype(int)]))
    weights = np.sum(np.exp(-np.outer(ages, decay.rates)) * decay.amounts, axis=1)
    assert np.abs(weights * (ages + 1.0) ** float(exponent) - 1).max() < 3e-7
    assert decay.weight(0) == 1
    assert len(decay.weights) < 170


def test_a_running_sum_is_what_its_weights_say() -> None:
    decay = Exponentials.polynomial(Fraction(3, 2), 1000)
    steps = [(5 * t) % 17 << 60 for t in range(200)]
    running = Running(decay)
    for t, x in enumerate(steps):
        value = running.add(x)
        exact = sum(steps[s] * (t - s + 1) ** -1.5 for s in range(t + 1))
        assert value == pytest.approx(exact, rel=1e-6)


@in_a_loop
@pytest.mark.parametrize("steps", [0, 1, 2, 7, 1000])
def test_to_skip_is_to_add_nothing(steps: int) -> None:
    decay = Exponentials.exponential(Fraction(999, 1000))
    one, other = Running(decay), Running(decay)
    for running in (one, other):
        running.add(1 << 70)
    one.skip(steps)
    for _ in range(steps):
        other.add(0)
    assert one.value == pytest.approx(other.value, rel=1e-12)
    again = Running(decay)
    again.restore(json.loads(json.dumps(one.head())))
    assert again.add(3) == one.add(3)


def test_half_a_life_later_half_is_left() -> None:
    decay = Exponentials.half_life(Fraction(24))
    assert [round(decay.weight(24 * n), 12) for n in range(4)] == [1, 0.5, 0.25, 0.125]
    assert decay.squares(10**6) == pytest.approx(sum(0.5 ** (a / 12) for a in range(2000)), rel=1e-9)


def test_weights_are_the_same_whether_asked_for_alone_or_together() -> None:
    decay = Exponentials.polynomial(Fraction(2), 50)
    assert decay.recent(20).tolist() == pytest.approx([decay.weight(age) for age in range(20)], rel=1e-9)
    assert decay.block_squares(5, 20) == pytest.approx(float(np.sum(decay.recent(20).reshape(-1, 5).sum(axis=1) ** 2)))


@in_a_loop
@pytest.mark.parametrize(
    ("exponent", "horizon", "message"),
    [
        (Fraction(1, 5), 10, "exponent must lie between"),
        (Fraction(17), 10, "exponent must lie between"),
        (Fraction(0), 10, "exponent must be greater than 0"),
        (Fraction(2), 0, "horizon must be greater than 0"),
        (Fraction(2), 1 << 41, "horizon must be at least 0 and below"),
    ],
)
def test_what_cannot_be_a_polynomial_decay_is_refused(exponent: Fraction, horizon: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Exponentials.polynomial(exponent, horizon)


def test_what_cannot_be_an_exponential_decay_is_refused() -> None:
    for alpha in (Fraction(0), Fraction(1), Fraction(1, 1 << RATE_BITS + 1)):
        with pytest.raises(ValueError, match="alpha must"):
            Exponentials.exponential(alpha)
    with pytest.raises(ValueError, match="half_life must be greater than 0"):
        Exponentials.half_life(Fraction(0))


@pytest.mark.parametrize(
    ("base", "exponent"), [(2, Fraction(1, 2)), (Fraction(1, 10**8), Fraction(2, 3)), (7, Fraction(-5, 3))]
)
def test_bounds_of_powers_hold(base: Fraction | int, exponent: Fraction) -> None:
    value, q = power(base, exponent), exponent.denominator
    assert (value / (1 + Fraction(1, 10**40))) ** q < Fraction(base) ** exponent.numerator < most(value) ** q
    assert most(value) / value < 1 + Fraction(1, 10**40)
