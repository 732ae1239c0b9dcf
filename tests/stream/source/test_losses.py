"""Accepted losses: behind one, a stream is that of the records that were read, whatever dies where."""

import importlib
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.agents.lost_records import accepted, digest_of, seal
from shoal.models.config.file import Config
from shoal.models.errors import FailStop
from shoal.models.losses import AcceptedLoss, Place
from shoal.models.records import Message
from shoal.models.times import iso
from shoal.stream.bound import BoundPartition
from shoal.stream.clock import SourceClock
from shoal.stream.file_run import Line
from shoal.stream.machine import StagePartition
from shoal.stream.state_mark import MARK
from shoal.stream.topic import plan_topic
from tests.privacy.attended import SECOND, present
from tests.stream.simulation import SECRET, Cluster, config
from tests.support.backends import BACKENDS, KERNEL
from tests.support.effort import examples

MODULES = {name: importlib.import_module("shoal_kernel") if name == KERNEL else None for name in BACKENDS}
USERS = [f"user{number}" for number in range(6)]
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
losses = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 9), st.booleans()), max_size=2)


class LossyCluster(Cluster):
    """Two partitions of a source that lose records, and an operator who accepts it."""

    def __init__(self, cfg: Config, lane: str) -> None:
        super().__init__(cfg, 2, 2)
        self.kernel = MODULES[lane]
        self.rows: list[AcceptedLoss] = []
        self.begins = [0, 0]  # the offset of each topic from which on records are read
        self._before: list[list[Line]] = [[], []]  # what was read before that

    def lose(self, index: int, count: int, *, anew: bool = False, beats: bool = False) -> None:
        """So many records are gone ahead of a state; `anew`: and the topic is another one, whose offsets begin again.

        `beats`: none of those that are left counts, and none before the next beat.
        """
        source, raw = self.sources[index], self.sources[index].changelog.get(MARK)
        self.crash_bound(index)  # its owner is locked out
        if raw is None:
            return
        before = self._row(index, raw)
        position = orjson.loads(raw)["offset"] if before is None else self.begins[index]
        self._before[index] += source.log[self.begins[index] : position]
        if anew:
            rest = source.log[position + count :]
            source.log = [line._replace(offset=number) for number, line in enumerate(rest)]
        following = len(source.log) if beats else 0 if anew else min(position + count, len(source.log))
        self.begins[index], digest = following, digest_of(SECRET, raw)
        hidden = Place(digest, "id", sealed=seal(SECRET, digest, following))
        place = hidden if beats else Place(digest, "id", position, following)
        self.rows.append(AcceptedLoss(len(self.rows) + 1, "events", index, place, "operator", "now"))

    def counting(self, index: int) -> list[Line]:
        """The records of a partition that count: after a loss by beats none before the next one."""
        rest = self.sources[index].log[self.begins[index] :]
        waits = any(row.partition == index and row.place.sealed is not None for row in self.rows)
        first = next((number for number, line in enumerate(rest) if line.value is None), len(rest)) if waits else 0
        return [*self._before[index], *rest[first:]]

    def _row(self, index: int, raw: bytes) -> AcceptedLoss | None:
        return accepted(self.rows, StagePartition("bound", "events", index), raw, SECRET)

    def _bound_machine(self, index: int) -> BoundPartition:
        source, is_new = self.sources[index], self.sources[index].machine is None
        machine = super()._bound_machine(index)
        raw = source.changelog.get(MARK)
        if is_new and raw is not None and (loss := self._row(index, raw)) is not None:
            machine.lose(loss)
        return machine


def alone(cfg: Config, logs: list[list[Line]]) -> list[bytes]:
    """The releases of a cluster that never heard of any loss."""
    cluster = Cluster(cfg, 2, 2)
    for source, lines in zip(cluster.sources, logs, strict=True):
        source.log = [line._replace(offset=number) for number, line in enumerate(lines)]
    cluster.drain()
    return cluster.releases()


def play(cluster: Cluster, schedule: list[tuple[str, int, int]]) -> None:
    for action, where, amount in schedule:
        cluster.act(action, where, amount)


@pytest.mark.parametrize("lane", MODULES)
@examples(80)
@given(st.lists(st.tuples(samples, actions, losses), min_size=1, max_size=3), actions)
def test_behind_losses_the_stream_is_that_of_the_records_that_were_read(lane, history, last):
    cfg = config(*VALUES)
    cluster, now = LossyCluster(cfg, lane), 100
    # given records that are gone ahead of the state, again and again, while machines die at any place
    for found, schedule, lost in history:
        now = cluster.send(found, now)
        play(cluster, schedule)
        for index, count, anew in lost:
            cluster.lose(index, count, anew=anew)
    play(cluster, last)
    cluster.end(iso((now + 20) * SECOND).encode())
    cluster.drain()
    # then releases are those of the others
    assert cluster.releases() == alone(cfg, [cluster.counting(index) for index in range(2)])


@pytest.mark.parametrize("lane", MODULES)
@examples(80)
@given(*[samples] * 4, *[actions] * 3, st.integers(0, 1), st.integers(0, 6), st.booleans())
def test_where_presence_is_protected_no_record_before_the_beat_counts(
    lane, before, lost, more, after, first, waiting, second, index, count, anew
):
    cfg = present(*PRESENT)
    cluster = LossyCluster(cfg, lane)
    now = cluster.send(before, 100, every=3)
    play(cluster, first)
    now = cluster.send(lost, now, every=3)
    # given a loss of any length, which may end anywhere among the records that are left, and others before a beat
    cluster.lose(index, count, anew=anew, beats=True)
    now = cluster.send(more, now + 1)
    play(cluster, waiting)
    cluster.beat(now + 5)
    now = cluster.send(after, now + 6, every=3)
    play(cluster, second)
    cluster.beat(now + 40)
    cluster.drain()
    # then the releases are those without all that came before the beat
    assert cluster.releases() == alone(cfg, [cluster.counting(number) for number in range(2)])


@pytest.mark.parametrize("lane", MODULES)
def test_a_worker_that_dies_while_records_wait_for_a_beat_forgets_nothing(lane):
    # given a partition that waits behind a loss, and has committed that
    cfg = present(*PRESENT)
    cluster = LossyCluster(cfg, lane)
    now = cluster.send([(user, 1) for user in USERS], 100, every=3)
    cluster.drain()
    for index in range(2):
        cluster.lose(index, 0, beats=True)
    now = cluster.send([(user, 1) for user in USERS], now)
    for index in range(2):
        cluster.bound(index, 1)
        cluster.crash_bound(index)
    # when its next owner goes on
    now = cluster.send([(user, 1) for user in USERS], now, every=4)
    cluster.beat(now + 40)
    cluster.drain()
    # then it waits still
    assert cluster.releases() == alone(cfg, [cluster.counting(number) for number in range(2)])
    assert cluster.releases() != alone(cfg, [source.log for source in cluster.sources])


def test_a_metric_that_is_new_behind_a_loss_has_all_of_its_records():
    # given a state of one metric, a loss, and a configuration with one more
    cluster = LossyCluster(config(*VALUES[:1]), BACKENDS[0])
    cluster.send([(user, 1) for user in USERS * 3], 100)
    cluster.bound(0, 2)
    cluster.lose(0, 1)
    cluster.plan = plan_topic(config(*VALUES), "events", SECRET, source_partitions=2, contributions_partitions=2)
    # when the partition goes on
    cluster.bound(0, 1)
    # then the mark says where the new metric began, and that the other one has lost records
    mark = orjson.loads(cluster.sources[0].changelog[MARK])
    assert (mark["gapped"], mark["starts"]) == (["m0/1"], {"m0/1": 0, "m1/1": 3})


def test_a_message_behind_a_loss_is_told_from_one_with_its_number_and_offset():
    clock = SourceClock()
    for number in (1, 2):
        assert clock.follows(Message("events", 0, number, 10 * number, 0, {}, turn=1), "here")
    # then what only came again is left out
    assert not clock.follows(Message("events", 0, 2, 20, 0, {}, turn=1), "here")
    # and a state that is older than its messages, and goes on another way, is found out
    with pytest.raises(FailStop, match="state is older than its messages"):
        clock.follows(Message("events", 0, 2, 20, 0, {}, turn=2), "here")
