"""How many releases the consumer group has passed over: an audit log that has fewer was restored from an older copy.

The audit log is written before the group's offset, so it never has fewer by itself. Such a log stays behind for ever:
workers go on where the group was, and say nothing, unless a release comes whose predecessor is missing.
"""

from aiokafka import TopicPartition

from shoal.agents.kafka.changelog import Reader, group_offsets
from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.kafka.topics import kafka_errors


async def passed_releases(settings: KafkaSettings, partitions: int) -> int:
    """Releases before the group's offsets, by the running numbers that they bear."""
    tps = [TopicPartition(settings.releases, number) for number in range(partitions)]
    passed = 0
    with kafka_errors(settings):
        offsets = await group_offsets(settings, tps)
        async with Reader(settings) as reader:
            for tp, (first, end) in (await reader.bounds(tps)).items():
                last = await reader.last_committed(tp, (first, min(offsets[tp] or 0, end)))
                passed += 0 if last is None else int(dict(last.headers).get("n", b"0"))
    return passed
