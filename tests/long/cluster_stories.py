"""Workers on a cluster of three brokers: brokers are killed, frozen and restarted, and no release changes.

Each story ends byte for byte as `shoal run` does, with the workers that were there at its beginning, and with no
worker reporting a fault. `make test-cluster` runs them; a short one of them is in `tests/kafka/test_cluster.py`.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.cluster import Cluster, Stream
from tests.support.deployment import Deployment
from tests.support.people import visits
from tests.support.workers import Worker, tails, wait_until

METRICS = (
    {"name": "hourly"},
    {"name": "city", "group": "city", "every": "2h", "algorithm": "full", "epsilon": 400, "users": 20},
    {"name": "weekly", "statistic": "sum", "every": "6h", "decay": {"kind": "window", "length": "7d"}, "group": "city"},
    {
        "name": "places",
        "statistic": "mean",
        "slot": "6h",
        "group": "city",
        "max_per_group": 4,
        "users": 60,
        "unit": "user",
        "max_slots": 40,
    },
)
AWAY = 40.0
GOES_ON = 15.0  # seconds after the cluster's return until there is another release, on a machine that has time for it
PATIENCE = 8.0  # so many times longer on one that has not
ACCUSATIONS = (
    "made anew",
    "another history",
    "unknown producer",
    "were deleted",
    "are gone",
    "would be wrong",
    "a bug",
)

Story = Callable[[Cluster], None]


def kill_the_leader(cluster: Cluster) -> None:
    node = cluster.leader_of_most()
    cluster.kill(node)
    time.sleep(AWAY / 2)
    cluster.start(node)


def kill_the_controller(cluster: Cluster) -> None:
    node = cluster.active_controller()
    cluster.kill(node)
    time.sleep(AWAY / 2)
    cluster.start(node)


def restart_one_after_the_other(cluster: Cluster) -> None:
    for node in cluster.nodes:
        node.stop()
        cluster.start(node)
        cluster.wait_in_sync()


def kill_two(cluster: Cluster) -> None:
    nodes = cluster.nodes[:2]
    cluster.kill(*nodes)
    time.sleep(AWAY)
    cluster.start(*nodes)


def freeze_the_leader(cluster: Cluster) -> None:
    node = cluster.leader_of_most()
    node.freeze()
    try:
        time.sleep(AWAY)
    finally:
        node.thaw()


def kill_all(cluster: Cluster) -> None:
    cluster.kill()
    time.sleep(AWAY)
    cluster.start()


STORIES = (
    kill_the_leader, kill_the_controller, restart_one_after_the_other, kill_two, freeze_the_leader, kill_all,
)  # fmt: skip


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("kafka")) as cluster:
        yield cluster


@pytest.fixture
def cluster(brokers: Cluster) -> Cluster:
    """Three brokers, well again after whatever happened to them before."""
    brokers.start()
    brokers.wait_in_sync()
    return brokers


@pytest.mark.parametrize("happens", STORIES, ids=lambda story: story.__name__)
def test_the_same_workers_go_on(cluster: Cluster, tmp_path: Path, happens: Story) -> None:
    with Deployment(cluster, tmp_path, *METRICS, sources={"events": 4}, partitions=4, replication=3) as shoals:
        # given two workers, and events that keep coming before, while and after it happens
        events = visits(9_000)
        shoals.oracle.run(events)
        workers = [shoals.worker(), shoals.worker("static")]
        shoals.wait_owned(4, 4, limit=300)
        stream = Stream(cluster, shoals.topic(), events, 4, seconds=60, hours=6, kept=3_000)
        shoals.wait_releases(20)
        # when it happens
        happens(cluster)
        # then releases flow again soon
        before, began = cluster.length(f"{shoals.app}.releases"), time.monotonic()
        stream.send_rest()
        wait_until(
            lambda: cluster.length(f"{shoals.app}.releases") > before, GOES_ON, lambda: tails(workers), 0.3, PATIENCE
        )
        print(f"{happens.__name__}: releases went on after {time.monotonic() - began:.1f} s")
        # and in the end all is as it would have been, by the same processes, and nobody was accused
        stream.join()
        shoals.expect_equality(300)
        assert all(worker.alive for worker in workers), tails(workers)
        expect_no_accusation(workers)
        shoals.stop_all()


def expect_no_accusation(workers: Sequence[Worker]) -> None:
    for worker in workers:
        assert not [words for words in ACCUSATIONS if words in worker.text], worker.text
