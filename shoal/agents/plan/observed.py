"""A plan on real values: what each setting would make of a file of events, held against the truth.

NOT PRIVATE. It compares with the true mean, so whatever comes of it is to be treated like the events. It uses
a key of its own that is thrown away, registers nothing, and shows no release. The real bounders and releasers run, a
coordinate and the largest group at a time; the bias is the exact sum in the releaser's state without noise, less the
truth. Events come in the order of their times: what `lateness` does to late ones is left out.
"""

import math
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from shoal.agents.input.event_file import EventFile
from shoal.agents.plan.groups import GroupOutlook, GroupsOutlook, by_size, outlook_of, some
from shoal.agents.plan.mean import LOOKS, About, Look, Outlook, Workload, is_useful, one_mean
from shoal.mechanisms.continual_mean import blocks
from shoal.mechanisms.continual_mean.full import Full
from shoal.mechanisms.continual_mean.mean import MeanParameters
from shoal.mechanisms.continual_mean.naive import Naive
from shoal.mechanisms.continual_mean.sharp import Sharp
from shoal.mechanisms.statistic import COUNT_MASK, Block, Contribution, Releaser
from shoal.models.cells import cell_reader
from shoal.models.config.file import Config
from shoal.models.config.metric import MetricSection
from shoal.models.errors import ConfigError, InputError
from shoal.models.events import Refused, getter, parse, read_time, read_user, read_value

NOT_PRIVATE = "NOT PRIVATE: made from real values; treat it like the events themselves"
FACTORS = (2.0, 4.0, 8.0)  # of epsilon that are tried for half the error: each is a run over all events


class Event(NamedTuple):
    """An accepted event."""

    at: int
    user: int
    values: tuple[int | float, ...]


@dataclass(frozen=True)
class Values:
    """The events of one of a metric's groups, in the order of time; and those of all of them by name."""

    events: Sequence[Event]
    private: bool = False
    name: str | None = None  # of the group; None: there are none
    by_group: Mapping[str, Sequence[Event]] = field(default_factory=dict, repr=False)
    _key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    _found: dict[tuple[MetricSection, int], Outlook] = field(default_factory=dict, repr=False)

    def settled(self, section: MetricSection) -> "Values":
        """The events leave nothing open."""
        return self

    def about(self, section: MetricSection, coordinate: int) -> About:
        """What the file holds."""
        values = np.array([_finite(event.values[coordinate], section, coordinate) for event in self.events])
        users = len({event.user for event in self.events})
        sampling = float(values.std()) / math.sqrt(len(values))
        return About(users, len(values) / users, self._over(section), "that of the file", None, sampling, self.name)

    def groups(self, section: MetricSection, coordinate: int) -> GroupsOutlook | None:
        """Each runs with the same settings, in its own time."""
        if self.name is None:
            return None
        names = by_size(self.by_group)
        found = [self._group(section, coordinate, name) for name in some(names)]
        users = len({event.user for events in self.by_group.values() for event in events})
        return outlook_of(found, len(names), users, self.name)

    def _group(self, section: MetricSection, coordinate: int, name: str) -> GroupOutlook:
        one = self if name == self.name else Values(self.by_group[name])
        about, last = one.about(section, coordinate), one.final(section, coordinate)
        return GroupOutlook(name, about.users, about.samples, last.left_out, last.error)

    def outlook(self, section: MetricSection, coordinate: int) -> Outlook:
        """What comes of a metric's settings, over time."""
        place = section, coordinate
        if place not in self._found:
            self._found[place] = self._run(section, coordinate)
        return self._found[place]

    def final(self, section: MetricSection, coordinate: int) -> Look:
        """The last of its looks."""
        return self.outlook(section, coordinate).looks[-1]

    def scaled(self, section: MetricSection, what: str, factor: float) -> Sequence[tuple[Workload, MetricSection]]:
        """With more epsilon; more users or time are not in the file."""
        if what != "epsilon" or factor not in FACTORS:
            return []
        return [(self, section.model_copy(update={"epsilon": section.epsilon * Fraction(factor)}))]

    def _over(self, section: MetricSection) -> int:
        every = section.every if isinstance(section.every, int) else 1
        return (self.events[-1].at // every - self.events[0].at // every + 1) * every

    def _run(self, section: MetricSection, coordinate: int) -> Outlook:
        try:
            mean = one_mean(section, coordinate)
        except ValueError as refused:
            return Outlook(section, (), None, str(refused))
        releaser = mean.releaser(self._key, b"", coordinate)
        looks = []
        low, high = section.ranges[coordinate]
        for seen in self._closed(section, mean, releaser, coordinate):
            looks.append(_look(section, mean, releaser, seen, len(self.events), coordinate))
        useful = next((one for one in looks if is_useful(one, float(high - low))), None)
        return Outlook(section, tuple(looks), useful)

    def _closed(
        self, section: MetricSection, mean: MeanParameters, releaser: Releaser, coordinate: int
    ) -> Iterator["Seen"]:
        """Feed the releaser tick by tick; when a tick that is looked at is complete, what there is so far."""
        every = section.every if isinstance(section.every, int) else None
        ticks = [[event] for event in self.events] if every is None else self._ticks(every)
        chosen = {round(i * (len(ticks) - 1) / (LOOKS - 1)) for i in range(LOOKS)}
        begin = self.events[0].at if every is None else self.events[0].at // every * every
        bound, count, total = Bound(mean, coordinate), 0, 0.0
        for index, events in enumerate(ticks):
            for contribution in bound.take(events):
                releaser.add(contribution)
                if every is None:
                    releaser.close()
            if every is not None:
                releaser.close()
            count += len(events)
            total += math.fsum(_finite(event.values[coordinate], section, coordinate) for event in events)
            if index in chosen:
                end = events[-1].at if every is None else (events[-1].at // every + 1) * every
                yield Seen(count, end - begin, total / count)

    def _ticks(self, every: int) -> list[list[Event]]:
        return [list(events) for _, events in groupby(self.events, key=lambda event: event.at // every)]


class Seen(NamedTuple):
    """What had come when a tick was complete."""

    events: int
    at: int
    truth: float


class Bound:
    """One coordinate's bounders: the samples of a tick as contributions in canonical order."""

    def __init__(self, mean: MeanParameters, coordinate: int) -> None:
        self._bounder, self._clip, self._cap = mean.bounder(), mean.sample_grid.clip, mean.max_contributions
        self._coordinate = coordinate
        self._accounts: dict[int, int] = {}

    def take(self, events: Sequence[Event]) -> list[Contribution]:
        """What one tick's samples close."""
        merged: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
        alone = []
        for event in events:
            account = self._accounts.get(event.user, 0)
            if account & COUNT_MASK >= self._cap:
                continue
            block: Block | None
            account, block = self._bounder.add(account, self._clip(event.values[self._coordinate]))
            self._accounts[event.user] = account
            if block is None:
                continue
            if block.part is not None and self._bounder.merges:
                held = merged[block.part, block.level]
                held[0] += block.samples
                held[1] += block.total
            else:
                alone.append(
                    Contribution(event.at, f"{event.user:032x}", block.number, block.level, block.samples, block.total)
                )
        rows = [Contribution(events[0].at, "", part, level, *held) for (part, level), held in merged.items()]
        return sorted(rows + alone, key=lambda row: row[:4])


def _look(
    section: MetricSection, mean: MeanParameters, releaser: Releaser, seen: Seen, events: int, coordinate: int
) -> Look:
    estimate = releaser.estimate()
    samples, total = exact(mean, releaser.head())
    sd = half = None
    if estimate is not None:
        sd, half = estimate.noise_sd, (estimate.high - estimate.low) / 2
    low, high = map(float, section.ranges[coordinate])
    # Before a release there is the middle of the range, if anything.
    mean_so_far = mean.sample_grid.mean_value(total, samples) if samples else (low + high) / 2
    left_out = 1 - samples / seen.events
    return Look(seen.events / events, seen.at, samples, sd, half, left_out, mean_so_far - seen.truth)


def exact(mean: MeanParameters, head: list[Any]) -> tuple[int, int]:
    """(samples, sum without noise) of a releaser's state: what its next release rests on."""
    if isinstance(mean, Naive):
        return head[0], head[1]
    if isinstance(mean, Sharp):
        return head[5][0], head[5][1]
    if isinstance(mean, Full):
        return sum(blocks.weight(level) * count for level, count in enumerate(head[1])), sum(head[2])
    return head[0], sum(head[2])


def _finite(value: int | float, section: MetricSection, coordinate: int) -> float:
    """The value; the end of the range for one that is beyond all numbers."""
    low, high = section.ranges[coordinate]
    try:
        number = float(value)
    except OverflowError:
        number = math.copysign(math.inf, value)
    return min(max(number, float(low)), float(high)) if math.isinf(number) else number


# -------------------------------------------------------------------- reading


def read_values(config: Config, section: MetricSection, path: str, on_bytes: Callable[[int], None]) -> Values:
    """The events of a file that a metric accepts, of its largest group.

    Raises:
        InputError: the file cannot be read, or has no event for the metric.
        ConfigError: the metric takes its time from Kafka's records.
    """
    found = read_groups(config, section, path, on_bytes)
    groups = {name: sorted(events, key=lambda event: event.at) for name, events in found.items()}
    largest = by_size(groups)[-1]
    name = None if section.group is None else largest
    return Values(groups[largest], name=name, by_group=groups)


def read_groups(
    config: Config, section: MetricSection, path: str, on_bytes: Callable[[int], None]
) -> dict[str, list[Event]]:
    """The events of a file that a metric accepts, by group.

    Raises:
        InputError: the file cannot be read, or has no event for the metric.
        ConfigError: the metric takes its time from Kafka's records.
    """
    if section.time is None:
        raise ConfigError(
            f'metric "{section.name}" takes its time from Kafka\'s records; a file has none: add `time = "FIELD"`'
        )
    found: dict[str, list[Event]] = defaultdict(list)
    reader = _Reader(section)
    for line in EventFile(path, config, section.topic).lines(on_bytes):
        try:
            group, event = reader.read(line.value or b"")
        except Refused:
            continue
        if reader.admits(event, group):
            found[group].append(event)
    if not found:
        raise InputError(f'{path}: no event has what metric "{section.name}" needs; name a file of its topic')
    return found


class _Reader:
    """Reads events as `bound` does."""

    def __init__(self, section: MetricSection) -> None:
        self._section, self._time = section, section.time or ""
        self._get_user, self._get_time = getter(section.user), getter(self._time)
        self._group_of = cell_reader(None, section.group, section.reading)
        self._get_values = [getter(path) for path in section.values]
        self._users: dict[bytes, int] = {}
        self._groups: dict[tuple[int, int], set[str]] = defaultdict(set)  # of a unit: a user, or one in a period

    def read(self, raw: bytes) -> tuple[str, Event]:
        """The event and its group.

        Raises:
            Refused: the metric cannot use the record.
        """
        reading = self._section.reading
        said = parse(raw, reading)
        user = read_user(self._get_user(said), raw, self._section.user, reading)
        group = self._group_of(said, raw)
        values = tuple(read_value(get(said)) for get in self._get_values)
        at = read_time(self._get_time(said), raw, self._time, reading)
        return group, Event(at, self._users.setdefault(user, len(self._users)), values)

    def admits(self, event: Event, group: str) -> bool:
        """Whether the event's unit may have samples in this group."""
        unit = self._section.of
        if unit.is_event:
            return True
        groups = self._groups[event.user, 0 if unit.period is None else event.at // unit.period]
        if group not in groups and len(groups) >= self._section.max_groups_per_user:
            return False
        groups.add(group)
        return True
