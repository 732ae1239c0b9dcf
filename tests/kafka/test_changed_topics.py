"""Topics that are re-created or grow under a running worker: it refuses to go on, says which, and ends with 1."""

import asyncio
from pathlib import Path

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.admin.records_to_delete import RecordsToDelete
from typer.testing import CliRunner

from shoal.agents.cli.main import app
from shoal.agents.kafka.topic_policies import COMPACT
from tests.support.deployment import Deployment
from tests.support.kafka import Kafka, Record
from tests.support.people import visits
from tests.support.workers import Worker, wait_until


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
    assert worker.exit_status() == 1, worker.text[-3000:]
    assert worker.last_word.startswith("shoal: "), worker.text[-3000:]
    for part in parts:
        assert part in worker.last_word


@pytest.mark.parametrize(
    "again", [pytest.param(0, id="empty", marks=pytest.mark.long), pytest.param(1_000, id="longer")]
)
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
        # then the worker does not begin a second stream, nor does the next worker
        refuses(worker, releases, "made anew")
        refuses(shoals.worker(), "release")


@pytest.mark.parametrize("topic", ["events", pytest.param("contributions", marks=pytest.mark.long)])
def test_a_topic_that_grows_under_a_running_worker_is_refused(kafka: Kafka, tmp_path: Path, topic: str) -> None:
    with deploy(kafka, tmp_path) as shoals:
        events = visits(500)
        worker = busy_worker(shoals, events)
        name = shoals.topic() if topic == "events" else f"{shoals.app}.{topic}"
        # when somebody adds a partition, so that users or groups would hash elsewhere
        shoals.grow(name, 3)
        # then the next worker refuses to start, and the running one ends when it hears of it
        said = f"topic {name} has 3 partitions instead of 2"
        refuses(shoals.worker(), said)
        refuses(worker, said)
        # and a check names the topic that grew, not one that was made for it
        checked = CliRunner().invoke(app, ["check", str(shoals.config)])
        assert (checked.exit_code, said in str(checked.exception)) == (1, True)


async def cut(kafka: Kafka, topic: str) -> None:
    """Delete what is before the last record of each of two partitions, as retention would, with the policy for it."""
    client = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    await client.start()
    try:
        for policy in ("compact,delete", "compact"):
            resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs=COMPACT | {"cleanup.policy": policy})
            await client.alter_configs([resource])
            if policy != "compact":
                read = {one.partition: one.offset for one in await asyncio.to_thread(kafka.read_committed, topic)}
                ends = {TopicPartition(topic, p): RecordsToDelete(before_offset=last) for p, last in read.items()}
                await client.delete_records(ends)
    finally:
        await client.close()


def test_a_changelog_that_lost_its_beginning_is_refused(kafka: Kafka, tmp_path: Path) -> None:
    """Only the marks were left, and a first tick that was open lost its contributions without a word."""
    with deploy(kafka, tmp_path) as shoals:
        worker = shoals.worker()
        worker.wait_owns(4)
        shoals.produce(visits(300, step=1))  # no tick is over
        changelog = f"{shoals.app}.release.changelog"
        wait_until(lambda: kafka.length(changelog) > 4, 60, lambda: worker.text)
        worker.stop()
        # when all but the marks is deleted while nobody looks, and the policy is set back
        asyncio.run(cut(kafka, changelog))
        # then the next worker names it, and goes no further
        refuses(shoals.worker(), changelog, "were deleted, by retention or by hand", "restore the topic from a copy")


def test_a_changelog_that_lost_a_waiting_contribution_is_refused(kafka: Kafka, tmp_path: Path) -> None:
    with deploy(kafka, tmp_path) as shoals:
        worker = shoals.worker()
        worker.wait_owns(4)
        shoals.produce(visits(300, step=1))
        changelog = f"{shoals.app}.release.changelog"
        wait_until(lambda: kafka.length(changelog) > 4, 60, lambda: worker.text)
        worker.stop()
        # when a tombstone is written by a stranger
        waiting = next(one for one in kafka.read_committed(changelog) if one.key and one.key[:1] in b"wp")
        kafka.produce(changelog, [Record(waiting.key, None, partition=waiting.partition)])
        # then it is missed, and it is said where
        refuses(shoals.worker(), f"contributions partition {waiting.partition}", "are due", "restore the topic")
