"""One record of release's changelog that is lost, older than the mark, or another than was written: never restored.

The topic is compacted. So where the last value of a key is lost an older one, which compaction had not yet removed,
takes its place; and where a tombstone is lost, a key that is over is there again.
"""

import re
from collections.abc import Callable
from functools import cache, partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.models.errors import FailStop
from shoal.stream.release import ReleasePartition
from shoal.stream.state_mark import MARK
from shoal.stream.table.inventory import HIDDEN, SEALED
from shoal.stream.table.seals import unsealed
from tests.stream import test_hidden_groups, test_release_state
from tests.support.effort import examples

Changelog = dict[bytes, bytes]
Restore = Callable[[Changelog], ReleasePartition]
KINDS = {*test_release_state.SEEN, HIDDEN, MARK[:1]}


@cache
def of_hidden_groups() -> list[Changelog]:
    """Keys to which somebody comes now and then, until one of them is shown; what comes is kept by ticks."""
    partition = test_hidden_groups.Partition(test_hidden_groups.IN_WINDOWS)
    states: list[Changelog] = []
    for second, units in enumerate([{"a": 2, "b": 3}, {"a": 1}, {"b": 1, "c": 5}, {"a": 1}, {"a": 300}, {"b": 2}] * 2):
        partition.come(101 + second, **units)
        states.append(dict(partition.changelog))
    return states


HISTORIES: dict[str, tuple[Callable[[], list[Changelog]], Restore]] = {
    "every kind but hidden groups": (test_release_state.all_states, test_release_state.restored),
    "hidden groups": (of_hidden_groups, partial(test_hidden_groups.restored, cfg=test_hidden_groups.IN_WINDOWS)),
}


def refused(restore: Restore, changelog: Changelog) -> str:
    with pytest.raises(
        FailStop, match=r"contributions partition 0: .*restore the topic from a copy, or start"
    ) as error:
        restore(changelog)
    return str(error.value)


def without_mark(changelog: Changelog) -> Changelog:
    return {name: value for name, value in changelog.items() if name != MARK}


def test_the_histories_have_every_kind_of_key() -> None:
    assert {name[:1] for states, _ in HISTORIES.values() for state in states() for name in state} == KINDS


@pytest.mark.parametrize("history", HISTORIES)
def test_a_whole_state_is_restored(history: str) -> None:
    states, restore = HISTORIES[history]
    for state in states():
        assert restore(state).next_offset is not None


@pytest.mark.parametrize("history", HISTORIES)
def test_every_record_that_is_lost_or_older_than_the_mark_is_noticed(history: str) -> None:
    states, restore = HISTORIES[history]
    older: dict[bytes, set[bytes]] = {}
    again: set[bytes] = set()  # kinds of which an older value took the place of the last
    for state in states():
        for name in state:
            refused(restore, {other: value for other, value in state.items() if other != name})
        for name, values in older.items():
            for value in values - {state.get(name, b"")}:
                wrong = state | {name: value}
                if name == MARK and without_mark(state) in map(without_mark, states()[: states().index(state)]):
                    continue  # nothing but the mark changed since: that is the state of that time
                refused(restore, wrong)
                if name in state:
                    again.add(name[:1])
        for name, value in state.items():
            older.setdefault(name, set()).add(value)
    assert again


@pytest.mark.parametrize("history", HISTORIES)
def test_another_number_in_a_record_is_noticed(history: str) -> None:
    states, restore = HISTORIES[history]
    for state in states():
        for name, value in state.items():
            other = re.sub(rb"[0-9]", lambda digit: b"8" if digit[0] == b"9" else b"9", value, count=1)
            assert other != value
            refused(restore, state | {name: other})


@pytest.mark.parametrize("history", HISTORIES)
def test_a_seal_that_is_gone_is_noticed(history: str) -> None:
    states, restore = HISTORIES[history]
    bare = 0
    for state in states():
        for name, value in state.items():
            if name[:1] in SEALED:
                refused(restore, state | {name: unsealed(value)})
                bare += 1
    assert bare


@examples(200)
@given(st.sampled_from(sorted(HISTORIES)), st.data())
def test_a_record_that_was_altered_is_noticed(history: str, data: st.DataObject) -> None:
    states, restore = HISTORIES[history]
    state = data.draw(st.sampled_from(states()))
    kind = data.draw(st.sampled_from(sorted({name[:1] for name in state})))
    name = data.draw(st.sampled_from(sorted(name for name in state if name.startswith(kind))))
    value = state[name]
    begin = data.draw(st.integers(0, len(value)), "from")
    end = data.draw(st.integers(begin, min(len(value), begin + 20)), "to")
    other = data.draw(st.sampled_from([b"", b"0", b"1", value[:begin], value[begin:], *state.values()]), "in its place")
    altered = value[:begin] + other + value[end:]
    if altered != value:
        refused(restore, state | {name: altered})


@pytest.mark.parametrize("history", HISTORIES)
def test_two_records_of_a_kind_that_changed_places_are_noticed(history: str) -> None:
    states, restore = HISTORIES[history]
    for state in states():
        names = sorted(state)
        for one, other in zip(names, names[1:], strict=False):
            if one[:1] == other[:1] and state[one] != state[other]:
                refused(restore, state | {one: state[other], other: state[one]})


@pytest.mark.parametrize("history", HISTORIES)
def test_what_is_said_names_no_group(history: str) -> None:
    states, restore = HISTORIES[history]
    for state in states():
        for name, value in state.items():
            said = refused(restore, state | {name: value[:-2] + b"#" + value[-1:]})
            assert '"' not in said
            assert "|" not in said
