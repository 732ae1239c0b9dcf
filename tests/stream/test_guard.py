"""What a release partition hands out, and when: what is published elsewhere first, and nothing of it twice."""

from collections.abc import Callable

import orjson
import pytest

from shoal.models.errors import FailStop
from shoal.stream import guard
from shoal.stream.guard import PublishedBefore
from shoal.stream.release import ReleasePartition
from tests.stream.simulation import Cluster, config, event

CONFIG = config({"group": "g", "max_groups": 2, "algorithm": "naive"})
FULL = config({"group": "g", "epsilon": 400, "max_groups": 2})
EVENTS = [event(f"user{n % 3}", 0.5, 4 * n, g="ab"[n % 2]) for n in range(12)]

MANY = [event(f"user{n % 4}", 0.5, 4 * n, g="ab"[n // 4 % 2]) for n in range(48)]


def made_of(cfg=CONFIG, events=EVENTS) -> tuple[Cluster, dict[str, bytes], dict[tuple[str, int], bytes]]:
    """A cluster whose one contributions partition is full; releases by id, and activations by group and level."""
    cluster = Cluster(cfg, 1, 1)
    cluster.produce(events)
    cluster.end_last_ticks()
    cluster.bound(0, 1000)
    machine = ReleasePartition([cluster.plan], 0, idle_after=1)
    machine.start(0)
    machine.process(cluster.homes[0].log, len(cluster.homes[0].log))
    machine.work()
    taken = machine.take()
    assert taken is not None
    activations = {}
    for activated in taken.activations:
        said = orjson.loads(activated.value)
        activations[said["group"], said["level"]] = activated.value
    return cluster, {f"{one.group}/{one.seq}": one.value for one in taken.releases}, activations


class Log:
    """An audit log with some of the releases and activations."""

    def __init__(self, releases: dict[str, bytes], activations: dict[tuple[str, int], bytes] | None = None) -> None:
        self.releases, self.activations = releases, activations or {}

    def machine(self, cluster: Cluster, state: dict[bytes, bytes] | None = None) -> ReleasePartition:
        heads: dict[str, int] = {}
        for name in self.releases:
            group, _, seq = name.partition("/")
            heads[group] = max(heads.get(group, 0), int(seq))
        machine = ReleasePartition(
            [cluster.plan],
            0,
            idle_after=1,
            published=lambda _, group, seq: self.releases.get(f"{group}/{seq}"),
            published_before=PublishedBefore(
                {"m0/1": heads}, lambda _, group, level: self.activations.get((group, level))
            ),
        )
        machine.restore(state or {})
        if machine.next_offset is None:
            machine.start(0)
        return machine


def feed(machine: ReleasePartition, cluster: Cluster, enough: Callable[[], bool] = lambda: False) -> None:
    log = cluster.homes[0].log
    machine.process(log[machine.next_offset or 0 :], len(log))
    machine.work(enough)


def test_what_is_made_again_is_handed_out_at_once() -> None:
    cluster, releases, _ = made_of()
    machine = Log(releases).machine(cluster)
    feed(machine, cluster)
    taken = machine.take()
    assert taken is not None
    assert len(taken.releases) == len(releases)


def test_another_group_is_withheld_while_one_that_is_published_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No id has two values, but a user would be in one group more than epsilon was split over."""
    cluster, releases, _ = made_of()
    log = Log({"c/1": b"of another input"})
    machine = log.machine(cluster)
    # when a stream goes on that never makes the release of group c
    feed(machine, cluster)
    assert machine.take() is None
    assert machine.withheld == {"m0/1"}
    assert machine.backlog == 0, "it works on: what it must make may come yet"
    # then it does so up to a bound, and waits
    monkeypatch.setattr(guard, "MAX_WITHHELD", 3)
    bounded = log.machine(cluster)
    feed(bounded, cluster)
    assert (len(bounded._pieces.made.releases), bounded.pending(), bounded.take()) == (3, False, None)
    assert bounded.backlog > 3


def test_other_bytes_in_the_place_of_what_is_published_are_refused() -> None:
    cluster, releases, _ = made_of()
    machine = Log({"a/1": releases["a/1"], "b/1": b"of another input"}).machine(cluster)
    with pytest.raises(FailStop, match="release 1 is already published with other bytes"):
        feed(machine, cluster)


def test_an_activation_of_another_input_is_not_published_beside_releases_that_are() -> None:
    # given releases that another input makes again, though it activated something else before one of them
    cluster, releases, activations = made_of(FULL, MANY)
    (group, level), value = next(iter(activations.items()))
    machine = Log(releases, activations | {(group, level): value.replace(b":", b": ")}).machine(cluster)
    with pytest.raises(FailStop, match=f"the activation of level {level} is already published with other bytes"):
        feed(machine, cluster)
    # and the same is made again
    same = Log(releases, activations).machine(cluster)
    feed(same, cluster)
    assert same.take() is not None


def test_an_activation_that_the_log_lacks_waits_for_the_releases_that_it_has() -> None:
    """The log of workers may lack an activation for a while; one of another input must not be shown meanwhile."""
    cluster, releases, activations = made_of(FULL, MANY)
    missing = {name: one for name, one in activations.items() if name != next(iter(activations))}
    more = releases | {"c/1": b"of another input"}
    machine = Log(more, missing).machine(cluster)
    feed(machine, cluster)
    assert (machine.take(), machine.withheld) == (None, {"m0/1"})
    machine = Log(releases, missing).machine(cluster)
    feed(machine, cluster)
    assert machine.take() is not None


def test_what_was_withheld_is_made_again_after_a_crash() -> None:
    cluster, releases, _ = made_of()
    # given a log that ends with a release of group a, and a partition that makes some of group b before it
    last = max(int(name[2:]) for name in releases if name[0] == "a")
    log = Log({name: value for name, value in releases.items() if name[0] == "a"})
    machine = log.machine(cluster)
    machine.process(cluster.homes[0].log, len(cluster.homes[0].log))
    turns = iter([False] * 3 + [True])
    machine.work(lambda: next(turns, True))
    assert machine.withheld == {"m0/1"}
    assert machine.take() is None
    # when it crashes, then the next one makes all releases, and hands them out with the last that the log has
    machine = log.machine(cluster)
    feed(machine, cluster)
    taken = machine.take()
    assert taken is not None
    assert [one.value for one in taken.releases] == list(releases.values())
    assert f"a/{last}" in {f"{one.group}/{one.seq}" for one in taken.releases}
