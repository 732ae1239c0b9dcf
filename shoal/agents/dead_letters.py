"""Refused events: how many for which reason, and the records themselves, to be repaired and sent again.

They are raw events. Who may call this may see the events, and with relation `add-remove` the counts are for them alone,
too. A record that several metrics refuse has a letter of each. One that only some of them refuse counts for the others
already: sent again it would count twice there.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import orjson

from shoal.agents.audit.replay.scan import committed
from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.misplaced import REASON, Place, Share
from shoal.models.config.file import Config
from shoal.models.framings import Framing, framing_of_text

NOT_JSON = "not-json"  # reason
Origin = tuple[str, int, int]  # topic, partition, offset
BREAKS = str.maketrans("\r\n", "  ")  # between the fields of JSON they say as much as a space, and end no line


@dataclass(slots=True)
class Stretch:
    """Misplaced records of a metric in a source partition, from the first to the last of them."""

    first: int
    last: int
    misplaced: int = 0

    def take_in(self, offset: int) -> None:
        """Count a misplaced record at an offset."""
        self.first, self.last = min(self.first, offset), max(self.last, offset)
        self.misplaced += 1

    @property
    def share(self) -> Share:
        """The share of misplaced records among all offsets of the stretch."""
        return Share(self.last - self.first + 1, self.misplaced)


@dataclass(slots=True)
class Letters:
    """The dead letters of an app: counts of all, and of those that were written as lines."""

    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)  # by reason, metric and topic
    framed: Counter[tuple[str, Framing]] = field(default_factory=Counter)  # letters by topic and framing
    stretches: dict[tuple[str, int, str], Stretch] = field(default_factory=dict)  # by topic, partition and metric
    unreadable: int = 0
    records: int = 0  # as lines
    cut: int = 0  # of which only the beginning was kept
    empty: int = 0  # without a value, such as beats
    replaced: int = 0  # lines with signs in place of bytes that are no UTF-8
    counted: int = 0  # lines that other metrics have not refused

    def misplaced(self) -> dict[str, dict[Place, Stretch]]:
        """By topic the partitions with a large share of misplaced records, each by the metric that refused most."""
        found: dict[str, dict[Place, Stretch]] = {}
        large = ((place, stretch) for place, stretch in self.stretches.items() if stretch.share.is_large)
        for (topic, partition, _), stretch in sorted(large, key=lambda one: one[1].misplaced):
            found.setdefault(topic, {})[topic, partition] = stretch  # the largest comes last
        return found


async def count_letters(settings: KafkaSettings) -> Letters:
    """Count all that are there now.

    Raises:
        KafkaError: brokers or topic cannot be used.
    """
    found = Letters()
    async for records in committed(settings, settings.dead_letters):
        for record in records:
            _take(record.value, found)
    return found


async def refused_records(
    settings: KafkaSettings, config: Config, topic: str, reasons: Collection[str]
) -> tuple[Letters, list[bytes]]:
    """The records of a topic that were refused for one of the reasons: each once, a line each, as they came.

    Raises:
        KafkaError: brokers or topic cannot be used.
    """
    found = Letters()
    refused: dict[Origin, dict[str, Any]] = {}
    by: dict[Origin, set[str]] = {}  # which metrics refused it, for whatever reason
    async for records in committed(settings, settings.dead_letters):
        for record in records:
            letter = _take(record.value, found)
            if letter is None or letter["topic"] != topic:
                continue
            origin = (topic, letter["partition"], letter["offset"])
            by.setdefault(origin, set()).add(letter["metric"])
            if letter["reason"] in reasons:
                refused.setdefault(origin, letter)
    metrics = {metric.name for metric in config.metrics_of(topic)}
    lines = (_line(refused[origin], found, is_counted=not metrics <= by[origin]) for origin in sorted(refused))
    return found, [line for line in lines if line is not None]


def _line(letter: dict[str, Any], found: Letters, *, is_counted: bool) -> bytes | None:
    """The record as a line; None if there is none, or only the beginning of one."""
    text = letter.get("record")
    if not isinstance(text, str) or not text.strip():
        found.empty += 1
        return None
    if "sha256" in letter:
        found.cut += 1
        return None
    found.records += 1
    found.replaced += "\ufffd" in text
    found.counted += is_counted
    return text.translate(BREAKS).encode("utf-8", "replace") + b"\n"


def _take(raw: bytes | None, found: Letters) -> dict[str, Any] | None:
    """The letter in a record, counted."""
    try:
        letter = orjson.loads(raw or b"")
        texts = [letter[name] for name in ("reason", "metric", "topic")]
        numbers = [letter[name] for name in ("partition", "offset")]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        texts, numbers = [None], []
    if not all(isinstance(text, str) for text in texts) or not all(isinstance(number, int) for number in numbers):
        found.unreadable += 1
        return None
    reason, metric, topic = texts
    found.counts[reason, metric, topic] += 1
    _explain(letter, found)
    return dict(letter)


def _explain(letter: dict[str, Any], found: Letters) -> None:
    """Add a dead letter to the counts of misplaced records and of framings."""
    topic, partition, offset = (letter[name] for name in ("topic", "partition", "offset"))
    if letter["reason"] == REASON:
        stretch = found.stretches.setdefault((topic, partition, letter["metric"]), Stretch(offset, offset))
        stretch.take_in(offset)
    text = letter.get("record")
    if letter["reason"] == NOT_JSON and isinstance(text, str) and (framing := framing_of_text(text)) is not None:
        found.framed[topic, framing] += 1
