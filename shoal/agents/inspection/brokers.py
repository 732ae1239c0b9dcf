"""What Kafka says: brokers, rights, topics, their policies and records, each in a section of its own."""

import asyncio
from collections.abc import Mapping

from shoal.agents.inspection.findings import BROKERS, POLICIES, RECORDS, RIGHTS, TOPICS, Asked, Findings
from shoal.agents.inspection.passed import released
from shoal.agents.inspection.record_keys import refuse_other_keys
from shoal.agents.inspection.records import look_at_records
from shoal.agents.inspection.times_ahead import in_words, pushes, unlimited
from shoal.agents.kafka.broker_clock import clock_warnings, seconds_ahead
from shoal.agents.kafka.rights import verify_rights, wanted_rights
from shoal.agents.kafka.settings import KafkaSettings, settings_of
from shoal.agents.kafka.topics import PolicyError, Verified, admin, verify_topics
from shoal.mechanisms.words import many
from shoal.models.config.file import Config
from shoal.models.errors import KafkaError

NEEDS_BROKERS = "it needs a broker that answers"


def ask_kafka(findings: Findings, config: Config, registered: Mapping[str, int]) -> Asked:
    """Ask for everything; what is refused is among the findings.

    `registered`: partitions of the topics in the ledger.
    """
    settings, before = settings_of(config), len(findings.refused)
    asked = _answering(findings, settings, config, registered)
    if (refused := findings.refused[before:]) and asked.refused is None:
        asked.partitions, asked.refused = {}, str(refused[0])
    return asked


def _answering(findings: Findings, settings: KafkaSettings, config: Config, registered: Mapping[str, int]) -> Asked:
    with findings.looking_at(BROKERS) as found:
        asyncio.run(_reach(settings))
        found.ok(f"{settings.brokers} answers")
    if findings.sections[BROKERS].is_failed:
        for name in (RIGHTS, TOPICS, POLICIES):
            findings.sections[name].leave(NEEDS_BROKERS)
        return Asked()
    unknown = _rights(findings, settings, config)
    verified = _topics(findings, settings, config, registered)
    clock = clock_warnings(asyncio.run(seconds_ahead(settings)))
    for text in clock:
        findings.sections[BROKERS].warn(text)
    if verified is None:
        return Asked(warnings=[*unknown, *clock])
    counts = {name: verified.partitions[name] for name in (*config.topics, settings.contributions)}
    asked = Asked(counts, [*verified.warnings, *verified.durability, *unknown, *clock])
    with findings.looking_at(POLICIES):
        asyncio.run(refuse_other_keys(settings, config, verified))
    _times_ahead(findings, asked, config, verified)
    with findings.looking_at(TOPICS):
        asked.released = asyncio.run(released(settings, verified.partitions[settings.releases]))
    asked.warnings += _records(findings, settings, config, counts)
    return asked


def _records(findings: Findings, settings: KafkaSettings, config: Config, counts: dict[str, int]) -> list[str]:
    """Warnings about records of the source topics; a topic that cannot be read now is not looked at."""
    found = findings.sections[RECORDS]
    try:
        asyncio.run(look_at_records(settings, config, counts, found))
    except KafkaError as error:
        found.leave(str(error))
    return found.warnings


async def _reach(settings: KafkaSettings) -> None:
    async with admin(settings):
        pass


def _rights(findings: Findings, settings: KafkaSettings, config: Config) -> list[str]:
    unknown: list[str] = []
    with findings.looking_at(RIGHTS) as found:
        unknown = asyncio.run(verify_rights(settings, config.topics))
        topics = many(len(wanted_rights(settings, config.topics)), "topic")
        found.ok(f"on {topics}, the group {settings.app} and transactional ids, none is missing")
        for text in unknown:
            found.warn(text)
    return unknown


def _topics(
    findings: Findings, settings: KafkaSettings, config: Config, registered: Mapping[str, int]
) -> Verified | None:
    """The topics as they are; a wrong policy is told from a wrong topic."""
    topics, policies = findings.sections[TOPICS], findings.sections[POLICIES]
    try:
        verified = asyncio.run(verify_topics(settings, config.topics, create=False, registered=registered))
    except PolicyError as error:
        topics.ok("all are there, with the partitions that they must have")
        findings.refuse(POLICIES, error)
        return None
    except KafkaError as error:
        findings.refuse(TOPICS, error)
        policies.leave("it needs topics that are as they must be")
        return None
    topics.ok("all are there: " + ", ".join(f"{name} with {count}" for name, count in verified.partitions.items()))
    policies.ok("no setting of a topic deletes what must stay")
    for text in verified.compacted:
        policies.ok(text)
    for text in (*verified.warnings, *verified.durability):
        policies.warn(text)
    return verified


def _times_ahead(findings: Findings, asked: Asked, config: Config, verified: Verified) -> None:
    """Add to the findings how far a wrong clock can push event times, by the settings of the topics."""
    found = pushes(config, verified.configs)
    asked.ahead = [push.fields() for push in found]
    for text in in_words(found):
        findings.sections[POLICIES].ok(text)
    for text in unlimited(found, config):
        findings.sections[POLICIES].warn(text)
        asked.warnings.append(text)
