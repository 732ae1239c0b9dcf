"""How the last transaction of a transactional id ended, asked of its coordinator (Kafka 3.0; aiokafka cannot ask).

A coordinator decides once, and then writes a marker into each partition of the transaction. Kafka 4.3 and 4.4 leave
the marker out where a partition has no leader at that moment (KAFKA-20734): the transaction then hangs there, while it
is committed elsewhere. Half of a transaction would be lost if the next owner ended it in another way.
"""

import asyncio
from typing import NamedTuple

from aiokafka import errors
from aiokafka.client import AIOKafkaClient, ConnectionGroup, CoordinationType
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import CompactArray, Int16, Int32, Int64, Schema

from shoal.agents.kafka.metadata import NAME, TAGS

NOT_FOUND = 105  # the coordinator does not know the id
NOT_YET = (  # also said of transactions
    errors.GroupLoadInProgressError,
    errors.GroupCoordinatorNotAvailableError,
    errors.NotCoordinatorForGroupError,
)
RETRY_AFTER = 0.05
NONE_SINCE = "Empty"  # since a producer was fenced in: how the one before it ended is forgotten
COMMITTED = ("PrepareCommit", "CompleteCommit")


class LastTransaction(NamedTuple):
    """What the coordinator knows of a transactional id."""

    state: str
    producer_id: int
    producer_epoch: int

    @property
    def committed(self) -> bool:
        """Whether it was decided to commit; what was not decided is aborted when the next producer is fenced in."""
        return self.state in COMMITTED


class DescribeTransactionsResponse0(Response):  # type: ignore[misc]  # aiokafka is untyped
    """The state of each transactional id."""

    API_KEY = 65
    API_VERSION = 0
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("transaction_states", CompactArray(
            ("error_code", Int16), ("transactional_id", NAME), ("state", NAME), ("timeout_ms", Int32),
            ("start_time_ms", Int64), ("producer_id", Int64), ("producer_epoch", Int16),
            ("topics", CompactArray(("topic", NAME), ("partitions", CompactArray(Int32)), TAGS)), TAGS,
        )),
        TAGS,
    )  # fmt: skip


class DescribeTransactionsRequest0(RequestStruct):  # type: ignore[misc]  # aiokafka is untyped
    """Asks a coordinator for the state of the last transaction of each of these transactional ids."""

    FLEXIBLE_VERSION = True
    API_KEY = 65
    API_VERSION = 0
    RESPONSE_TYPE = DescribeTransactionsResponse0
    SCHEMA = Schema(("transactional_ids", CompactArray(NAME)), TAGS)


class DescribeTransactionsRequest(Request[DescribeTransactionsRequest0]):  # type: ignore[misc]  # aiokafka is untyped
    """Asks for one transactional id."""

    API_KEY = 65

    def __init__(self, transactional_id: str) -> None:
        self._transactional_id = transactional_id

    def build(self, request_struct_class: type[DescribeTransactionsRequest0]) -> DescribeTransactionsRequest0:
        return request_struct_class([self._transactional_id], {})


async def last_transaction(client: AIOKafkaClient, transactional_id: str) -> LastTransaction | None:
    """Ask the coordinator, once it is there; None if it does not know the id.

    Raises:
        ClientError: it refuses, or brokers are away.
    """
    while True:
        try:
            return await _ask(client, transactional_id)
        except NOT_YET:
            await asyncio.sleep(RETRY_AFTER)


async def _ask(client: AIOKafkaClient, transactional_id: str) -> LastTransaction | None:
    coordinator = await client.coordinator_lookup(CoordinationType.TRANSACTION, transactional_id)
    await client.ready(coordinator, group=ConnectionGroup.COORDINATION)
    request = DescribeTransactionsRequest(transactional_id)
    response = await client.send(coordinator, request, group=ConnectionGroup.COORDINATION)
    ((error, _, state, _, _, producer_id, producer_epoch, *_),) = response.transaction_states
    if error == NOT_FOUND:
        return None
    if error:
        raise errors.for_code(error)()
    return LastTransaction(state, producer_id, producer_epoch)
