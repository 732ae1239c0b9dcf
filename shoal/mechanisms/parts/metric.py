"""Class `Metric`: the seven parts of a metric."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from shoal.mechanisms.parts.at import At, EachContribution
from shoal.mechanisms.parts.by import Algorithm
from shoal.mechanisms.parts.expect import expect
from shoal.mechanisms.parts.hides import AddRemove, Hides, PerCell, PerKey
from shoal.mechanisms.parts.lengths import Even
from shoal.mechanisms.parts.of import Fields, Of, Range, WithoutValues
from shoal.mechanisms.parts.per import Field, Hexagons, Keys, Per, found_of
from shoal.mechanisms.parts.unit import Unit


@dataclass(frozen=True, slots=True)
class Source:
    """The records that are read, and when a record counts; durations in microseconds."""

    topic: str
    user: str  # field with the user id
    time: str | None  # field with the event time; None: the record's timestamp
    lateness: int  # behind the watermark at which an event still keeps its own time
    late: Literal["fold", "drop"]  # what happens to later events
    max_ahead: int  # microseconds by which an event time may be ahead of its record's timestamp
    epoch: int = 0  # restarts of the topic's clocks before the version was registered


@dataclass(frozen=True, slots=True)
class Budget:
    """Privacy budget: epsilon and delta of a unit over all releases, and the shares of epsilon by purpose."""

    epsilon: Fraction
    delta: Fraction
    select: Fraction = Fraction(0)  # for finding keys
    clip: Fraction = Fraction(0)  # for choosing the range
    crossing: Fraction = Fraction(0)  # for deciding when enough units have come to choose the range

    @property
    def left(self) -> Fraction:
        """Epsilon left for the noise of releases, after the other shares."""
        return self.epsilon - self.select - self.clip - self.crossing


@dataclass(frozen=True, slots=True)
class Metric:
    """One private statistic of one topic."""

    name: str
    version: int
    source: Source
    of: Of
    per: Per
    at: At
    hides: Hides
    by: Algorithm
    budget: Budget

    @property
    def statistic(self) -> str:
        """Name of the statistic in configurations."""
        return self.of.name

    @property
    def label(self) -> str:
        """Name and version, as changelog keys and checkpoints have them: NAME/VERSION."""
        return f"{self.name}/{self.version}"

    @property
    def protects_presence(self) -> bool:
        """Whether the metric's relation is add-remove."""
        return isinstance(self.hides, AddRemove)

    @property
    def length(self) -> Even | None:
        """Length of a tick, step or slot; None for a release per contribution."""
        return None if isinstance(self.at, EachContribution) else self.at.length

    @property
    def every(self) -> Even:
        """Length of a tick, step or slot.

        Raises:
            TypeError: the metric has a release per contribution.
        """
        return expect(self.length, Even)

    @property
    def start(self) -> int | None:
        """When the first step or slot begins, in microseconds since the Unix epoch; None under relation values."""
        return self.hides.start if isinstance(self.hides, AddRemove) else None

    @property
    def end(self) -> int | None:
        """When the last step or slot ends; None: never, or under relation values."""
        return self.hides.end if isinstance(self.hides, AddRemove) else None

    @property
    def place(self) -> Field | Hexagons | None:
        """Where the keys of events are read from; None if there is one series for all."""
        return self.per.place if isinstance(self.per, Keys) else None

    @property
    def unit(self) -> Unit:
        """Unit of privacy: whose data one guarantee covers."""
        return self.hides.unit

    @property
    def samples(self) -> int:
        """Most samples of a unit that count: in each key, in each cell, or over all keys, as its limits say."""
        return self.hides.limits.samples

    @property
    def cap_key(self) -> str:
        """The key of configurations that sets `samples`."""
        has_own = isinstance(self.per, Keys) and isinstance(self.hides.limits, PerKey | PerCell)
        return "max_per_group" if has_own else "max_contributions"

    @property
    def finds_keys(self) -> bool:
        """Whether keys that nobody declared are found in private."""
        return found_of(self.per) is not None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coordinates; empty without values."""
        return () if self.fields is None else self.fields.names

    @property
    def protected(self) -> tuple[str, ...]:
        """The fields of the event whose contents are protected."""
        return () if self.fields is None else self.fields.protected

    @property
    def numeric(self) -> tuple[str, ...]:
        """The protected fields that must hold numbers."""
        return () if self.fields is None else self.fields.numeric

    @property
    def ranges(self) -> tuple[Range, ...]:
        """The range of each coordinate; none of a count."""
        return () if isinstance(self.of, WithoutValues) else self.of.values.ranges

    @property
    def pattern(self) -> dict[str, str]:
        """Public fields of the event (user, time, group or coordinates), by role."""
        found = {"user": self.source.user, "time": self.source.time}
        match self.place:
            case Field(name):
                found |= {"group": name}
            case Hexagons(_, latitude, longitude):
                found |= {"latitude": latitude, "longitude": longitude}
        return {role: path for role, path in found.items() if path is not None}

    @property
    def fields(self) -> Fields | None:
        """Fields of the event that a sample is read from; None if it has none."""
        return self.of.fields if isinstance(self.of, WithoutValues) else self.of.values.fields
