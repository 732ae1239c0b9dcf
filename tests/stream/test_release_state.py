"""Release's state is whole or it is refused: a changelog that lost something would make other releases than are due."""

import json
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.models.errors import FailStop
from shoal.stream.bound import BoundPartition
from shoal.stream.group import GroupState
from shoal.stream.release import ReleasePartition
from shoal.stream.release_state import HEADS, head_entries
from shoal.stream.state_mark import FORMAT, MARK, RELEASE_FORMAT
from shoal.stream.table.inventory import HEAD, HIDDEN, KEPT, KINDS, SEALED
from shoal.stream.table.seals import unsealed
from shoal.stream.tick_queue import CHUNK, ROW, RUN
from shoal.stream.topic import plan_topic
from tests.stream.older_states import before_seals, changed
from tests.stream.simulation import SECRET, Cluster, config, event, names_of
from tests.support.cover import in_a_loop
from tests.support.effort import examples

# What waits in rows, in chunks of cells, and in samples of slots; what releasers keep; what is closed in pieces.
CFG = config(
    {"algorithm": "naive", "group": "g"},
    {"algorithm": "full", "every": "5s"},
    {"algorithm": "sharp", "every": "10s", "epsilon": 4},
    {"statistic": "sum", "step": "5s", "decay": {"kind": "window", "length": "20s"}},
    {"statistic": "slot-mean", "slot": "10s", "group": "g", "max_contributions": 2, "users": 12},
)
SEEN = {
    kind: name for kind, name in KINDS.items() if kind not in (HIDDEN, ROW)
}  # test_hidden_groups.py has hidden ones
EVENTS = [event(f"u{n % 7}", n % 2, 100 + n, g=f"g{n % 3}") for n in range(48)]


def read_by_bound() -> Cluster:
    cluster = Cluster(CFG, 1, 1)
    cluster.produce(EVENTS)
    for _ in range(6):
        cluster.bound(0, 8)
    return cluster


def cluster_after(messages: int) -> Cluster:
    """Release has read so many messages."""
    cluster = read_by_bound()
    for _ in range(messages):
        cluster.release(0, 1)
    return cluster


def changelog_after(messages: int) -> dict[bytes, bytes]:
    return cluster_after(messages).homes[0].changelog


@cache
def all_states() -> list[dict[bytes, bytes]]:
    """What every transaction left, each of one piece of work."""
    cluster = read_by_bound()
    states: list[dict[bytes, bytes]] = []
    home = cluster.homes[0]
    for _ in range(40):
        cluster.release(0, 1, steps=1)
        if not states or home.changelog != states[-1]:
            states.append(dict(home.changelog))
    return states


def restored(changelog: dict[bytes, bytes]) -> ReleasePartition:
    plan = plan_topic(CFG, "events", SECRET, source_partitions=1, contributions_partitions=1)
    machine = ReleasePartition([plan], 0, idle_after=CFG.kafka.idle_after)
    machine.restore(changelog)
    return machine


def test_the_examples_hold_every_kind_of_key() -> None:
    found = {name[:1] for state in all_states() for name in state} - {MARK[:1]}
    assert found == set(SEEN)


@in_a_loop
@pytest.mark.parametrize("kind", SEEN, ids=SEEN.values())
def test_each_key_that_is_lost_alone_is_noticed(kind: bytes) -> None:
    refused = 0
    for state in all_states():
        for lost in [name for name in state if name.startswith(kind)]:
            with pytest.raises(FailStop, match=r"contributions partition 0: .*restore the topic from a copy, or start"):
                restored({name: value for name, value in state.items() if name != lost})
            refused += 1
    assert refused


@pytest.mark.parametrize("kind", [KEPT, CHUNK])
def test_how_many_there_are_of_what_values_decide_is_not_told(kind: bytes) -> None:
    """A window keeps no step whose sum is 0, and sums fall into cells by their parts."""
    for state in all_states():
        for lost in [name for name in state if name.startswith(kind)]:
            with pytest.raises(FailStop) as refused:
                restored({name: value for name, value in state.items() if name != lost})
            assert f"its changelog has other {KINDS[kind]} than are due; releases" in str(refused.value)


@in_a_loop
@pytest.mark.parametrize("kind", [HEAD, KEPT, RUN, CHUNK])
def test_a_key_in_the_place_of_another_is_noticed(kind: bytes) -> None:
    """As many as are due, but not the same."""
    state = next(state for state in all_states() if any(name.startswith(kind) for name in state))
    gone = next(name for name in state if name.startswith(kind))
    other = gone.replace(b'["m', b'["n', 1)
    said = f"{KINDS[kind]} that were altered" if kind in SEALED else "as many records as are due, but not the same"
    with pytest.raises(FailStop, match=said):
        restored({name: value for name, value in state.items() if name != gone} | {other: state[gone]})


def test_an_older_head_than_the_marks_is_noticed() -> None:
    older, newer = changelog_after(5), changelog_after(6)
    stale = next(name for name in older if name.startswith(HEAD) and older[name] != newer[name])
    with pytest.raises(FailStop, match="as many records as are due, but not the same"):
        restored(newer | {stale: older[stale]})


def test_a_state_without_its_mark_is_refused() -> None:
    state = changelog_after(6)
    del state[MARK]
    with pytest.raises(FailStop, match="has state but no mark"):
        restored(state)


@in_a_loop
@pytest.mark.parametrize("kind", SEEN, ids=SEEN.values())
def test_what_a_state_of_format_3_lost_is_noticed_as_far_as_its_digest_goes(kind: bytes) -> None:
    state = next(state for state in all_states() if any(name.startswith(kind) for name in state))
    older = before_seals(state)
    assert restored(older).counted
    gone = next(name for name in older if name.startswith(kind))
    for wrong in (
        {name: value for name, value in older.items() if name != gone},
        {name.replace(b'["m', b'["n', 1) if name == gone else name: value for name, value in older.items()},
    ):
        with pytest.raises(FailStop, match=r"are due"):
            restored(wrong)


@examples(8)
@given(lost=st.data())
def test_an_older_versions_mark_is_taken_once_and_its_heads_are_counted_all_the_same(lost: st.DataObject) -> None:
    # given a state as versions before this one wrote it
    old = changed(changelog_after(6), held=None, format=None)
    assert not restored(old).counted
    # when a head is lost, then it is noticed, for the number of releases does not add up
    gone = lost.draw(st.sampled_from(sorted(name for name in old if name.startswith(HEAD))))
    with pytest.raises(FailStop, match=r"account for \d+ releases, \d+ were published"):
        restored({name: value for name, value in old.items() if name != gone})


def in_rows(state: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """A state as format 2 has it: each contribution that waits under a key of its own."""
    older = {}
    for name, value in state.items():
        if name.startswith(RUN):
            group, tick, _ = orjson.loads(name[1:])
            for row in orjson.loads(unsealed(value)):
                older[ROW + orjson.dumps([group, tick, *row[:4]])] = orjson.dumps(row[4:])
        elif name != MARK:
            older[name] = value
    return before_seals(older | {MARK: state[MARK]}, 2)


def test_contributions_that_an_older_version_wrote_one_by_one_wait_on() -> None:
    # given a state in which contributions wait, as the version before wrote it
    cluster = cluster_after(3)
    home = cluster.homes[0]
    older = in_rows(home.changelog)
    waited = {name for name in older if name.startswith(ROW)}
    assert waited
    # when this version takes it over
    home.changelog = older
    cluster.crash_release(0)
    for _ in range(2):  # first what was due already
        cluster.release(0, 1)
    assert orjson.loads(home.changelog[MARK])["format"] == RELEASE_FORMAT
    assert restored(home.changelog).counted
    # then the same releases come, and nothing is left of what waited
    cluster.end_last_ticks()
    cluster.drain()
    assert cluster.releases() == Cluster.after(CFG, EVENTS, 1, 1, []).releases()
    assert not waited & home.changelog.keys()


@pytest.mark.parametrize("counted", [False, True])
def test_the_next_mark_after_an_older_one_counts(counted: bool) -> None:
    cluster = cluster_after(4)
    home = cluster.homes[0]
    older = before_seals(home.changelog)
    home.changelog = older if counted else changed(older, held=None, format=None)
    cluster.crash_release(0)
    for _ in range(2):  # first what was due already
        cluster.release(0, 1)
    assert orjson.loads(home.changelog[MARK])["format"] == RELEASE_FORMAT
    assert restored(home.changelog).counted
    cluster.end_last_ticks()
    cluster.drain()
    assert cluster.releases() == Cluster.after(CFG, EVENTS, 1, 1, []).releases()


def test_a_newer_format_is_refused_by_both_stages() -> None:
    cluster = cluster_after(6)

    def words(newest: int) -> str:
        return f"its state has format {newest + 1}, this version of shoal reads up to {newest}; run the version that"

    with pytest.raises(FailStop, match=words(RELEASE_FORMAT)):
        restored(changed(cluster.homes[0].changelog, format=RELEASE_FORMAT + 1))
    with pytest.raises(FailStop, match=words(FORMAT)):
        BoundPartition(cluster.plan, 0).restore(changed(cluster.sources[0].changelog, format=FORMAT + 1))


def test_each_account_and_sample_that_bound_lost_alone_is_noticed() -> None:
    cluster = cluster_after(6)
    state = cluster.sources[0].changelog
    assert {name[:1] for name in names_of(state)} >= {b"a", b"g", b"s"}
    for lost in state.keys() - {MARK}:
        with pytest.raises(FailStop, match="users would start again at count 0"):
            BoundPartition(cluster.plan, 0).restore({name: value for name, value in state.items() if name != lost})


@dataclass
class Headed:
    """A group's state, as far as its head goes."""

    value: dict[str, Any]

    def head(self) -> dict[str, Any]:
        return self.value


held = st.recursive(
    st.one_of(st.integers(), st.text(max_size=2), st.just("}, {")), lambda one: st.lists(one, max_size=3)
)
objects = st.fixed_dictionaries(
    {"seq": st.integers(0, 9), "releaser": st.lists(st.one_of(held, st.just({"a": [{}, {}]})))}
)


@given(st.lists(st.tuples(st.text(max_size=3), objects), max_size=4), st.booleans())
def test_heads_of_many_groups_are_written_like_each_alone(groups: list[tuple[str, dict[str, Any]]], many: bool) -> None:
    due = groups * (HEADS if many else 1)
    states = [(key, cast(GroupState, Headed(head))) for key, head in due]
    expected = [
        (HEAD + orjson.dumps([key]), json.dumps(head).encode(), state)
        for (key, head), (_, state) in zip(due, states, strict=True)
    ]
    assert list(head_entries(states)) == expected
