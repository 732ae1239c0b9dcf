"""The configuration, compiled: what each source topic's records are read for.

A `Metric` carries everything the hot path needs of one statistic; a `TopicPlan` the metrics and clocks of one topic.
A clock is (time field, lateness, late, max_ahead): event time belongs to the metric, and metrics that agree share one.
A clock never goes back. One that a wrong time took too far is restarted: later versions of its metrics have the clock's
next epoch, which is a clock of its own and has heard nothing.
The clocks of metrics that protect presence go by beats alone, for whoever is there may not move them.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from shoal.mechanisms.groups import Groups, IsHome, everywhere
from shoal.mechanisms.kinds import Mechanism, statistic_of
from shoal.mechanisms.noise.keyed import metric_key, pseudonymizer
from shoal.mechanisms.statistic import Bounder
from shoal.models.cells import Reader, cell_reader
from shoal.models.config.file import Config
from shoal.models.config.metric import MetricSection
from shoal.models.config.reading import FIRST
from shoal.models.digests import parameters_digest
from shoal.models.errors import FailStop
from shoal.models.events import getter, read_value, value_getters
from shoal.models.records import ReleaseForm, record_key
from shoal.stream.parameters import parameters_of
from shoal.stream.partitioning import PARTITIONERS
from shoal.stream.state_mark import begun

BEATS = "|beats"  # ends the labels of clocks that go by beats
ClockIdentity = tuple[str | None, int, bool, int, int, bool, int]


@dataclass(frozen=True, slots=True)
class Clock:
    """One kind of event time in a topic."""

    index: int
    path: str | None  # None: the record's timestamp
    lateness: int
    drops_late: bool
    max_ahead: int
    cadences: tuple[int, ...]
    get: Callable[[dict[str, Any]], Any] | None
    reading: int = FIRST
    beats: bool = False  # whether it goes by beats, and by no record
    epoch: int = 0  # the number of restarts before its metrics' versions were registered

    @property
    def label(self) -> str:
        """Names the clock in the state."""
        said = f"{self.path or ''}|{self.lateness}|{'drop' if self.drops_late else 'fold'}|{self.max_ahead}"
        said = said if self.reading == FIRST else f"{said}|{self.reading}"
        said = f"{said}|epoch {self.epoch}" if self.epoch else said
        return said + BEATS if self.beats else said


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric, ready to run."""

    section: MetricSection
    index: int  # among its topic's metrics
    clock: int
    parameters: Mechanism
    digest: str
    key: bytes = field(repr=False)
    clip: Callable[[int | float], int]
    bounder: Bounder
    unpack: Callable[[int, int], list[int]] | None  # total and samples -> a total for each of several coordinates
    pseudonym: Callable[[bytes], str]
    get_user: Callable[[dict[str, Any]], Any]
    get_value: Callable[[dict[str, Any]], Any]
    place_of: Reader | None  # what finds an event's group or cell; None: there is one for all
    name: str
    every: int | None  # microseconds of a tick or step; None: a release per contribution
    label: str = field(init=False)  # name and version: what the state calls it
    form: ReleaseForm = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", f"{self.section.name}/{self.section.version}")
        object.__setattr__(self, "form", _form_of(self.section))

    @property
    def alone(self) -> int | None:
        """The lateness, if each tick has transactions of its own."""
        return self.section.lateness if self.section.protects_presence else None

    @property
    def is_spread(self) -> bool:
        """Whether its groups or cells are released in several contributions partitions."""
        return self.place_of is not None and not self.section.kind.shared

    def groups(self, is_home: IsHome = everywhere) -> Groups:
        """Fresh groups, for the contributions partition that `is_home` tells which groups it has."""
        return self.parameters.in_groups(self.key, is_home)


def _form_of(section: MetricSection) -> ReleaseForm:
    """What all releases of the metric have in common."""
    common = {
        "epsilon": float(section.epsilon),
        "delta": float(section.delta),
        "unit": section.unit,
        "relation": section.relation,
        "algorithm": section.algorithm,
        "version": section.version,
    }
    return ReleaseForm(section.name, common)


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """What a source topic is read for, and how its users and groups map to partitions."""

    topic: str
    metrics: tuple[Metric, ...]
    clocks: tuple[Clock, ...]
    source_partitions: int
    contributions_partitions: int
    partitioner: str
    dead_letters: bool = True
    retired: frozenset[str] = frozenset()
    added: frozenset[str] = frozenset()  # labels of metrics that came when workers had the topic already
    is_waited_for: bool = False  # whether ticks of other topics wait for its beats

    @property
    def has_ticks(self) -> bool:
        """Whether any metric waits for a clock."""
        return any(metric.every is not None for metric in self.metrics)

    @property
    def has_immediate(self) -> bool:
        """Whether any metric has a release per contribution."""
        return any(metric.every is None for metric in self.metrics)

    @property
    def hearing(self) -> frozenset[int]:
        """Contributions partitions that can have groups of its metrics, and so hear of the topic's clocks.

        All of them where presence is protected: there each holds what is added against all ticks that are over, and
        ticks of other topics may wait for this one's beats.
        """
        if self.protects_presence or any(metric.is_spread for metric in self.metrics):
            return frozenset(range(self.contributions_partitions))
        return frozenset(self.home_of(record_key(metric.name, None)) for metric in self.metrics)

    @property
    def heeds_idleness(self) -> bool:
        """Whether any metric waits for a clock that an idle partition lets pass: one that goes by records."""
        return any(clock.cadences and not clock.beats for clock in self.clocks)

    @property
    def beats(self) -> dict[str, int]:
        """Labels of the clocks that go by beats, and their lateness."""
        return {clock.label: clock.lateness for clock in self.clocks if clock.beats}

    @property
    def protects_presence(self) -> bool:
        """Whether its metrics do, which have one relation."""
        return any(metric.section.protects_presence for metric in self.metrics)

    def partition_of(self, key: bytes, partitions: int) -> int:
        """The partition of a record key."""
        return PARTITIONERS[self.partitioner](key, partitions)

    def home_of(self, record_key: str) -> int:
        """The contributions partition of a `metric|group`."""
        return PARTITIONERS["murmur2"](record_key.encode(), self.contributions_partitions)

    def is_home(self, partition: int, metric: str, group: str) -> bool:
        """Whether a contributions partition has a metric's group ("" without one)."""
        return self.home_of(record_key(metric, group)) == partition


def plan_topic(
    config: Config,
    topic: str,
    secret: bytes,
    *,
    source_partitions: int,
    contributions_partitions: int,
    retired: frozenset[str] = frozenset(),
    added: frozenset[str] = frozenset(),
) -> TopicPlan:
    """Compile one topic's metrics."""
    sections = config.metrics_of(topic)
    clocks = clocks_of(sections)
    indices = {identity: index for index, identity in enumerate(_identities(sections))}
    metrics = tuple(
        _metric(config, section, index, indices[_clock_identity(section)], secret)
        for index, section in enumerate(sections)
    )
    return TopicPlan(
        topic,
        metrics,
        clocks,
        source_partitions,
        contributions_partitions,
        config.kafka.partitioner,
        config.kafka.dead_letters,
        retired,
        added,
        is_waited_for=config.protects_presence and len(config.topics) > 1,
    )


def check_beginnings(where: str, metrics: Iterable[Metric], reached: Mapping[str, int]) -> None:
    """No metric is added whose first ticks would come before those of others that are closed already, by their clocks.

    Raises:
        FailStop: one is.
    """
    sections = {metric.label: metric.section for metric in metrics if metric.section.protects_presence}
    beats = [clock + sections[label].lateness for label, clock in reached.items() if label in sections]
    for label in sorted(sections.keys() - reached.keys() if beats else ()):
        if (start := sections[label].start or 0) <= max(beats):
            raise FailStop(begun(where, label, start, max(beats)))


def _clock_identity(section: MetricSection) -> ClockIdentity:
    drops, beats = section.late == "drop", section.protects_presence
    return section.time, section.lateness, drops, section.ahead_limit, section.reading, beats, section.epoch


def _identities(sections: tuple[MetricSection, ...]) -> dict[ClockIdentity, set[int]]:
    """Each clock, and its metrics' cadences."""
    cadences: dict[ClockIdentity, set[int]] = {}
    for section in sections:
        found = cadences.setdefault(_clock_identity(section), set())
        if section.cadence is not None:
            found.add(section.cadence)
    return cadences


def clocks_of(sections: tuple[MetricSection, ...]) -> tuple[Clock, ...]:
    """The clocks of metrics: those that agree share one."""
    return tuple(_clock(index, *one) for index, one in enumerate(_identities(sections).items()))


def _clock(index: int, identity: ClockIdentity, cadences: set[int]) -> Clock:
    path, lateness, drops, ahead, reading, beats, epoch = identity
    get = None if path is None else getter(path)
    return Clock(index, path, lateness, drops, ahead, tuple(sorted(cadences)), get, reading, beats, epoch)


def _metric(config: Config, section: MetricSection, index: int, clock: int, secret: bytes) -> Metric:
    digest = parameters_digest(parameters_of(config, section))
    key = metric_key(secret, section.name, section.version, digest)
    mechanism = statistic_of(section)
    clip, get_value = _reading(section, mechanism)
    return Metric(
        section=section,
        index=index,
        clock=clock,
        parameters=mechanism,
        digest=digest,
        key=key,
        clip=clip,
        bounder=mechanism.bounder(),
        pseudonym=pseudonymizer(key),
        get_user=getter(section.user),
        get_value=get_value,
        unpack=None if mechanism.packing is None else mechanism.packing.unpack,
        place_of=_place_of(section),
        name=section.name,
        every=section.cadence,
    )


def _place_of(section: MetricSection) -> Reader | None:
    if section.cell is None and section.group is None:
        return None
    return cell_reader(section.cell, section.group, section.reading)


def _reading(
    section: MetricSection, mechanism: Mechanism
) -> tuple[Callable[[int | float], int], Callable[[dict[str, Any]], Any]]:
    """(what makes a grid index of a value, what finds the value in an event).

    Several coordinates are clipped and packed where they are found, so that they take the way of a single value.
    """
    if section.value is None:
        return int, lambda event: 0
    if mechanism.packing is None:
        return mechanism.grids[0].clip, value_getters(section.value)[0]
    quantize, coordinates = mechanism.quantize, value_getters(section.value)

    def packed(event: dict[str, Any]) -> int:
        return quantize([read_value(get(event)) for get in coordinates])

    return int, packed
