"""Workers that come and go share the work on a real broker: each gets its part of the events and of the releases.

make test-deploys
"""

from pathlib import Path

from tests.support.deployment import Deployment
from tests.support.kafka import Kafka
from tests.support.people import visits
from tests.support.workers import wait_shared


def test_every_worker_gets_its_part_of_events_and_releases(kafka: Kafka, tmp_path: Path) -> None:
    with Deployment(kafka, tmp_path, sources={"events": 4}, partitions=4) as shoals:
        events = visits(600)
        shoals.oracle.run(events)
        # given one worker, then two, then four: each has its part, those that were there first included
        workers = [shoals.worker("first")]
        wait_shared(workers, {4})
        shoals.produce(events[:200])
        workers.append(shoals.worker())
        wait_shared(workers, {2})
        workers += [shoals.worker(), shoals.worker()]
        wait_shared(workers, {1})
        # when one is killed and started again under its name, it has its part again, and nobody else anything new
        owned = [worker.said("owns") for worker in workers[1:]]
        workers[0].kill()
        workers[0] = shoals.worker("first")
        wait_shared(workers, {1})
        assert [worker.said("owns") for worker in workers[1:]] == owned
        shoals.produce(events[200:400])
        # and when two leave, the others share what they had
        workers.pop().stop()
        workers.pop().stop()
        wait_shared(workers, {2})
        shoals.produce(events[400:], end=True)
        # then it is all as one would have done it
        shoals.expect_equality()
        shoals.stop_all()
