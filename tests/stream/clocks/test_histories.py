"""Wrong times, restarts and kills in any order: each version releases what it would if nothing had happened."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.stream.clocks.history import History, PresentHistory
from tests.stream.simulation import config
from tests.support.effort import examples

USERS = [f"user{number}" for number in range(5)]
METRICS: list[dict[str, Any]] = [
    {"statistic": "sum", "algorithm": "sharp", "every": "10s", "max_gap": 3, "max_ahead": "20s"},
    {"algorithm": "naive", "every": "10s", "max_ahead": "20s", "group": "g", "max_groups": 3},
    {"algorithm": "naive", "lateness": "3s", "late": "drop"},
    {"statistic": "mean", "slot": "10s", "unit": "user-slot"},
]
FAR = 10**7  # seconds
PLACES = st.integers(0, 1)
users, is_wrong = st.sampled_from(USERS), st.booleans()
ahead = st.sampled_from([0, 5, 19, 20, 21, 60, 299, 300, 301, 4000, FAR])
act = st.tuples(
    st.sampled_from(["bound", "bound", "release", "crash_bound", "crash_release"]), PLACES, st.integers(1, 9)
)
true = st.tuples(st.just("true"), users, st.integers(0, 9))
time = st.one_of(
    st.tuples(st.just("late"), users, st.integers(1, 30)),
    st.tuples(st.just("jump"), users, ahead, is_wrong),
    st.tuples(st.just("ramp"), users, st.integers(2, 9), st.sampled_from([4, 19, 150])),
    st.tuples(st.sampled_from(["clock", "beat"]), st.none() | PLACES, ahead, is_wrong),
)
raised = st.tuples(st.just("deploy"), st.lists(st.integers(0, 3), min_size=1, max_size=4), st.booleans())
pairs = st.sampled_from([(0, 1), (1, 2), (0, 3), (2, 3)])
histories = st.lists(st.one_of(true, true, act, act, time, raised), min_size=8, max_size=60)


PRESENT: list[dict[str, Any]] = [
    {"statistic": "sum", "max_ahead": "20s"},
    {"statistic": "count", "value": None, "lateness": "3s", "max_ahead": "60s"},
]


def holds(history: History, steps: list[Any]) -> None:
    history.play(steps)
    history.check()


def of_values(sources: int, chosen: tuple[int, int]) -> History:
    return History(config(*(METRICS[number] for number in chosen)), sources)


READ: list[Any] = [("bound", 0, 99), ("bound", 1, 99)]
# A clock that goes too far twice, and is restarted twice.
TWICE: list[Any] = [("true", "user1", 1), ("jump", "user1", FAR, True), *READ, ("deploy", [0, 1], True)] * 2
# A metric keeps its clock, though that of the other is restarted and workers are started again.
KEPT: list[Any] = [
    ("true", "user1", 1), ("clock", None, FAR, True), *READ, ("deploy", [1], True), ("true", "user1", 9), *READ,
    ("crash_bound", 0, 1), ("crash_bound", 1, 1), ("true", "user2", 9), ("true", "user3", 9),
    ("clock", None, FAR + 60, True),
]  # fmt: skip


@pytest.mark.parametrize("sources", [1, 2])
@examples(40)
@example([*TWICE, ("true", "user1", 1), ("true", "user2", 9)], (0, 1))
@example(KEPT, (2, 3))
@given(histories, pairs)
def test_each_version_releases_what_it_would_if_nothing_had_happened(sources, steps, chosen):
    holds(of_values(sources, chosen), steps)


@examples(40)
@given(histories)
def test_each_version_that_protects_presence_releases_what_it_would_if_nothing_had_happened(steps):
    holds(PresentHistory(PRESENT), steps)


@pytest.mark.long
@pytest.mark.parametrize("sources", [1, 2])
@examples(800)  # 8,000 in `make test-long`
@given(histories, pairs)
def test_thousands_of_histories(sources, steps, chosen):
    holds(of_values(sources, chosen), steps)


@pytest.mark.long
@examples(500)  # 2,500 in `make test-long`
@given(histories)
def test_thousands_of_histories_where_presence_is_protected(steps):
    holds(PresentHistory(PRESENT), steps)
