"""Misplaced records: counted alike with each backend, said where they are a large part, and forgotten when they end."""

import importlib
from collections.abc import Sequence
from typing import Any

import pytest
import structlog

from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.misplaced import LEAST, STRETCH, Placement, Share, remedy, said
from shoal.agents.worker.conditions import conditions
from shoal.agents.worker.gauges import gauges
from shoal.agents.worker.outbox import BoundMachine
from shoal.agents.worker.watch import Watching
from shoal.stream.file_run import Line
from shoal.stream.machine import StagePartition
from tests.agents.worker.test_watch import Stage
from tests.stream.simulation import STAMP, Cluster, config, event
from tests.support.backends import BACKENDS, KERNEL

SOURCES = 4
MODULES = [importlib.import_module("shoal_kernel") if name == KERNEL else None for name in BACKENDS]
REASONS = ["wrong-partition", "not-json", "bad-value"]


def machine(module: Any, *metrics: dict[str, Any]) -> BoundMachine:
    """Partition 0 of four, from its beginning."""
    plan = Cluster(config(*(metrics or ({"every": "10s"},))), SOURCES, 1).plan
    made = BoundMachine(KafkaSettings("b:1", "app"), plan, 0, kernel=module)
    made.start(0)
    return made


def users(of: BoundMachine, *, at_home: bool) -> list[str]:
    names = map(str, range(400))
    return [name for name in names if (of.plan.partition_of(name.encode(), SOURCES) == of.partition) is at_home]


def give(to: BoundMachine, events: Sequence[bytes], size: int = 100) -> None:
    """Process events in slices."""
    for first in range(0, len(events), size):
        start = to.next_offset or 0
        lines = [Line(start + n, raw, timestamp=STAMP) for n, raw in enumerate(events[first : first + size])]
        to.process(lines, start + len(lines))


def mixed(of: BoundMachine, count: int, misplaced: int, *, broken: int = 0) -> list[bytes]:
    """Events of which so many in ten are misplaced, and others broken."""
    homes, others = users(of, at_home=True), users(of, at_home=False)
    names = [(others if n % 10 < misplaced else homes)[n % 50] for n in range(count)]
    events = [event(name, 0.5, 5) for name in names]
    return [b"broken" if n % 10 >= 10 - broken else raw for n, raw in enumerate(events)]


@pytest.mark.parametrize("module", MODULES, ids=BACKENDS)
def test_misplaced_records_are_a_share_of_those_that_have_a_user(module: Any) -> None:
    # given two metrics, both of which refuse a misplaced record
    source = machine(module, {"every": "10s"}, {"every": "20s"})
    # when six of ten are misplaced and two of ten are broken
    give(source, mixed(source, 1000, 6, broken=2))
    # then a record counts once, and a broken one not at all
    assert source.placement.found == Share(800, 600)
    assert source.placement.found.percent == "75 %"


@pytest.mark.parametrize("module", MODULES, ids=BACKENDS)
def test_a_small_part_is_not_said_and_a_corrected_producer_is_seen(module: Any) -> None:
    source = machine(module)
    # given one record in ten
    give(source, mixed(source, 2000, 1))
    assert source.placement.found is None
    # when a producer keys by something else, that is seen within a stretch
    give(source, mixed(source, 300, 9))
    assert source.placement.found == Share(300, 270)
    give(source, mixed(source, STRETCH - 300, 9))
    assert source.placement.found == Share(STRETCH, 900)
    # and it stays until a stretch has few
    give(source, mixed(source, STRETCH - 100, 0))
    assert source.placement.found == Share(STRETCH, 900)
    give(source, mixed(source, 100, 0))
    assert source.placement.found is None


@pytest.mark.parametrize(("share", "large"), [
    (Share(LEAST - 1, LEAST - 1), False), (Share(LEAST, LEAST), True), (Share(5 * LEAST, LEAST), True),
    (Share(5 * LEAST + 1, LEAST), False), (Share(0, 0), False),
])  # fmt: skip
def test_a_large_part_is_one_in_five_and_fifty_records(share: Share, large: bool) -> None:
    assert share.is_large is large


def test_an_app_that_refuses_nothing_has_no_share() -> None:
    placement = Placement()
    placement.take_in(10_000, {"over_cap": 9_000, "dead_letters.m0.late": 900})
    assert placement.found is None


def test_partitions_are_named_up_to_three() -> None:
    shares = {("sales", number): Share(100, 70 + number) for number in range(5)}
    text = said(shares, "customer")
    assert text.startswith(
        "70 % of sales[0], 71 % of sales[1], 72 % of sales[2] and a large part of 2 others are keyed"
    )
    assert "360 of 500 records" in text
    assert ";" not in text  # what stands behind it is the remedy
    assert "partitioner crc32" in remedy("customer", "crc32")


def reading(source: BoundMachine) -> Stage:
    stage = Stage()
    stage.host.partitions = {StagePartition("bound", "events", 0): type("Part", (), {"machine": source})()}
    return stage


def test_a_worker_is_not_ready_while_a_large_part_is_misplaced_and_says_what_to_do() -> None:
    source = machine(None)
    stage = reading(source)
    held = {one.name: one for one in conditions(stage.readiness)}
    assert held["keys"] == ("keys", True, "records are keyed by their users")
    give(source, mixed(source, 1000, 8))
    held = {one.name: one for one in conditions(stage.readiness)}
    assert not held["keys"].ok
    assert held["keys"].text == (
        "80 % of events[0] is keyed by something else than u: 800 of 1,000 records belong to users of other "
        "partitions, so they are dead letters and in no release; have producers key records by u with partitioner "
        "murmur2, as `shoal produce` does, or set [kafka] partitioner to theirs"
    )
    assert ratios(stage) == {"0": 0.8}


def test_a_worker_logs_it_once_until_it_is_over() -> None:
    source = machine(None)
    watching = Watching(reading(source).readiness)
    with structlog.testing.capture_logs() as logged:
        for misplaced in (8, 8, 0, 8):
            give(source, mixed(source, STRETCH, misplaced))
            watching.look(0)
    assert [line["event"] for line in logged] == ["misplaced"] * 2
    assert logged[0]["reason"].startswith("80 % of events[0] is keyed by something else than u: 800 of 1,000 records")


def test_a_worker_that_protects_presence_shows_nothing_of_what_is_misplaced() -> None:
    source = machine(None)
    stage = reading(source)
    give(source, mixed(source, 1000, 8))
    stage.domain.discreet = True
    assert "keys" not in {one.name for one in conditions(stage.readiness)}
    assert stage.readiness.misplaced() == {}
    assert ratios(stage) is None


def ratios(stage: Stage) -> dict[str, float] | None:
    """The ratio that `/metrics` shows of each partition; None if there is no such metric."""
    stage.readiness.look = lambda: None  # type: ignore[method-assign]
    stage.readiness.behind = dict  # type: ignore[method-assign]
    shown = {metric.name: metric for metric in gauges(stage.readiness)}
    found = shown.get("shoal_misplaced_ratio")
    return None if found is None else {one.labels["partition"]: one.value for one in found.samples}
