"""Whether Kafka lets this principal do what a worker does: each right is tried, and a missing one named by its ACL.

Asking changes nothing. For topics, the broker states the rights with their metadata. For the group and for
transactions, this sends a heartbeat of a member that does not exist, and the end of a transaction of a producer that
does not exist: both are refused in any case, but with another error if the right is missing, because brokers check
rights first. Fails if no broker answers.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import GroupAuthorizationFailedError
from aiokafka.errors import TransactionalIdAuthorizationFailed as TransactionalIdDenied
from aiokafka.protocol.group import HeartbeatRequest
from aiokafka.protocol.transaction import EndTxnRequest

from shoal.agents.kafka.metadata import MetadataRequest
from shoal.agents.kafka.settings import BOUND, RELEASE, KafkaSettings
from shoal.agents.kafka.topics import DENIED, admin
from shoal.models.errors import KafkaError

NOBODY = "shoal-check"  # a member that no group has
NO_PRODUCER = 1 << 62  # a producer id that no broker has given out
NOT_STATED = -(1 << 31)  # the answer of a broker that does not say which rights there are


class Operation(IntEnum):
    """Operations of ACLs, by Kafka's own numbers."""

    READ = 3
    WRITE = 4
    DELETE = 6

    @property
    def label(self) -> str:
        return self.name.title()


@dataclass(slots=True)
class Rights:
    """The rights that are missing, and those not known; texts name the resource and the ACL."""

    missing: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    advised: list[str] = field(default_factory=list)  # missing, and workers do without


async def verify_rights(settings: KafkaSettings, sources: Sequence[str]) -> list[str]:
    """Refuse where a worker could not work; what could not be asked for, as warnings.

    Raises:
        KafkaError: a right is missing, or no broker answers.
    """
    rights = await find_rights(settings, sources)
    if rights.missing:
        missing = "; ".join(rights.missing)
        raise KafkaError(f"{settings.brokers}: Kafka denies what a worker needs: {missing}; grant it with kafka-acls")
    advised = [
        f"Kafka denies {right}; what workers need no more stays there: grant it with kafka-acls"
        for right in rights.advised
    ]
    return [*(f"could not ask for {right}" for right in rights.unknown), *advised]


def wanted_rights(settings: KafkaSettings, sources: Sequence[str]) -> dict[str, tuple[Operation, ...]]:
    """The operations that a worker needs on each topic; Read and Write include Describe."""
    read, write = Operation.READ, Operation.WRITE
    s = settings
    both = [s.contributions, s.releases, s.activations, s.changelog(RELEASE, s.contributions)]
    both += [s.changelog(BOUND, source) for source in sources]
    wanted: dict[str, tuple[Operation, ...]] = {source: (read,) for source in sources}
    return wanted | {topic: (read, write) for topic in both} | {s.dead_letters: (write,)}


async def find_rights(settings: KafkaSettings, sources: Sequence[str]) -> Rights:
    """Ask for all of them.

    Raises:
        KafkaError: no broker answers.
    """
    rights = Rights()
    async with admin(settings) as client:
        allowed = await _allowed(client, settings, sources)
        _judge_topics(settings, rights, wanted_rights(settings, sources), allowed)
        logs = [settings.changelog(BOUND, source) for source in sources]
        rights.advised += [
            f"{Operation.DELETE.label} on topic {name}"
            for name in logs
            if allowed.get(name, (1, 0))[0] == 0 and _denies(allowed[name][1], Operation.DELETE)
        ]
        await _ask_group(client, settings, rights)
        await _ask_transactions(client, settings, rights, sources)
    return rights


async def _allowed(client: AIOKafkaAdminClient, settings: KafkaSettings, sources: Sequence[str]) -> dict[str, Any]:
    """Topic -> (error code, bits of the operations allowed)."""
    request = MetadataRequest(wanted_rights(settings, sources), operations=True)
    response = await client._send_request(request)
    return {name: (error, operations) for error, name, _, _, _, operations, *_ in response.topics}


def _judge_topics(
    settings: KafkaSettings,
    rights: Rights,
    wanted: Mapping[str, Iterable[Operation]],
    allowed: Mapping[str, tuple[int, int]],
) -> None:
    """Compare. Internal topics have their rights by prefix, so they are named by it."""
    denied: dict[tuple[str, Operation], None] = {}
    for topic, operations in wanted.items():
        error, bits = allowed.get(topic, (0, NOT_STATED))
        name = f"topics {settings.app}.*" if topic.startswith(f"{settings.app}.") else f"topic {topic}"
        if error == DENIED:
            denied |= {(name, operation): None for operation in operations}
        elif error:
            continue  # a topic that is missing is `verify_topics`' to say
        elif bits == NOT_STATED:
            rights.unknown.append(f"the rights on {name}, which this broker does not state")
        else:
            denied |= {(name, operation): None for operation in operations if not bits >> operation & 1}
    rights.missing += [f"{operation.label} on {name}" for name, operation in denied]
    rights.unknown = list(dict.fromkeys(rights.unknown))


def _denies(bits: int, operation: Operation) -> bool:
    return bits != NOT_STATED and not bits >> operation & 1


async def _ask_group(client: AIOKafkaAdminClient, settings: KafkaSettings, rights: Rights) -> None:
    response = await client._send_request(HeartbeatRequest(settings.app, 0, NOBODY))
    if response.error_code == GroupAuthorizationFailedError.errno:
        rights.missing.append(f"Read on group {settings.app}")


async def _ask_transactions(
    client: AIOKafkaAdminClient, settings: KafkaSettings, rights: Rights, sources: Sequence[str]
) -> None:
    names = [settings.transactional_id(BOUND, source, 0) for source in sources]
    for name in (*names, settings.transactional_id(RELEASE, settings.contributions, 0)):
        response = await client._send_request(EndTxnRequest(name, NO_PRODUCER, 0, False))
        if response.error_code == TransactionalIdDenied.errno:
            rights.missing.append(f"Write on transactional ids {settings.app}.*")
            return
