"""Topics are made when they are missing and verified when they are not."""

import asyncio
import dataclasses
from collections.abc import Coroutine
from typing import Any

import pytest

from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.kafka.topics import verify_topics
from shoal.models.errors import KafkaError
from tests.support.kafka import Kafka, Record


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def settings(kafka: Kafka, **changes: Any) -> KafkaSettings:
    return KafkaSettings(kafka.bootstrap, kafka.name("app"), **changes)


def test_missing_topics_are_made_once(kafka: Kafka) -> None:
    # given a source, and an app that never ran
    s, source = settings(kafka, partitions=4), kafka.create_topic(kafka.name("events"), 3)
    # when its topics are verified twice
    first, second = run(verify_topics(s, [source])), run(verify_topics(s, [source]))
    # then all are there, changelogs as wide as what they follow, and the second time nothing is made
    assert first.partitions[source] == 3
    assert first.partitions[f"{s.app}.bound.{source}.changelog"] == 3
    assert first.partitions[f"{s.app}.release.changelog"] == 4
    assert {first.partitions[t] for t in (s.contributions, s.releases, s.activations, s.dead_letters)} == {4}
    assert set(first.created) == set(first.partitions) - {source}
    assert second.created == []
    assert second.partitions == first.partitions
    # and nothing that was published is ever deleted
    assert kafka.topic_config(s.releases)["retention.ms"] == "-1"
    assert kafka.topic_config(f"{s.app}.release.changelog")["cleanup.policy"] == "compact"


def test_nothing_is_made_when_that_is_not_wanted(kafka: Kafka) -> None:
    source = kafka.create_topic(kafka.name("events"))
    with pytest.raises(KafkaError, match=r"missing topics: .*releases; run `shoal topics`"):
        run(verify_topics(settings(kafka), [source], create=False))


def test_a_source_that_is_missing_is_refused(kafka: Kafka) -> None:
    with pytest.raises(KafkaError, match="no topic nowhere; run `shoal topics` .* or correct `topic`"):
        run(verify_topics(settings(kafka), ["nowhere"]))


def test_a_changed_partition_count_is_refused(kafka: Kafka) -> None:
    s, source = settings(kafka), kafka.create_topic(kafka.name("events"))
    kafka.create_topic(s.contributions, 5, {"retention.ms": "-1", "retention.bytes": "-1"})
    with pytest.raises(KafkaError, match=r"contributions has 5 partitions instead of 8; partition counts are frozen"):
        run(verify_topics(s, [source]))


def test_a_policy_that_deletes_is_refused(kafka: Kafka) -> None:
    s, source = settings(kafka), kafka.create_topic(kafka.name("events"))
    kafka.create_topic(s.releases, 8, {"retention.ms": "1000"})
    with pytest.raises(KafkaError, match=r"releases: retention.ms is 1000, must be -1"):
        run(verify_topics(s, [source]))


def test_finite_retention_of_a_source_is_warned_of(kafka: Kafka) -> None:
    source = kafka.create_topic(kafka.name("events"), 1, {"retention.ms": "3600000"})
    (warning,) = run(verify_topics(settings(kafka), [source])).warnings
    assert f"topic {source}: retention.ms = 3600000" in warning
    assert warning.endswith(f"--entity-name {source} --add-config retention.ms=-1")


def test_records_that_retention_is_about_to_delete_are_refused(kafka: Kafka) -> None:
    source = kafka.create_topic(kafka.name("events"), 1, {"retention.ms": "3600000"})
    kafka.produce(source, [Record(b"k", b"v", timestamp=852_076_800_000)])  # 1997
    with pytest.raises(KafkaError, match=rf"topic {source}\[0\]: its oldest record is \d+ s old by its own timestamp"):
        run(verify_topics(settings(kafka), [source]))


def test_where_presence_is_protected_no_record_is_refused_for_its_time(kafka: Kafka) -> None:
    """A worker that does not start tells that somebody has sent an old one."""
    hiding = dataclasses.replace(settings(kafka), hides_presence=True)
    own = kafka.create_topic(kafka.name("events"), 1, {"retention.ms": "3600000"})
    found = [run(verify_topics(hiding, [own])).warnings]
    kafka.produce(own, [Record(b"k", b"v", timestamp=852_076_800_000)])  # 1997
    found.append(run(verify_topics(hiding, [own])).warnings)
    assert found[0] == found[1]
    assert "one person's records may decide whether others' are deleted; to keep them, run" in found[0][0]
    # and there is no more to warn of than that it is deleted where brokers stamp records
    stamped = {"retention.ms": "3600000", "message.timestamp.type": "LogAppendTime"}
    (warning,) = run(verify_topics(hiding, [kafka.create_topic(kafka.name("events"), 1, stamped)])).warnings
    assert "records that are older may be deleted before they are read; to keep them, run" in warning


def test_no_broker_is_said_in_one_line() -> None:
    with pytest.raises(KafkaError, match=r"127.0.0.1:1: no broker answers"):
        run(verify_topics(KafkaSettings("127.0.0.1:1", "app"), ["events"]))
