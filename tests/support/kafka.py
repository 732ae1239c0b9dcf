"""The embedded broker with what tests do to it: make topics, produce, read what a consumer would read."""

import asyncio
import itertools
import signal
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from shoal.agents.broker.process import Broker

_numbers = itertools.count(1)

KNOWN_TRIES = 600  # looks for a new topic, ten in a second


class Record(NamedTuple):
    """A record to send: time in milliseconds; without a partition its key decides."""

    key: bytes | None
    value: bytes | None
    timestamp: int | None = None
    partition: int | None = None
    headers: tuple[tuple[str, bytes], ...] = ()


class Read(NamedTuple):
    """A record as a consumer saw it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: tuple[tuple[str, bytes], ...] = ()


class Brokers(ABC):
    """The few things that tests do with brokers, each in a call that returns when it is done."""

    replication = 1

    @property
    @abstractmethod
    def bootstrap(self) -> str:
        """What clients connect to."""

    def name(self, prefix: str = "test") -> str:
        """A name that no other test uses, for a topic, an app or a consumer group."""
        return f"{prefix}-{next(_numbers)}"

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        asyncio.run(_create(self.bootstrap, self._new_topic(name, partitions, config or {})))
        return name

    def _new_topic(self, name: str, partitions: int, config: Mapping[str, str]) -> NewTopic:
        return NewTopic(name, partitions, self.replication, topic_configs=dict(config))

    def topic_config(self, name: str) -> dict[str, str]:
        return asyncio.run(_topic_config(self.bootstrap, name))

    def produce(self, topic: str, records: Iterable[Record], transactional_id: str | None = None) -> None:
        """Send in order; with an id, in one transaction."""
        asyncio.run(_produce(self.bootstrap, topic, records, transactional_id))

    def read_committed(self, topic: str) -> list[Read]:
        """All that a read_committed consumer gets of a topic, by partition and offset."""
        return asyncio.run(_read(self.bootstrap, topic, "read_committed"))

    def length(self, topic: str) -> int:
        """Offsets of a topic up to what is committed: of its records, aborted ones, and ends of transactions."""
        return asyncio.run(_length(self.bootstrap, topic))

    def read_uncommitted(self, topic: str) -> list[Read]:
        """All that was ever written, of aborted transactions too."""
        return asyncio.run(_read(self.bootstrap, topic, "read_uncommitted"))


class Kafka(Broker, Brokers):
    """One broker."""

    def freeze(self) -> None:
        """SIGSTOP: its port takes connections, and nothing is answered."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def stop(self) -> None:
        if self.pid:
            self.thaw()
        super().stop()

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)


async def _create(bootstrap: str, topic: NewTopic) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        response = await admin.create_topics([topic])
        assert [error for _, error, *_ in response.topic_errors] == [0], response.topic_errors
        for _ in range(KNOWN_TRIES):  # the controller has it, and brokers learn of it
            (described,) = await admin.describe_topics([topic.name])
            if not described["error_code"]:
                return
            await asyncio.sleep(0.1)
        raise TimeoutError(f"{bootstrap}: {topic.name} was created, and no broker knows it")
    finally:
        await admin.close()


async def _topic_config(bootstrap: str, topic: str) -> dict[str, str]:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        (response,) = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
        ((*_, entries),) = response.resources
        return {entry[0]: entry[1] for entry in entries}
    finally:
        await admin.close()


async def _produce(bootstrap: str, topic: str, records: Iterable[Record], transactional_id: str | None) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap, enable_idempotence=True, transactional_id=transactional_id, linger_ms=5
    )
    await producer.start()
    try:
        if transactional_id is None:
            await _send(producer, topic, records)
        else:
            async with producer.transaction():
                await _send(producer, topic, records)
    finally:
        await producer.stop()


async def _send(producer: AIOKafkaProducer, topic: str, records: Iterable[Record]) -> None:
    sent = [
        await producer.send(
            topic, r.value, key=r.key, timestamp_ms=r.timestamp, partition=r.partition, headers=list(r.headers)
        )
        for r in records
    ]
    for one in sent:
        await one


async def _length(bootstrap: str, topic: str) -> int:
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed")
    await consumer.start()
    try:
        ends = await consumer.end_offsets([TopicPartition(topic, p) for p in await _partitions(consumer, topic)])
        return sum(ends.values())
    finally:
        await consumer.stop()


async def _read(bootstrap: str, topic: str, isolation: str) -> list[Read]:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, isolation_level=isolation, auto_offset_reset="earliest", enable_auto_commit=False
    )
    await consumer.start()
    try:
        partitions = [TopicPartition(topic, p) for p in sorted(await _partitions(consumer, topic))]
        consumer.assign(partitions)
        await consumer.seek_to_beginning(*partitions)
        ends = await consumer.end_offsets(partitions)
        read: list[Read] = []
        while any([await consumer.position(tp) < end for tp, end in ends.items()]):
            for tp, records in (await consumer.getmany(timeout_ms=100)).items():
                for r in records:
                    headers = tuple(r.headers)
                    read.append(Read(tp.partition, r.offset, r.key, r.value, r.timestamp, headers))
        return sorted(read)
    finally:
        await consumer.stop()


async def _partitions(consumer: AIOKafkaConsumer, topic: str) -> set[int]:
    """Those of a topic; none if there is no such topic, which only a broker that answers can tell."""
    await consumer._client.add_topic(topic)
    assert await consumer._client.force_metadata_update(), f"no broker told of {topic}"
    partitions: set[int] = consumer.partitions_for_topic(topic) or set()
    return partitions
