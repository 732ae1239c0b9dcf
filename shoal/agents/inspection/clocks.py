"""Event clocks that are ahead of today, by the state that workers left in Kafka, and the way on from there."""

import asyncio
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from aiokafka import TopicPartition

from shoal.agents.kafka.changelog import Reader
from shoal.agents.kafka.settings import BOUND, KafkaSettings
from shoal.agents.kafka.topics import kafka_errors
from shoal.models.config.file import Config
from shoal.models.times import iso
from shoal.stream.state_mark import MARK
from shoal.stream.topic import Clock, clocks_of

SLACK = 60 * 10**6  # microseconds by which clocks of hosts may differ


class Position(NamedTuple):
    """Latest time of a clock, in the partition of its topic where it is furthest; in microseconds."""

    topic: str
    partition: int
    clock: Clock
    metrics: tuple[str, ...]
    time: int

    @property
    def is_ahead(self) -> bool:
        """Whether the clock is further than a record of now could take it."""
        return self.time - time.time() * 10**6 > self.clock.max_ahead + SLACK

    def words(self) -> str:
        """The position in words."""
        return f"{self.topic}[{self.partition}]: the clock of {', '.join(self.metrics)} is at {iso(self.time)}"


def positions(settings: KafkaSettings, config: Config, partitions: Mapping[str, int]) -> list[Position]:
    """How far each clock of a configuration has come, of the topics whose `partitions` are given.

    Raises:
        KafkaError: the brokers cannot be used.
    """
    return [
        found
        for topic in config.topics
        if topic in partitions
        for found in _furthest(config, topic, asyncio.run(_marks(settings, topic, partitions[topic])))
    ]


def warnings(path: Path, found: list[Position]) -> Iterator[str]:
    """A warning for each clock that is ahead, with the command that restarts the clocks of its topic."""
    for one in found:
        if one.is_ahead:
            yield (
                f"{one.words()}, ahead of today: every tick up to then counts as over, and a raised version goes on "
                f"there; restart the clocks: shoal restart-clock {path} {one.topic} --by NAME, and raise the versions "
                "afterwards"
            )


def _furthest(config: Config, topic: str, marks: list[dict[str, Any]]) -> Iterator[Position]:
    sections = config.metrics_of(topic)
    for clock in clocks_of(sections):
        times = [
            (latest, partition)
            for partition, mark in enumerate(marks)
            if (latest := mark.get("watermarks", {}).get(clock.label)) is not None
        ]
        if times:
            latest, partition = max(times)
            names = tuple(section.name for section in sections if clocks_of((section,))[0].label == clock.label)
            yield Position(topic, partition, clock, names, latest)


async def _marks(settings: KafkaSettings, topic: str, partitions: int) -> list[dict[str, Any]]:
    """The mark of each partition's state; empty where there is none."""
    tps = [TopicPartition(settings.changelog(BOUND, topic), number) for number in range(partitions)]
    with kafka_errors(settings):
        async with Reader(settings) as reader:
            bounds = await reader.bounds(tps)
            last = [await reader.last_committed(tp, bounds[tp]) for tp in tps]
    return [orjson.loads(one.value or b"{}") if one is not None and one.key == MARK else {} for one in last]
