"""Deploys at length: hundreds of random histories on real rules, and stories of real workers on Kafka.

    make test-deploys

In each story, every version's releases equal those of `shoal run` over the events it saw; a retired version's are a
prefix of these. The log has all of them, and replaying the contributions makes those of active versions again.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from shoal.agents.audit import verify
from shoal.agents.worker.deployment import LOOK_EVERY
from tests.support.deployment import Deployment, completed, in_order, opened_ledger
from tests.support.hosts import Hosts
from tests.support.kafka import Kafka
from tests.support.people import visits
from tests.support.rollout import play
from tests.support.workers import shoal, tails, wait_until

A: dict[str, Any] = {"name": "a"}
A2 = A | {"version": 2}
B: dict[str, Any] = {"name": "b", "topic": "more"}
C: dict[str, Any] = {"name": "c", "every": "2h"}
ALL = 4 + 2  # partitions of contributions and of one source
SLACK = 2.0  # seconds that a look and a transaction under way take at most


@pytest.mark.parametrize("seed", range(100, 300))
def test_a_history_of_deploys_ends_well(seed, tmp_path):
    play(tmp_path, seed)


class Story:
    """A deployment over two topics, and what each version must have released in the end."""

    def __init__(self, shoals: Deployment, hosts: Hosts) -> None:
        self.shoals, self.hosts = shoals, hosts
        self.events, self.more = visits(600), visits(500)
        self.expected: dict[str, tuple[list[bytes], bool]] = {}  # label -> releases, all of them or the first

    def met(self, metric: Mapping[str, Any], events: list[bytes], *, until_end: bool = True) -> None:
        """A version met these events. Without an end it is retired, and the last of its releases may be missing."""
        shoals, configured = self.shoals, self.shoals.metrics
        shoals.metrics = [completed(metric)]
        shoals.oracle.forget()
        shoals.oracle.run(events, str(shoals.metrics[0]["topic"]), until_end=until_end)
        label = f"{metric['name']}/{metric.get('version', 1)}"
        self.expected[label] = shoals.oracle.releases(), until_end
        shoals.metrics = configured

    def found(self) -> dict[str, list[bytes]]:
        """What consumers see, by version."""
        found: dict[str, list[bytes]] = {}
        for value in self.shoals.releases():
            fields = orjson.loads(value)
            found.setdefault(f"{fields['metric']}/{fields['version']}", []).append(value)
        return found

    def settle(self, label: str, count: int) -> None:
        """Until a version has released so much, and its open tick is all that is left."""
        workers = list(self.hosts.running.values())
        wait_until(lambda: len(self.found().get(label, [])) >= count, 120, lambda: tails(workers), every=0.5)

    def ends_well(self) -> None:
        """The releases are those expected, in Kafka and in the log, and can be replayed."""

        def complete() -> bool:
            found = self.found()
            return all(len(found.get(label, [])) >= len(due) for label, (due, whole) in self.expected.items() if whole)

        wait_until(complete, 120, lambda: tails(list(self.hosts.running.values())), every=0.5)
        found = self.found()
        assert found.keys() <= self.expected.keys()
        for label, (due, whole) in self.expected.items():
            there = in_order(found.get(label, []))
            assert there == (due if whole else due[: len(there)]), label
        values = self.shoals.releases()
        with opened_ledger(self.shoals.config) as ledger:
            wait_until(lambda: logged(ledger, self.shoals.app) == len(values), 60, lambda: "the log is behind")
            assert not [*verify.verify(ledger), *verify.compare_topic(ledger.of(self.shoals.app), values)]
        self.shoals.stop_all()
        replayed = shoal("audit", "replay", self.shoals.config)
        assert replayed.returncode == 0, replayed.stdout + replayed.stderr


def logged(ledger: Any, app: str) -> int:
    return sum(head.seq for head in ledger.of(app).heads().values())


def story(kafka: Kafka, folder: Path, *, hosts: int = 2, static: bool = False) -> Story:
    shoals = Deployment(kafka, folder, A, sources={"events": 2, "more": 2}, partitions=4)
    return Story(shoals, Hosts(shoals, hosts, static=static))


def test_rolling_over_static_workers_that_nobody_sees_restart(kafka: Kafka, tmp_path: Path) -> None:
    told = story(kafka, tmp_path, static=True)
    shoals, hosts = told.shoals, told.hosts
    with shoals:
        hosts.deploy_and_start(0, 1)
        hosts.wait_shared(ALL)
        shoals.produce(told.events[:300])
        # when both are replaced within their sessions, so that the group's coordinator asks nobody
        hosts.write(A, B)
        for host in (0, 1):
            hosts.running[host].kill()
            hosts.deploy_and_start(host)
        # then the new topic is read all the same
        hosts.wait_shared(ALL + 2)
        shoals.produce(told.events[300:], end=True)
        shoals.produce(told.more, "more", end=True)
        told.met(A, told.events)
        told.met(B, told.more)
        told.ends_well()


def test_the_way_back_and_forward_again(kafka: Kafka, tmp_path: Path) -> None:
    told = story(kafka, tmp_path)
    shoals, hosts = told.shoals, told.hosts
    with shoals:
        hosts.write(A, B)
        hosts.deploy_and_start(0, 1)
        hosts.wait_shared(ALL + 2)
        shoals.produce(told.events[:200])
        shoals.produce(told.more[:200], "more")
        told.settle("b/1", 1)
        # when the new metric is retired, its workers end, and the old file takes over
        hosts.retire("b")
        hosts.outdated(0, 1)
        hosts.write(A)
        hosts.deploy_and_start(0, 1)
        hosts.wait_shared(ALL)
        shoals.produce(told.events[200:400])
        # and later another version reads that topic again, beside a worker that has the old file yet
        hosts.write(A, B | {"version": 2})
        hosts.running[1].stop()
        hosts.deploy_and_start(1)
        hosts.outdated(0)
        hosts.deploy_and_start(0)
        hosts.wait_shared(ALL + 2)
        shoals.produce(told.events[400:], end=True)
        shoals.produce(told.more[200:], "more", end=True)
        told.met(A, told.events)
        told.met(B, told.more[:200], until_end=False)
        told.met(B | {"version": 2}, told.more[200:])
        told.ends_well()


def test_recreating_with_another_version(kafka: Kafka, tmp_path: Path) -> None:
    told = story(kafka, tmp_path)
    shoals, hosts = told.shoals, told.hosts
    with shoals:
        hosts.write(A)
        hosts.deploy_and_start(0, 1)
        hosts.wait_shared(ALL)
        shoals.produce(told.events[:300])
        told.settle("a/1", 1)
        # when all are stopped, get the new file, and are started
        shoals.stop_all()
        hosts.write(A2, B)
        hosts.deploy_and_start(0, 1)
        hosts.wait_shared(ALL + 2)
        shoals.produce(told.events[300:], end=True)
        shoals.produce(told.more, "more", end=True)
        told.met(A, told.events[:300], until_end=False)
        told.met(A2, told.events[300:])
        told.met(B, told.more)
        told.ends_well()


def test_scaling_out_with_a_newer_file_beside_older_ones(kafka: Kafka, tmp_path: Path) -> None:
    told = story(kafka, tmp_path, hosts=4)
    shoals, hosts = told.shoals, told.hosts
    with shoals:
        hosts.write(A)
        hosts.deploy_and_start(0, 1)
        hosts.wait_shared(ALL)
        shoals.produce(told.events[:300])
        # when two more come with a newer file, as if nobody knew that the first ones keep the old one
        hosts.write(A, B)
        hosts.deploy_and_start(2, 3)
        shoals.produce(told.more[:200], "more")
        shoals.produce(told.events[300:400])
        # then the old ones end, are refused with the old file, and the new ones do everything
        hosts.outdated(0, 1)
        assert 'metric "b" version 1 is active in the ledger' in hosts.refused(0)
        hosts.wait_shared(ALL + 2)
        shoals.produce(told.events[400:], end=True)
        shoals.produce(told.more[200:], "more", end=True)
        told.met(A, told.events)
        told.met(B, told.more)
        told.ends_well()


def test_rolling_with_a_kill_half_way(kafka: Kafka, tmp_path: Path) -> None:
    told = story(kafka, tmp_path, hosts=3)
    shoals, hosts = told.shoals, told.hosts
    with shoals:
        hosts.write(A)
        hosts.deploy_and_start(0, 1, 2)
        hosts.wait_shared(ALL)
        feeding = shoals.produce_slowly(told.events, seconds=20)
        # when a rolling update begins, one of the others is killed, and one is started again with its old file
        hosts.write(A, B)
        hosts.replace(0)
        hosts.running[1].kill()
        refused = hosts.refused(1)
        assert 'metric "b" version 1 is active in the ledger' in refused
        hosts.outdated(2)
        hosts.deploy_and_start(1, 2)
        shoals.produce(told.more, "more", end=True)
        feeding.join()
        told.met(A, told.events)
        told.met(B, told.more)
        told.ends_well()


def test_a_metric_that_is_retired_under_running_workers(kafka: Kafka, tmp_path: Path) -> None:
    told = story(kafka, tmp_path)
    shoals, hosts = told.shoals, told.hosts
    with shoals:
        hosts.write(A, C)
        hosts.deploy_and_start(0, 1)
        hosts.wait_shared(ALL)
        feeding = shoals.produce_slowly(told.events, seconds=20)
        told.settle("c/1", 1)
        # when it is retired while events come
        hosts.retire("c")
        retired = time.time()
        words = hosts.outdated(0, 1)
        # then its workers end and say so, and it is published no longer than one look
        assert all('metric "c" version 1 is retired in the ledger' in word for word in words)
        hosts.write(A)
        hosts.deploy_and_start(0, 1)
        hosts.wait_shared(ALL)
        feeding.join()
        told.met(A, told.events)
        told.met(C, told.events, until_end=False)
        told.ends_well()
        stamps = [
            read.timestamp / 1000
            for read in kafka.read_committed(f"{shoals.app}.releases")
            if orjson.loads(read.value or b"{}")["metric"] == "c"
        ]
        assert max(stamps) < retired + LOOK_EVERY + SLACK


def test_a_worker_with_the_old_file_makes_room_for_one_that_reads_a_second_topic(kafka: Kafka, tmp_path: Path) -> None:
    with Deployment(kafka, tmp_path, A, sources={"events": 2, "more": 2}, partitions=4) as shoals:
        # given a worker with the old file that has something to do
        events, more = visits(400), visits(300)
        hosts = Hosts(shoals, 2)
        hosts.deploy_and_start(0)
        hosts.wait_shared(6)
        shoals.produce(events[:200])
        shoals.wait_releases(1)
        # when a second one comes with a file that has a metric on another topic, and events come in both
        hosts.write(A, B)
        hosts.deploy_and_start(1)
        shoals.produce(more[:150], "more")
        shoals.produce(events[200:300])
        # then the old one ends by itself, and does not start again with its file
        (word,) = hosts.outdated(0)
        assert "host-0.toml" in word or "contributions partition" in word
        assert "newer configuration" in word
        assert 'metric "b" version 1 is active in the ledger and missing here' in hosts.refused(0)
        # and when it has the new file, too, all goes on as if there had never been another
        hosts.deploy_and_start(0)
        hosts.wait_shared(8)
        shoals.oracle.run(events)
        shoals.oracle.run(more, "more")
        shoals.produce(events[300:], end=True)
        shoals.produce(more[150:], "more", end=True)
        shoals.expect_equality()
        shoals.stop_all()
