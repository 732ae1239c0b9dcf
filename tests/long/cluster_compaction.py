"""What the check of a changelog's beginning rests on: the broker's compaction never moves the first offset."""

import asyncio
import time

from aiokafka import TopicPartition

from shoal.agents.kafka.changelog import Reader
from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.kafka.topic_policies import COMPACT
from tests.support.kafka import Kafka, Record
from tests.support.workers import wait_until

EAGER = {"segment.ms": "100", "min.cleanable.dirty.ratio": "0.01", "max.compaction.lag.ms": "1000"}


def test_compaction_leaves_the_first_offset_where_it_was(kafka: Kafka) -> None:
    topic = kafka.create_topic(kafka.name("changelog"), 1, COMPACT | EAGER | {"delete.retention.ms": "0"})
    # given a changelog whose oldest segments hold nothing that was not written again, or is a tombstone
    for number in range(20):
        value = None if number == 10 else b"%d" % number
        kafka.produce(topic, [Record(b"%d" % key, value, partition=0) for key in range(200)], transactional_id=topic)
        time.sleep(0.2)

    # when the cleaner has been there, then most is gone and the beginning is still offset 0
    def compacted() -> bool:
        kafka.produce(topic, [Record(b"more", b"", partition=0)])  # only closed segments are cleaned
        return len(kafka.read_committed(topic)) < 1_000

    wait_until(compacted, 180, lambda: f"{len(kafka.read_committed(topic))} records", every=2)
    assert kafka.read_committed(topic)[0].offset > 0
    assert asyncio.run(bounds(kafka, topic))[0] == 0


async def bounds(kafka: Kafka, topic: str) -> tuple[int, int]:
    async with Reader(KafkaSettings(kafka.bootstrap, "reader")) as reader:
        tp = TopicPartition(topic, 0)
        return (await reader.bounds([tp]))[tp]
