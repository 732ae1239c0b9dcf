"""The benchmark of many keys measures what it says."""

import pytest

from benchmarks import shown_keys

pytestmark = pytest.mark.long


def test_it_closes_every_tick_of_all_keys_beside_candidates_that_stay_silent() -> None:
    made = shown_keys.measure(20, 30, ticks=2, busy=1)
    assert [one.releases for one in made.ticks] == [20] * len(made.ticks)
    assert [one.is_busy for one in made.ticks] == [False, False, False, True, False, False, False]
    assert [one.has_candidates for one in made.ticks] == [False] * 4 + [True] * 3
    assert "30 silent candidates" in shown_keys.tables(made, made)
