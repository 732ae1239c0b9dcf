"""A new file reaches one worker after the other: nobody is stuck, nothing is lost, nothing retired is published."""

from pathlib import Path

from tests.support.deployment import Deployment
from tests.support.hosts import Hosts
from tests.support.kafka import Kafka
from tests.support.people import visits

A = {"name": "a"}
B = {"name": "b", "topic": "more"}


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
