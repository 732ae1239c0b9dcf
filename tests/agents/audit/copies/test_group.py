"""A restored log is filled from its topics again: the group's offsets of these alone go to the beginning."""

import asyncio
from dataclasses import replace

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from shoal.agents.audit.copies.group import is_away, read_again
from shoal.agents.kafka.changelog import group_offsets
from shoal.agents.kafka.settings import KafkaSettings
from shoal.models.errors import KafkaError
from tests.support.kafka import Kafka

PASSWORD = {
    "security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN",
    "sasl_plain_username": "ann", "sasl_plain_password": "no",
}  # fmt: skip


def test_offsets_are_set_once_the_group_has_no_members(kafka: Kafka) -> None:
    settings = KafkaSettings(kafka.bootstrap, kafka.name("restored"), session_timeout=0.5)
    waited: list[bool] = []

    def go_back() -> list[str]:
        return asyncio.run(read_again(settings, lambda: waited.append(True)))

    # given no topics, there is nothing to set
    assert go_back() == []
    # and given a group that has read some records of each
    topics = (settings.releases, settings.activations, settings.contributions)
    places = [TopicPartition(topic, number) for topic in topics for number in range(2)]
    for topic in topics:
        kafka.create_topic(topic, 2)

    async def beside_a_member() -> None:
        consumer = AIOKafkaConsumer(
            *topics, bootstrap_servers=kafka.bootstrap, group_id=settings.app, enable_auto_commit=False
        )
        await consumer.start()
        try:
            await consumer.getmany(timeout_ms=1)
            await consumer.commit(dict.fromkeys(places, 7))
            # when it has a member still, then nothing is set, and who waits is told so
            with pytest.raises(KafkaError, match=f"group {settings.app} has members after 1 s; stop all workers"):
                await read_again(settings, lambda: waited.append(True))
            assert waited == [True]
            assert await group_offsets(settings, places) == dict.fromkeys(places, 7)
        finally:
            await consumer.stop()

    asyncio.run(beside_a_member())
    # when the last one has left, then what the log is made of is read again, and nothing else
    assert go_back() == [settings.releases, settings.activations]
    offsets = asyncio.run(group_offsets(settings, places))
    assert {tp.topic: offset for tp, offset in offsets.items()} == dict(zip(topics, (0, 0, 7), strict=True))


def test_brokers_that_are_away_are_told_from_a_refusal(kafka: Kafka) -> None:
    for settings, away in (
        (KafkaSettings("127.0.0.1:1", "app"), True),
        (KafkaSettings(kafka.bootstrap, "app", client=PASSWORD), False),
    ):
        with pytest.raises(KafkaError) as refused:
            asyncio.run(read_again(replace(settings, session_timeout=0.5), lambda: None))
        assert is_away(refused.value) == away
