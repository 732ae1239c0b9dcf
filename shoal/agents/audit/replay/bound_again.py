"""Recomputes the bound stage of one source partition: from events to the messages that it must have sent."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from shoal.agents.audit.replay.scan import before
from shoal.models.config.file import Config
from shoal.models.config.metric import MetricSection
from shoal.models.records import Message
from shoal.stream.bound import BoundPartition
from shoal.stream.event_time import beats_ahead
from shoal.stream.machine import Record
from shoal.stream.topic import BEATS, Clock, TopicPlan, clocks_of

EVENTS = 50_000  # between two takes of what is sent: bounds the memory

Plan = Callable[[Config], TopicPlan]


class Promises(NamedTuple):
    """Last promises of a source partition's clocks, and the contributions partitions that must have received them."""

    clocks: Sequence[tuple[Clock, int | None]] = ()
    hearing: frozenset[int] = frozenset()

    def to(self, home: int) -> Sequence[tuple[Clock, int | None]]:
        """The promises that a contributions partition must have received."""
        return self.clocks if home in self.hearing else ()


class BoundAgain:
    """The bound stage of one source partition, as far as its metrics are still configured.

    A metric that had begun before an accepted loss is left out: the topic no longer has all of its records.

    A metric that was added later begins at the offset that the stage's mark names, with the time that its clock had
    reached by then: metrics that share the clock may have moved it, and may be retired by now.
    """

    def __init__(
        self, config: Config, topic: str, plan: Plan, partition: int, mark: Mapping[str, Any], kernel: Any = None
    ) -> None:
        self._partition, self._log, self._kernel = partition, mark["log"], kernel
        labels = {section.parts.label: section for section in config.sections_of(topic)}
        self.gapped = labels.keys() & {*mark.get("gapped", ())}
        known = {label: one for label, one in labels.items() if label in mark["starts"] and label not in self.gapped}
        self.recomputes = bool(known)
        self._known = clocks_of(tuple(section.parts for section in known.values()))
        started = tuple(one for label, one in labels.items() if label in mark["starts"])
        self._beats_ahead = beats_ahead(clocks_of(tuple(section.parts for section in started)))
        self._hearing = plan(config.model_copy(update={"metric": started})).hearing if started else frozenset[int]()
        starts: dict[int, list[MetricSection]] = {}
        for label, metric in known.items():
            if (start := mark["starts"][label]) is not None:
                starts.setdefault(start, []).append(metric)
        self.first = min(starts, default=mark["offset"])
        self._later = [  # the next to begin is last
            (start, plan(config.model_copy(update={"metric": tuple(metrics)})))
            for start, metrics in sorted(starts.items(), reverse=True)
        ]
        self._reached: Mapping[str, int] = mark.get("reached", {})  # marks of earlier versions do not say it
        self._running: list[BoundPartition] = []

    def take(self, records: Sequence[Record]) -> Iterator[tuple[int, Message]]:
        """Yield the contributions partition and the message of all that these events yield."""
        while self._later and records and self._later[-1][0] <= records[-1].offset:
            first = before(records, self._later[-1][0])
            yield from self._process(first)
            records = records[len(first) :]
            self._begin()
        yield from self._process(records)

    def _begin(self) -> None:
        start, plan = self._later.pop()
        bound = BoundPartition(plan, self._partition, log_id=self._log, durable=False, kernel=self._kernel)
        noted = {
            plan.clocks[metric.clock].label: self._reached[metric.label]
            for metric in plan.metrics
            if metric.label in self._reached
        }
        reached = self._watermarks() | noted
        mark = {
            "offset": start, "starts": {metric.label: start for metric in plan.metrics},
            "numbers": [0] * plan.contributions_partitions, "watermarks": reached,
            "accounts": {}, "beat": _last_beat(reached),
            "epoch": max((clock.epoch for clock in plan.clocks), default=0),
        }  # fmt: skip
        bound.begin(mark)
        bound.beats_ahead = self._beats_ahead  # it has a part of the topic's metrics, and all accept the same beats
        self._running.append(bound)

    def _process(self, records: Sequence[Record]) -> Iterator[tuple[int, Message]]:
        for first in range(0, len(records), EVENTS):
            part = records[first : first + EVENTS]
            for bound in self._running:
                bound.process(part, part[-1].offset + 1)
                taken = bound.take(wall=0)
                yield from taken.messages if taken else ()

    def _watermarks(self) -> dict[str, int | None]:
        return {clock.label: bound.watermark(clock.index) for bound in self._running for clock in bound.plan.clocks}

    def promises(self) -> Promises:
        """Promises of the clocks of the metrics that the mark knows, after the last event.

        A metric that the mark does not know has said nothing yet. Of one that waits for its `start` the clock goes by
        the beats of the others, if there are any that have begun.
        """
        while self._later:
            self._begin()
        reached = self._watermarks()
        beat = _last_beat(reached)
        if beat is not None:
            reached |= {clock.label: beat for clock in self._known if clock.beats and clock.label not in reached}
        latest = [(clock, reached[clock.label]) for clock in self._known if clock.label in reached]
        clocks = [(clock, None if time is None else time - clock.lateness) for clock, time in latest]
        return Promises(clocks, self._hearing)


def _last_beat(reached: Mapping[str, int | None]) -> int | None:
    beats = (latest for label, latest in reached.items() if label.endswith(BEATS) and latest is not None)
    return max(beats, default=None)
