"""Releases by place: lines of `shoal run`, or of the releases topic, as slots of cells.

A cell's release is a number, an object whose `mean` is shown, or null: "no release". A line that is no release is an
error, and so is a metric whose groups are no cells.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import h3

from shoal.agents.dashboard.cells import said
from shoal.mechanisms.spec import ADD_REMOVE
from shoal.models.errors import InputError
from shoal.models.loss_words import brief_of_release
from shoal.models.releases.numbers import number
from shoal.models.releases.record import Release, Value, record_of
from shoal.models.times import iso


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
    by_metric: dict[str, list[tuple[Release, bytes]]] = {}
    for place, line in lines:
        release = record_of(line)
        if not isinstance(release, Release):
            raise InputError(f"{name}: line {place} is no release; name a file that `shoal run` wrote")
        by_metric.setdefault(release.metric, []).append((release, line))
    chosen = _choose({each: all(map(_is_cell, found)) for each, found in by_metric.items()}, name, metric)
    newest = max(release.version for release, _ in by_metric[chosen])
    kept = [(release, line) for release, line in by_metric[chosen] if release.version == newest]
    last = kept[-1][0]
    kept.sort(key=lambda found: found[0].time)
    slots: dict[str, dict[str, MapCell]] = {}
    for release, _ in kept:
        slots.setdefault(iso(release.time), {})[release.group or ""] = _cell(release, name)
    return Places(chosen, _promise(last), slots, tuple(line for _, line in kept), last.relation == ADD_REMOVE)


def _is_cell(found: tuple[Release, bytes]) -> bool:
    return bool(h3.is_valid_cell(found[0].group or ""))


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


def _promise(release: Release) -> str:
    """Loss that a release states; empty if it states none."""
    return brief_of_release(release.epsilon, release.delta, release.unit or "unit")


def _cell(release: Release, name: str) -> MapCell:
    value, low, high = (_mean(side, name) for side in (release.value, release.low, release.high))
    if isinstance(release.value, Mapping) and value is None:
        raise InputError(f"{name}: a release's value has no part `mean`: there is nothing to color")
    return MapCell(value, None if value is None or low is None or high is None else (high - low) / 2)


def _mean(side: Value, name: str) -> float | None:
    """The number of one side of a release, or its part that is a mean."""
    if isinstance(side, tuple):
        raise InputError(f"{name}: a release has several coordinates, and a map colors one; name another metric")
    return number(side.get("mean") if isinstance(side, Mapping) else side)
