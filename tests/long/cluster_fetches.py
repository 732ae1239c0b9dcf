"""Fetches from three brokers: minimum and wait hold for each broker's own, so that none waits for another's."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from shoal.agents.kafka import fast_records
from shoal.agents.kafka.settings import KafkaSettings
from tests.kafka.kafka_tools import make_topics, run
from tests.support.cluster import Cluster

TOPIC = "spread"
PARTITIONS = [TopicPartition(TOPIC, number) for number in range(3)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("kafka")) as cluster:
        run(make_topics(cluster.bootstrap, {TOPIC: len(PARTITIONS)}))
        yield cluster


def test_enough_of_one_broker_is_handed_out_while_the_others_wait(cluster: Cluster) -> None:
    fetching = KafkaSettings(cluster.bootstrap, "app", latency=1.0).fetching() | {
        "fetch_max_wait_ms": 600_000,
        "request_timeout_ms": 700_000,
    }
    enough = bytes(fetching["fetch_min_bytes"])

    async def story() -> list[TopicPartition]:
        producer = AIOKafkaProducer(bootstrap_servers=cluster.bootstrap, max_request_size=2 * len(enough))
        consumer: Any = AIOKafkaConsumer(
            bootstrap_servers=cluster.bootstrap, enable_auto_commit=False, **fetching,
            **fast_records.consumer_arguments({}),
        )  # fmt: skip
        async with producer, consumer:
            # given a partition on each of three brokers, all of which have as good as nothing
            consumer.assign(PARTITIONS)
            await consumer.seek_to_beginning()
            leaders = {consumer._client.cluster.leader_for_partition(tp) for tp in PARTITIONS}
            assert len(leaders) == len(PARTITIONS)
            # when one after the other gets enough
            found: list[TopicPartition] = []
            for tp in PARTITIONS:
                for _ in range(2):
                    await producer.send_and_wait(TOPIC, enough[: len(enough) * 2 // 3], partition=tp.partition)
                # then it is handed out
                found += await consumer.getmany(timeout_ms=600_000)
            return found

    assert run(asyncio.wait_for(story(), 300)) == PARTITIONS
