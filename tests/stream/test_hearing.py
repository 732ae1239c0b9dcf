"""Clocks go where they are heard: to the contributions partitions that can have a tick to close."""

from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.models.config.file import Config
from shoal.models.records import record_key
from shoal.stream.bound import BoundPartition
from shoal.stream.file_run import Line
from shoal.stream.open_ticks import open_ticks
from shoal.stream.topic import TopicPlan, plan_topic
from tests.stream.simulation import SECRET, STAMP, Cluster, config, event, run_file
from tests.support.effort import examples

HOMES = 5
IDLE_AFTER_MS = 30_000
ALONE = {"algorithm": "naive", "every": "10s"}
OTHER = {"algorithm": "naive", "every": "15s"}
GROUPED = {"algorithm": "naive", "every": "10s", "group": "g", "max_groups": 2}
SLOTTED = {"statistic": "mean", "slot": "20s", "group": "g", "max_groups": 2, "algorithm": "baseline",
           "epsilon": 5000, "unit": "user", "max_slots": 9}  # fmt: skip
PRESENT = {"statistic": "sum", "relation": "add-remove", "every": "10s", "decay": {"kind": "window", "length": "30s"},
           "start": "1970-01-01", "life": "1h"}  # fmt: skip


def plan(*metrics: dict[str, Any]) -> TopicPlan:
    return plan_topic(config(*metrics), "events", SECRET, source_partitions=2, contributions_partitions=HOMES)


def home_of(name: str) -> int:
    return plan(ALONE).home_of(record_key(name, None))


def test_without_groups_the_homes_of_the_metrics_hear_and_no_others() -> None:
    assert plan(ALONE).hearing == {home_of("m0")}
    assert plan(ALONE, OTHER, ALONE).hearing == {home_of("m0"), home_of("m1"), home_of("m2")}
    assert plan(SLOTTED).hearing == {home_of("m0")}, "all cells of a slot are released in the metric's home"
    assert plan(ALONE, GROUPED).hearing == set(range(HOMES))


def test_a_transaction_says_once_what_it_would_say() -> None:
    # given a partition whose clock enters a step
    machine = BoundPartition(plan(ALONE), 0, checks_partition=False)
    machine.start(0)
    machine.process([Line(0, event("a", 1, 100), timestamp=STAMP)], 1)
    # then asking changes nothing, and taking does
    assert [machine._outgoing.would_speak(machine.promises) for _ in range(2)] == [True, True]
    assert machine.take(1) is not None
    assert not machine._outgoing.would_speak(machine.promises)
    # and idle records go where clocks go
    machine.idle(5)
    bound = machine.take(5)
    assert bound is not None
    assert [home for home, _ in bound.messages] == [home_of("m0")]


def test_no_open_tick_is_reported_where_none_can_close() -> None:
    cluster = Cluster(config(ALONE), 2, HOMES)
    cluster.produce([event("a", 1, 100), event("b", 1, 115)])
    cluster.drain()
    reported = [[tick.metric for tick in open_ticks(cluster._release_machine(home))] for home in range(HOMES)]
    assert [home for home, found in enumerate(reported) if found] == [home_of("m0")]


def of(cfg: Config, names: Sequence[str]) -> Config:
    return cfg.model_copy(update={"metric": tuple(metric for metric in cfg.metric if metric.name in names)})


FILES = [["m0"], ["m0", "m1"], ["m0", "m2"], ["m1"], ["m0", "m1", "m2"]]


@examples(30)
@given(
    files=st.lists(st.sampled_from(FILES), min_size=1, max_size=5),
    users=st.lists(st.sampled_from("abcdef"), min_size=5, max_size=40),
    cuts=st.lists(st.integers(1, 9), min_size=1, max_size=5),
)
def test_metrics_that_come_and_go_release_what_a_file_run_does(
    files: list[list[str]], users: list[str], cuts: list[int]
) -> None:
    # given a topic whose workers restart with other metrics, each of which is there for the rest once it has come
    whole = config(ALONE, OTHER, GROUPED)
    files = [sorted({name for file in files[: number + 1] for name in file}) for number in range(len(files))]
    events = [event(user, 1, 100 + 3 * number, g="xy"[number % 2]) for number, user in enumerate(users)]
    cluster, begun = Cluster(of(whole, files[0]), 2, HOMES), {name: 0 for name in files[0]}
    share = len(events) // len(files) + 1
    for number, file in enumerate(files):
        cluster.cfg, cluster.plan = of(whole, file), plan_of(whole, file)
        for index in range(2):
            cluster.crash_bound(index)
        for home in range(HOMES):
            cluster.crash_release(home)
        begun |= {name: number * share for name in file if name not in begun}
        # when events come, and their transactions are cut anywhere
        cluster.produce(events[number * share : (number + 1) * share])
        for index, source in enumerate(cluster.sources):
            while (cluster._bound_machine(index).next_offset or 0) < len(source.log):
                cluster.bound(index, cuts[index % len(cuts)])
    # then each metric releases what a run over a file of the events since its beginning does
    cluster.end_last_ticks()
    cluster.drain()
    expected = [run_file(of(whole, [name]), events[first:]) for name, first in begun.items()]
    assert sorted(cluster.releases()) == sorted(release for found in expected for release in found)


def test_a_partition_that_is_silent_when_groups_come_is_heard_in_all_homes() -> None:
    # given two partitions of a topic without groups, of which one then is silent for ever
    whole = config(ALONE, GROUPED)
    cluster = Cluster(of(whole, ["m0"]), 2, HOMES)
    cluster.produce([event(user, 1, 100) for user in "abcdef"])
    assert all(source.log for source in cluster.sources)
    cluster.drain()
    # when a metric with groups comes, and events in the other partition alone
    cluster.plan = plan_of(whole, ["m0", "m1"])
    for index in range(2):
        cluster.crash_bound(index)
    for home in range(HOMES):
        cluster.crash_release(home)
    user = next(user for user in "abcdef" if cluster.plan.partition_of(user.encode(), 2) == 0)
    cluster.produce([event(user, 1, time, g="x") for time in (105, 125)])
    cluster.wall = IDLE_AFTER_MS
    cluster.bound(0, 9)
    cluster.wall = 3 * IDLE_AFTER_MS
    cluster.bound(1, 9, idle=True)
    for home in range(HOMES):
        cluster.release(home, 99)
    # then its first idle record lets the group's tick close
    assert [orjson.loads(one)["metric"] for one in cluster.releases() if orjson.loads(one)["group"]] == ["m1"]


def plan_of(whole: Config, names: Sequence[str]) -> TopicPlan:
    return plan_topic(of(whole, names), "events", SECRET, source_partitions=2, contributions_partitions=HOMES)


@pytest.mark.parametrize("topics", [1, 2])
def test_where_presence_is_protected_all_hear(topics: int) -> None:
    cfg = config(*(PRESENT | {"topic": f"t{number}"} for number in range(topics)))
    for topic in cfg.topics:
        compiled = plan_topic(cfg, topic, SECRET, source_partitions=1, contributions_partitions=HOMES)
        assert compiled.hearing == set(range(HOMES))
