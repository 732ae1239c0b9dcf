"""A topic that is deleted under a worker is named; one look that does not find it is not believed."""

import pytest

from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.kafka.topic_ids import MISSED_LIMIT, TopicIds
from shoal.models.errors import FailStop
from tests.kafka.kafka_tools import run
from tests.support.kafka import Kafka
from tests.support.workers import wait_until

from aiokafka.admin import AIOKafkaAdminClient  # isort: skip


async def delete(kafka: Kafka, topic: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    await admin.start()
    try:
        await admin.delete_topics([topic])
    finally:
        await admin.close()


def test_a_deleted_topic_is_named(kafka: Kafka) -> None:
    # given a topic that is known, and one that never was there
    topic, absent = kafka.create_topic(kafka.name("events"), 2), kafka.name("absent")
    topic_ids = TopicIds(KafkaSettings(kafka.bootstrap, "app"), [topic, absent], "bring {} back".format)
    assert run(topic_ids.learn())[topic].partitions == 2
    topic_ids.note_missing()
    # when it is deleted
    run(delete(kafka, topic))
    wait_until(lambda: run(topic_ids.learn()) and topic_ids._missed.keys() == {topic}, 30, lambda: "still there")
    # then it is only believed when several looks in a row did not find it
    for _ in range(MISSED_LIMIT - 1):
        topic_ids.note_missing()
        run(topic_ids.learn())
    with pytest.raises(FailStop, match=f"topic {topic} was deleted; bring back"):
        topic_ids.note_missing()
    # and what is there again in between is the topic, or another one
    kafka.create_topic(topic, 2)
    with pytest.raises(FailStop, match=f"topic {topic} was made anew.*; bring {topic} back"):
        wait_until(lambda: not run(topic_ids.learn()), 30, lambda: "not made")
