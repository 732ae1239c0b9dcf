"""Creates the app's topics where they are missing, and verifies all topics where they exist.

Fails with KafkaError, and what to do, if a source does not exist, a partition count or a clean-up policy is wrong, or
retention has deleted records already.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaConnectionError, TopicAuthorizationFailedError, for_code
from aiokafka.errors import KafkaError as ClientError

from shoal.agents.kafka.changelog import Reader
from shoal.agents.kafka.client_errors import why_not
from shoal.agents.kafka.metadata import MetadataRequest
from shoal.agents.kafka.reachability import BrokersNotReady, may_pass
from shoal.agents.kafka.settings import BOUND, RELEASE, KafkaSettings
from shoal.agents.kafka.topic_policies import (
    AGE,
    COMPACT,
    KEEP,
    LOG,
    SAFE,
    SAFE_REPLICATION,
    Configs,
    WayToLose,
    compacts,
    keep_command,
    not_asked,
    wanted_compaction,
    ways_to_lose,
    weak_durability,
    wrong_policies,
)
from shoal.agents.kafka.transactions import START_LIMIT
from shoal.agents.lost_records import changed_count
from shoal.models.errors import KafkaError
from shoal.stream.state_mark import ANEW

SETTLE_LIMIT = 2.0
DENIED = TopicAuthorizationFailedError.errno


class PolicyError(KafkaError):
    """A topic would lose what must stay, by its own settings."""


@dataclass(frozen=True, slots=True)
class Verified:
    """The topics as they are, and warnings about them."""

    partitions: dict[str, int]  # of every topic the app reads or writes
    created: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)  # of what a broker may delete
    durability: list[str] = field(default_factory=list)  # what could be lost with a broker
    compacted: list[str] = field(default_factory=list)  # what wanted compaction of sources means
    configs: Configs = field(default_factory=dict)  # of the sources whose configuration the client may read


def wanted_topics(settings: KafkaSettings, sources: Mapping[str, int]) -> dict[str, tuple[int, dict[str, str]]]:
    """The app's topics: name -> (partitions, configuration). Changelogs have the partitions of their input."""
    s = settings
    outputs = (s.contributions, s.releases, s.activations, s.dead_letters)
    safe = SAFE if s.replication >= SAFE_REPLICATION else {}
    keep, compact, log = KEEP | safe, COMPACT | safe, LOG | safe
    wanted = {name: (s.partitions, keep) for name in outputs}
    wanted |= {s.changelog(BOUND, topic): (count, log) for topic, count in sources.items()}
    return wanted | {s.changelog(RELEASE, s.contributions): (s.partitions, compact)}


@asynccontextmanager
async def admin(settings: KafkaSettings) -> AsyncIterator[AIOKafkaAdminClient]:
    """An administrative client. Its errors, and brokers that cannot be reached, are KafkaErrors."""
    client = AIOKafkaAdminClient(**settings.connect("admin"))
    try:
        await asyncio.wait_for(client.start(), START_LIMIT)
    except TimeoutError as error:  # frozen, or behind a network that swallows everything
        await client.close()
        raise BrokersNotReady(f"{settings.brokers}: no answer within {START_LIMIT:.0f} s") from error
    except KafkaConnectionError as error:
        await client.close()
        raise await why_not(settings) from error
    try:
        with kafka_errors(settings):
            yield client
    except TimeoutError as error:
        raise BrokersNotReady(f"{settings.brokers}: a request timed out") from error
    finally:
        await client.close()


@contextmanager
def kafka_errors(settings: KafkaSettings) -> Iterator[None]:
    """Turn errors of the client into KafkaErrors, and those that may pass into BrokersNotReady."""
    try:
        yield
    except KafkaConnectionError as error:
        raise BrokersNotReady(f"{settings.brokers}: no broker answers; is Kafka running?") from error
    except ClientError as error:
        kind = BrokersNotReady if may_pass(error) else KafkaError
        raise kind(f"{settings.brokers}: {type(error).__name__}: {str(error)[:200]}") from error


async def verify_topics(
    settings: KafkaSettings, sources: Sequence[str], *, create: bool = True, registered: Mapping[str, int] | None = None
) -> Verified:
    """Make what is missing (or refuse, without `create`), then compare everything with what it must be.

    `registered`: partitions of the topics in the ledger.
    """
    async with admin(settings) as client:
        counts = await _settled(client, sources)
        await _refuse_missing(client, settings, [topic for topic in sources if topic not in counts])
        read = {topic: counts[topic] for topic in sources}
        for topic, count in read.items():
            if count != (before := (registered or {}).get(topic, count)):
                raise KafkaError(changed_count(topic, count, before))
        wanted = wanted_topics(settings, read)
        created = await _create(client, settings, {n: w for n, w in wanted.items() if n not in counts}, create)
        # Now those show, too, that were made by others a moment ago, with other counts and policies perhaps.
        _check_counts(settings, wanted, await _settled(client, wanted))
        configs, denied = await read_configs(client, [*wanted, *read])
        _check_policies(settings, wanted, {name: config for name, config in configs.items() if name not in created})
        durability = weak_durability(settings.app, await _replicas(client, configs), configs)
    of_sources = {name: configs[name] for name in read if name in configs}
    with kafka_errors(settings):
        warnings = await _check_sources(settings, of_sources, read)
    warnings += not_asked(settings.app, denied)
    counts = read | {name: count for name, (count, _) in wanted.items()}
    compacted = [
        wanted_compaction(name, hides_presence=settings.hides_presence)
        for name in settings.compacted
        if compacts(ways_to_lose(of_sources.get(name, {})))
    ]
    return Verified(counts, created, warnings, durability, compacted, of_sources)


async def _refuse_missing(client: AIOKafkaAdminClient, settings: KafkaSettings, missing: Sequence[str]) -> None:
    """Tell a topic that is not there from one that this principal must not see."""
    if not missing:
        return
    response = await client._send_request(MetadataRequest(missing))
    denied = [name for error, name, *_ in response.topics if error == DENIED]
    if denied:
        names = ", ".join(denied)
        raise KafkaError(
            f"{settings.brokers}: Kafka denies this principal access to topic {names}; grant it Read on the topic with "
            "kafka-acls"
        )
    names = ", ".join(missing)
    raise KafkaError(
        f"{settings.brokers}: no topic {names}; run `shoal topics` with this configuration to create it, or "
        "correct `topic` of the metric"
    )


async def _settled(client: AIOKafkaAdminClient, names: Iterable[str]) -> dict[str, int]:
    """Partition counts, once all these topics show: one made a moment ago may take a moment to do so."""
    wanted, deadline = set(names), time.monotonic() + SETTLE_LIMIT
    while True:
        counts = await _counts(client)
        if wanted <= counts.keys() or time.monotonic() > deadline:
            return counts
        await asyncio.sleep(0.1)


async def _counts(client: AIOKafkaAdminClient) -> dict[str, int]:
    topics = await client.describe_topics()
    return {topic["topic"]: len(topic["partitions"]) for topic in topics if not topic["error_code"]}


async def _replicas(client: AIOKafkaAdminClient, names: Container[str]) -> dict[str, int]:
    """For each topic the number of replicas of the partition with the fewest."""
    topics = [topic for topic in await client.describe_topics() if topic["topic"] in names]
    return {topic["topic"]: min(len(part["replicas"]) for part in topic["partitions"]) for topic in topics}


async def _create(
    client: AIOKafkaAdminClient, settings: KafkaSettings, missing: dict[str, tuple[int, dict[str, str]]], create: bool
) -> list[str]:
    if missing and not create:
        raise KafkaError(f"{settings.brokers}: missing topics: {', '.join(sorted(missing))}; run `shoal topics`")
    assignments: dict[int, Any] | None = (
        {} if settings.replication == -1 else None
    )  # how aiokafka lets the broker choose
    new = [NewTopic(n, count, settings.replication, assignments, c) for n, (count, c) in missing.items()]
    answer = await client.create_topics(new) if new else None
    created = []
    for name, code, *_ in answer.topic_errors if answer else ():
        error = for_code(code)
        if not code:
            created.append(name)
        elif code == DENIED:
            raise KafkaError(f"cannot create topic {name}: Kafka denies Create on it; grant it, or run `shoal topics`")
        elif error.__name__ != "TopicAlreadyExistsError":  # another worker was faster
            kind = BrokersNotReady if may_pass(error()) else KafkaError
            raise kind(f"cannot create topic {name}: {error.__name__}")
    return sorted(created)


def _check_counts(settings: KafkaSettings, wanted: dict[str, tuple[int, Any]], counts: Mapping[str, int]) -> None:
    for name, (count, _) in wanted.items():
        if counts.get(name, count) != count:
            raise KafkaError(
                f"{settings.brokers}: topic {name} has {counts[name]} partitions instead of {count}; partition counts "
                f"are frozen for the life of an app: restore the count, or {ANEW}"
            )


async def read_configs(
    client: AIOKafkaAdminClient, names: Sequence[str]
) -> tuple[dict[str, dict[str, str]], list[str]]:
    """Configurations by topic, and the topics whose configuration this principal must not see."""
    answers = await client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name) for name in names])
    resources = [resource for answer in answers for resource in answer.resources]
    configs = {name: {entry[0]: entry[1] for entry in entries} for error, _, _, name, entries in resources if not error}
    return configs, [name for error, _, _, name, _ in resources if error == DENIED]


def _check_policies(settings: KafkaSettings, wanted: dict[str, tuple[int, dict[str, str]]], actual: Configs) -> None:
    for wrong in wrong_policies({name: config for name, (_, config) in wanted.items()}, actual):
        raise PolicyError(wrong.said(settings.brokers))


async def _check_sources(settings: KafkaSettings, configs: Configs, counts: Mapping[str, int]) -> list[str]:
    """Warnings of sources that can lose records; refuse compaction that is not listed, and records about to go."""
    losing = {name: ways for name, config in configs.items() if (ways := source_ways(settings, name, config))}
    for name, ways in losing.items():
        if compacts(ways):
            raise PolicyError(record_loss(settings, name, ways))
    aging = {name: ways for name, ways in losing.items() if any(way.key == AGE for way in ways)}
    if aging and not settings.hides_presence:  # that a record is so old tells that it is there
        async with Reader(settings) as reader:
            for name, ways in aging.items():
                await _check_oldest(reader, settings, name, counts[name], ways)
    return [record_loss(settings, name, ways) for name, ways in losing.items()]


def source_ways(settings: KafkaSettings, topic: str, config: Mapping[str, str]) -> list[WayToLose]:
    """How a source topic can lose records before they are read, other than by compaction that is wanted."""
    return ways_to_lose(config, compacted=topic in settings.compacted)


def record_loss(settings: KafkaSettings, topic: str, ways: Sequence[WayToLose]) -> str:
    """How a source topic can lose records, and one command after which it cannot; empty if it keeps all."""
    if not ways:
        return ""
    each = ", and ".join(f"{way.key} = {way.value}: {way.cause}" for way in ways)
    if settings.hides_presence and any(way.by_others for way in ways):
        each += ", so that one person's records may decide whether others' are deleted"
    if compacts(ways):
        names = ", ".join(f'"{name}"' for name in (*settings.compacted, topic))
        each += f"; to read it as it is, set [kafka] compacted = [{names}]"
    return f"topic {topic}: {each}; to keep them, run {keep_command(settings.brokers, topic, ways)}"


async def _check_oldest(
    reader: Reader, settings: KafkaSettings, topic: str, count: int, ways: Sequence[WayToLose]
) -> None:
    (limit_ms,) = (int(way.value) for way in ways if way.key == AGE)
    for partition in range(count):
        age = await reader.oldest_age_ms(TopicPartition(topic, partition))
        if age is not None and age > limit_ms:
            raise PolicyError(
                f"topic {topic}[{partition}]: its oldest record is {age // 1000} s old by its own timestamp and "
                f"{AGE} is {limit_ms}: the broker deletes it at its next check; to keep all records, run "
                f"{keep_command(settings.brokers, topic, ways)}"
            )


async def create_sources(settings: KafkaSettings, topics: Sequence[str]) -> list[str]:
    """Make the source topics that are missing, without retention; return their names."""
    async with admin(settings) as client:
        counts = await _counts(client)
        config = KEEP | (SAFE if settings.replication >= SAFE_REPLICATION else {})
        missing = {topic: (settings.partitions, config) for topic in topics if topic not in counts}
        return await _create(client, settings, missing, create=True)
