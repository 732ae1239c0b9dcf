"""The part `hides`: relation, unit of privacy and limits of one unit."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from shoal.mechanisms.parts.unit import Unit

Across = Literal["chop-user", "clip-user", "split"]


@dataclass(frozen=True, slots=True)
class PerKey:
    """At most `samples` samples of a unit in each of at most `keys` keys, which share epsilon."""

    samples: int
    keys: int


@dataclass(frozen=True, slots=True)
class Overall:
    """At most `samples` samples of a unit over all of at most `keys` keys."""

    samples: int
    keys: int


@dataclass(frozen=True, slots=True)
class PerCell:
    """At most `samples` samples of a unit in each of at most `cells` cells of at most `slots` slots."""

    samples: int
    cells: int
    slots: int
    across: Across  # how a unit is limited to `cells`


@dataclass(frozen=True, slots=True)
class Events:
    """Limits of unit event: one sample per unit, and at most `of_a_user` events of a user; None: any number."""

    of_a_user: int | None

    @property
    def samples(self) -> int:
        """Number of samples of a single event: 1."""
        return 1

    @property
    def keys(self) -> int:
        """Number of keys of a single event: 1."""
        return 1


Limits = PerKey | Overall | PerCell | Events


@dataclass(frozen=True, slots=True)
class ValuesOf:
    """Relation values: neighbours differ in the values of one unit; who contributes when and where is public."""

    relation: ClassVar[str] = "values"
    unit: Unit
    limits: Limits


@dataclass(frozen=True, slots=True)
class AddRemove:
    """Relation add-remove: of two neighbours one has all records of a unit and the other has none."""

    relation: ClassVar[str] = "add-remove"
    unit: Unit
    limits: Limits
    start: int  # microseconds since the Unix epoch at which the first step or slot begins
    end: int | None  # end of the last step or slot; None: never


Hides = ValuesOf | AddRemove
