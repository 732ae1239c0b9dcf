"""What a release partition hands out, and when: what is published elsewhere first, and nothing of it twice."""

from collections.abc import Callable

import orjson
import pytest

from shoal.models.errors import FailStop
from shoal.stream import guard
from shoal.stream.guard import PublishedBefore
from shoal.stream.release import ReleasePartition
from tests.stream.simulation import Cluster, config, event

CONFIG = config({"group": "g", "max_groups_per_user": 2, "algorithm": "naive"})
FULL = config({"group": "g", "epsilon": 400, "max_groups_per_user": 2})
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
    """An audit log with some of the releases, and what the ledger says of other partitions."""

    def __init__(self, releases: dict[str, bytes], activations: dict[tuple[str, int], bytes] | None = None) -> None:
        self.releases, self.activations = releases, activations or {}
        self.is_clear = False
        self.of_runs = False  # what it has of activations

    def machine(self, cluster: Cluster, state: dict[bytes, bytes] | None = None) -> ReleasePartition:
        heads: dict[str, int] = {}
        for name in self.releases:
            group, _, seq = name.partition("/")
            heads[group] = max(heads.get(group, 0), int(seq))
        levels: dict[str, set[int]] = {}
        for group, level in self.activations if self.of_runs else ():
            levels.setdefault(group, set()).add(level)
        published_before = PublishedBefore(
            {"m0/1": heads},
            lambda _: self.is_clear,
            lambda _, group, level: self.activations.get((group, level)),
            {"m0/1": levels},
        )
        machine = ReleasePartition(
            [cluster.plan],
            0,
            idle_after=1,
            published=lambda _, group, seq: self.releases.get(f"{group}/{seq}"),
            published_before=published_before,
        )
        machine.restore(state or {})
        if machine.next_offset is None:
            machine.start(0)
        return machine


def feed(machine: ReleasePartition, cluster: Cluster, enough: Callable[[], bool] = lambda: False) -> None:
    log = cluster.homes[0].log
    machine.process(log[machine.next_offset or 0 :], len(log))
    machine.work(enough)


def test_what_is_new_waits_until_all_partitions_have_made_again_what_is_published() -> None:
    # given two releases in the log, of a stream that has more
    cluster, releases, _ = made_of()
    log = Log({name: releases[name] for name in ("a/1", "b/1")})
    machine = log.machine(cluster)
    # when the partition has made again what is its own, and gone on
    feed(machine, cluster)
    # then it hands out nothing, says why, and takes nothing more
    assert machine.take() is None
    assert machine.withheld == {"m0/1"}
    assert machine.has_made_again("m0/1")
    assert not machine.pending()
    assert list(machine.ahead()) == []
    # and all of it once the others have
    log.is_clear = True
    machine.work()
    taken = machine.take()
    assert taken is not None
    assert [one.value for one in taken.releases] == list(releases.values())
    assert machine.withheld == set()


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
    log.is_clear = True
    machine = log.machine(cluster)
    # when a stream goes on that never makes the release of group c
    feed(machine, cluster)
    assert machine.take() is None
    assert not machine.has_made_again("m0/1")
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


@pytest.mark.parametrize("is_logged", [True, False])
def test_an_activation_of_another_input_is_not_published_beside_releases_that_are(is_logged: bool) -> None:
    # given releases that another input makes again, though it activated something else before one of them
    cluster, releases, activations = made_of(FULL, MANY)
    (group, level), value = next(iter(activations.items()))
    others = {place: one for place, one in activations.items() if place != (group, level)}
    log = Log(releases, others | ({(group, level): value.replace(b":", b": ")} if is_logged else {}))
    machine = log.machine(cluster)
    # then it is refused if the log has another, and withheld if it has none
    if is_logged:
        with pytest.raises(FailStop, match=f"the activation of level {level} is already published with other bytes"):
            feed(machine, cluster)
    else:
        feed(machine, cluster)
        assert machine.take() is None
    # and the same is made again
    same = Log(releases, activations).machine(cluster)
    feed(same, cluster)
    assert same.take() is not None


def test_an_activation_that_another_input_does_not_make_ends_the_worker() -> None:
    """Its releases are made again to the byte, and what it publishes next would be beside what it would not publish."""
    cluster, releases, activations = made_of(FULL, MANY)
    more = {("a", 6): next(iter(activations.values())).replace(b'"level":', b'"level":6,"was":')}
    log = Log(releases, activations | more)
    log.of_runs = True
    with pytest.raises(FailStop, match="the activation of level 6 is published and is not made again"):
        feed(log.machine(cluster), cluster)
    # in the log of workers it may stand before the release that it comes with
    log.of_runs = False
    machine = log.machine(cluster)
    feed(machine, cluster)
    assert machine.take() is not None


def test_activations_before_a_crash_are_not_waited_for_after_it() -> None:
    cluster, releases, activations = made_of(FULL, MANY)
    log = Log(releases, activations)
    log.of_runs = log.is_clear = True
    for made in range(1, len(releases)):
        # given a partition that committed so many of the releases, with what they activated
        first, state = log.machine(cluster), dict[bytes, bytes]()
        first.process(cluster.homes[0].log, len(cluster.homes[0].log))
        committed = 0
        while committed < made:
            pieces = iter([False, True])
            first.work(lambda pieces=pieces: next(pieces, True))  # type: ignore[misc]
            taken = first.take()
            assert taken is not None
            committed += len(taken.releases)
            for key, value in taken.changelog:
                if value is None:
                    state.pop(key, None)
                else:
                    state[key] = value
        # then the next one makes the rest, and misses nothing
        second = log.machine(cluster, state)
        feed(second, cluster)
        taken = second.take()
        assert committed + (len(taken.releases) if taken else 0) == len(releases)


def test_what_was_withheld_is_made_again_after_a_crash() -> None:
    cluster, releases, _ = made_of()
    log = Log({name: releases[name] for name in ("a/1", "b/1")})
    machine = log.machine(cluster)
    state: dict[bytes, bytes] = {}
    published: list[bytes] = []

    def commit(machine: ReleasePartition) -> None:
        taken = machine.take()
        if taken is not None:
            state.update({key: value for key, value in taken.changelog if value is not None})
            for key, value in taken.changelog:
                if value is None:
                    state.pop(key, None)
            published.extend(one.value for one in taken.releases)

    # given a partition that makes a transaction of each release, until it withholds one; then it crashes
    machine.process(cluster.homes[0].log, len(cluster.homes[0].log))
    while machine.pending():
        pieces = iter([False, True])
        machine.work(lambda pieces=pieces: next(pieces, True))  # type: ignore[misc]
        commit(machine)
    assert 0 < len(published) < len(releases)
    # when the next one has read what was committed, and the ledger says that all is made again
    log.is_clear = True
    machine = log.machine(cluster, state)
    assert machine.has_made_again("m0/1")
    feed(machine, cluster)
    commit(machine)
    # then every release is there, once
    assert published == list(releases.values())
