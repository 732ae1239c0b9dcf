"""Periods of equal length: each time is in one of them, and they follow one another."""

from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.parts.lengths import Even

TIMES = st.integers(-(2**63), 2**63 - 1)
LENGTHS = st.integers(1, 36_500 * 86_400_000_000).map(Even)


@given(LENGTHS, TIMES)
def test_a_time_is_in_the_period_of_its_index(length: Even, time: int) -> None:
    index = length.index(time)
    assert length.start(index) <= time < length.end(index) == length.start(index + 1)
    assert length.divides(length.start(index))
    assert length.divides(time) == (length.start(index) == time)
