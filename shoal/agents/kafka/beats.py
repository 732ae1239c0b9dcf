"""Beats: what moves the clocks of metrics that protect presence.

A beat tells wall time, of this host, to every partition of a topic. It must not be set by the times of events: when it
comes would then tell that they came. Fails if no broker answers at first; later it waits for brokers.
"""

import asyncio
import time
from collections.abc import Callable, Sequence

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError
from aiokafka.errors import KafkaError as ClientError

from shoal.agents.kafka.client_errors import why_not
from shoal.agents.kafka.produce import partitions_of, producing
from shoal.agents.kafka.settings import KafkaSettings
from shoal.models.config.file import Config
from shoal.models.errors import ConfigError, KafkaError
from shoal.models.records import BEAT_HEADER
from shoal.models.times import iso

QUARTERS = 4  # beats in the finest step


def now() -> int:
    """Wall time in microseconds."""
    return int(time.time() * 1e6)


def topics_of(config: Config) -> tuple[str, ...]:
    """The topics whose clocks go by beats.

    Raises:
        ConfigError: there are none.
    """
    if not config.protects_presence:
        raise ConfigError(
            "its metrics have relation values, whose clocks go by the times of events: they have no use for beats"
        )
    return config.topics


def interval(config: Config) -> float:
    """Seconds between two beats: a quarter of the finest step."""
    return config.cadence / QUARTERS / 1e6


def last_beat(config: Config, topic: str) -> int:
    """The beat that closes all steps of a topic's metrics, and those that other topics' metrics have until their end.

    Steps of all topics are closed in one order, so each topic must have had the last beat of any.

    Raises:
        ConfigError: a metric of the topic has no end, or one of any topic has an end to come.
    """
    for metric in config.metrics_of(topic):
        if metric.end is None:
            raise ConfigError(f'metric "{metric.name}" has no end to which its steps could be closed: add `end`')
    last = max(metric.end + metric.source.lateness for metric in config.metrics if metric.end is not None)
    check_past(last, "the end of the metrics, with their lateness,")
    return last


def check_past(beat: int, what: str) -> None:
    """Refuse a beat to come.

    Raises:
        ConfigError: it is after the wall time.
    """
    if beat > now():
        raise ConfigError(f"{what} is {iso(beat)}, which is still to come; a beat tells what time it is, or was")


async def send_beat(producer: AIOKafkaProducer, topic: str, partitions: int, beat: int) -> None:
    """One beat to every partition of a topic, after all that was sent before."""
    header = [(BEAT_HEADER, iso(beat).encode())]
    sent = [await producer.send(topic, None, b"", partition=home, headers=header) for home in range(partitions)]
    await asyncio.gather(*sent)


async def beat_once(settings: KafkaSettings, topics: Sequence[str], beat: int) -> int:
    """Send one beat; the number of partitions.

    Raises:
        KafkaError: brokers or a topic cannot be used.
    """
    try:
        async with producing(settings) as producer:
            counts = {topic: await partitions_of(producer, topic) for topic in topics}
            for topic, count in counts.items():
                await send_beat(producer, topic, count, beat)
    except KafkaConnectionError:
        raise await why_not(settings) from None
    except ClientError as error:
        raise KafkaError(f"topics {', '.join(topics)}: {type(error).__name__}; look at the broker's log") from None
    return sum(counts.values())


async def beat_until(
    stop: asyncio.Event, settings: KafkaSettings, topics: Sequence[str], every: float, say: Callable[[str], None]
) -> None:
    """Send beats of wall time until told to stop; brokers that go away are waited for.

    Raises:
        KafkaError: brokers or a topic cannot be used for the first beat.
    """
    away = False
    partitions = await beat_once(settings, topics, now())
    say(f"shoal: a beat every {every:g} s to {partitions} partitions of {', '.join(topics)}")
    while not await _is_set(stop, every):
        try:
            await beat_once(settings, topics, now())
        except KafkaError as error:
            if not away:
                say(f"shoal: {error}; waiting: steps stay open until beats go on")
            away = True
        else:
            if away:
                say("shoal: beats go on")
            away = False


async def _is_set(stop: asyncio.Event, seconds: float) -> bool:
    try:
        await asyncio.wait_for(stop.wait(), seconds)
    except TimeoutError:
        return False
    return True
