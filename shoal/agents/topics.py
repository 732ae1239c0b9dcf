"""Creates the app's topics where they are missing, and verifies all topics where they exist.

In come settings and source topics; out come partition counts. What can fail: a source that does not exist, a count or
a clean-up policy that is not what it must be, records that retention deleted already: KafkaError, with what to do.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaConnectionError, for_code
from aiokafka.errors import KafkaError as ClientError

from shoal.agents.reach import BrokersNotReady, may_pass
from shoal.agents.restore import Reader
from shoal.agents.settings import BOUND, RELEASE, KafkaSettings
from shoal.agents.transactions import START_LIMIT
from shoal.models.errors import KafkaError

# Brokers delete by record timestamp and by size. What was published, and what proves it, stays.
KEEP = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
# Without small segments and early cleaning a changelog is never compacted, and recovery reads all history.
COMPACT = {
    "cleanup.policy": "compact",
    "segment.bytes": str(64 << 20),
    "segment.ms": str(600_000),
    "min.cleanable.dirty.ratio": "0.2",
    "max.compaction.lag.ms": str(3_600_000),
}
SETTLE_LIMIT = 2.0
CHECKED = ("cleanup.policy", "retention.ms", "retention.bytes")


@dataclass(frozen=True, slots=True)
class Verified:
    """What was found."""

    partitions: dict[str, int]  # of every topic the app reads or writes
    created: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def wanted_topics(settings: KafkaSettings, sources: Mapping[str, int]) -> dict[str, tuple[int, dict[str, str]]]:
    """Topics of the app: name -> (partitions, configuration). Changelogs have the partitions of their input."""
    s = settings
    outputs = (s.contributions, s.releases, s.activations, s.dead_letters)
    wanted = {name: (s.partitions, KEEP) for name in outputs}
    wanted |= {s.changelog(BOUND, topic): (count, COMPACT) for topic, count in sources.items()}
    return wanted | {s.changelog(RELEASE, s.contributions): (s.partitions, COMPACT)}


@asynccontextmanager
async def admin(settings: KafkaSettings) -> AsyncIterator[AIOKafkaAdminClient]:
    """An administrative client; brokers that cannot be reached are a KafkaError."""
    client = AIOKafkaAdminClient(**settings.connect("admin"))
    try:
        await asyncio.wait_for(client.start(), START_LIMIT)
    except TimeoutError as error:  # frozen, or behind a network that swallows everything
        await client.close()
        raise BrokersNotReady(f"{settings.brokers}: no answer within {START_LIMIT:.0f} s") from error
    except KafkaConnectionError as error:
        await client.close()
        raise KafkaError(
            f"{settings.brokers}: no broker answers; is Kafka running, and are the settings right?"
        ) from error
    try:
        yield client
    except TimeoutError as error:
        raise BrokersNotReady(f"{settings.brokers}: a request timed out") from error
    finally:
        await client.close()


async def verify_topics(settings: KafkaSettings, sources: Sequence[str], *, create: bool = True) -> Verified:
    """Make what is missing (or refuse, without `create`), then compare everything with what it must be."""
    try:
        async with admin(settings) as client:
            counts = await _settled(client, sources)
            found = {topic: counts[topic] for topic in _existing(settings, sources, counts)}
            wanted = wanted_topics(settings, found)
            created = await _create(client, settings, {n: w for n, w in wanted.items() if n not in counts}, create)
            # Now those show, too, that were made by others a moment ago, with other counts and policies perhaps.
            _check_counts(settings, wanted, await _settled(client, wanted))
            old = [name for name in wanted if name not in created]
            _check_policies(wanted, await _configs(client, old))
            retentions = await _configs(client, list(found))
        warnings = await _check_retention(settings, retentions, found)
    except ClientError as error:
        kind = BrokersNotReady if may_pass(error) else KafkaError
        raise kind(f"{settings.brokers}: {type(error).__name__}: {str(error)[:200]}") from error
    return Verified(found | {name: count for name, (count, _) in wanted.items()}, created, warnings)


def _existing(settings: KafkaSettings, sources: Sequence[str], counts: Mapping[str, int]) -> Sequence[str]:
    missing = [topic for topic in sources if topic not in counts]
    if missing:
        names = ", ".join(missing)
        raise KafkaError(f"{settings.brokers}: no topic {names}; create it, or correct `topic` of the metric")
    return sources


async def _settled(client: AIOKafkaAdminClient, names: Iterable[str]) -> dict[str, int]:
    """Partition counts, when all these topics show; a topic that was made a moment ago may take one to do so."""
    wanted, deadline = set(names), time.monotonic() + SETTLE_LIMIT
    while True:
        counts = await _counts(client)
        if wanted <= counts.keys() or time.monotonic() > deadline:
            return counts
        await asyncio.sleep(0.1)


async def _counts(client: AIOKafkaAdminClient) -> dict[str, int]:
    topics = await client.describe_topics()
    return {topic["topic"]: len(topic["partitions"]) for topic in topics if not topic["error_code"]}


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
        elif error.__name__ != "TopicAlreadyExistsError":  # another worker was faster
            kind = BrokersNotReady if may_pass(error()) else KafkaError
            raise kind(f"cannot create topic {name}: {error.__name__}")
    return sorted(created)


def _check_counts(settings: KafkaSettings, wanted: dict[str, tuple[int, Any]], counts: Mapping[str, int]) -> None:
    for name, (count, _) in wanted.items():
        if counts.get(name, count) != count:
            raise KafkaError(
                f"{settings.brokers}: topic {name} has {counts[name]} partitions instead of {count}; partition counts "
                "are frozen for the life of an app: restore the count, or start a new `app`"
            )


async def _configs(client: AIOKafkaAdminClient, names: Sequence[str]) -> dict[str, dict[str, str]]:
    if not names:
        return {}
    answers = await client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name) for name in names])
    resources = [resource for answer in answers for resource in answer.resources]
    return {name: {entry[0]: entry[1] for entry in entries} for _, _, _, name, entries in resources}


def _check_policies(wanted: dict[str, tuple[int, dict[str, str]]], actual: dict[str, dict[str, str]]) -> None:
    for name, config in actual.items():
        for key in CHECKED:
            must = wanted[name][1].get(key)
            if must is not None and config.get(key) != must:
                raise KafkaError(
                    f"topic {name}: {key} is {config.get(key)}, must be {must}; change it with kafka-configs"
                )


async def _check_retention(
    settings: KafkaSettings, configs: dict[str, dict[str, str]], counts: Mapping[str, int]
) -> list[str]:
    """Finite retention of a source: refuse records that are outside already, warn of the rest."""
    finite = {name: _retention(config) for name, config in configs.items()}
    finite = {name: limits for name, limits in finite.items() if limits}
    if not finite:
        return []
    async with Reader(settings) as reader:
        for name, limits in finite.items():
            await _check_oldest(reader, name, counts[name], limits.get("retention.ms"))
    texts = {n: ", ".join(f"{key} = {value}" for key, value in limits.items()) for n, limits in finite.items()}
    return [f"topic {n}: {text}; events must be read before the broker deletes them" for n, text in texts.items()]


def _retention(config: Mapping[str, str]) -> dict[str, int]:
    if "delete" not in config.get("cleanup.policy", "delete"):
        return {}
    limits = {key: int(config.get(key) or -1) for key in ("retention.ms", "retention.bytes")}
    return {key: value for key, value in limits.items() if value >= 0}


async def _check_oldest(reader: Reader, topic: str, count: int, limit_ms: int | None) -> None:
    if limit_ms is None:
        return
    for partition in range(count):
        age = await reader.oldest_age_ms(TopicPartition(topic, partition))
        if age is not None and age > limit_ms:
            raise KafkaError(
                f"topic {topic}[{partition}]: its oldest record is {age // 1000} s old by its own timestamp and "
                f"retention.ms is {limit_ms}: the broker deletes it at its next check; set retention.ms=-1"
            )


async def create_sources(settings: KafkaSettings, topics: Sequence[str]) -> list[str]:
    """Make the source topics that are missing, without retention; the names made."""
    try:
        async with admin(settings) as client:
            counts = await _counts(client)
            missing = {topic: (settings.partitions, KEEP) for topic in topics if topic not in counts}
            return await _create(client, settings, missing, create=True)
    except ClientError as error:
        raise KafkaError(f"{settings.brokers}: {type(error).__name__}: {str(error)[:200]}") from error
