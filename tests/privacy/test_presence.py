"""Where presence is protected, nothing that leaves a worker but noisy sums depends on whether a unit is there.

One unit's records are left out, whatever they are: late, far ahead, malformed, of other keys, over the cap. Beats, and
the order of all else, stay. With scripted noise (`attended.py`), all that leaves the worker is then the same bytes.
"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.agents.kafka import fail_stop
from shoal.agents.kafka.settings import RELEASE
from shoal.models.config.file import Config
from shoal.stream.file_run import Line
from tests.privacy.attended import (
    Attended,
    Sent,
    beat,
    cancelled,
    clock_record,
    present,
    sample,
    scripted,
    shown_at,
    told,
    told_of_an_addition,
    without,
)
from tests.support.effort import examples

UNITS = [f"user{index}" for index in range(4)]
KEYS = {"group": "g", "groups": ["a", "b", "c"], "max_groups_per_user": 2}
CONFIGS: list[Config] = [
    present({}),
    present(KEYS, {"statistic": "count", "value": None, "range": None, "group": "g", "groups": ["a", "z"]}),
    present({"lateness": "7s"}, {"step": "20s", "late": "drop", "statistic": "sum"}),
    present(
        KEYS | {"decay": {"kind": "window", "length": "30s"}, "unit": "user-20s"},
        {"decay": {"kind": "exponential", "half_life": "20s"}, "max_ahead": "40s"},
        {"decay": {"kind": "polynomial", "exponent": 2}, "start": "1970-01-01T00:02:00Z"},
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


def test_metrics_show_no_number_of_events():
    """Names and labels are those of beats, of releases, and of who answers."""
    text = once(SENT["many"], slowly=False)[-1]["shown"][0].decode()
    assert {line.split("{")[0].split(" ")[0] for line in text.splitlines() if not line.startswith("#")} == {
        "shoal_releases_total", "shoal_owned_partitions", "shoal_withheld_metrics", "shoal_ready",
        "shoal_event_time_seconds", "shoal_seconds_since_tick", "shoal_audit_log_away", "shoal_brokers_away",
        "shoal_build_info", "shoal_event_time_lag_seconds", "shoal_last_output_timestamp_seconds",
        "shoal_assigned_partitions", "shoal_condition", "shoal_alarm",
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
