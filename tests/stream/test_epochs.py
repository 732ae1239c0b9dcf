"""A restarted clock: later versions begin with one that has heard nothing, and no earlier tick is closed again."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.models.config.file import Config
from shoal.models.errors import FailStop
from shoal.models.times import iso
from shoal.stream.file_run import Line
from shoal.stream.topic import plan_topic
from tests.privacy.attended import SECOND, present
from tests.stream.simulation import SECRET, STAMP, Cluster, config, event
from tests.support.effort import examples

USERS = [f"user{number}" for number in range(6)]
SOURCES = HOMES = 2
FAR = 10**8  # seconds; a wrong time whose record has a wrong timestamp, too
SUM: dict[str, Any] = {"statistic": "sum", "algorithm": "sharp", "every": "10s", "max_gap": 3}
VALUES: list[dict[str, Any]] = [SUM, {"algorithm": "naive", "lateness": "3s"}]
PRESENT: list[dict[str, Any]] = [{"statistic": "sum"}, {"statistic": "sum", "lateness": "3s"}]

actions = st.lists(
    st.tuples(
        st.sampled_from(["bound", "release", "crash_bound", "crash_release"]), st.integers(0, 1), st.integers(1, 9)
    ),
    max_size=30,
)
samples = st.lists(st.tuples(st.sampled_from(USERS), st.integers(0, 9)), min_size=1, max_size=25)


def raised(cfg: Config, epoch: int) -> Config:
    """The configuration with version 2 of each metric, registered after so many restarts."""
    later = tuple(metric.model_copy(update={"version": 2}) for metric in cfg.metric)
    newer = cfg.model_copy(update={"metric": later})
    return newer.in_epochs({newer.id_of(metric.parts): epoch for metric in later})


def deploy(cluster: Cluster, cfg: Config, *, added: bool) -> None:
    """Restart all workers with another configuration; metrics of the one before are retired."""
    labels = [frozenset(f"{metric.name}/{metric.version}" for metric in one.metric) for one in (cluster.cfg, cfg)]
    cluster.cfg = cfg
    cluster.plan = plan_topic(
        cfg, "events", SECRET, source_partitions=SOURCES, contributions_partitions=HOMES,
        retired=labels[0], added=labels[1] if added else frozenset(),
    )  # fmt: skip
    for index in range(SOURCES):
        cluster.crash_bound(index)
        cluster.crash_release(index)


def play(cluster: Cluster, schedule: list[tuple[str, int, int]]) -> None:
    for action, where, amount in schedule:
        cluster.act(action, where, amount)
    cluster.drain()


def of_version(cluster: Cluster, version: int) -> list[bytes]:
    return [release for release in cluster.releases() if orjson.loads(release)["version"] == version]


@examples(60)
@given(samples, samples, st.integers(0, 1), actions, actions)
def test_a_version_of_the_next_epoch_releases_what_it_would_alone(before, after, bombed, first, second):
    # given a clock that one record took years ahead, in a partition or in both
    cfg = config(*VALUES)
    cluster = Cluster(cfg, SOURCES, HOMES)
    cluster.send(before, 100)
    for source in cluster.sources[bombed:]:
        source.log.append(Line(len(source.log), event("user0", 1, FAR), timestamp=STAMP))
    play(cluster, first)
    closed = of_version(cluster, 1)
    # when its clock is restarted and workers begin with raised versions
    newer = raised(cfg, 1)
    alone = Cluster(newer, SOURCES, HOMES)
    deploy(cluster, newer, added=True)
    for one in (cluster, alone):
        last = one.send(after, 200)
        one.end(iso((last + 20) * SECOND).encode())
    play(cluster, second)
    alone.drain()
    # then they release what they would without all that was before, and nothing that was closed is released again
    assert of_version(cluster, 2) == of_version(alone, 2)
    assert len(of_version(cluster, 2)) > 0
    assert of_version(cluster, 1) == closed


@examples(60)
@given(samples, samples, actions, actions)
def test_where_presence_is_protected_the_next_epoch_begins_with_its_own_beats(before, after, first, second):
    # given beats of which one took the clock far ahead
    cluster = Cluster(present(*PRESENT), SOURCES, HOMES)
    cluster.send(before, 100, every=3)
    cluster.beat(FAR)
    play(cluster, first)
    closed = of_version(cluster, 1)
    # when workers begin with raised versions of the next epoch, whose start is to come
    later = {"start": "1970-01-01T00:10:00Z", "end": "1970-01-01T00:11:00Z"}
    newer = raised(present(*(metric | later for metric in PRESENT)), 1)
    alone = Cluster(newer, SOURCES, HOMES)
    deploy(cluster, newer, added=True)
    deploy(alone, newer, added=True)
    for one in (cluster, alone):
        one.beat(500)
        one.beat(600)
        one.send(after, 601, every=4)
        one.beat(700)
    play(cluster, second)
    alone.drain()
    # then they release what they would alone
    assert of_version(cluster, 2) == of_version(alone, 2)
    assert len(of_version(cluster, 2)) > 0
    assert of_version(cluster, 1) == closed


def test_a_version_that_is_raised_without_a_restart_keeps_the_clock():
    cfg = config(*VALUES)
    cluster = Cluster(cfg, SOURCES, HOMES)
    for source in cluster.sources:
        source.log.append(Line(len(source.log), event("user0", 1, FAR), timestamp=STAMP))
    cluster.drain()
    deploy(cluster, raised(cfg, 0), added=True)
    last = cluster.send([(user, 5) for user in USERS], 200)
    cluster.end(iso((last + 20) * SECOND).encode())
    cluster.drain()
    assert of_version(cluster, 2) == []


def test_a_version_that_protects_presence_cannot_begin_in_an_epoch_whose_beats_are_over():
    cluster = Cluster(present(*PRESENT), SOURCES, HOMES)
    cluster.beat(FAR)
    cluster.drain()
    later = {"start": "1970-01-01T00:10:00Z", "end": "1970-01-01T00:11:00Z"}
    deploy(cluster, raised(present(*(metric | later for metric in PRESENT)), 0), added=True)
    with pytest.raises(FailStop, match="there was a beat of 1973"):
        cluster.bound(0, 1)


def test_a_restart_is_in_a_versions_parameters_and_in_its_clocks_name_alone():
    cfg = config(*VALUES)
    plans = [
        plan_topic(raised(cfg, epoch), "events", SECRET, source_partitions=1, contributions_partitions=1)
        for epoch in (0, 1)
    ]
    labels = [[clock.label for clock in plan.clocks] for plan in plans]
    assert labels[1] == [f"{label}|epoch 1" for label in labels[0]]
    assert {metric.digest for metric in plans[0].metrics}.isdisjoint(metric.digest for metric in plans[1].metrics)
