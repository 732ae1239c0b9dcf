"""Groups that take in what came and release nothing: what they hold survives, and nobody sees it."""

import dataclasses
from collections import Counter
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.groups import Closed, Groups, IsHome, Rows
from shoal.models.config.file import Config
from shoal.models.records import release_id
from shoal.stream.file_run import FileRun, Line
from shoal.stream.state_mark import MARK
from shoal.stream.table.inventory import HEAD
from shoal.stream.tick_queue import CHUNK
from shoal.stream.topic import TopicPlan, plan_topic
from tests.stream.simulation import SECRET, Cluster, config, event, run_file
from tests.stream.test_equality import actions, encode, events_in_order
from tests.support.effort import examples

ENOUGH = 3  # samples
GROUPED = {"group": "g", "max_groups": 2}
STEPPED = {"statistic": "mean", "every": "5s", "decay": {"kind": "none"}}
BY_CONTRIBUTION = config({"algorithm": "naive", "every": "contribution", **GROUPED}, {"algorithm": "sharp"})
CONFIGS = [
    config({"algorithm": "naive", **GROUPED}),
    BY_CONTRIBUTION,
    config(STEPPED | GROUPED, STEPPED | {"decay": {"kind": "window", "length": "10s"}, "max_gap": 1}),
]


class FromEnough:
    """Groups of a statistic that are released only while they rest on enough samples."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def __getattr__(self, name: str) -> Any:
        return getattr(self._groups, name)

    def close(self, tick: int, rows: Rows, after: str | None = None) -> Iterator[Closed | None]:
        for closed in self._groups.close(tick, rows, after):
            assert closed is not None
            samples = 0 if closed.estimate is None else closed.estimate.samples
            yield closed._replace(is_published=samples >= ENOUGH)


class Reluctant:
    """A statistic with such groups."""

    def __init__(self, statistic: Any) -> None:
        self._statistic = statistic

    def __getattr__(self, name: str) -> Any:
        return getattr(self._statistic, name)

    def in_groups(self, key: bytes, is_home: IsHome) -> FromEnough:
        return FromEnough(self._statistic.in_groups(key, is_home))


def reluctant(plan: TopicPlan) -> TopicPlan:
    metrics: list[Any] = [dataclasses.replace(one, parameters=Reluctant(one.parameters)) for one in plan.metrics]  # type: ignore[arg-type]
    return dataclasses.replace(plan, metrics=tuple(metrics))


def cluster_of(cfg: Config, events: list[bytes], sources: int, homes: int) -> Cluster:
    cluster = Cluster(cfg, sources, homes)
    cluster.plan = reluctant(cluster.plan)
    cluster.produce(events)
    cluster.end_last_ticks()
    return cluster


def expected(cfg: Config, events: list[bytes]) -> list[bytes]:
    """What is released by statistics that are not reluctant, where enough samples are in it, with a seq of its own."""
    seqs, expected = Counter[tuple[str, str | None]](), list[bytes]()
    for release in map(orjson.loads, run_file(cfg, events)):
        if release["samples"] >= ENOUGH:
            metric, group = name = release["metric"], release["group"]
            seqs[name] += 1
            renamed = {"seq": seqs[name], "id": release_id(metric, release["version"], group, seqs[name])}
            expected.append(orjson.dumps(release | renamed))
    return expected


@examples(30)
@given(st.sampled_from(CONFIGS), events_in_order, st.sampled_from([1, 2, 8]), st.sampled_from([1, 3]), actions)
def test_what_is_not_released_survives_any_interleaving_and_any_crash(cfg, rows, sources, homes, schedule):
    # given events, and statistics that release a group only while enough samples are in it
    events = encode(rows)
    due = expected(cfg, events)
    # when they run over a file
    plan = reluctant(plan_topic(cfg, "events", SECRET, source_partitions=1, contributions_partitions=1))
    lines = (Line(offset, raw) for offset, raw in enumerate(events))
    # then they release what others do, and nothing before that
    assert [one.value for output in FileRun(plan).outputs(lines) for one in output.releases] == due
    # and over partitions, whose machines work, crash and recover in any order, the same bytes
    cluster = cluster_of(cfg, events, 1 if cfg is BY_CONTRIBUTION else sources, homes)
    for action, where, amount in schedule:
        cluster.act(action, where, amount)
    cluster.drain()
    assert cluster.releases() == due


def test_a_transaction_may_end_between_groups_that_release_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.stream.pieces.GROUPS", 2)
    # given five groups, and a tick in which none of them has enough samples
    events = [event(f"u{n}", 1, 100 + tick, g=f"g{n}") for tick in (0, 10, 20) for n in range(5)]
    cluster = cluster_of(CONFIGS[0], events, 1, 1)
    cluster.bound(0, 10)
    # when every transaction takes two groups of it, and the machine crashes after each
    home, states = cluster.homes[0], []
    for _ in range(4):
        cluster.release(0, 1)
        states.append(sorted(name[:1] for name in home.changelog if name != MARK))
        cluster.crash_release(0)
    # then each has the state of two more, and no longer what they were made of
    assert states == [[HEAD] * done + [CHUNK] * (10 - done) for done in (2, 4, 5, 5)]
    assert home.releases == []
    # and the third tick releases all of them, once
    cluster.drain()
    assert cluster.releases() == expected(CONFIGS[0], events)
    assert len(cluster.releases()) == 5
