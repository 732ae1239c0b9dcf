"""Plans from a file of events: reads them as bound does, and runs the real accounts on them.

NOT PRIVATE. A plan of real values compares with the truth, so its result must be treated like the events. It uses a key
that is thrown away, registers nothing, and shows no release. Events count in the order of the file and at their
effective time, as in `shoal run`: a late one is folded, or left out.
"""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from shoal.agents.input.event_file import EventFile
from shoal.agents.input.first_pass import first_reasons
from shoal.mechanisms.accounts import Site
from shoal.mechanisms.forecast.observed import Accounted, Observed, Sample, Sent
from shoal.mechanisms.kinds import kind_of, statistic_of
from shoal.mechanisms.parts.by import OfMeans
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.statistic import Block, Packing
from shoal.models.cells import cell_reader
from shoal.models.config.file import Config
from shoal.models.errors import ConfigError, InputError
from shoal.models.events import Refusal, parse, read_value, user_reader, value_getters
from shoal.stream.event_time import EventClock
from shoal.stream.survey import KEPT, Trouble
from shoal.stream.topic import clocks_of, plan_topic


def observed(
    config: Config, metric: Metric, path: str, on_bytes: Callable[[int], None], *, key: bytes | None = None
) -> Observed:
    """The events of a file that a metric accepts; with a key of public events alone, a plan that can be made again.

    Raises:
        InputError: the file cannot be read, or has no event for the metric; the message has the first reasons.
        ConfigError: the metric takes its time from Kafka's records.
    """
    if metric.source.time is None:
        raise ConfigError(
            f'metric "{metric.name}" takes its time from Kafka\'s records; a file has none: add `time = "FIELD"`'
        )
    key = secrets.token_bytes(32) if key is None else key
    reader, file = _Reader(metric), EventFile(path, config, metric.source.topic)
    samples: list[Sample] = []
    refused: list[tuple[int, str, bytes]] = []
    late = 0
    for number, raw in chain.from_iterable(file.chunks(on_bytes)):
        sample = reader.read(raw)
        if isinstance(sample, Sample):
            samples.append(sample)
            continue
        late += sample.reason == "late"
        if len(refused) < KEPT:
            refused.append((number, sample.reason, raw))
    if not samples:
        alone = config.model_copy(update={"metric": tuple(one for one in config.metric if one.parts is metric)})
        topic = plan_topic(alone, metric.source.topic, key, source_partitions=1, contributions_partitions=1)
        (ready,) = topic.metrics
        troubles = [Trouble(number, reason, ready, raw) for number, reason, raw in refused]
        why = file.fault or first_reasons(troubles, file) or "there is no event in it"
        raise InputError(f'{path}: no event has what metric "{metric.name}" needs: {why}; name a file of its topic')
    return Observed(samples, _account, key, late)


class _Reader:
    """Reads the events of one metric as bound does: with its clock, and by form alone."""

    def __init__(self, metric: Metric) -> None:
        (clock,) = clocks_of((metric,))
        self._event_clock, self._read_user = EventClock(clock), user_reader(metric.source.user)
        self._read_place = None if metric.place is None else cell_reader(metric.place)
        self._get_values = [] if metric.fields is None else value_getters(metric.fields)
        self._same: dict[object, Any] = {}  # users and groups, each once in memory

    def read(self, raw: bytes) -> Sample | Refusal:
        """The sample of a record, if the metric can use it."""
        event = parse(raw)
        if isinstance(event, Refusal):
            return event
        found: list[Any] = [
            self._event_clock.effective(event, raw, -1),
            self._read_user(event, raw),
            None if self._read_place is None else self._read_place(event, raw),
            *(read_value(get(event)) for get in self._get_values),
        ]
        refusal = next((one for one in found if isinstance(one, Refusal)), None)
        if refusal is not None:
            return refusal
        effective, user, group, *values = found
        once = self._same.setdefault
        return Sample(once(user, user), once(group, group), tuple(values), self._event_clock.time, effective)


class _Sink:
    """Keeps what the accounts send."""

    def __init__(self, packing: Packing | None) -> None:
        self.sent: list[Sent] = []
        self._packing = packing

    def send(self, group: str | None, effective: int, user: bytes, block: Block) -> None:
        """Keep a block; one of several coordinates with a total for each."""
        if self._packing is not None:
            block = block._replace(total=self._packing.unpack(block.total, block.samples))
        self.sent.append(Sent(group, effective, user, block))


def _account(metric: Metric, samples: Sequence[Sample]) -> Accounted:
    """Give samples to fresh accounts of a metric."""
    if isinstance(metric.by, OfMeans):
        metric = replace(metric, by=replace(metric.by, withheld=False))  # what counts is the same
    mechanism = statistic_of(metric)
    sink, quantize = _Sink(mechanism.packing), mechanism.quantize
    site = Site(metric.label, sink.send, is_home=lambda user: True, durable=False)
    accounts = kind_of(metric).accounts(metric, mechanism.bounder(), site)
    verdicts = [
        accounts.add(user, group, quantize(values), time, effective) for user, group, values, time, effective in samples
    ]
    return Accounted(verdicts, sink.sent)
