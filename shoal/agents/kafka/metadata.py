"""Kafka's metadata request in a version that aiokafka does not know (10, of Kafka 2.8): ids of topics, and rights.

The topics of a response are (error, name, id, internal, partitions, operations, tags).
"""

from collections.abc import Iterable
from io import BytesIO

from aiokafka.protocol.abstract import AbstractType
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Boolean, CompactArray, CompactString, Int16, Int32, Schema, TaggedFields

NO_ID = bytes(16)


class Uuid(AbstractType[bytes]):  # type: ignore[misc]  # aiokafka is untyped
    """Sixteen bytes."""

    @classmethod
    def encode(cls, value: bytes) -> bytes:
        """The bytes unchanged: a uuid has no length before it."""
        return value

    @classmethod
    def decode(cls, data: BytesIO) -> bytes:
        """Take the next sixteen bytes of the response."""
        return data.read(16)


TAGS = ("tags", TaggedFields)
NAME = CompactString("utf-8")


class MetadataResponse10(Response):  # type: ignore[misc]  # aiokafka is untyped
    """The brokers, and the topics asked for."""

    API_KEY = 3
    API_VERSION = 10
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("brokers", CompactArray(("node_id", Int32), ("host", NAME), ("port", Int32), ("rack", NAME), TAGS)),
        ("cluster_id", NAME),
        ("controller_id", Int32),
        ("topics", CompactArray(
            ("error_code", Int16), ("name", NAME), ("id", Uuid), ("is_internal", Boolean),
            ("partitions", CompactArray(
                ("error_code", Int16), ("index", Int32), ("leader", Int32), ("leader_epoch", Int32),
                ("replicas", CompactArray(Int32)), ("isr", CompactArray(Int32)), ("offline", CompactArray(Int32)), TAGS,
            )),
            ("operations", Int32), TAGS,
        )),
        ("cluster_operations", Int32),
        TAGS,
    )  # fmt: skip


class MetadataRequest10(RequestStruct):  # type: ignore[misc]  # aiokafka is untyped
    """Asks for topics by name, and has none of them made."""

    FLEXIBLE_VERSION = True
    API_KEY = 3
    API_VERSION = 10
    RESPONSE_TYPE = MetadataResponse10
    SCHEMA = Schema(
        ("topics", CompactArray(("id", Uuid), ("name", NAME), TAGS)),
        ("make_topics", Boolean),
        ("cluster_operations", Boolean),
        ("topic_operations", Boolean),
        TAGS,
    )


class MetadataRequest(Request[MetadataRequest10]):  # type: ignore[misc]  # aiokafka is untyped
    """The request that aiokafka sends in the version above."""

    API_KEY = 3

    def __init__(self, topics: Iterable[str], *, operations: bool = False) -> None:
        self._operations = operations  # whether to tell what is allowed
        self._topics: list[tuple[bytes, str, dict[int, bytes]]] = [(NO_ID, name, {}) for name in topics]

    def build(self, request_struct_class: type[MetadataRequest10]) -> MetadataRequest10:
        return request_struct_class(self._topics, False, False, self._operations, {})
