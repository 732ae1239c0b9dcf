"""Releases by place: lines of `shoal run`, or of the releases topic, as slots of cells.

A cell's release is a number, an object whose `mean` is shown, or null: "no release". A line that is no release is an
error, and so is a metric whose groups are no cells.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import h3

from shoal.agents.dashboard.cells import said
from shoal.agents.reading.fields import is_release
from shoal.mechanisms.spec import ADD_REMOVE
from shoal.models.errors import InputError
from shoal.models.events import Refused, parse
from shoal.models.loss_words import brief_of_release
from shoal.models.times import time_of_text


@dataclass(frozen=True)
class MapCell:
    """One release: of a cell in a slot. A value of None: no release."""

    value: float | None
    margin: float | None  # half the noise interval

    @property
    def released(self) -> bool:
        return self.value is not None


@dataclass(frozen=True)
class Places:
    """A metric's releases by slot, in order of time, and by cell."""

    metric: str
    promise: str  # epsilon and whose
    slots: dict[str, dict[str, MapCell]]  # the end of a slot as its releases write it
    lines: tuple[bytes, ...]  # the releases themselves, in order of time
    hides_presence: bool = False

    @property
    def first(self) -> str:
        """What is to be said first."""
        return said(self.hides_presence)[0]

    @property
    def absent(self) -> str:
        """What is said of a cell that has no release in a slot."""
        return said(self.hides_presence)[1]

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
    by_metric: dict[str, list[tuple[dict[str, Any], bytes]]] = {}
    for number, line in lines:
        fields = _fields(line, name, number)
        by_metric.setdefault(fields["metric"], []).append((fields, line))
    chosen = _choose({each: _is_map(fields for fields, _ in found) for each, found in by_metric.items()}, name, metric)
    newest = max(fields["version"] for fields, _ in by_metric[chosen])
    kept = [(fields, line) for fields, line in by_metric[chosen] if fields["version"] == newest]
    last = kept[-1][0]
    kept.sort(key=lambda release: time_of_text(release[0]["at"]) or 0)
    slots = _slots([fields for fields, _ in kept], name)
    return Places(chosen, _promise(last), slots, tuple(line for _, line in kept), last.get("relation") == ADD_REMOVE)


def _fields(line: bytes, name: str, number: int) -> dict[str, Any]:
    try:
        fields = parse(line)
    except Refused:
        raise InputError(f"{name}: line {number} is no JSON object; name a file of releases") from None
    if not is_release(fields):
        raise InputError(f"{name}: line {number} is no release; name a file that `shoal run` wrote")
    return fields


def _is_map(releases: Iterable[dict[str, Any]]) -> bool:
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
    """Loss that a release states; empty if it states none."""
    epsilon, unit, delta = map(fields.get, ("epsilon", "unit", "delta"))
    return brief_of_release(epsilon, delta or 0, str(unit or "unit"))


def _slots(releases: list[dict[str, Any]], name: str) -> dict[str, dict[str, MapCell]]:
    slots: dict[str, dict[str, MapCell]] = {}
    for fields in releases:
        slots.setdefault(fields["at"], {})[fields["group"]] = _cell(fields, name)
    return slots


def _cell(fields: dict[str, Any], name: str) -> MapCell:
    value, low, high = (_number(fields, part, name) for part in ("value", "low", "high"))
    return MapCell(value, None if value is None or low is None or high is None else (high - low) / 2)


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
