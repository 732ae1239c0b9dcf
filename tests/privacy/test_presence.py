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

from shoal.agents.kafka import fail_stop
from shoal.agents.kafka.settings import RELEASE
from shoal.agents.worker.outbox import ReleaseMachine
from shoal.models.config.file import Config
from shoal.models.errors import FailStop
from shoal.stream.file_run import Line
from shoal.stream.open_ticks import open_ticks
from tests.privacy.attended import (
    Attended,
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
    told_of_an_addition,
    without,
)
from tests.privacy.hosted import compiled
from tests.support.effort import examples

UNITS = [f"user{index}" for index in range(4)]
KEYS = {"group": "g", "groups": ["a", "b", "c"], "max_groups_per_user": 2}
SLOTS = {"statistic": "slot-mean", "step": None, "slot": "10s"}
CONFIGS: list[Config] = [
    present({}),
    present(KEYS, {"statistic": "count", "value": None, "range": None, "group": "g", "groups": ["a", "z"]}),
    present({"lateness": "7s"}, {"step": "20s", "late": "drop", "statistic": "sum"}),
    present(
        KEYS | {"decay": {"kind": "window", "length": "30s"}, "unit": "user-20s"},
        {"decay": {"kind": "exponential", "half_life": "20s"}, "max_ahead": "40s"},
        {"decay": {"kind": "polynomial", "exponent": 2}, "start": "1970-01-01T00:02:00Z"},
    ),
    present(
        SLOTS | {"group": "g", "groups": ["a", "b", "c"]},
        SLOTS | {"statistic": "slot-mean-variance", "unit": "user-20s", "lateness": "7s"},
        SLOTS | {"statistic": "slot-distribution", "bins": 5, "group": "g", "groups": ["a", "b"]},
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
LAST = [beat(0, 500, stamp=10**12), beat(1, 500, stamp=10**12)]
phases_of = st.lists(st.lists(records, max_size=25), min_size=1, max_size=3).map(lambda phases: [*phases, LAST])


@pytest.mark.parametrize("cfg", CONFIGS, ids=range(len(CONFIGS)))
@examples(40)
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
    present(FOUND, FOUND | {"statistic": "count", "value": None, "range": None, "step": "20s"}),
    present(FOUND | {"decay": {"kind": "window", "length": "30s"}, "unit": "user-20s", "selection": {"keys": 2}}),
    present(FOUND | {"statistic": "distribution", "bins": 4}),
    present(FOUND | {"statistic": "mean-variance"}, FOUND | {"statistic": "users", "value": None, "range": None}),
]
SUPPORT = [sample(partition, f"one of {key}", 100, g=key) for partition in (0, 1) for key in ("a", "b")]


@pytest.mark.parametrize("cfg", NOBODY_DECLARED, ids=range(len(NOBODY_DECLARED)))
@examples(40)
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
    present({"lateness": "7s"}, {"topic": "orders", "step": "20s"}),
    present({"step": "50s"}, {"topic": "orders", "step": "5s", "lateness": "3s"}, {"topic": "visits"}),
]


@pytest.mark.parametrize("cfg", TOPICS, ids=range(len(TOPICS)))
@examples(40)
@given(data=st.data())
def test_nor_does_it_change_the_order_in_which_ticks_of_several_topics_are_released(cfg: Config, data: st.DataObject):
    """That of beats: how fast a topic is read depends on how many records there are."""
    every = range(2 * len(cfg.topics))
    where = st.sampled_from(every)
    anywhere = st.builds(lambda record, partition: dataclasses.replace(record, partition=partition), records, where)
    phases = [data.draw(st.lists(anywhere, max_size=25)), [beat(partition, 500, stamp=10**12) for partition in every]]
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
    present(CLIP, KEYS | CLIP | {"statistic": "sum", "step": "20s"}),
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
    present(FOUND | SLOTS, FOUND | SLOTS | {"statistic": "slot-distribution", "slot": "20s", "bins": 4}),
    present(FOUND | SLOTS | {"unit": "user-20s", "selection": {"keys": 2}, "late": "drop"}),
]
EACH_SLOT = [
    sample(partition, f"one of {key}", at, g=key)
    for at in range(100, 200, 10) for partition in (0, 1) for key in ("a", "b")
]  # fmt: skip


@pytest.mark.parametrize("cfg", SLOTS_OF_FOUND, ids=range(len(SLOTS_OF_FOUND)))
@examples(40)
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
EACH_STEP = {"statistic": "users", "value": None, "range": None, "decay": {"kind": "window", "length": "10s"}}
OF_PERIODS: list[Config] = [
    present(KEYS | {"unit": "user-20s"}, {"unit": "user-20s", "statistic": "users", "value": None, "range": None}),
    present(FOUND | EACH_STEP | {"unit": "user-20s", "max_contributions": 2, "lateness": "7s"}),
    present(FOUND | {"unit": "user-20s", "step": "20s", "late": "drop", "selection": {"keys": 2}}),
]


@pytest.mark.parametrize("cfg", OF_PERIODS, ids=range(len(OF_PERIODS)))
@examples(40)
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


# ---------------------------------------------------------------- cases

BOTH = [present(KEYS | {"lateness": "7s"}, {"step": "20s", "max_ahead": "40s", "group": "g", "groups": ["a", "b"]})]
STEADY = [beat(partition, seconds) for seconds in range(100, 201, 5) for partition in (0, 1)]
OTHERS = [
    sample(partition, f"user{partition + 1}", seconds, g="a") for seconds in (105, 125, 160) for partition in (0, 1)
]
ALONE = "ann"  # who belongs to partition 0
SENT: dict[str, list[Sent]] = {
    "on time": [sample(0, ALONE, 150, g="a")],
    "far ahead": [sample(0, ALONE, 190, g="a"), sample(0, ALONE, 10**6, g="a")],
    "so far ahead that it is refused": [sample(0, ALONE, 10**8, stamp=150_000, g="a")],
    "late": [sample(0, ALONE, 101, g="a"), sample(1, ALONE, 60, g="b")],
    "before the start and after the end": [sample(0, ALONE, 99, g="a"), sample(0, ALONE, 200, g="a")],
    "malformed": [Sent(0, raw, ALONE) for raw in MALFORMED],
    "of no declared key": [sample(0, ALONE, 150, g="never declared"), sample(0, ALONE, 150)],
    "alone in a key": [sample(0, ALONE, 150, g="c")],
    "over the cap": [sample(0, ALONE, 150, g="a") for _ in range(9)],
    "in a wrong partition": [sample(0, ALONE, 150, g="a"), sample(1, ALONE, 150, g="a")],
    "a clock record": [clock_record(0, 190, ALONE), clock_record(1, 300, ALONE)],
    "without a value": [Sent(0, None, ALONE)],
    "what is a beat in a file": [Sent(0, b'{"shoal-beat": "1970-01-01T00:09:00Z"}', ALONE)],
    "many": [sample(0, ALONE, 100 + number % 100, g="ab"[number % 2]) for number in range(200)],
}  # fmt: skip


TWO = present({"lateness": "7s"}, {"topic": "orders", "step": "20s"})


def test_ticks_of_two_topics_have_the_order_of_beats_however_fast_each_is_read():
    """Even if the beats of one come when all of the other were read."""
    beats = [beat(partition, seconds, stamp=10**12) for seconds in range(105, 301, 5) for partition in range(4)]
    found = []
    for first in ([0, 1, 2, 3], [2, 3, 0, 1]):
        for sent in ([], SENT["many"]):
            rest = [("bound", partition, 500) for partition in first for _ in range(1)]
            steps = [step for one in rest for step in (one, ("release", 0, 500))]
            with scripted():
                found.append(told(TWO, [[*beats, *sent]], [steps], homes=1))
    assert all(one == found[0] for one in found)
    cuts = [[json.loads(value) for _, value, _ in records] for _, _, records in published(found[0])]
    assert [(one["metric"], one["at"][14:19]) for cut in cuts for one in cut][:5] == [
        ("m0", "01:50"), ("m1", "02:00"), ("m0", "02:00"), ("m0", "02:10"), ("m1", "02:20"),
    ]  # fmt: skip


def test_a_beat_for_which_other_topics_wait_is_told_whoever_contributes():
    cfg, found = present({}, {"topic": "orders", "step": "50s"}), []
    for sent in ([sample(1, ALONE, 130)], []):
        worker = Attended(cfg)
        for phase in ([beat(0, 104), beat(1, 104)], [beat(0, 125), beat(1, 125), *sent]):
            worker.send(phase)
            worker.drain()
        found.append(worker.told())
    assert found[0] == found[1]
    assert len(found[0]["published"]["shoal.releases", 0]) == 2


def test_a_topic_that_is_added_begins_after_what_is_released():
    """Else its first steps would be released after whatever steps of the others load let workers release by then."""
    before = present({})
    for start, is_late in (("1970-01-01T00:02:00Z", True), ("1970-01-01T00:02:10Z", False)):
        worker = Attended(before)
        worker.send([beat(0, 120)])
        worker.drain()
        partition = worker._partition(RELEASE, 0)
        both = present({}, {"topic": "orders", "start": start, "name": "later"})
        plans = [compiled(both, topic=topic) for topic in both.topics]
        machine = ReleaseMachine(worker.settings, plans, 0, idle_after=10**6)
        if is_late:
            with pytest.raises(
                FailStop, match=r"later/1 is new here .* there was a beat of 1970-01-01T00:02:00Z already"
            ):
                machine.restore(worker._changelogs[partition])
        else:
            machine.restore(worker._changelogs[partition])


def test_a_topic_without_beats_holds_up_the_ticks_of_all_and_is_named():
    worker = Attended(TWO, sources=2)
    worker.send([beat(0, 150), beat(1, 150), beat(3, 118)])
    worker.drain()
    assert not worker.published
    (_, _, _, reasons, _) = worker.shown()
    assert "orders[0] had no beat yet, and no tick closes before: run `shoal beat`" in reasons
    (tick, _) = open_ticks(worker.machines[worker._partition(RELEASE, 0)])
    assert (tick.topic, tick.waits_for, tick.others) == ("events", (), (("orders", 0),))
    worker.send([beat(2, 160)])  # after a minute it is said why the tick is open
    worker.drain()
    assert worker.published
    (tick, _) = open_ticks(worker.machines[worker._partition(RELEASE, 0)])
    assert (tick.step, tick.others) == (11, (("orders", 1),))


def once(sent: list[Sent], *, slowly: bool) -> list[Any]:
    """Others' records and beats, and among them those, read in one go or record by record."""
    steps = [(action, where, 1) for _ in range(80) for action in ("bound", "release") for where in (0, 1)]
    phases = [[*OTHERS[:2], *STEADY[:20], *sent, *STEADY[20:], *OTHERS[2:]], LAST]
    return told(BOTH[0], phases, [steps if slowly else []] * 2)


@pytest.mark.parametrize("case", SENT)
def test_whatever_a_unit_sends_changes_no_byte(case: str):
    for way in (scripted(), cancelled(ALONE)):
        with way:
            there = once(SENT[case], slowly=True)
            assert there == once([], slowly=False)
            assert there == once(SENT[case], slowly=False)


@pytest.mark.parametrize("case", ["on time", "alone in a key", "over the cap", "in a wrong partition", "many"])
def test_what_a_unit_sends_does_count(case: str):
    assert once(SENT[case], slowly=False) != once([], slowly=False)


def test_all_keys_are_released_at_every_step_from_the_start():
    found = once([], slowly=False)[-1]["published"].values()
    releases = [json.loads(value) for each in found for _, _, records in each for _, value, _ in records]
    for key in ("a", "b", "c"):
        assert [one["seq"] for one in releases if (one["metric"], one["group"]) == ("m0", key)] == list(range(1, 11))


def test_a_metric_that_is_added_begins_wherever_load_let_a_worker_read():
    """At the first beat of its start in each partition, and not where the worker was that knew it first."""
    later = {"name": "later", "group": "g", "groups": ["a", "b"], "start": "1970-01-01T00:02:30Z"}
    before, after = present({"lateness": "7s"}), present({"lateness": "7s"}, later)
    until = [*OTHERS[:4], *STEADY[:16], sample(0, "user1", 170, g="a"), sample(1, "user2", 170, g="b")]
    found = []
    for sent in (SENT["many"], SENT["far ahead"], []):
        for read in ((3, 3), (7, 7), (400, 400), (3, 0), (0, 9), (0, 0)):  # nothing of a partition, or some, or all
            steps = [("bound", where, amount) for where, amount in enumerate(read) if amount]
            rest = [*STEADY[16:], *sent, *OTHERS[4:], *LAST]
            with cancelled(ALONE):
                found.append(told_of_an_addition(before, after, ([*until[:9], *sent, *until[9:]], rest), steps))
    assert all(one == found[0] for one in found)
    assert b"later" in str(found[0]["published"]).encode()


def test_a_clock_that_is_new_is_known_whoever_contributes():
    """It is told with contributions, if there are any before the next beat."""
    later = {"name": "later", "lateness": "5s", "start": "1970-01-01T00:02:30Z"}
    found = []
    for sent in ([sample(0, ALONE, 125)], []):
        worker = Attended(present({}))
        worker.send([beat(0, 113)])
        worker.drain()
        worker.plan = dataclasses.replace(compiled(present({}, later)), added=frozenset({"later/1"}))
        worker.take_over_all()
        worker.send(sent)
        worker.drain()
        found.append(worker.shown())
    assert found[0] == found[1]
    assert b'shoal_event_time_seconds{metric="later"} 100.0' in found[0][0]


def test_metrics_show_no_number_of_events():
    """Names and labels are those of beats, of releases, and of who answers."""
    text = once(SENT["many"], slowly=False)[-1]["shown"][0].decode()
    assert {line.split("{")[0].split(" ")[0] for line in text.splitlines() if not line.startswith("#")} == {
        "shoal_releases_total", "shoal_owned_partitions", "shoal_withheld_metrics", "shoal_ready",
        "shoal_event_time_seconds", "shoal_seconds_since_tick", "shoal_audit_log_away", "shoal_brokers_away",
        "shoal_build_info", "shoal_event_time_lag_seconds", "shoal_last_output_timestamp_seconds",
        "shoal_assigned_partitions", "shoal_condition", "shoal_alarm", "shoal_tick_seconds",
        "shoal_partitions_without_beats",
        "shoal_budget_epsilon", "shoal_budget_epsilon_charged", "shoal_budget_delta", "shoal_budget_delta_charged",
    }  # fmt: skip


def test_a_clock_within_a_step_is_not_shown():
    """Contributions bring it along, so it would tell that there are some."""
    found = []
    for sent in ([sample(0, ALONE, 150, g="a")], []):
        worker = Attended(present({}))
        for phase in ([beat(0, 112)], [beat(0, 113), *sent]):
            worker.send(phase)
            worker.drain()
        found.append(worker.shown())
    assert found[0] == found[1]
    assert b'shoal_event_time_seconds{metric="m0"} 110.0' in found[0][0]


def test_messages_that_come_twice_show_nowhere():
    worker = Attended(BOTH[0])
    worker.send([sample(0, ALONE, 150, g="a"), beat(0, 120), sample(0, ALONE, 150, g="a"), beat(0, 130)])
    for _ in range(2):
        worker.bound(0, 2)
    worker.drain()
    before = worker.shown()
    (log,) = worker.logs
    log.append(log[-1]._replace(offset=len(log)))
    log.append(Line(len(log), b"{}"))  # and what shoal has not written
    worker.drain()
    (machine,) = (one for place, one in worker.machines.items() if place.stage == RELEASE)
    assert (machine.counters["repeated_messages"], machine.strays.count) == (1, 1)
    assert worker.shown()[1:] == before[1:]


def test_a_partition_without_beats_is_named():
    worker = Attended(BOTH[0], sources=2)
    worker.send([beat(1, 150)])
    worker.drain()
    (_, _, _, reasons, report) = worker.shown()
    assert "events[0] had no beat yet, and no tick closes before: run `shoal beat`" in reasons
    assert report["without_beats"] == [{"topic": "events", "partition": 0}]


def test_releases_bear_their_own_time_though_it_is_still_to_come():
    """As a beat may be that is ahead: the time of writing would tell how fast a worker was."""
    found = []
    for steps in ([], [("bound", 0, 1)] * 40):  # the worker's clock goes on with each
        worker = Attended(present({}))
        worker._wall = 100_000  # milliseconds: the beat comes a minute and a half early
        worker.send([*(sample(0, "user1", 150 + index) for index in range(9)), beat(0, 190, stamp=100_000)])
        for step in steps:
            worker.act(*step)
        worker.drain()
        found.append(worker.published)
    assert found[0] == found[1]
    assert [stamp for stamp, _, _ in found[0]["shoal.releases", 0]] == [
        seconds * 1000 for seconds in range(110, 191, 10)
    ]


def test_no_log_line_tells_how_long_something_took(monkeypatch: pytest.MonkeyPatch):
    assert fail_stop.unless_discreet(seconds=1.5) == {"seconds": 1.5}
    monkeypatch.setattr(fail_stop, "_discretion", True)
    assert fail_stop.unless_discreet(seconds=1.5) == {}


def test_what_ends_a_worker_has_no_count_in_its_message(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fail_stop, "_discretion", True)
    said = []
    for number in (3, 30):
        worker = Attended(BOTH[0])
        worker.send([one for _ in range(number) for one in (sample(0, ALONE, 150, g="a"), beat(0, 100 + number))])
        for _ in range(number):
            worker.bound(0, 2)
        said.append(worker.texts())
    assert said[0][0] == said[1][0]
    assert "a message is lost" in said[0][0]
