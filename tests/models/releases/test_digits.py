"""Fewer digits never make noise smaller than it is."""

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.models.releases.digits import MOST_DECIMALS, interval
from tests.support.effort import examples

NUMBERS = st.floats(-1e300, 1e300, allow_nan=False) | st.floats(-100, 100) | st.integers(-(10**6), 10**6).map(float)
SHOWN = re.compile(r"(.+) ± (.+) \((.+) to (.+)\)")


def shown(value: float, low: float, high: float) -> list[Decimal]:
    """Number, half, low and high, as somebody reads them."""
    found = SHOWN.fullmatch(interval((value, low, high)))
    assert found is not None
    return [Decimal(text.replace(",", "")) for text in found.groups()]


@examples(200)
@given(NUMBERS, NUMBERS, NUMBERS)
def test_what_is_shown_reaches_as_far_as_the_noise(value: float, one: float, other: float) -> None:
    low, high = sorted((one, other))
    if low == high:
        assert interval((value, low, high)).endswith("exactly")
        return
    # given what was published, in decimal
    true_low, true_high = Decimal(repr(low)), Decimal(repr(high))
    _, half, below, above = shown(value, low, high)
    # then nothing of it lies outside of what is shown, and little else is inside
    true_half = (true_high - true_low) / 2
    assert below <= true_low
    assert true_high <= above
    assert true_half <= half
    least = Decimal(1).scaleb(-MOST_DECIMALS)
    assert half <= max(true_half * Decimal("1.6"), least)


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ((25.0, 0.0, 50.0), "30 ± 30 (0 to 50)"),  # not 20, which would be half to even
        ((35.0, 10.0, 60.0), "40 ± 30 (10 to 60)"),
        ((-25.0, -50.0, 0.0), "-30 ± 30 (-50 to 0)"),
        ((34.6, 33.3, 35.9), "34.6 ± 1.3 (33.3 to 35.9)"),  # what needs no rounding is not rounded
        ((0.0, -1e-12, 1e-12), "0.000000000 ± 0.000000001 (-0.000000001 to 0.000000001)"),
    ],
)
def test_a_tie_goes_away_from_zero_and_noise_up(part: tuple[float, float, float], text: str) -> None:
    assert interval(part) == text
