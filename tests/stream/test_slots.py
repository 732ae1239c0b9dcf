"""Places and slots in the stream: what counts where, when it is sent, and that a slot is computed once, as a whole."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.mechanisms.slot import accounts as slot_accounts
from shoal.models.config.file import Config
from shoal.models.errors import FailStop
from shoal.models.records import Message
from shoal.stream.parameters import parameters_of
from shoal.stream.state_mark import MARK
from tests.stream.simulation import Cluster, config, event, run_file
from tests.stream.test_equality import actions, encode, events_in_order
from tests.stream.units import Event, Stage, plan_of, schedules
from tests.support.effort import examples

SURE = 10**9  # epsilon: so much that noise hardly is any
Place = tuple[int, str, str]  # slot's first second, user's pseudonym, cell


def slotted(**changes: Any) -> dict[str, Any]:
    return {"statistic": "mean", "algorithm": "baseline", "slot": "10s", "max_contributions": 2} | changes


def slots(**changes: Any) -> Config:
    return config(slotted(group="g", **changes))


def released(cfg: Config, events: Iterable[bytes]) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in run_file(cfg, events)]


def sent(stage: Stage) -> dict[Place, list[int]]:
    """All samples that were sent, in order."""
    found: dict[Place, list[int]] = defaultdict(list)
    for message in messages(stage):
        for rows in message.contributions.values():
            for start, user, _, _, count, cells in rows:
                assert count == sum(map(len, cells.values()))
                for cell, values in cells.items():
                    found[start // 1_000_000, user, cell] += values
    return found


def messages(stage: Stage) -> list[Message]:
    return [message for taken in stage.taken for _, message in taken.messages]


def counted(stage: Stage) -> Counter[tuple[int, str]]:
    """Samples by slot and cell."""
    found: Counter[tuple[int, str]] = Counter()
    for (start, _, cell), values in sent(stage).items():
        found[start, cell] += len(values)
    return found


# ---------------------------------------------------------------- what counts

UNITS: list[dict[str, Any]] = [
    {"max_groups": 2, "across_cells": "split"},
    {"max_groups": 2},
    {"unit": "user-30s", "max_slots": 2, "max_groups": 2, "across_cells": "split"},
    {"unit": "user-20s", "max_slots": 1, "max_contributions": 3},
    {"unit": "user", "max_slots": 3, "max_contributions": 4, "max_groups": 1, "across_cells": "split"},
]
people = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 6), st.sampled_from("xyz"), st.sampled_from([0, 0, 0, 4, 9])),
    max_size=50,
)  # fmt: skip


def in_words(rows: list[Event], unit: dict[str, Any]) -> Counter[tuple[int, str]]:
    """The rules, one by one, over a list of events in time order: samples that count by slot and cell."""
    length = {"user-30s": 30, "user-20s": 20, "user": 10**9}.get(unit.get("unit", ""), 10)
    most_slots, cap = unit.get("max_slots", 1), unit.get("max_contributions", 2)
    most_cells = unit["max_groups"] if unit.get("across_cells") == "split" else 99
    found: Counter[tuple[int, str]] = Counter()
    slots_of: dict[Any, set[int]] = defaultdict(set)
    cells_of: dict[Any, set[str]] = defaultdict(set)
    samples: Counter[Any] = Counter()
    latest = -1
    for row in rows:
        effective = latest = max(latest, row.time)
        if row.time // length != effective // length:
            continue
        one, slot = (row.user, effective // length), effective // 10
        here = cells_of[row.user, slot]
        if samples[one, row.group] >= cap:
            continue
        if slot not in slots_of[one] and len(slots_of[one]) >= most_slots:
            continue
        if row.group not in here and len(here) >= most_cells:
            continue
        slots_of[one].add(slot)
        here.add(row.group)
        samples[one, row.group] += 1
        found[slot * 10, row.group] += 1
    return found


@examples(38)
@given(people, st.sampled_from(UNITS), schedules)
@example([("a", 0, "x", 0)] * 3, UNITS[0], [])  # a sample more than the cap
def test_caps_hold_for_units_slots_and_cells_whatever_happens_to_the_worker(rows, unit, schedule):
    # given events, some of which are late
    now, events = 0, []
    for user, step, cell, late in rows:
        now += step
        events.append(Event(user, max(0, now - late), cell))
    # when workers come and go, and the partition falls idle in between
    stage = Stage(plan_of(slots(**unit)))
    stage.produce(*events)
    stage.suffer(schedule)
    stage.idle()
    # then what is sent is what the rules say
    assert counted(stage) == in_words(events, unit)


@given(people, schedules)
def test_a_users_samples_stay_in_order_however_they_are_cut_into_pieces(rows, schedule):
    events, now = [], 0
    for number, (user, step, cell, _) in enumerate(rows):
        now += step
        events.append(Event(user, now, cell, value=number % 17 / 16))
    cfg = slots(max_contributions=99)
    whole, pieces = Stage(plan_of(cfg)), Stage(plan_of(cfg))
    whole.run(*events)
    pieces.produce(*events)
    pieces.suffer(schedule)
    for stage in (whole, pieces):
        stage.idle()
    assert sent(whole) == sent(pieces)


def test_samples_go_when_their_slot_is_over_and_not_before():
    stage = Stage(plan_of(slots(lateness="3s")))
    stage.run(Event("a", 8), Event("a", 12), every=1)
    assert not sent(stage)  # the clock is at 9
    stage.run(Event("b", 13))
    assert counted(stage) == {(0, "x"): 1}
    stage.run(Event("a", 30))
    assert counted(stage) == {(0, "x"): 1, (10, "x"): 2}


def test_an_idle_partition_sends_what_it_has_and_goes_on_counting():
    stage = Stage(plan_of(slots(max_contributions=3)))
    stage.run(Event("a", 1), Event("a", 2))
    stage.idle()
    assert counted(stage) == {(0, "x"): 2}
    # when it wakes, and crashes, the cap is what it was, and numbers go on
    stage.crash()
    stage.run(*(Event("a", 3) for _ in range(5)), Event("a", 11))
    assert counted(stage) == {(0, "x"): 3}
    numbers = [row[2] for message in messages(stage) for rows in message.contributions.values() for row in rows]
    assert numbers == [1, 3]


def test_what_is_over_leaves_nothing_behind():
    stage = Stage(plan_of(slots()))
    stage.run(*(Event(f"u{n}", n) for n in range(40)), every=3)
    stage.run(Event("a", 1000))
    stage.run(b"{}")
    stage.run(b"{}")
    assert len(stage.state) == 3  # of user and cell, and the sample
    forever = Stage(plan_of(slots(unit="user", max_slots=2)))
    forever.run(*(Event("a", n) for n in range(40)), every=3)
    assert forever.counters["over_cap"] == 38
    assert len([key for key in forever.state if key.startswith(b"g")]) == 2


def test_a_users_samples_of_the_latest_slot_can_be_looked_up():
    stage = Stage(plan_of(slots(unit="user", max_slots=2))).run(Event("a", 1), Event("a", 2), Event("b", 1))
    assert [stage.machine.count("m0", user) for user in "abc"] == [2, 1, None]
    assert stage.machine.count("m0", "a", "elsewhere") is None


def test_a_lost_account_or_sample_is_noticed():
    stage = Stage(plan_of(slots(unit="user", max_slots=2)))
    stage.run(Event("a", 1), Event("b", 2))
    stage.run(Event("c", 2))
    assert {name[:1] for name in stage.state} == {b"a", b"s", b"g"}
    whole = dict(stage.changelog)
    for lost in whole.keys() - {MARK}:
        stage.changelog = {key: value for key, value in whole.items() if key != lost}
        with pytest.raises(FailStop, match="users would start again at count 0"):
            stage.crash()


# ---------------------------------------------------------------- bad input


def test_what_cannot_be_used_is_refused_and_touches_nothing(monkeypatch):
    cell = {"h3": 8, "lat": "lat", "lon": "lon"}
    stage = Stage(plan_of(config(slotted(cell=cell))))
    stage.run(
        b'{"u":"a","t":1,"lat":1,"lon":2}', b'{"u":"a","t":1,"lat":91,"lon":2,"x":1}', b'{"u":"a","t":1,"lat":1,"x":1}',
        b'{"u":"a","t":1,"lat":1,"lon":"east","x":1}', b'{"t":1,"lat":1,"lon":2,"x":1}',
    )  # fmt: skip
    monkeypatch.setattr("shoal.stream.topic.read_value", lambda _: 1 // 0)
    stage.run(b'{"u":"a","t":1,"lat":1,"lon":2,"x":1}')
    reasons = [orjson.loads(letter)["reason"] for taken in stage.taken for letter in taken.dead_letters]
    assert reasons == ["no-value", "bad-lat", "no-lon", "bad-lon", "no-user", "error"]
    assert not stage.state


def test_a_user_must_be_in_one_partition():
    plan = plan_of(slots(), sources=4)
    stages = [Stage(plan, partition=index).run(Event("anna", 1)) for index in range(4)]
    assert sorted(len(letters) for stage in stages for letters in [stage.taken[0].dead_letters]) == [0, 1, 1, 1]


# ---------------------------------------------------------------- releases


def test_each_cell_is_released_once_at_the_end_of_its_slot():
    events = [
        event("a", 1, 1, g="x"), event("b", 0, 2, g="x"), event("a", 1, 3, g="y"),
        event("a", 0.5, 11, g="x"), event("c", 0, 35, g="y"),
    ]  # fmt: skip
    found = released(slots(epsilon=SURE, max_groups=2), events)
    assert [(one["at"][17:19], one["group"], one["seq"], round(one["value"], 6), one["users"]) for one in found] == [
        ("10", "x", 1, 0.5, 2), ("10", "y", 1, 1, 1), ("20", "x", 2, 0.5, 1), ("40", "y", 2, 0, 1),
    ]  # fmt: skip
    assert {one["unit"] for one in found} == {"user-slot"}


def test_without_a_place_there_is_one_for_all():
    found = released(config(slotted(epsilon=SURE)), [event("a", 1, 1), event("b", 0, 2)])
    assert [(one["group"], round(one["value"], 6)) for one in found] == [(None, 0.5)]


def test_longer_units_have_a_share_of_epsilon_in_each_slot_and_cell():
    events = [event("a", 1, 1, g="x"), event("a", 1, 1, g="y"), event("b", 1, 1, g="z")]
    found = released(slots(unit="user", max_slots=4, max_groups=3, epsilon=12), events)
    assert [(one["group"], one["cell_epsilon"]) for one in found] == [("x", 1.5), ("y", 1.5), ("z", 3)]
    split = released(slots(unit="user", max_slots=4, max_groups=3, epsilon=12, across_cells="split"), events)
    assert [one["cell_epsilon"] for one in split] == [1, 1, 1]
    assert [one["degradation"] for one in split] == [None] * 3


def test_cells_with_too_few_users_are_no_release_and_cost_the_others_nothing():
    events = [event("a", 1, 1, g="x"), event("b", 1, 1, g="x"), event("a", 1, 2, g="y")]
    found = released(slots(min_users=2, max_groups=2), events)
    assert [(one["group"], one["value"] is None, one["users"]) for one in found] == [("x", False, 2), ("y", True, 1)]
    assert found[0]["cell_epsilon"] == 1
    nobody = released(slots(min_users=3, max_groups=2), events)
    assert [(one["value"], one["noise_sd"], one["samples"]) for one in nobody] == [(None, None, 0)] * 2


def test_who_is_in_too_many_cells_is_left_out_of_some():
    events = [event("a", 1, 1, g=cell) for cell in "wxyz"] + [event(f"b{n}", 0, 2, g="x") for n in range(9)]
    found = released(slots(epsilon=SURE), events)
    # then the cell with others keeps its noise, and those that nobody is left in are no release
    assert [(one["group"], one["users"], one["dropped"]) for one in found if one["users"]] == [("x", 9, 1), ("z", 1, 0)]
    assert [one["group"] for one in found if one["value"] is None] == ["w", "y"]


CELL = {"h3": 8, "lat": "y", "lon": "x"}
CONFIGS = [
    slots(epsilon=4, max_contributions=3, max_groups=2),
    slots(unit="user-30s", max_slots=2, max_groups=2, across_cells="split"),
    slots(unit="user", max_slots=3, min_users=2),
    config(slotted(value="x", group="g", lateness="3s"), slotted(slot="3s", late="drop"), {"algorithm": "naive"}),
    config(slotted(
        value=("x", "y"), range=((0, 1), (-5, 5)), algorithm="few-users", delta="0.1", epsilon=40, group="g",
        max_groups=2,
    )),
    config(slotted(cell=CELL, value="t", time="y", range=(0, 200)), {"statistic": "sum", "every": "7s", "value": "t",
           "time": "y", "range": (0, 200)}),
]  # fmt: skip


@examples(38)
@given(st.sampled_from(CONFIGS[:5]), events_in_order, st.sampled_from([1, 2, 8]), st.sampled_from([1, 3]), actions)
def test_any_interleaving_and_any_crash_gives_the_releases_of_the_file_run(cfg, rows, sources, homes, schedule):
    # given events, and what a run over them as one file releases
    events = encode(rows)
    expected = run_file(cfg, events)
    # when they are spread over partitions, and machines work, crash and recover in any order, within slots too
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slot_accounts, "KEPT_SAMPLES", 1 + len(schedule) % 8)  # so few that slots are sent in pieces
        cluster = Cluster.after(cfg, events, sources, homes, schedule)
    # then the releases are the same bytes
    assert cluster.releases() == expected


def test_a_slot_of_many_cells_is_closed_in_pieces_and_goes_on_after_a_crash():
    events = [event(f"u{n % 7}", n % 3 / 2, n // 20, g=f"cell{n % 90}") for n in range(600)]
    cfg = slots(max_groups=30, max_contributions=9)
    cluster = Cluster(cfg, 1, 1)
    cluster.produce(events)
    cluster.end_last_ticks()
    cluster.bound(0, 1000)
    sizes = set()
    # when every transaction takes some steps, and the worker crashes after each
    for _ in range(400):
        cluster.release(0, 1, steps=7)
        cluster.crash_release(0)
        sizes.add(len(cluster.homes[0].releases))
    cluster.drain()
    assert cluster.releases() == run_file(cfg, events)
    assert len(sizes) > 20
    # then what waited is gone
    assert not [key for key in cluster.homes[0].changelog if key.startswith(b"w")]


def test_what_wakes_too_late_for_its_slot_counts_in_no_other():
    """In another slot it would be one more that its unit moves."""
    cfg = config(slotted(group="g", epsilon=SURE), **{"idle_after": "1s"})
    cluster = Cluster(cfg, 2, 1)
    plan = cluster.plan
    here = next(f"u{n}" for n in range(99) if plan.partition_of(f"u{n}".encode(), 2) == 0)
    there = next(f"u{n}" for n in range(99) if plan.partition_of(f"u{n}".encode(), 2) == 1)
    cluster.produce([event(here, 1, 1, g="x"), event(there, 1, 2, g="x"), event(there, 1, 25, g="x")])
    cluster.wall = 1_000
    cluster.bound(0, 10)
    cluster.bound(1, 10)
    # when one partition is idle, the other's clock passes its slot, and it wakes within it
    for wall in (2_000, 3_000, 4_000, 5_000):
        cluster.wall = wall
        cluster.bound(0, 10)
    cluster.release(0, 1000)
    assert len(cluster.homes[0].releases) == 1
    cluster.produce([event(here, 0, 3, g="x"), event(here, 0, 26, g="x")])
    cluster.end(b"1970-01-01T00:00:30Z")
    cluster.drain()
    # then the first slot stays as it was, and the open one does not have the sample
    found = [orjson.loads(one) for one in cluster.releases()]
    assert [(one["at"][17:19], one["samples"]) for one in found] == [("10", 2), ("30", 2)]
    machine = cluster.homes[0].machine
    assert machine is not None
    assert machine.counters["woke_late"] == 1


def test_keys_of_slots_leave_other_metrics_digests_as_they_were():
    plain = orjson.loads(parameters_of(config({}), config({}).metric[0].parts))
    assert not {"place", "slots", "cells", "across", "cap", "bins"} & set(names_in(plain))
    cfg = config(slotted(cell=CELL, value="t", time="z"))
    place = orjson.loads(parameters_of(cfg, cfg.metric[0].parts))["per"]["place"]
    assert place == {"kind": "Hexagons", "resolution": 8, "latitude": "y", "longitude": "x"}


def names_in(said: Any) -> Iterator[str]:
    """The names of all parameters."""
    for name, part in said.items() if isinstance(said, dict) else ():
        yield name
        yield from names_in(part)


def test_unfinished_state_is_not_dropped_from_memory_without_a_changelog():
    events = [event(f"u{n % 5}", 1, n, g="x") for n in range(300)]
    assert len(released(slots(), events)) == 30
