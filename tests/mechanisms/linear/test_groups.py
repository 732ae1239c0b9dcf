"""Groups at every step: who is released in which step, through silence, rest and restarts."""

from fractions import Fraction
from itertools import groupby
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.parts.of import PublicCount, Sum
from shoal.mechanisms.statistic import Contribution
from shoal.mechanisms.sums.decays import Window
from tests.mechanisms.linear.value_cases import of_values

KEY = b"k" * 32
LENGTH, REST = 2, 3  # steps
COUNT = of_values(statistic=PublicCount, decay=Window(LENGTH), max_contributions=9, max_gap=REST)

samples = st.lists(st.tuples(st.integers(0, 20), st.sampled_from("abc")), max_size=25).map(sorted)


def restarted(groups: Any, names: set[str]) -> Any:
    """Groups with the state of these, of which some were released."""
    again: Any = COUNT.in_groups(KEY)
    for group in names:
        again.restore(group, groups.head(group), groups.releaser(group).kept.values())
    return again


@given(samples, st.sets(st.integers(0, 30)))
def test_a_group_counts_from_its_first_step_on_until_it_has_been_silent_for_long(found, restarts):
    # given samples by step, and groups that may be restored between any two of them
    came = {tick: [group for _, group in each] for tick, each in groupby(found, key=lambda sample: sample[0])}
    groups, releases = COUNT.in_groups(KEY), {}
    for tick in range(max(came, default=0) + REST + 2):
        due = groups.due()
        assert due is None or due >= tick
        rows = [
            (group, [Contribution(0, "", 0, 0, 1, 0)] * len(list(each))) for group, each in groupby(came.get(tick, []))
        ]
        if rows or due == tick:
            for closed in groups.close(tick, rows):
                assert closed is not None
                assert closed.estimate is not None
                releases[tick, closed.group] = closed.estimate.value
        if tick in restarts:
            groups = restarted(groups, {group for _, group in releases})
    # then each is released from a sample on until it rests, with the samples of its window
    expected = {}
    for group in "abc":
        ticks = [tick for tick, name in found if name == group]
        for tick in range(max(came, default=0) + REST + 2):
            if any(tick - REST <= sample <= tick for sample in ticks):
                expected[tick, group] = sum(tick - LENGTH < sample <= tick for sample in ticks)
    assert releases == expected
    assert groups.due() is None


def test_groups_come_in_the_order_of_their_names_and_what_is_not_used_stays_due():
    groups = COUNT.in_groups(KEY)
    row = [Contribution(0, "", 0, 0, 1, 0)]
    assert [one.group for one in groups.close(0, [("a", row), ("c", row)]) if one] == ["a", "c"]
    closing = groups.close(1, iter([("b", row), ("c", row)]))
    assert [one.group for one in closing if one] == ["a", "b", "c"]
    assert groups.due() == 2
    assert [change.group for change in groups.changes()] == ["a", "c", "b"]
    assert list(groups.changes()) == []


def test_a_window_is_never_left_before_it_is_empty():
    assert [of_values(statistic=PublicCount, decay=Window(8), max_gap=gap).rest for gap in (3, 9)] == [8, 9]
    assert of_values(statistic=Sum, decay=Window(1), epsilon=Fraction(1)).rest == 1


def test_a_group_that_rests_is_restored_as_such():
    groups, row = COUNT.in_groups(KEY), [Contribution(0, "", 0, 0, 1, 0)]
    for tick in range(REST + 1):
        assert [one.group for one in groups.close(tick, [] if tick else [("a", row)]) if one] == ["a"]
    again = restarted(groups, {"a"})
    assert groups.due() is again.due() is None
    assert again.head("a") == groups.head("a")
    assert (again.head("a")["next"], again.head("a")["active"]) == (REST + 1, 0)
    # until something comes, as in one that was never restored
    late = [list(each.close(99, [("a", row)])) for each in (groups, again)]
    assert late[0] == late[1] != []
    assert groups.due() == again.due() == 100
