"""How far this host's clock is from Kafka's, which refuses records that are stamped an hour ahead.

The only request that tells a broker's time without writing anything is the one that describes the controllers' quorum
(Kafka 3.3; aiokafka does not know it): the leader says until when it knew everything, which for itself is now. It takes
Describe on the cluster; without that right the difference is unknown.
"""

import time
from collections.abc import Callable

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import CompactArray, Int16, Int32, Int64, Schema

from shoal.agents.kafka.metadata import NAME, TAGS
from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.kafka.topics import admin
from shoal.models.errors import KafkaError

WORTH_SAYING = 60.0  # seconds: more than networks and machines that are out of breath make of it
METADATA = "__cluster_metadata"

REPLICAS = CompactArray(
    ("id", Int32), ("log_end_offset", Int64), ("last_fetch_ms", Int64), ("last_caught_up_ms", Int64), TAGS
)


class DescribeQuorumResponse1(Response):  # type: ignore[misc]  # aiokafka is untyped
    """The quorum's replicas, and until when each had caught up."""

    API_KEY = 55
    API_VERSION = 1
    SCHEMA = Schema(
        ("error_code", Int16),
        ("topics", CompactArray(
            ("name", NAME),
            ("partitions", CompactArray(
                ("index", Int32), ("error_code", Int16), ("leader", Int32), ("leader_epoch", Int32),
                ("high_watermark", Int64), ("voters", REPLICAS), ("observers", REPLICAS), TAGS,
            )), TAGS,
        )),
        TAGS,
    )  # fmt: skip


class DescribeQuorumRequest1(RequestStruct):  # type: ignore[misc]  # aiokafka is untyped
    """Asks for partitions of the metadata topic."""

    FLEXIBLE_VERSION = True
    API_KEY = 55
    API_VERSION = 1
    RESPONSE_TYPE = DescribeQuorumResponse1
    SCHEMA = Schema(
        ("topics", CompactArray(("name", NAME), ("partitions", CompactArray(("index", Int32), TAGS)), TAGS)), TAGS
    )


class DescribeQuorumRequest(Request[DescribeQuorumRequest1]):  # type: ignore[misc]  # aiokafka is untyped
    """Asks for the one partition that the metadata topic has."""

    API_KEY = 55

    def build(self, request_struct_class: type[DescribeQuorumRequest1]) -> DescribeQuorumRequest1:
        return request_struct_class([(METADATA, [(0, {})], {})], {})


async def seconds_ahead(settings: KafkaSettings, now: Callable[[], float] = time.time) -> float | None:
    """By how much this host's clock is ahead of Kafka's, at least; negative if it is behind; None if unknown."""
    try:
        async with admin(settings) as client:
            before = now()
            response = await client._send_request(DescribeQuorumRequest())
            after = now()
    except (KafkaError, NotImplementedError):  # the client raises the second where a broker lacks the request
        return None
    theirs: list[float] = [
        replica[3] / 1000
        for _, partitions, *_ in response.topics
        for _, error, leader, _, _, voters, *_ in partitions
        for replica in voters
        if not error and replica[0] == leader and replica[3] > 0
    ]
    if response.error_code or not theirs:
        return None
    if theirs[0] < before:
        return before - theirs[0]
    return min(0.0, after - theirs[0])


def clock_warnings(ahead: float | None) -> list[str]:
    """The warning about a difference; none where it is small or not known."""
    if ahead is None or abs(ahead) < WORTH_SAYING:
        return []
    hours, seconds = divmod(round(abs(ahead)), 3600)
    amount = f"{hours}:{seconds // 60:02}:{seconds % 60:02}"
    if ahead < 0:
        return [f"this host's clock is behind the broker's by {amount}; set it right"]
    return [
        f"this host's clock is ahead of the broker's by {amount}; set it right: Kafka refuses what is an hour ahead"
    ]
