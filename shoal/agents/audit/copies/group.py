"""Has workers read again the topics that the audit log is made of.

Workers go on where the consumer group was, and that is past what a restored log has. From the beginning on, what the
log has is compared and skipped. Kafka takes offsets only of a group without members, which a killed worker still is for
some seconds.
"""

import asyncio
import time
from collections.abc import Callable

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import CommitFailedError

from shoal.agents.audit.replay.scan import partition_counts
from shoal.agents.kafka.client_errors import NotConnected
from shoal.agents.kafka.reachability import BrokersNotReady
from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.kafka.topics import kafka_errors
from shoal.models.errors import KafkaError

LEAVES_AFTER = 2  # session timeouts that a killed worker may stay in the group


async def read_again(settings: KafkaSettings, on_wait: Callable[[], None]) -> list[str]:
    """Set the group's offsets of releases and activations to the beginning; return the topics that were set.

    `on_wait` is called once if the group has members.

    Raises:
        KafkaError: members stay in the group, or brokers refuse or do not answer (`is_away`).
    """
    counts = await partition_counts(settings, ())
    topics = [topic for topic in (settings.releases, settings.activations) if topic in counts]
    tps = [TopicPartition(topic, number) for topic in topics for number in range(counts[topic])]
    if not tps:
        return []
    with kafka_errors(settings):
        consumer = AIOKafkaConsumer(group_id=settings.app, enable_auto_commit=False, **settings.connect("group"))
        await consumer.start()
        try:
            consumer.assign(tps)
            await _commit(consumer, settings, on_wait)
        finally:
            await consumer.stop()
    return topics


async def _commit(consumer: AIOKafkaConsumer, settings: KafkaSettings, on_wait: Callable[[], None]) -> None:
    first = await consumer.beginning_offsets(consumer.assignment())
    limit, waited = LEAVES_AFTER * settings.session_timeout, False
    end = time.monotonic() + limit
    while True:
        try:
            await consumer.commit(first)
            return
        except CommitFailedError:
            if time.monotonic() > end:
                raise KafkaError(
                    f"group {settings.app} has members after {limit:.0f} s; stop all workers, and run this command "
                    "again: nothing was restored"
                ) from None
        if not waited:
            on_wait()
            waited = True
        await asyncio.sleep(0.5)


def is_away(error: KafkaError) -> bool:
    """Whether the brokers cannot be reached, rather than refuse."""
    return isinstance(error, BrokersNotReady) or (isinstance(error, NotConnected) and error.away)
