"""Record keys of compacted source topics, where presence is protected.

Compaction deletes all records of a key but the last. Where each record's key is its user, a person's records delete
that person's alone; else whether somebody is there decides whether others count. That all keys are users is the
operator's promise: only the first records of each partition are looked at. No message tells how many records there are,
or where.
"""

from typing import NamedTuple

from aiokafka import TopicPartition

from shoal.agents.audit.replay.scan import Scan
from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.kafka.topic_policies import compacts, keep_command, ways_to_lose
from shoal.agents.kafka.topics import PolicyError, Verified, kafka_errors
from shoal.models.config.file import Config
from shoal.models.events import Reader, Refusal, parse, user_reader
from shoal.stream.machine import Record

FIRST = 100  # records of a partition


class UserField(NamedTuple):
    """Where a topic's records have their user."""

    path: str
    read: Reader[bytes]

    @classmethod
    def of(cls, config: Config, topic: str) -> "UserField":
        path = config.metrics_of(topic)[0].source.user  # of all metrics of a topic
        return cls(path, user_reader(path))

    def is_key(self, record: Record) -> bool:
        """Whether a record's key is its user; true of beats, and of records without a user, which count nowhere."""
        event = None if record.value is None else parse(record.value)
        if event is None or isinstance(event, Refusal):
            return True
        user = self.read(event, record.value or b"")
        return isinstance(user, Refusal) or record.key == user


async def refuse_other_keys(settings: KafkaSettings, config: Config, verified: Verified) -> None:
    """Refuse a source that `compacted` lists if presence is protected and its first records have other keys.

    Raises:
        PolicyError: a record's key is not its user.
        KafkaError: brokers are away, or a right is missing.
    """
    if not config.protects_presence:
        return
    for topic in settings.compacted:
        ways = ways_to_lose(verified.configs.get(topic, {}))
        if topic in verified.configs and not compacts(ways):
            continue
        field = UserField.of(config, topic)
        if not await _have_key(settings, topic, verified.partitions[topic], field):
            raise PolicyError(
                f"topic {topic}: it is compacted and a record's key is not its user ({field.path}), so that one "
                f"person's record may delete another's; have producers key records by {field.path} in a new topic, as "
                f"`shoal produce` does, or run {keep_command(settings.brokers, topic, ways)}"
            )


async def _have_key(settings: KafkaSettings, topic: str, partitions: int, field: UserField) -> bool:
    """Whether the first records of each partition have their users as keys."""
    tps = [TopicPartition(topic, number) for number in range(partitions)]
    with kafka_errors(settings):
        async with Scan(settings) as scan:
            firsts, ends = await scan.first_offsets(tps), await scan.stable_ends(tps)
            for tp in tps:
                seen = 0
                async for records in scan.read(tp, firsts[tp], ends[tp]):
                    if not all(field.is_key(record) for record in records[: FIRST - seen]):
                        return False
                    seen += len(records)
                    if seen >= FIRST:
                        break
    return True
