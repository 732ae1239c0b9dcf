"""What `/readyz` answers: each condition fails by its own cause, and what a tick waits for stands beside them."""

import ast
import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from shoal.agents.worker import health
from shoal.agents.worker.conditions import AUDIT_LIMIT, conditions, report
from shoal.agents.worker.gauges import gauges
from shoal.agents.worker.timings import Timings
from shoal.stream.machine import Outbox, StagePartition
from tests.agents.worker.test_watch import SETTINGS, UNJOINED, Stage, speaking

WORKER = Path(health.__file__).parent


def failing(stage: Stage) -> dict[str, str]:
    stage.readiness.look()
    return {condition.name: condition.text for condition in conditions(stage.readiness) if not condition.ok}


def at(stage: Stage, seconds: float) -> None:
    """So many seconds have passed."""
    stage.readiness._now = lambda: seconds


def test_each_condition_fails_by_its_own_cause() -> None:
    stage = Stage()
    stage.owns(speaking(25, 25))
    assert failing(stage) == {}
    stage.host.reach.away = True
    assert failing(stage) == {"brokers": "no broker of somewhere:9092 answers"}
    stage.host.reach.away, stage.host.sink.away = False, True
    assert failing(stage) == {"audit": "the audit log cannot be reached; releases go on, and it catches up later"}
    stage.host.sink.away, stage.host.accepting = False, False
    assert failing(stage) == {"restored": "a rebalance is under way, or partitions are being taken over"}
    stage.host.accepting, stage.domain.withheld = True, {"mean/2", "count/1"}
    assert failing(stage)["versions"].startswith("new releases of count/1, mean/2 wait until those in the audit log")
    stage.domain.withheld, stage.host.app = set(), None
    assert failing(stage) == {"assigned": UNJOINED}
    stage.host.stopping = True
    assert failing(stage) == {"assigned": "the worker is stopping"}
    stage.domain.health.running = False
    assert failing(stage)["started"] == "not yet: brokers, topics and the audit log are still to be agreed with"
    assert not report(stage.readiness)["ready"]


def test_an_audit_log_that_takes_nothing_for_long_is_not_well() -> None:
    # given releases of which the audit log takes some, and then no more
    stage = Stage()
    stage.owns(speaking(25, 25))
    feed = SimpleNamespace(done=7)
    stage.host.sink.feeds = {("app.releases", 0): feed}
    ends = {("app.releases", 0): 9}
    stage.host.app._consumer._thread.ends = lambda: ends
    at(stage, 0)
    assert failing(stage) == {}
    at(stage, 100)
    feed.done = 9
    assert (failing(stage), stage.readiness.audit_seconds()) == ({}, 0)
    ends["app.releases", 0] = 12
    assert failing(stage) == {}
    at(stage, 200)
    ends["app.releases", 0], feed.done = 15, 11
    assert (failing(stage), stage.readiness.audit_seconds()) == ({}, 100)
    # then it counts from the oldest that it has not taken
    at(stage, 101 + AUDIT_LIMIT)
    assert failing(stage) == {"audit": "something has waited for the audit log for more than 300 s"}
    feed.done = 12
    assert (failing(stage), stage.readiness.audit_seconds()) == ({}, AUDIT_LIMIT - 99)
    # and what is not read here any more is forgotten
    stage.host.sink.feeds = {}
    assert (failing(stage), stage.readiness.audit_seconds()) == ({}, 0)


def test_what_a_tick_waits_for_is_named_with_the_moment_since_when_and_makes_nobody_unready() -> None:
    # given three source partitions, of which one is far ahead, one behind, and one between them
    stage = Stage()
    stage.readiness.wall = lambda: 1_000_000 + stage.readiness._now()
    at(stage, 0)
    stage.owns(speaking(45, 5, 25))
    waiting = {"metric": "m0", "topic": "events", "partition": 1, "since": "1970-01-12T13:46:40Z", "stuck": False}
    assert report(stage.readiness)["waiting_for"] == [waiting]
    # when that lasts
    at(stage, 61)
    stage.domain.health.alarm("policy", "somebody changed it")
    said = report(stage.readiness)
    # then it is stuck, since the same moment, and the worker is as ready as before
    assert said["waiting_for"] == [waiting | {"stuck": True}]
    assert said["ready"]
    assert said["alarms"] == {"policy": "somebody changed it"}
    assert stage.readiness.reasons() != []
    # and when the tick closes and the next one waits, that is another wait
    stage.owns(speaking(45, 15, 25))
    assert report(stage.readiness)["waiting_for"] == [
        waiting | {"partition": 1, "since": "1970-01-12T13:47:41Z", "stuck": False}
    ]
    stage.owns(speaking(45, 45, 45))
    assert report(stage.readiness)["waiting_for"] == []


def test_how_far_a_partition_is_behind_is_told_unless_presence_is_protected() -> None:
    stage = Stage()
    stage.owns(speaking(25, 25))
    stage.host.app._consumer._thread.ends = lambda: {("app.contributions", 0): 13}
    place: dict[str, Any] = {"stage": "release", "topic": "app.contributions", "partition": 0}
    assert report(stage.readiness)["partitions"] == [place | {"behind": 10}]
    stage.domain.discreet = True
    assert report(stage.readiness)["partitions"] == [place]


def test_every_kind_of_alarm_is_shown_whether_it_is_up_or_not() -> None:
    raised = {
        node.args[0].id
        for file in WORKER.glob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call)
        and getattr(node.func, "attr", "") == "alarm"
        and isinstance(node.args[0], ast.Name)
    }
    assert {getattr(health, name) for name in raised} == set(health.KINDS)
    stage = Stage()
    stage.domain.health.alarm("policy", "changed")
    (shown,) = (metric for metric in gauges(stage.readiness) if metric.name == "shoal_alarm")
    assert {sample.labels["kind"]: sample.value for sample in shown.samples} == {
        kind: float(kind == "policy") for kind in health.KINDS
    }


@pytest.mark.parametrize(("discreet", "stages"), [(False, {"bound", "release", "audit"}), (True, {"release", "audit"})])
def test_a_stage_brings_something_out_when_it_writes_its_output(discreet: bool, stages: set[str]) -> None:
    # given a worker that commits events that send nothing, contributions, releases, and what has neither
    timings = Timings(SETTINGS, itertools.count(1).__next__)
    bound, release = StagePartition("bound", "events", 0), StagePartition("release", "app.contributions", 0)
    timings.committed(bound, Outbox(1), 0.5)
    timings.committed(release, Outbox(1, records={("app.activations", 0): []}), 0.5)
    assert timings.last_output == {}
    timings.committed(bound, Outbox(2, records={("app.contributions", 1): []}), 30)
    timings.committed(release, Outbox(2, records={("app.releases", 0): []}), 0.004)
    timings.delivered()
    timings.committed(release, Outbox(3), 0.2)
    # then each moment is that of its output
    assert timings.last_output == {"bound": 1, "release": 2, "audit": 3}
    assert (timings.transactions["bound"].total, timings.transactions["release"].total) == (30.5, 0.71)
    # and where presence is protected, nobody sees when contributions were sent, nor how many transactions there were
    stage = Stage()
    stage.host.timings, stage.domain.discreet = timings, discreet
    shown = {metric.name: metric for metric in gauges(stage.readiness)}
    assert {one.labels["stage"] for one in shown["shoal_last_output_timestamp_seconds"].samples} == stages
    hidden = {"shoal_transaction_duration_seconds", "shoal_transactions", "shoal_restore_duration_seconds"}
    hidden |= {"shoal_consumer_lag_records", "shoal_uncommitted_records", "shoal_audit_lag_records"}
    assert hidden & shown.keys() == (set() if discreet else hidden)
