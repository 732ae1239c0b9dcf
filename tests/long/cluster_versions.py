"""Other versions of Kafka: the same releases, with a broker killed in between."""

from pathlib import Path

import pytest

from shoal.agents.broker import jars
from tests.support.cluster import Cluster, Stream
from tests.support.deployment import Deployment
from tests.support.people import visits


@pytest.mark.parametrize("version", ["3.9.1", jars.VERSION])
def test_releases_are_the_same_on_every_version(tmp_path: Path, version: str) -> None:
    with (
        Cluster(tmp_path / "kafka", size=1, version=version) as cluster,
        Deployment(cluster, tmp_path, {"group": "city"}, sources={"events": 2}, partitions=2) as shoals,
    ):
        events = visits(3_000)
        shoals.oracle.run(events)
        worker = shoals.worker()
        worker.wait_owns(4, 120)
        stream = Stream(cluster, shoals.topic(), events, 2, seconds=20)
        shoals.wait_releases(10)
        cluster.kill()
        worker.wait_says("brokers_away")
        cluster.start()
        stream.join()
        shoals.expect_equality()
        assert worker.alive
        shoals.stop_all()
