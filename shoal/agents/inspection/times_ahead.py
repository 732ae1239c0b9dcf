"""How far a wrong clock can push the event time of each metric ahead of the brokers' time.

A record's timestamp is the brokers' (`LogAppendTime`) or its producer's (`CreateTime`), which brokers accept up to
`message.timestamp.after.max.ms` ahead. An event time may be ahead of that timestamp by the metric's `max_ahead`, a beat
by half an hour at most. A metric without `time` has the timestamps themselves as event times.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, NamedTuple

from shoal.agents.kafka.topic_policies import Configs, alter_command
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.words import exact_duration
from shoal.models.config.ahead import default_ahead, expects_times_ahead
from shoal.models.config.file import Config
from shoal.stream.event_time import beats_ahead
from shoal.stream.topic import clocks_of

BY_BROKERS, BY_PRODUCERS = "LogAppendTime", "CreateTime"
# The first of them that is limited counts. The second is the only one before Kafka 3.6, and gone since 4.0.
AFTER, DIFFERENCE = KEYS = ("message.timestamp.after.max.ms", "message.timestamp.difference.max.ms")
UNLIMITED = 2**63 - 1  # milliseconds, as Kafka has it
SECOND = 1_000_000  # microseconds
HOUR = 3_600_000  # milliseconds, the default since Kafka 4.0


class Stamps(NamedTuple):
    """Who stamps the records of a topic, and how far ahead of the brokers' time timestamps may be."""

    kind: str
    key: str  # the setting that limits producers' timestamps
    limit: int | None  # microseconds; None: unlimited

    def __str__(self) -> str:
        return self.kind if self.kind == BY_BROKERS else f"{self.kind}, {self.key}"


class Push(NamedTuple):
    """How far a wrong clock can push the event time of one metric ahead of the brokers' time."""

    topic: str
    metric: str
    stamps: Stamps
    ahead: int | None  # microseconds; None: unlimited

    def fields(self) -> dict[str, Any]:
        """The push for programs, in seconds; null: unlimited."""
        return {
            "metric": self.metric,
            "topic": self.topic,
            "timestamps": self.stamps.kind,
            "timestamps_ahead": _seconds(self.stamps.limit),
            "ahead": _seconds(self.ahead),
        }


def pushes(config: Config, configs: Configs) -> list[Push]:
    """The push of each metric whose topic's configuration is known."""
    found = []
    for topic in config.topics:
        if topic in configs:
            metrics, stamps = config.metrics_of(topic), stamps_of(configs[topic])
            beats = beats_ahead(clocks_of(metrics))
            for metric in metrics:
                own = beats if metric.protects_presence else metric.source.max_ahead if metric.source.time else 0
                found.append(Push(topic, metric.name, stamps, None if stamps.limit is None else own + stamps.limit))
    return found


def stamps_of(config: Mapping[str, str]) -> Stamps:
    """Who stamps a topic's records, by its configuration."""
    kind = config.get("message.timestamp.type") or BY_PRODUCERS
    limits = {key: int(config.get(key) or UNLIMITED) for key in KEYS}
    key = next((key for key in KEYS if limits[key] < UNLIMITED), DIFFERENCE if AFTER not in config else AFTER)
    if kind == BY_BROKERS:
        return Stamps(kind, key, 0)
    return Stamps(kind, key, None if limits[key] >= UNLIMITED else limits[key] * 1000)


def in_words(found: Iterable[Push]) -> Iterator[str]:
    """A line for each topic whose pushes are limited, or for each of its metrics if they differ."""
    for topic, of_topic in groupby((push for push in found if push.ahead is not None), lambda push: push.topic):
        each = list(of_topic)
        agree = len({push.ahead for push in each}) == 1
        for push in each[:1] if agree else each:
            where = f"topic {topic}" if agree else f"topic {topic}, metric {push.metric}"
            yield f"{where}: a wrong clock pushes {_how_far(push.ahead or 0)} ({push.stamps})"


def unlimited(found: Iterable[Push], config: Config) -> Iterator[str]:
    """A warning for each topic whose producers' timestamps are unlimited, with the command that limits them."""
    for topic, stamps in dict.fromkeys((push.topic, push.stamps) for push in found if push.ahead is None):
        by_brokers = all(metric.source.time for metric in config.metrics_of(topic))
        setting = {"message.timestamp.type": BY_BROKERS} if by_brokers else {stamps.key: str(HOUR)}
        yield (
            f"topic {topic}: a wrong clock pushes event time ahead without limit ({stamps}); "
            f"run {alter_command(config.kafka.brokers, topic, setting)}"
        )


def times_expected_ahead(metrics: Iterable[Metric]) -> list[str]:
    """Warnings for metrics whose `max_ahead` is set above its default, where events move the clock."""
    return [
        f'metric "{one.name}": max_ahead is {exact_duration(one.source.max_ahead)}, above its default of '
        f"{exact_duration(default_ahead(one))}: one fast clock closes ticks that much early; leave it out unless times "
        "lie ahead by nature, as in bookings"
        for one in metrics
        if expects_times_ahead(one) and one.source.time and not one.protects_presence
    ]


def _how_far(ahead: int) -> str:
    """What is pushed how far, in whole seconds rounded up."""
    rounded = -(-ahead // SECOND) * SECOND
    return f"event time ahead by {exact_duration(rounded)} at most" if ahead else "no event time ahead"


def _seconds(microseconds: int | None) -> float | None:
    return None if microseconds is None else microseconds / SECOND
