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

from shoal.mechanisms.accounts import Accounts, Site
from shoal.mechanisms.groups import Groups, IsHome, everywhere
from shoal.mechanisms.kinds import Mechanism, kind_of, statistic_of
from shoal.mechanisms.noise.keyed import metric_key, pseudonymizer
from shoal.mechanisms.parts.lengths import Even
from shoal.mechanisms.parts.metric import Metric as Parts
from shoal.mechanisms.statistic import Bounder
from shoal.models.cells import cell_reader
from shoal.models.config.file import Config
from shoal.models.config.metric import MetricSection
from shoal.models.digests import parameters_digest
from shoal.models.errors import FailStop
from shoal.models.events import Reader, Refusal, read_value, time_reader, user_reader, value_getters
from shoal.models.records import ReleaseForm, record_key
from shoal.stream.parameters import parameters_of
from shoal.stream.partitioning import PARTITIONERS
from shoal.stream.state_mark import begun

BEATS = "|beats"  # ends the labels of clocks that go by beats
ClockIdentity = tuple[str | None, int, bool, int, bool, int]


@dataclass(frozen=True, slots=True)
class Clock:
    """One kind of event time in a topic."""

    index: int
    path: str | None  # None: the record's timestamp
    lateness: int
    drops_late: bool
    max_ahead: int
    cadences: tuple[Even, ...]  # of its metrics, the shortest first
    read_time: Reader[int] | None
    beats: bool = False  # whether it goes by beats, and by no record
    epoch: int = 0  # the number of restarts before its metrics' versions were registered

    @property
    def label(self) -> str:
        """Names the clock in the state."""
        said = f"{self.path or ''}|{self.lateness}|{'drop' if self.drops_late else 'fold'}|{self.max_ahead}"
        said = f"{said}|epoch {self.epoch}" if self.epoch else said
        return said + BEATS if self.beats else said


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric, ready to run."""

    parts: Parts
    states_lateness: bool  # whether the file says how late events are treated
    index: int  # among its topic's metrics
    clock: int
    parameters: Mechanism
    digest: str
    key: bytes = field(repr=False)
    bounder: Bounder
    unpack: Callable[[int, int], list[int]] | None  # total and samples -> a total for each of several coordinates
    pseudonym: Callable[[bytes], str]
    read_user: Reader[bytes]
    read_place: Reader[str] | None  # reads an event's group or cell; None: there is one for all
    read_value: Reader[int]  # reads a sample as a grid index; of several coordinates, packed into one
    name: str
    label: str = field(init=False)  # name and version: what the state calls it
    form: ReleaseForm = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", self.parts.label)
        object.__setattr__(self, "form", ReleaseForm(self.parts.name, stated_terms(self.parts)))

    @property
    def length(self) -> Even | None:
        """Length of a tick, step or slot; None: a release per contribution."""
        return self.parts.length

    @property
    def alone(self) -> int | None:
        """The lateness, if each tick has transactions of its own."""
        return self.parts.source.lateness if self.parts.protects_presence else None

    @property
    def is_spread(self) -> bool:
        """Whether its groups or cells are released in several contributions partitions."""
        return self.read_place is not None and not kind_of(self.parts).shared

    def accounts(self, site: Site) -> Accounts:
        """Fresh accounts, for one source partition."""
        return kind_of(self.parts).accounts(self.parts, self.bounder, site)

    def groups(self, is_home: IsHome = everywhere) -> Groups:
        """Fresh groups, for the contributions partition that `is_home` tells which groups it has."""
        return self.parameters.in_groups(self.key, is_home)


def stated_terms(parts: Parts) -> dict[str, Any]:
    """The terms that all releases of a metric state."""
    return {
        "epsilon": float(parts.budget.epsilon),
        "delta": float(parts.budget.delta),
        "unit": parts.unit.name,
        "relation": parts.hides.relation,
        "algorithm": parts.by.name,
        "version": parts.version,
    }


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
        return any(metric.length is not None for metric in self.metrics)

    @property
    def has_immediate(self) -> bool:
        """Whether any metric has a release per contribution."""
        return any(metric.length is None for metric in self.metrics)

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
        return any(metric.parts.protects_presence for metric in self.metrics)

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
    sections = config.sections_of(topic)
    parts = tuple(section.parts for section in sections)
    clocks = clocks_of(parts)
    indices = {identity: index for index, identity in enumerate(_identities(parts))}
    metrics = tuple(
        _metric(config, section, index, indices[_clock_identity(section.parts)], secret)
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
    parts = {metric.label: metric.parts for metric in metrics if metric.parts.protects_presence}
    beats = [clock + parts[label].source.lateness for label, clock in reached.items() if label in parts]
    for label in sorted(parts.keys() - reached.keys() if beats else ()):
        if (start := parts[label].start or 0) <= max(beats):
            raise FailStop(begun(where, label, start, max(beats)))


def _clock_identity(metric: Parts) -> ClockIdentity:
    source, drops, beats = metric.source, metric.source.late == "drop", metric.protects_presence
    return source.time, source.lateness, drops, source.max_ahead, beats, source.epoch


def _identities(metrics: tuple[Parts, ...]) -> dict[ClockIdentity, set[Even]]:
    """Each clock, and its metrics' cadences."""
    cadences: dict[ClockIdentity, set[Even]] = {}
    for metric in metrics:
        found = cadences.setdefault(_clock_identity(metric), set())
        if metric.length is not None:
            found.add(metric.length)
    return cadences


def clocks_of(metrics: tuple[Parts, ...]) -> tuple[Clock, ...]:
    """The clocks of metrics: those that agree share one."""
    return tuple(_clock(index, *one) for index, one in enumerate(_identities(metrics).items()))


def _clock(index: int, identity: ClockIdentity, cadences: set[Even]) -> Clock:
    path, lateness, drops, ahead, beats, epoch = identity
    read_time = None if path is None else time_reader(path)
    return Clock(index, path, lateness, drops, ahead, tuple(sorted(cadences)), read_time, beats, epoch)


def _metric(config: Config, section: MetricSection, index: int, clock: int, secret: bytes) -> Metric:
    parts = section.parts
    digest = parameters_digest(parameters_of(config, parts))
    key = metric_key(secret, parts.name, parts.version, digest)
    mechanism = statistic_of(parts)
    return Metric(
        parts=parts,
        states_lateness=bool({"late", "lateness"} & section.model_fields_set),
        index=index,
        clock=clock,
        parameters=mechanism,
        digest=digest,
        key=key,
        bounder=mechanism.bounder(),
        pseudonym=pseudonymizer(key),
        read_user=user_reader(parts.source.user),
        read_place=None if parts.place is None else cell_reader(parts.place),
        read_value=_value_reader(parts, mechanism),
        unpack=None if mechanism.packing is None else mechanism.packing.unpack,
        name=parts.name,
    )


def _value_reader(parts: Parts, mechanism: Mechanism) -> Reader[int]:
    if parts.fields is None:
        return lambda event, raw: 0
    coordinates = value_getters(parts.fields)
    if mechanism.packing is not None:
        return _packed(coordinates, mechanism)
    get, clip = coordinates[0], mechanism.grids[0].clip

    def read(event: dict[str, Any], raw: bytes) -> int | Refusal:
        value = read_value(get(event))
        return value if type(value) is Refusal else clip(value)

    return read


def _packed(coordinates: list[Callable[[dict[str, Any]], Any]], mechanism: Mechanism) -> Reader[int]:
    quantize = mechanism.quantize

    def read(event: dict[str, Any], raw: bytes) -> int | Refusal:
        values = []
        for get in coordinates:
            value = read_value(get(event))
            if type(value) is Refusal:
                return value
            values.append(value)
        return quantize(values)

    return read
