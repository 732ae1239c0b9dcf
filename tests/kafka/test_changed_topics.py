"""Topics that are re-created or grow under a running worker: it refuses to go on, says which, and ends with 1."""

from pathlib import Path

import pytest

from tests.support.deployment import Deployment
from tests.support.kafka import Kafka
from tests.support.people import visits
from tests.support.workers import Worker


def deploy(kafka: Kafka, folder: Path) -> Deployment:
    return Deployment(kafka, folder, {"group": "city"}, sources={"events": 2}, partitions=2)


def busy_worker(shoals: Deployment, events: list[bytes]) -> Worker:
    """A worker that has read and published."""
    worker = shoals.worker()
    worker.wait_owns(4)
    shoals.produce(events)
    shoals.wait_releases(10)
    return worker


def refuses(worker: Worker, *parts: str) -> None:
    """It ends with 1 and one line for people that holds these words."""
    assert worker.exit_status(60) == 1, worker.text[-3000:]
    assert worker.last_word.startswith("shoal: "), worker.text[-3000:]
    for part in parts:
        assert part in worker.last_word


@pytest.mark.parametrize("again", [0, 1_000], ids=["empty", "longer"])
def test_a_source_made_anew_under_a_running_worker_is_refused(kafka: Kafka, tmp_path: Path, again: int) -> None:
    with deploy(kafka, tmp_path) as shoals:
        events = visits(3_000)
        worker = busy_worker(shoals, events[:500])
        # when the source is deleted and made again, and filled again, further than before
        shoals.make_anew(shoals.topic())
        shoals.produce(events[1_000 : 1_000 + again])
        # then the worker does not go on as if they were the old ones' sequel, nor does the next worker
        refuses(worker, shoals.topic(), "made anew")
        refuses(shoals.worker(), shoals.topic(), "made anew")


def test_releases_made_anew_under_a_running_worker_are_refused(kafka: Kafka, tmp_path: Path) -> None:
    with deploy(kafka, tmp_path) as shoals:
        events = visits(1_000)
        worker = busy_worker(shoals, events[:500])
        releases = f"{shoals.app}.releases"
        # when the topic of what was published is gone, and there is more to publish
        shoals.make_anew(releases)
        shoals.produce(events[500:], end=True)
        # then the worker does not begin a second history, nor does the next worker
        refuses(worker, releases, "made anew")
        refuses(shoals.worker(), "release")


@pytest.mark.parametrize("topic", ["events", "contributions"])
def test_a_topic_that_grows_under_a_running_worker_is_refused(kafka: Kafka, tmp_path: Path, topic: str) -> None:
    with deploy(kafka, tmp_path) as shoals:
        events = visits(500)
        worker = busy_worker(shoals, events)
        name = shoals.topic() if topic == "events" else f"{shoals.app}.{topic}"
        # when somebody adds a partition, so that users or groups would hash elsewhere
        shoals.grow(name, 3)
        # then the next worker refuses to start, and the running one ends when it hears of it
        refuses(shoals.worker(), name, "partitions")
        refuses(worker, name, "partitions")
