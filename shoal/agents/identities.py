"""Which topic a name means: a topic that is deleted and made anew keeps its name, and Kafka gives it another id.

In come topic names; out come ids and partition counts, from a version of Kafka's metadata request that aiokafka does
not know (10, of Kafka 2.8). Offsets alone do not tell: a topic that was filled again, further than before, looks like
the old one's sequel. What can fail: a topic that is not the one it was, or that grew: fail-stop.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import NamedTuple

from aiokafka.errors import KafkaError as ClientError
from aiokafka.protocol.abstract import AbstractType
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Boolean, CompactArray, CompactString, Int16, Int32, Schema, TaggedFields

from shoal.agents.settings import KafkaSettings
from shoal.agents.topics import admin
from shoal.models.errors import FailStop, KafkaError

STATE_KEY = b"\x00topic"  # in a changelog: the id of the topic that the state was made of
ASK_EVERY = 5.0
NO_ID = bytes(16)


class Identity(NamedTuple):
    """What a name means now."""

    id: str
    partitions: int


class Uuid(AbstractType[bytes]):  # type: ignore[misc]  # aiokafka is untyped
    """Sixteen bytes."""

    @classmethod
    def encode(cls, value: bytes) -> bytes:
        """As they are."""
        return value

    @classmethod
    def decode(cls, data: BytesIO) -> bytes:
        """The next sixteen."""
        return data.read(16)


TAGS = ("tags", TaggedFields)
NAME = CompactString("utf-8")


class MetadataResponse10(Response):  # type: ignore[misc]  # aiokafka is untyped
    """Brokers, and the topics asked for."""

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
    """Topics by name, none of them to be made."""

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
    """What aiokafka sends in the version above."""

    API_KEY = 3

    def __init__(self, topics: Iterable[str]) -> None:
        self._topics: list[tuple[bytes, str, dict[int, bytes]]] = [(NO_ID, name, {}) for name in topics]

    def build(self, request_struct_class: type[MetadataRequest10]) -> MetadataRequest10:
        """The request."""
        return request_struct_class(self._topics, False, False, False, {})


async def ask(settings: KafkaSettings, topics: Iterable[str]) -> dict[str, Identity]:
    """The topics that exist.

    Raises:
        KafkaError: no broker answers.
    """
    async with admin(settings) as client:
        response = await client._send_request(MetadataRequest(topics))
    return {
        name: Identity(raw.hex(), len(partitions))
        for error, name, raw, _, partitions, *_ in response.topics
        if not error
    }


class Identities:
    """What the names meant when this worker first asked, and that they still do."""

    def __init__(self, settings: KafkaSettings, topics: Iterable[str]) -> None:
        self._settings, self._topics = settings, tuple(topics)
        self._known: dict[str, Identity] = {}

    async def learn(self) -> Mapping[str, Identity]:
        """Ask, compare with what is known, and return it."""
        for topic, now in (await ask(self._settings, self._topics)).items():
            check(topic, self._known.setdefault(topic, now), now)
        return self._known

    async def watch(self) -> None:
        """Do so for ever; brokers that do not answer are no answer."""
        while True:
            await asyncio.sleep(ASK_EVERY)
            with contextlib.suppress(ClientError, KafkaError):
                await self.learn()


def check(topic: str, known: Identity, now: Identity) -> None:
    """Refuse a topic that is another one, or grew."""
    if now.id != known.id:
        raise FailStop(_made_anew(topic))
    if now.partitions != known.partitions:
        raise FailStop(
            f"topic {topic} has {now.partitions} partitions instead of {known.partitions}; a changed count re-hashes "
            "users and groups: restore the count, or use a new topic and a new app"
        )


def check_state(topic: str, saved: bytes | None, now: Identity) -> None:
    """Refuse a state that was made of another topic of this name."""
    if saved is not None and saved.decode() != now.id:
        raise FailStop(_made_anew(topic))


def _made_anew(topic: str) -> str:
    return (
        f"topic {topic} was made anew: it is not the one that was read or written before; bring back the topics that "
        "belong together, or start a new `app` with a new key"
    )
