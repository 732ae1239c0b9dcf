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
from shoal.stream.state_mark import FORMAT, MARK
from shoal.stream.table.inventory import HEAD, HIDDEN, KEPT, KINDS, SEALED
from shoal.stream.tick_queue import CHUNK, RUN
from shoal.stream.topic import plan_topic
from tests.stream.older_states import changed
from tests.stream.simulation import SECRET, Cluster, config, event, names_of
from tests.support.cover import in_a_loop

# What waits in rows, in chunks of cells, and in samples of slots; what releasers keep; what is closed in pieces.
CFG = config(
    {"algorithm": "naive", "group": "g"},
    {"algorithm": "full", "every": "5s"},
    {"algorithm": "sharp", "every": "10s", "epsilon": 4},
    {"statistic": "sum", "every": "5s", "decay": {"kind": "window", "length": "20s"}},
    {"statistic": "mean", "slot": "10s", "group": "g", "max_per_group": 2, "users": 12},
)
SEEN = {kind: name for kind, name in KINDS.items() if kind != HIDDEN}  # test_hidden_groups.py has hidden ones
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


def test_a_newer_format_is_refused_by_both_stages() -> None:
    cluster = cluster_after(6)

    for part in (changed(cluster.homes[0].changelog, format=None), changed(cluster.homes[0].changelog, format=0)):
        with pytest.raises(FailStop, match="its state has format 0, "):
            restored(part)
    words = f"its state has format {FORMAT + 1}, this version of shoal reads up to {FORMAT}; run the version that"
    with pytest.raises(FailStop, match=words):
        restored(changed(cluster.homes[0].changelog, format=FORMAT + 1))
    with pytest.raises(FailStop, match=words):
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
