"""Compacted source topics: refused unless the configuration lists them, and unless presence stays protected."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from shoal.agents.cli.main import app
from tests.agents.worker.test_watch import alter, set_config
from tests.kafka.kafka_tools import run
from tests.support.audit import audit
from tests.support.backends import mostly
from tests.support.deployment import Deployment
from tests.support.kafka import Kafka, Record
from tests.support.people import START, visits
from tests.support.workers import shoal, wait_until

EVENTS = 2_000
PRESENCE: dict[str, Any] = {
    "statistic": "count", "value": None, "every": "1h", "relation": "add-remove", "start": "2001-09-09",
}  # fmt: skip


class Compacted(Deployment):
    """A deployment whose source topic is compacted."""

    def __init__(self, kafka: Kafka, folder: Path, metric: dict[str, Any]) -> None:
        super().__init__(kafka, folder, metric, sources={"events": 2}, partitions=2)
        self.make_topics()
        set_config(kafka, self.topic(), "cleanup.policy", "compact")

    def list_it(self) -> None:
        self.kafka_section["compacted"] = [self.topic()]
        self.write_config()

    def refused(self) -> str:
        """The sentence with which check and worker refuse it."""
        said = []
        for command in ("check", "worker"):
            ended = shoal(command, self.config)
            assert ended.returncode == 1, ended.stderr
            said.append(ended.stderr.rstrip("\n").rpartition("\n")[2])
        assert said[0] == said[1]
        return said[0].removeprefix("shoal: ")

    def checked(self) -> str:
        """What a check says that refuses nothing."""
        ran = CliRunner().invoke(app, ["check", str(self.config)])
        assert ran.exception is None, ran.exception
        return ran.stdout


@mostly("kernel")
def test_a_compacted_source_is_read_only_if_it_is_listed(kafka: Kafka, tmp_path: Path, backend: str) -> None:
    with Compacted(kafka, tmp_path, {}) as shoals:
        topic, events = shoals.topic(), visits(EVENTS)
        shoals.produce(events, end=True)
        # given a source that the configuration does not list, then check and worker refuse it
        command = (
            f"kafka-configs --bootstrap-server {kafka.bootstrap} --alter --entity-type topics --entity-name {topic}"
        )
        assert shoals.refused() == (
            f"topic {topic}: cleanup.policy = compact: of records with one key, all but the last may be deleted before "
            f'they are read; to read it as it is, set [kafka] compacted = ["{topic}"]; to keep them, run {command} '
            "--add-config cleanup.policy=delete"
        )
        # when it is listed, then a check says what that means
        shoals.list_it()
        said = shoals.checked()
        assert f"topic {topic} is compacted, as [kafka] compacted allows: releases are of the records that were" in said
        assert (
            "which ones it deletes depends on keys and order and not on values, so the guarantee is unchanged" in said
        )
        # and a worker reads it
        shoals.oracle.run(events)
        worker = shoals.worker()
        shoals.expect_equality()
        assert worker.said("retention") == []
        shoals.stop_all()
        # and a replay recomputes releases and leaves the events out
        replayed = audit("replay", shoals.config, "--from", "events")
        assert replayed.ok, replayed.text
        (note,) = replayed.fields["notes"]
        assert topic in note
        assert "a compacted topic may have lost events: its contributions are not recomputed" in note
        assert replayed.fields["confirmed"] == replayed.fields["releases"] > 0


@pytest.mark.long
def test_a_replay_accuses_nobody_of_events_that_a_broker_has_compacted(kafka: Kafka, tmp_path: Path) -> None:
    with Compacted(kafka, tmp_path, {}) as shoals:
        topic, events = shoals.topic(), visits(EVENTS)
        # given events that a worker has read
        shoals.list_it()
        shoals.produce(events)
        shoals.worker()
        shoals.oracle.run(events, until_end=False)
        shoals.expect_equality()
        shoals.stop_all()
        # when the broker compacts them
        settings = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0", "segment.ms": "100"}
        run(alter(kafka, topic, settings))

        def is_compacted() -> bool:
            shoals.produce(events[:20])  # begin segments, so that those before can be compacted
            return len(kafka.read_committed(topic)) < EVENTS // 2

        wait_until(is_compacted, 120, lambda: f"{len(kafka.read_committed(topic))} records are left", every=1)
        # then a replay confirms all releases, and says that it leaves the events out
        replayed = audit("replay", shoals.config, "--from", "events")
        assert replayed.ok, replayed.text
        assert replayed.fields["confirmed"] == replayed.fields["releases"] > 0
        # and a new worker reads what is left
        worker = shoals.worker()
        worker.wait_owns()
        shoals.stop_all()


def test_where_presence_is_protected_a_compacted_source_is_keyed_by_its_users(kafka: Kafka, tmp_path: Path) -> None:
    with Compacted(kafka, tmp_path, PRESENCE) as shoals:
        topic, events = shoals.topic(), visits(100)
        shoals.list_it()
        # given records whose keys are their users, and a beat, then it is read
        shoals.produce(events)
        shoals.end(range(2), START, header="shoal-beat")
        said = shoals.checked()
        assert "a person's records delete that person's alone as long as each record's key is its user" in said
        worker = shoals.worker()
        worker.wait_owns()
        shoals.stop_all()
        # when one among the first records has another key, then check and worker refuse it, and say no more than that
        kafka.produce(topic, [Record(b"order-1", events[0], None, 1)])
        assert shoals.refused().startswith(
            f"topic {topic}: it is compacted and a record's key is not its user (who), so that one person's record may "
            "delete another's; have producers key records by who in a new topic, as `shoal produce` does, or run "
        )
