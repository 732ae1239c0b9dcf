"""Where presence is protected, nothing that leaves a worker but noisy sums depends on whether a unit is there.

One unit's records are left out, whatever they are: late, far ahead, malformed, of other keys, over the cap. Beats, and
the order of all else, stay. With scripted noise (`attended.py`), all that leaves the worker is then the same bytes.
"""

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.models.config.file import Config
from tests.privacy.attended import (
    Sent,
    beat,
    cancelled,
    clipped_somehow,
    clock_record,
    present,
    sample,
    scripted,
    shown_at,
    shown_in_every_slot,
    told,
    without,
)
from tests.support.cover import FULL, in_a_loop
from tests.support.effort import examples

few = examples(40 if FULL else 24)
UNITS = [f"user{index}" for index in range(4)]
KEYS = {"group": "g", "groups": ["a", "b", "c"], "max_groups": 2}
SLOTS = {"statistic": "mean", "every": None, "slot": "10s"}
CONFIGS: list[Config] = [
    present({}),
    present(KEYS, {"statistic": "count", "value": None, "group": "g", "groups": ["a", "z"]}),
    present({"lateness": "7s"}, {"every": "20s", "late": "drop", "statistic": "sum"}),
    present(
        KEYS | {"decay": {"kind": "window", "length": "30s"}, "unit": "user-20s"},
        {"decay": {"kind": "exponential", "half_life": "20s"}, "max_ahead": "40s"},
        {"decay": {"kind": "polynomial", "exponent": 2}, "start": "1970-01-01T00:02:00Z"},
    ),
    present(
        SLOTS | {"group": "g", "groups": ["a", "b", "c"]},
        SLOTS | {"statistic": "variance", "unit": "user-20s", "lateness": "7s"},
        SLOTS | {"statistic": "distribution", "bins": 5, "group": "g", "groups": ["a", "b"]},
    ),
]
MALFORMED = [
    b"", b"{", b"[]", b"null", b'{"u": "user0"}', b'{"u": "user0", "x": 0.5}', b'{"u": 7.5, "x": 1, "t": 110}',
    b'{"u": "user0", "x": "1", "t": 110}', b'{"u": "user0", "x": 1e999, "t": 110}', b"\xff", b'{"t": 1e18}',
    b'{"u": "user0", "x": 1, "t": 110, "g": [1]}',
    b'{"shoal-beat": "1970-01-01T00:09:00Z"}',
]  # fmt: skip
seconds = st.one_of(st.integers(90, 215), st.sampled_from([-5, 0, 99, 100, 199, 200, 10**6, 10**10]))
partitions = st.integers(0, 1)
units = st.sampled_from(UNITS)
stamps = st.sampled_from([-1, 0, 100_000, 10**12])
samples = st.builds(
    sample, partitions, units, seconds, st.sampled_from([0, 0.25, 1]), stamps,
    g=st.sampled_from(["a", "b", "c", "z", "never declared"]),
)  # fmt: skip
oddities = st.builds(Sent, partitions, st.sampled_from(MALFORMED), st.just("user0"), stamps)
records = st.one_of(
    samples, samples, samples, oddities,
    st.builds(clock_record, partitions, seconds, units),
    st.builds(Sent, partitions, st.none(), units),
    st.builds(beat, partitions, st.integers(80, 230)),
)  # fmt: skip
schedules = st.lists(
    st.tuples(
        st.sampled_from(["bound", "release", "crash_bound", "crash_release"]), st.integers(0, 1), st.integers(1, 9)
    ),
    max_size=12,
)
LAST = [beat(0, 500), beat(1, 500, stamp=10**12)]
phases_of = st.lists(st.lists(records, max_size=25), min_size=1, max_size=3).map(lambda phases: [*phases, LAST])


@in_a_loop
@pytest.mark.parametrize("cfg", CONFIGS, ids=range(len(CONFIGS)))
@few
@given(data=st.data())
def test_a_unit_that_is_there_changes_no_byte(cfg: Config, data: st.DataObject):
    phases, unit = data.draw(phases_of), data.draw(units)
    some, other = (data.draw(st.lists(schedules, min_size=len(phases), max_size=len(phases))) for _ in range(2))
    # every noisy sum the same, whatever came
    with scripted():
        assert told(cfg, phases, some) == told(cfg, without(phases, unit), other)
    # every noisy sum as it is, but for what of the unit counts
    with cancelled(unit):
        assert told(cfg, phases, some) == told(cfg, without(phases, unit), other)


FOUND = {"group": "g", "delta": "1e-6"}
NOBODY_DECLARED: list[Config] = [
    present(FOUND, FOUND | {"statistic": "count", "value": None, "every": "20s"}),
    present(FOUND | {"decay": {"kind": "window", "length": "30s"}, "unit": "user-20s", "max_groups": 2}),
    present(FOUND | {"statistic": "distribution", "bins": 4}),
    present(FOUND | {"statistic": "variance"}, FOUND | {"statistic": "users", "value": None}),
]
SUPPORT = [sample(partition, f"one of {key}", 100, g=key) for partition in (0, 1) for key in ("a", "b")]


@in_a_loop
@pytest.mark.parametrize("cfg", NOBODY_DECLARED, ids=range(len(NOBODY_DECLARED)))
@few
@given(data=st.data())
def test_nor_does_it_where_keys_are_found_but_for_when_they_are(cfg: Config, data: st.DataObject):
    """Who is shown, and when, is an outcome that is charged: given it, no byte depends on a unit."""
    phases, unit = data.draw(phases_of), data.draw(units)
    some, other = (data.draw(st.lists(schedules, min_size=len(phases), max_size=len(phases))) for _ in range(2))
    phases[0] = [*SUPPORT, *phases[0]]
    with scripted(), shown_at({"a": 0, "b": 3}):
        found = told(cfg, phases, some)
        assert found == told(cfg, without(phases, unit), other)
    assert {json.loads(record[1])["group"] for record in released(found)} == {"a", "b"}


TOPICS: list[Config] = [
    present({"lateness": "7s"}, {"topic": "orders", "every": "20s"}),
    present({"every": "50s"}, {"topic": "orders", "every": "5s", "lateness": "3s"}, {"topic": "visits"}),
]


@pytest.mark.parametrize("cfg", TOPICS, ids=range(len(TOPICS)))
@few
@given(data=st.data())
def test_nor_does_it_change_the_order_in_which_ticks_of_several_topics_are_released(cfg: Config, data: st.DataObject):
    """That of beats: how fast a topic is read depends on how many records there are."""
    every = range(2 * len(cfg.topics))
    where = st.sampled_from(every)
    anywhere = st.builds(lambda record, partition: dataclasses.replace(record, partition=partition), records, where)
    phases = [data.draw(st.lists(anywhere, max_size=25)), [beat(partition, 500) for partition in every]]
    steps = st.sampled_from(["bound", "release", "crash_bound", "crash_release"])
    cut = st.lists(st.tuples(steps, where, st.integers(1, 9)), max_size=16)
    some, other = ([data.draw(cut), data.draw(cut)] for _ in range(2))
    unit = data.draw(units)
    with scripted():
        found = told(cfg, phases, some, homes=1)
        assert found == told(cfg, without(phases, unit), other, homes=1)
    releases = [json.loads(record[1]) for record in released(found)]
    assert {one["metric"] for one in releases} == {metric.name for metric in cfg.metric}


def published(found: list[Any]) -> list[Any]:
    """Transactions: stamp, number of messages, records."""
    return [one for each in found[-1]["published"].values() for one in each]


CLIP = {"clip": {"share": "0.5", "epsilon": "0.3"}}
RANGES_CHOSEN: list[Config] = [
    present(CLIP, KEYS | CLIP | {"statistic": "sum", "every": "20s"}),
    present(
        KEYS | CLIP | {"decay": {"kind": "window", "length": "30s"}, "unit": "user-20s"},
        CLIP | {"decay": {"kind": "exponential", "half_life": "20s"}, "clip": "auto", "users": 9},
    ),
    present(FOUND | CLIP, FOUND | CLIP | {"statistic": "sum", "decay": {"kind": "window", "length": "30s"}}),
]


@pytest.mark.parametrize("cfg", RANGES_CHOSEN, ids=range(len(RANGES_CHOSEN)))
@examples(40)
@given(data=st.data())
def test_nor_does_it_where_a_clip_range_is_chosen_but_for_when_and_which(cfg: Config, data: st.DataObject):
    """When, and which, are outcomes that are charged: given both, no byte depends on a unit."""
    phases, unit = data.draw(phases_of), data.draw(units)
    some, other = (data.draw(st.lists(schedules, min_size=len(phases), max_size=len(phases))) for _ in range(2))
    phases[0] = [*SUPPORT, *phases[0]]
    with clipped_somehow(), shown_at({"a": 0, "b": 3}):
        with scripted():
            found = told(cfg, phases, some)
            assert found == told(cfg, without(phases, unit), other)
        with cancelled(unit):
            assert told(cfg, phases, some) == told(cfg, without(phases, unit), other)
    assert any("clip" in json.loads(record[1]) for record in released(found))


SLOTS_OF_FOUND: list[Config] = [
    present(FOUND | SLOTS, FOUND | SLOTS | {"statistic": "distribution", "slot": "20s", "bins": 4}),
    present(FOUND | SLOTS | {"unit": "user-20s", "max_groups": 2, "late": "drop"}),
]
EACH_SLOT = [
    sample(partition, f"one of {key}", at, g=key)
    for at in range(100, 200, 10) for partition in (0, 1) for key in ("a", "b")
]  # fmt: skip


@pytest.mark.parametrize("cfg", SLOTS_OF_FOUND, ids=range(len(SLOTS_OF_FOUND)))
@few
@given(data=st.data())
def test_nor_where_slots_find_their_cells_but_for_which_are_shown(cfg: Config, data: st.DataObject):
    phases, unit = data.draw(phases_of), data.draw(units)
    some, other = (data.draw(st.lists(schedules, min_size=len(phases), max_size=len(phases))) for _ in range(2))
    phases[0] = [*EACH_SLOT, *phases[0]]
    with scripted(), shown_in_every_slot("ab"):
        found = told(cfg, phases, some)
        assert found == told(cfg, without(phases, unit), other)
    slots = {(one["metric"], one["group"], one["at"]) for one in map(json.loads, (one[1] for one in released(found)))}
    assert {group for _, group, _ in slots} == {"a", "b"}
    assert len({at for metric, _, at in slots if metric == "m0"}) == 10
    # with the noise that there is, but for what of the unit counts; the cells have enough others
    with cancelled(unit), shown_in_every_slot("ab"):
        assert told(cfg, phases, some) == told(cfg, without(phases, unit), other)


def released(found: list[Any]) -> list[Any]:
    return [one for each in found[-1]["published"].values() for _, _, records in each for one in records]


PERIOD = 20  # seconds
EACH_STEP = {"statistic": "users", "value": None, "decay": {"kind": "window", "length": "10s"}}
OF_PERIODS: list[Config] = [
    present(KEYS | {"unit": "user-20s"}, {"unit": "user-20s", "statistic": "users", "value": None}),
    present(FOUND | EACH_STEP | {"unit": "user-20s", "max_contributions": 2, "lateness": "7s"}),
    present(FOUND | {"unit": "user-20s", "every": "20s", "late": "drop", "max_groups": 2}),
]


@pytest.mark.parametrize("cfg", OF_PERIODS, ids=range(len(OF_PERIODS)))
@few
@given(data=st.data())
def test_a_period_of_a_user_that_is_there_changes_no_byte(cfg: Config, data: st.DataObject):
    """Nor what the user's other periods send."""
    phases, unit = data.draw(phases_of), data.draw(units)
    start = data.draw(st.integers(4, 10)) * PERIOD
    period = range(start, start + PERIOD)
    phases[0] = [*SUPPORT, *phases[0]]
    for way in (scripted(), cancelled(unit, period)):
        with way, shown_at({"a": 0, "b": 3}):
            assert told(cfg, phases, [[]] * len(phases)) == told(cfg, without(phases, unit, period), [[]] * len(phases))
