"""The part `per`: one series for all records, or one series per key."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Field:
    """Keys that are the contents of a field."""

    name: str


@dataclass(frozen=True, slots=True)
class Hexagons:
    """Keys that are cells of the H3 grid."""

    resolution: int
    latitude: str  # field, in degrees
    longitude: str


@dataclass(frozen=True, slots=True)
class Public:
    """Public keys: each key that occurs is published."""


@dataclass(frozen=True, slots=True)
class Declared:
    """Keys that the configuration lists; records of all others do not count."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """Keys that are found in private, once enough units have them."""

    keys: int  # number of a unit's first keys in which it counts as a newcomer


@dataclass(frozen=True, slots=True)
class One:
    """Part `per` of a metric without keys: one series of releases for all records."""

    min_units: int = 1  # releases with fewer units are withheld; a courtesy, not a guarantee


@dataclass(frozen=True, slots=True)
class Keys:
    """Part `per` of a metric with keys: one series of releases for each key."""

    place: Field | Hexagons
    known: Public | Declared | Found
    min_units: int = 1


Per = One | Keys


def found_of(per: Per) -> Found | None:
    """The part `Found` if keys are found in private; else None."""
    return per.known if isinstance(per, Keys) and isinstance(per.known, Found) else None
