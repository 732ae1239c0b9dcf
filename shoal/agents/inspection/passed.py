"""Counts the releases in the topic of releases, and those before the consumer group's offsets.

An audit log that has fewer than were passed over was restored from an older copy; one that has more than the topic
holds belongs to topics that are gone.

The audit log is written before the group's offset, so it never has fewer by itself. Such a log stays behind for ever:
workers go on where the group was, and say nothing, unless a release comes whose predecessor is missing.
"""

from aiokafka import ConsumerRecord, TopicPartition

from shoal.agents.inspection.findings import Released
from shoal.agents.kafka.changelog import Reader, group_offsets
from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.kafka.topics import kafka_errors


async def released(settings: KafkaSettings, partitions: int) -> Released:
    """Releases in the topic, by the running numbers that they bear."""
    tps = [TopicPartition(settings.releases, number) for number in range(partitions)]
    held = passed = 0
    with kafka_errors(settings):
        offsets = await group_offsets(settings, tps)
        async with Reader(settings) as reader:
            for tp, (first, end) in (await reader.bounds(tps)).items():
                held += _number(await reader.last_committed(tp, (first, end)))
                passed += _number(await reader.last_committed(tp, (first, min(offsets[tp] or 0, end))))
    return Released(held, passed)


def _number(last: ConsumerRecord | None) -> int:
    return 0 if last is None else int(dict(last.headers).get("n", b"0"))
