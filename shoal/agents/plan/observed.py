"""A workload that a file of events holds: read as bound reads it, and held against its accounts.

NOT PRIVATE. A plan of real values compares with the truth, so whatever comes of it is to be treated like the events. It
uses a key of its own that is thrown away, registers nothing, and shows no release. Events count in the order of the
file and at their effective time, as in `shoal run`: one that is late is folded, or left out.
"""

import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, cast

from shoal.agents.input.event_file import EventFile
from shoal.agents.input.first_pass import first_reasons
from shoal.mechanisms.continual_mean.coordinates import Coordinates
from shoal.mechanisms.observed import Accounted, Observed, Sample, Sent
from shoal.mechanisms.plan import Spec
from shoal.mechanisms.statistic import Block
from shoal.models.cells import cell_reader
from shoal.models.config.file import Config
from shoal.models.config.metric import MetricSection
from shoal.models.errors import ConfigError, InputError
from shoal.models.events import Refused, getter, parse, read_user, read_value
from shoal.stream.contributions import Outlet
from shoal.stream.event_time import Progress
from shoal.stream.intakes import intake_of
from shoal.stream.survey import KEPT, Trouble
from shoal.stream.topic import Metric, TopicPlan, clocks_of, plan_topic


def observed(config: Config, section: MetricSection, path: str, on_bytes: Callable[[int], None]) -> Observed:
    """The events of a file that a metric accepts.

    Raises:
        InputError: the file cannot be read, or has no event for the metric; the message has the first reasons.
        ConfigError: the metric takes its time from Kafka's records.
    """
    if section.time is None:
        raise ConfigError(
            f'metric "{section.name}" takes its time from Kafka\'s records; a file has none: add `time = "FIELD"`'
        )
    key = secrets.token_bytes(32)
    reader, file = _Reader(section), EventFile(path, config, section.topic)
    samples: list[Sample] = []
    refused: list[tuple[int, str, bytes]] = []
    late = 0
    for number, raw in chain.from_iterable(file.chunks(on_bytes)):
        try:
            samples.append(reader.read(raw))
        except Refused as error:
            late += error.reason == "late"
            if len(refused) < KEPT:
                refused.append((number, error.reason, raw))
    if not samples:
        (metric,) = _topic(config, section, key).metrics
        troubles = [Trouble(number, reason, metric, raw) for number, reason, raw in refused]
        why = file.fault or first_reasons(troubles, file) or "there is no event in it"
        raise InputError(f'{path}: no event has what metric "{section.name}" needs: {why}; name a file of its topic')
    return Observed(samples, lambda spec, given: _account(_topic(config, spec, key), given), key, late)


def _topic(config: Config, section: Spec, key: bytes) -> TopicPlan:
    alone = config.model_copy(update={"metric": (section,)})
    return plan_topic(alone, section.topic, key, source_partitions=1, contributions_partitions=1)


class _Reader:
    """Reads the events of one metric as bound does: with its clock, and by form alone."""

    def __init__(self, section: MetricSection) -> None:
        (clock,) = clocks_of((section,))
        self._section, self._progress = section, Progress(clock)
        self._get_user, self._get_values = getter(section.user), [getter(path) for path in section.values]
        self._place_of = None
        if section.cell is not None or section.group is not None:
            self._place_of = cell_reader(section.cell, section.group, section.reading)
        self._same: dict[object, Any] = {}  # users and groups, each once in memory

    def read(self, raw: bytes) -> Sample:
        """The sample of a record.

        Raises:
            Refused: the metric cannot use the record.
        """
        reading = self._section.reading
        event = parse(raw, reading)
        effective = self._progress.effective(event, raw, -1)
        user = read_user(self._get_user(event), raw, self._section.user, reading)
        group = None if self._place_of is None else self._place_of(event, raw)
        values = tuple(read_value(get(event)) for get in self._get_values)
        once = self._same.setdefault
        return Sample(once(user, user), once(group, group), values, self._progress.time, effective)


class _Reasons(Counter[str]):
    """Bound's counters, and the last one that moved: why a sample does not count."""

    last: str | None = None

    def __setitem__(self, reason: str, count: int) -> None:
        self.last = reason
        super().__setitem__(reason, count)


class _Sink:
    """Keeps what the accounts send."""

    def __init__(self, metric: Metric) -> None:
        self.sent: list[Sent] = []
        self._unpack = metric.unpack

    def send(self, group: str | None, effective: int, user: bytes, block: Block) -> None:
        """Keep a block; one of several coordinates with a total for each."""
        if self._unpack is not None:
            block = block._replace(total=self._unpack(block.total, block.samples))
        self.sent.append(Sent(group, effective, user, block))


def _account(topic: TopicPlan, samples: Sequence[Sample]) -> Accounted:
    """Give samples to the accounts of the topic's only metric."""
    metric, reasons = topic.metrics[0], _Reasons()
    progress, sink, quantized = Progress(topic.clocks[0]), _Sink(metric), _quantizer(metric)
    intake = intake_of(topic, metric, 0, cast(Outlet, sink), reasons, progress, checks=False)
    intake._read = lambda event, raw: event  # type: ignore[assignment, method-assign, return-value]  # it was read
    verdicts: list[str | None] = []
    for user, group, values, time, effective in samples:
        progress.time, reasons.last = time, None
        try:
            intake.take_in((user, group, quantized(values)), b"", effective)  # type: ignore[arg-type]  # likewise
        except Refused as refused:
            reasons.last = refused.reason
        verdicts.append(reasons.last)
    return Accounted(verdicts, sink.sent)


def _quantizer(metric: Metric) -> Callable[[tuple[int | float, ...]], int]:
    """The function that turns an event's values into the number that accounts sum."""
    mean, clip = metric.parameters, metric.clip
    if isinstance(mean, Coordinates):
        return lambda values: mean.pack(
            [part.sample_grid.clip(each) for part, each in zip(mean.parts, values, strict=True)]
        )
    return (lambda values: clip(values[0])) if metric.section.values else lambda values: 0
