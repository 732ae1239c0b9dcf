"""What waits for its tick: contributions by (metric, tick, group), and which of them is due next.

Partials of one part and level become one row, whatever pieces they came in. Ticks come out in time order, their groups
in the order of their names.
"""

import heapq
from collections.abc import Iterable
from operator import itemgetter
from typing import Any

from shoal.models.records import Row

CANONICAL = itemgetter(0, 1, 2, 3)  # all but samples and total: unique, so that no value ever decides

Place = tuple[str, int]  # a group's key in messages, and a tick
Part = tuple[int, int]  # part and level of merged partials


class Waiting:
    """The waiting contributions of all metrics and groups of one partition."""

    def __init__(self, labels: Iterable[str]) -> None:
        self.count = 0  # rows that wait
        self._rows: dict[Place, list[Row]] = {}
        self._unwritten: dict[Place, int] = {}  # index of the first row that the changelog lacks
        self._parts: dict[Place, dict[Part, int]] = {}  # index of each merged row
        self._stale: dict[Place, set[int]] = {}  # indices of merged rows that the changelog has in an older state
        self._ticks: dict[str, list[int]] = {label: [] for label in labels}  # heaps
        self._keys: dict[tuple[str, int], list[str]] = {}  # (label, tick) -> keys of its groups
        self._closing: dict[str, int] = {}  # label -> the tick whose keys are sorted, last first

    def add(self, label: str, key: str, tick: int, rows: list[Row], *, merges: bool) -> None:
        """Let contributions wait, or what they merge into."""
        place = key, tick
        waiting = self._rows.get(place)
        if waiting is None:
            waiting = self._open(label, place)
        before = len(waiting)
        if merges:
            self._merge(place, waiting, rows)
        else:
            waiting += rows
        self.count += len(waiting) - before
        self._unwritten.setdefault(place, before)

    def _merge(self, place: Place, waiting: list[Row], rows: list[Row]) -> None:
        parts = self._parts.setdefault(place, {})
        written = self._unwritten.get(place, len(waiting))
        for row in rows:
            effective, pseudonym, number, level, samples, total = row
            index = len(waiting) if pseudonym else parts.setdefault((number, level), len(waiting))
            if index == len(waiting):
                waiting.append(row)
                continue
            old = waiting[index]
            waiting[index] = old[0], "", number, level, old[4] + samples, _sum(old[5], total)
            if index < written:
                self._stale.setdefault(place, set()).add(index)

    def _open(self, label: str, place: Place) -> list[Row]:
        key, tick = place
        keys = self._keys.get((label, tick))
        if keys is None:
            self._keys[label, tick] = [key]
            heapq.heappush(self._ticks[label], tick)
        else:
            keys.append(key)
        opened = self._rows[key, tick] = []
        return opened

    def take_changes(self) -> list[tuple[str, int, Row]]:
        """(key, tick, row) of all that still waits and was not in an earlier call: most rows close before one."""
        changes = [(*place, row) for place, first in self._unwritten.items() for row in self._rows[place][first:]]
        changes += [(*place, self._rows[place][i]) for place, stale in self._stale.items() for i in sorted(stale)]
        self._unwritten, self._stale = {}, {}
        return changes

    def first(self, label: str) -> int | None:
        """The metric's earliest tick with something waiting."""
        ticks = self._ticks[label]
        return ticks[0] if ticks else None

    def last(self, label: str) -> int | None:
        """The metric's latest tick with something waiting."""
        return max(self._ticks[label], default=None)

    def pop(self, label: str) -> tuple[int, str, list[Row], list[Row]]:
        """The earliest tick's next group: (tick, key, rows in canonical order, those the changelog may have)."""
        tick = self._ticks[label][0]
        keys = self._keys[label, tick]
        if self._closing.get(label) != tick:
            self._closing[label] = tick
            keys.sort(reverse=True)
        key = keys.pop()
        if not keys:
            heapq.heappop(self._ticks[label])
            del self._keys[label, tick]
            del self._closing[label]
        rows = self._rows.pop((key, tick))
        self.count -= len(rows)
        written = rows[: self._unwritten.pop((key, tick), len(rows))]
        self._parts.pop((key, tick), None)
        self._stale.pop((key, tick), None)
        rows.sort(key=CANONICAL)
        return tick, key, rows, written


def _sum(one: Any, other: Any) -> Any:
    """Of two totals, or of two lists with one for each coordinate."""
    return one + other if type(one) is int else [a + b for a, b in zip(one, other, strict=True)]
