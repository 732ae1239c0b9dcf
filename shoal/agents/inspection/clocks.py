"""Event clocks that are ahead of today, by the states that workers left in Kafka, and the way on from there."""

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from shoal.agents.inspection.states import State
from shoal.models.config.file import Config
from shoal.models.times import iso
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


def positions(config: Config, states: Iterable[State]) -> list[Position]:
    """Position of each event clock of a configuration, by the states of its source partitions."""
    marks: dict[str, list[dict[str, Any]]] = {}
    for state in states:
        marks.setdefault(state.partition.topic, []).append(state.mark)
    return [found for topic in config.topics if topic in marks for found in _furthest(config, topic, marks[topic])]


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
