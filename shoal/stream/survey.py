"""A survey: what a topic's metrics could use of a file, before anything is registered or published of it.

It reads every record as `bound` would, and keeps no accounts. In come records in their order; what comes out are
functions of their pattern: how many no metric could use, with the first reasons, and how many come so late that they
would be refused or counted in a tick that is not their own.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from shoal.models.events import Refused, parse, read_user, read_value
from shoal.stream.plan import Metric, TopicPlan
from shoal.stream.progress import Progress

TOLD = 3  # troubles that are kept


@dataclass(frozen=True)
class Trouble:
    """Why a record can be used by no metric, by the word of one."""

    number: int  # the caller's, of the record
    reason: str
    metric: Metric
    raw: bytes


class Survey:
    """Counts over the records of one file."""

    def __init__(self, plan: TopicPlan) -> None:
        self.records = 0
        self.usable = 0  # by one metric at least
        self.late = 0
        self.by_metric: Counter[str] = Counter()  # records that a metric can use
        self.troubles: list[Trouble] = []
        self._clocks = [_Clock(plan, index) for index in range(len(plan.clocks))]
        self._readings = sorted({clock.reading for clock in self._clocks})

    @property
    def refused(self) -> int:
        """Records that no metric can use."""
        return self.records - self.usable

    def look(self, number: int, raw: bytes) -> int | None:
        """Take in one record; its time, by any clock that can read it."""
        self.records += 1
        seen = _Seen()
        for reading in self._readings:
            clocks = [clock for clock in self._clocks if clock.reading == reading]
            try:
                event = parse(raw, reading)
            except Exception as error:
                seen.refuse(error, clocks[0].metrics[0])
                continue
            for clock in clocks:
                clock.look(event, raw, seen)
        for name in seen.users:
            self.by_metric[name] += 1
        self.usable += bool(seen.users)
        self.late += seen.is_late
        if not seen.users and len(self.troubles) < TOLD and seen.metric is not None:
            self.troubles.append(Trouble(number, seen.reason, seen.metric, raw))
        return seen.time

    def unused(self) -> Iterator[str]:
        """Names of the metrics that can use no record."""
        names = [metric.name for clock in self._clocks for metric in clock.metrics]
        yield from (name for name in names if not self.by_metric[name])


class _Seen:
    """What was found out about one record."""

    __slots__ = ("is_late", "metric", "reason", "time", "users")

    def __init__(self) -> None:
        self.users: list[str] = []  # metrics that can use it
        self.is_late = False
        self.time: int | None = None
        self.reason = ""
        self.metric: Metric | None = None

    def refuse(self, error: Exception, metric: Metric) -> None:
        """Keep the first reason."""
        if self.metric is None:
            self.reason = error.reason if isinstance(error, Refused) else "error"
            self.metric = metric


class _Clock:
    """One clock of the topic, and the metrics that go by it."""

    def __init__(self, plan: TopicPlan, index: int) -> None:
        self.metrics = [metric for metric in plan.metrics if metric.clock == index]
        self.reading = plan.clocks[index].reading
        self._progress = Progress(plan.clocks[index])
        self._samples = [(_Sample(same[0]), same) for same in _alike(self.metrics)]

    def look(self, event: dict[str, Any], raw: bytes, seen: _Seen) -> None:
        """A record that could be parsed."""
        progress = self._progress
        try:
            effective = progress.effective(event, raw, -1)
        except Refused as refused:
            if refused.reason != "late":
                seen.refuse(refused, self.metrics[0])
                return
            effective = None
        seen.time = progress.time
        for sample, metrics in self._samples:
            try:
                sample.read(event, raw)
            except Exception as error:
                seen.refuse(error, metrics[0])
                continue
            seen.users += [metric.name for metric in metrics]
            if effective != progress.time:
                seen.is_late |= any(_is_displaced(metric, progress.time, effective) for metric in metrics)


class _Sample:
    """Reads what metrics with the same fields need of an event."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._path, self._reading = metric.section.user, metric.section.reading

    def read(self, event: dict[str, Any], raw: bytes) -> None:
        """Raises whatever would make an intake refuse the event."""
        metric = self._metric
        read_user(metric.get_user(event), raw, self._path, self._reading)
        if metric.place_of is not None:
            metric.place_of(event, raw)
        read_value(metric.get_value(event))


def _alike(metrics: list[Metric]) -> list[list[Metric]]:
    """Metrics that read the same fields need to be asked once."""
    found: dict[tuple[object, ...], list[Metric]] = {}
    for metric in metrics:
        section = metric.section
        found.setdefault((section.user, section.group, section.cell, section.values), []).append(metric)
    return list(found.values())


def _is_displaced(metric: Metric, time: int, effective: int | None) -> bool:
    """Whether a late event is refused, or counts in a tick or period that is not its own."""
    if effective is None or metric.every is None:
        return True
    lengths = (metric.every, metric.section.of.period or metric.every)
    return any(time // length != effective // length for length in lengths)
