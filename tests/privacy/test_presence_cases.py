"""Where presence is protected: single cases of what a unit sends, and of what a worker shows of it."""

import dataclasses
import json
import re
from typing import Any

import pytest
import structlog

from shoal.agents.kafka import fail_stop
from shoal.agents.kafka.settings import RELEASE
from shoal.agents.worker.outbox import ReleaseMachine
from shoal.agents.worker.watch import Watching
from shoal.models.errors import FailStop
from shoal.stream.file_run import Line
from shoal.stream.open_ticks import open_ticks
from tests.privacy.attended import (
    Attended,
    Sent,
    beat,
    cancelled,
    clock_record,
    present,
    sample,
    scripted,
    told,
    told_of_an_addition,
)
from tests.privacy.hosted import compiled
from tests.privacy.test_presence import KEYS, LAST, MALFORMED, published
from tests.support.cover import in_a_loop

BOTH = [present(KEYS | {"lateness": "7s"}, {"every": "20s", "max_ahead": "40s", "group": "g", "groups": ["a", "b"]})]
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


TWO = present({"lateness": "7s"}, {"topic": "orders", "every": "20s"})


def test_ticks_of_two_topics_have_the_order_of_beats_however_fast_each_is_read():
    """Even if the beats of one come when all of the other were read."""
    beats = [beat(partition, seconds) for seconds in range(105, 301, 5) for partition in range(4)]
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
    cfg, found = present({}, {"topic": "orders", "every": "50s"}), []
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


@in_a_loop
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
        worker.deploy(dataclasses.replace(compiled(present({}, later)), added=frozenset({"later/1"})))
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
        "shoal_partitions_without_beats", "shoal_kernel_info", "shoal_by_kernel",
        "shoal_budget_epsilon", "shoal_budget_epsilon_charged", "shoal_budget_delta", "shoal_budget_delta_charged",
        "shoal_event_time_ahead_seconds", "shoal_log_lines_lost_total", "shoal_latency_seconds",
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


def test_how_far_event_time_is_ahead_is_a_matter_of_beats_alone():
    """And no offset is said, which would count the records before the beat."""
    now = 10**9  # by the worker's clock
    ahead = {"max_ahead": "20m", "start": "2001-09-09T01:40:00Z", "end": None, "life": "100d"}
    far = [sample(0, ALONE, now + seconds, stamp=now * 1000, g="a") for seconds in (60, 1100, 1199, 1201, 10**6)]
    found = []
    for sent in ([], far, SENT["many"]):
        worker = Attended(present(ahead))
        for phase in ([*sent, beat(0, now + 1000, stamp=now * 1000)], [*sent]):
            worker.send(phase)
            worker.drain()
        with structlog.testing.capture_logs() as said:
            Watching(worker._readiness).look(0)
        found.append((worker.shown(), said))
    assert found[0] == found[1] == found[2]
    ((text, *_), lines) = found[0]
    (line,) = (line for line in lines if line["event"] != "joining")
    (shown,) = re.findall(r'shoal_event_time_ahead_seconds\{metric="m0"\} (.*)', text.decode())
    assert 950 < float(shown) < 1000  # a second passes with each look
    assert (line["event"], line["metric"]) == ("event_time_ahead", "m0")
    assert line["reason"].endswith(
        "topic events, partition 0, a beat; set the clock of who sends beats right: for "
        "that long, events of the true time are late"
    )


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
    assert (
        "message ... of topic events, partition 0 (its offset ...) where ... was due; a message is lost" in said[0][0]
    )
