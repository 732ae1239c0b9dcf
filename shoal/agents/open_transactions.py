"""Open transactions of producers that hold a source partition back (Kafka 2.8; aiokafka cannot ask for them).

A worker reads what is committed. Nothing behind the first record of an open transaction can be read, whoever wrote it,
until the transaction ends. The leader of a partition knows the open ones; asking takes Read on the topic, which a
worker has.

An offset is a number of records: a worker says it where presence is not protected, a command to those who may read the
topic.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import IncompatibleBrokerVersion
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import CompactArray, Int16, Int32, Int64, Schema

from shoal.agents.kafka.metadata import NAME, TAGS, MetadataRequest
from shoal.agents.misplaced import Place

LASTING = 60.0  # seconds after which an open transaction is said to hold a partition back


class OpenTransaction(NamedTuple):
    """The open transaction that begins first in a partition."""

    topic: str
    partition: int
    offset: int  # of its first record, where reading stops
    producer: int  # Kafka's id of it
    written: float  # time of its last record, in seconds since 1970, by the producer's clock

    @property
    def place(self) -> Place:
        return self.topic, self.partition


class DescribeProducersResponse0(Response):  # type: ignore[misc]  # aiokafka is untyped
    """The producers of each partition that have written lately; those without a transaction have offset -1."""

    API_KEY = 61
    API_VERSION = 0
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("topics", CompactArray(
            ("name", NAME),
            ("partitions", CompactArray(
                ("index", Int32), ("error_code", Int16), ("error_message", NAME),
                ("producers", CompactArray(
                    ("producer_id", Int64), ("producer_epoch", Int32), ("last_sequence", Int32),
                    ("last_timestamp_ms", Int64), ("coordinator_epoch", Int32), ("start_offset", Int64), TAGS,
                )), TAGS,
            )), TAGS,
        )),
        TAGS,
    )  # fmt: skip


class DescribeProducersRequest0(RequestStruct):  # type: ignore[misc]  # aiokafka is untyped
    """Asks the leader of partitions for their producers."""

    FLEXIBLE_VERSION = True
    API_KEY = 61
    API_VERSION = 0
    RESPONSE_TYPE = DescribeProducersResponse0
    SCHEMA = Schema(("topics", CompactArray(("name", NAME), ("partitions", CompactArray(Int32)), TAGS)), TAGS)


class DescribeProducersRequest(Request[DescribeProducersRequest0]):  # type: ignore[misc]  # aiokafka is untyped
    """Asks for the producers of these partitions."""

    API_KEY = 61

    def __init__(self, places: Iterable[Place]) -> None:
        self._topics: dict[str, list[int]] = {}
        for topic, partition in places:
            self._topics.setdefault(topic, []).append(partition)

    def build(self, request_struct_class: type[DescribeProducersRequest0]) -> DescribeProducersRequest0:
        return request_struct_class([(name, numbers, {}) for name, numbers in self._topics.items()], {})


async def open_transactions(client: AIOKafkaAdminClient, places: Iterable[Place]) -> list[OpenTransaction]:
    """The first open transaction of each of these partitions that has one; none where brokers do not say.

    Raises:
        ClientError: brokers are away.
    """
    found: list[OpenTransaction] = []
    for leader, led in (await _leaders(client, set(places))).items():
        try:
            response = await client._send_request_to_node(leader, DescribeProducersRequest(sorted(led)))
        except (NotImplementedError, IncompatibleBrokerVersion):  # an older broker
            return []
        found += _opened(response)
    return sorted(found)


async def _leaders(client: AIOKafkaAdminClient, places: set[Place]) -> dict[int, list[Place]]:
    """The partitions by the broker that leads them; without those that have no leader now."""
    leaders: dict[int, list[Place]] = {}
    if not places:
        return leaders
    response = await client._send_request(MetadataRequest(sorted({topic for topic, _ in places})))
    for error, name, _, _, partitions, *_ in response.topics:
        for wrong, number, leader, *_ in [] if error else partitions:
            if not wrong and (name, number) in places:
                leaders.setdefault(leader, []).append((name, number))
    return leaders


def _opened(response: DescribeProducersResponse0) -> Iterator[OpenTransaction]:
    for topic, partitions, *_ in response.topics:
        for number, error, _, producers, *_ in partitions:
            opened = [(start, producer, stamp) for producer, _, _, stamp, _, start, *_ in producers if start >= 0]
            if opened and not error:
                start, producer, stamp = min(opened)
                yield OpenTransaction(topic, number, start, producer, stamp / 1000)


class Standing:
    """Open transactions of some partitions, looked at again and again."""

    def __init__(self) -> None:
        self._since: dict[OpenTransaction, float] = {}  # without the time of the last record
        self._looked = 0.0

    def note(self, found: Sequence[OpenTransaction], now: float) -> None:
        """Note the open transactions that were found, at a time in seconds by any clock that never goes back."""
        known, self._looked = self._since, now
        self._since = {(same := one._replace(written=0.0)): known.get(same, now) for one in found}

    def seconds(self) -> dict[Place, float]:
        """Seconds for which a transaction has been seen open in a partition, up to the last look."""
        return {one.place: self._looked - since for one, since in self._since.items()}

    def lasting(self) -> list[OpenTransaction]:
        """Transactions that have been seen open for a minute and longer."""
        return sorted(one for one, since in self._since.items() if self._looked - since >= LASTING)


def said(one: OpenTransaction) -> str:
    """What holds a partition back."""
    return (
        f"{one.topic}[{one.partition}]: a transaction of producer id {one.producer} stands open at offset "
        f"{one.offset}, and nothing behind it can be read"
    )


def remedy(one: OpenTransaction, brokers: str) -> str:
    """What to do about an open transaction."""
    where = f"--topic {one.topic} --partition {one.partition} --start-offset {one.offset}"
    return (
        f"end it in its producer, or abort it: kafka-transactions --bootstrap-server {brokers} abort {where}. "
        "Otherwise the broker aborts it after the producer's transaction.timeout.ms"
    )
