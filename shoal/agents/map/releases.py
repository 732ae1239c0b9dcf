"""Releases by place: lines of `shoal run`, or of the releases topic, as slots of cells.

A cell's release is a number, an object whose `mean` is shown, or null: "no release". A line that is no release is an
error, and so is a metric whose groups are no cells.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import h3

from shoal.agents.map import ABSENT, ABSENT_OF_PRESENCE, FIRST, FIRST_OF_PRESENCE
from shoal.mechanisms.spec import ADD_REMOVE
from shoal.models.errors import InputError
from shoal.models.events import Refused, parse
from shoal.models.times import time_of_text


@dataclass(frozen=True)
class MapCell:
    """One release: of a cell in a slot. A value of None: no release."""

    value: float | None
    margin: float | None  # half the noise interval
    error: float | None  # expected at worst, where it is known
    samples: int
    users: int | None

    @property
    def released(self) -> bool:
        return self.value is not None


@dataclass(frozen=True)
class Places:
    """A metric's releases by slot, in order of time, and by cell."""

    metric: str
    promise: str  # epsilon and whose
    slots: dict[str, dict[str, MapCell]]  # the end of a slot as its releases write it
    hides_presence: bool = False  # and so numbers of samples have noise

    @property
    def first(self) -> str:
        """What is to be said first."""
        return FIRST_OF_PRESENCE if self.hides_presence else FIRST

    @property
    def absent(self) -> str:
        """What is said of a cell that has no release in a slot."""
        return ABSENT_OF_PRESENCE if self.hides_presence else ABSENT

    @property
    def cells(self) -> list[str]:
        return sorted({cell for slot in self.slots.values() for cell in slot})

    @property
    def fullest(self) -> str:
        """The slot with the most numbers; of several the last."""
        return max(self.slots, key=lambda at: (sum(cell.released for cell in self.slots[at].values()), at))

    def released(self) -> Iterator[MapCell]:
        return (cell for slot in self.slots.values() for cell in slot.values() if cell.released)


def read_places(lines: Iterable[tuple[int, bytes]], name: str, metric: str | None = None) -> Places:
    """The releases of one metric; without its name, of the only one that can be drawn.

    Raises:
        InputError: there is none, there are several, or a line is no release. `name` is the input's.
    """
    by_metric: dict[str, list[dict[str, Any]]] = {}
    for number, line in lines:
        fields = _fields(line, name, number)
        by_metric.setdefault(fields["metric"], []).append(fields)
    chosen = _choose({each: _is_map(releases) for each, releases in by_metric.items()}, name, metric)
    newest = max(release.get("version", 1) for release in by_metric[chosen])
    releases = [release for release in by_metric[chosen] if release.get("version", 1) == newest]
    hides_presence = releases[-1].get("relation") == ADD_REMOVE
    return Places(chosen, _promise(releases[-1]), _slots(releases, name), hides_presence)


def _fields(line: bytes, name: str, number: int) -> dict[str, Any]:
    try:
        fields = parse(line)
    except Refused:
        raise InputError(f"{name}: line {number} is no JSON object; name a file of releases") from None
    timed = isinstance(fields.get("at"), str) and time_of_text(fields["at"]) is not None
    if not (timed and isinstance(fields.get("metric"), str) and {"group", "value"} <= fields.keys()):
        raise InputError(f"{name}: line {number} is no release; name a file that `shoal run` wrote")
    return fields


def _is_map(releases: list[dict[str, Any]]) -> bool:
    return all(isinstance(release["group"], str) and h3.is_valid_cell(release["group"]) for release in releases)


def _choose(maps: dict[str, bool], name: str, metric: str | None) -> str:
    possible = sorted(each for each, is_map in maps.items() if is_map)
    if metric is None:
        if len(possible) == 1:
            return possible[0]
        if possible:
            raise InputError(f"{name}: {len(possible)} metrics are by H3 cell; name one: --metric {possible[0]}")
        if not maps:
            raise InputError(f"{name}: there is no release in it; name a file that `shoal run` wrote")
        raise InputError(f"{name}: no metric here is by H3 cell; that takes `cell = {{ h3 = 8, ... }}` in the metric")
    if metric not in maps:
        raise InputError(f"{name}: no release of metric {metric!r}; there are: {', '.join(sorted(maps)) or 'none'}")
    if not maps[metric]:
        raise InputError(f"{name}: metric {metric!r} is not by H3 cell: its groups cannot be drawn")
    return metric


def _promise(fields: dict[str, Any]) -> str:
    epsilon, unit, delta = map(fields.get, ("epsilon", "unit", "delta"))
    if epsilon is None:
        return ""
    return f"epsilon {epsilon}" + (f", delta {delta}" if delta else "") + (f" per {unit}" if unit else "")


def _slots(releases: list[dict[str, Any]], name: str) -> dict[str, dict[str, MapCell]]:
    slots: dict[str, dict[str, MapCell]] = {}
    for fields in sorted(releases, key=lambda release: time_of_text(release["at"]) or 0):
        slots.setdefault(fields["at"], {})[fields["group"]] = _cell(fields, name)
    return slots


def _cell(fields: dict[str, Any], name: str) -> MapCell:
    samples, users = map(fields.get, ("samples", "users"))
    value, low, high, error = (_number(fields, part, name) for part in ("value", "low", "high", "error"))
    margin = None if value is None or low is None or high is None else (high - low) / 2
    about = _number(fields, "count", name)  # where presence is protected, there is no other number
    return MapCell(value, margin, error, max(0, round(about)) if about else _count(samples) or 0, _count(users))


def _count(number: Any) -> int | None:
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def _number(fields: dict[str, Any], part: str, name: str) -> float | None:
    number = fields.get(part)
    if isinstance(number, dict):
        number = number.get("mean")
        if number is None and part == "value":
            raise InputError(f"{name}: a release's value has no part `mean`: there is nothing to color")
    if number is None:
        return None
    if isinstance(number, list):
        raise InputError(f"{name}: a release's {part} has several coordinates: there is no one number to color")
    if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
        raise InputError(f"{name}: a release's {part} is no number; name a file that `shoal run` wrote")
    return float(number)
