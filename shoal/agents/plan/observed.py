"""Plans from a file of events: reads them as bound does, and runs the real accounts on them.

NOT PRIVATE. A plan of real values compares with the truth, so its result must be treated like the events. It uses a key
that is thrown away, registers nothing, and shows no release. Events count in the order of the file and at their
effective time, as in `shoal run`: a late one is folded, or left out.
"""

import secrets
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

from shoal.agents.input.event_file import EventFile
from shoal.agents.input.first_pass import first_reasons
from shoal.mechanisms.accounts import Site
from shoal.mechanisms.observed import Accounted, Observed, Sample, Sent
from shoal.mechanisms.plan import Spec, varied
from shoal.mechanisms.statistic import Block
from shoal.models.cells import cell_reader
from shoal.models.config.file import Config
from shoal.models.config.metric import MetricSection
from shoal.models.errors import ConfigError, InputError
from shoal.models.events import Refused, getter, parse, read_user, read_value, value_getters
from shoal.stream.event_time import EventClock
from shoal.stream.survey import KEPT, Trouble
from shoal.stream.topic import Metric, TopicPlan, clocks_of, plan_topic


def observed(
    config: Config, section: MetricSection, path: str, on_bytes: Callable[[int], None], *, key: bytes | None = None
) -> Observed:
    """The events of a file that a metric accepts; with a key of public events alone, a plan that can be made again.

    Raises:
        InputError: the file cannot be read, or has no event for the metric; the message has the first reasons.
        ConfigError: the metric takes its time from Kafka's records.
    """
    if section.time is None:
        raise ConfigError(
            f'metric "{section.name}" takes its time from Kafka\'s records; a file has none: add `time = "FIELD"`'
        )
    key = secrets.token_bytes(32) if key is None else key
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
    alone = config.model_copy(update={"metric": (varied(section, withheld=None),)})  # what counts is the same
    return plan_topic(alone, section.topic, key, source_partitions=1, contributions_partitions=1)


class _Reader:
    """Reads the events of one metric as bound does: with its clock, and by form alone."""

    def __init__(self, section: MetricSection) -> None:
        (clock,) = clocks_of((section,))
        self._section, self._event_clock = section, EventClock(clock)
        self._get_user, self._get_values = getter(section.user), value_getters(section.value or ())
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
        effective = self._event_clock.effective(event, raw, -1)
        user = read_user(self._get_user(event), raw, self._section.user, reading)
        group = None if self._place_of is None else self._place_of(event, raw)
        values = tuple(read_value(get(event)) for get in self._get_values)
        once = self._same.setdefault
        return Sample(once(user, user), once(group, group), values, self._event_clock.time, effective)


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
    metric = topic.metrics[0]
    sink, quantize = _Sink(metric), metric.parameters.quantize
    site = Site(metric.label, sink.send, is_home=lambda user: True, durable=False)
    accounts = metric.section.kind.accounts(metric.section, metric.bounder, site)
    verdicts = [
        accounts.add(user, group, quantize(values), time, effective) for user, group, values, time, effective in samples
    ]
    return Accounted(verdicts, sink.sent)
