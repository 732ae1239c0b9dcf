"""Three brokers: two go away and come back, and the workers that were there go on by themselves."""

from pathlib import Path

import pytest

from tests.support.cluster import Cluster, Stream
from tests.support.deployment import Deployment
from tests.support.people import visits

METRICS = (
    {"name": "hourly"},
    {"name": "city", "group": "city", "every": "2h", "algorithm": "full", "epsilon": 400, "users": 20},
)


@pytest.mark.long
def test_workers_go_on_when_two_of_three_brokers_come_back(tmp_path: Path) -> None:
    with (
        Cluster(tmp_path / "kafka") as cluster,
        Deployment(cluster, tmp_path, *METRICS, sources={"events": 2}, partitions=2, replication=3) as shoals,
    ):
        # given a worker, and events that keep coming
        events = visits(1_500)
        shoals.oracle.run(events)
        first = shoals.worker()
        first.wait_owns(4, 240)
        stream = Stream(cluster, shoals.topic(), events, 2, seconds=10)
        shoals.wait_releases(5)
        # when two of three brokers are gone, and another worker is started
        away = [node for node in cluster.nodes if node is not cluster.leader_of_most()]
        cluster.kill(*away)
        late = shoals.worker()
        late.wait_says("brokers_unready")
        # then both wait, and go on when the brokers are back
        cluster.start(*away)
        late.wait_owns(1, 240)
        stream.join()
        shoals.expect_equality()
        assert first.alive
        assert late.said("brokers_unready")[0]["reason"] != ""
        shoals.stop_all()
