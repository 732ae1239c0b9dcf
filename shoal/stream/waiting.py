"""What waits for its tick: contributions by (metric, tick, group), and which of them is due next.

Partials of a mechanism that merges become one row, whatever pieces they came in. Ticks come out in time order, their
groups in the order of their names.
"""

import heapq
from collections.abc import Iterable
from operator import itemgetter

from shoal.models.records import Row

CANONICAL = itemgetter(0, 1, 2)  # effective time, pseudonym, number: unique, so that no value ever decides


Place = tuple[str, int]  # a group's key in messages, and a tick


class Waiting:
    """The waiting contributions of all metrics and groups of one partition."""

    def __init__(self, labels: Iterable[str]) -> None:
        self.count = 0  # rows that wait
        self._rows: dict[Place, list[Row]] = {}
        self._unwritten: dict[Place, int] = {}  # index of the first row that the changelog lacks
        self._ticks: dict[str, list[int]] = {label: [] for label in labels}  # heaps
        self._keys: dict[tuple[str, int], list[str]] = {}  # (label, tick) -> keys of its groups
        self._closing: dict[str, int] = {}  # label -> the tick whose keys are sorted, last first

    def add(self, label: str, key: str, tick: int, rows: list[Row], *, merges: bool) -> None:
        """Let contributions wait, or what they merge into."""
        waiting = self._rows.get((key, tick))
        if waiting is None:
            waiting = self._open(label, key, tick)
        before = len(waiting)
        waiting += rows
        if merges:
            waiting[:] = [_merged(waiting)]
        self.count += len(waiting) - before
        self._unwritten.setdefault((key, tick), 0 if merges else before)

    def _open(self, label: str, key: str, tick: int) -> list[Row]:
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
        changes = [
            (key, tick, row) for (key, tick), first in self._unwritten.items() for row in self._rows[key, tick][first:]
        ]
        self._unwritten = {}
        return changes

    def first(self, label: str) -> int | None:
        """The metric's earliest tick with something waiting."""
        ticks = self._ticks[label]
        return ticks[0] if ticks else None

    def last(self, label: str) -> int | None:
        """The metric's latest tick with something waiting."""
        return max(self._ticks[label], default=None)

    def pop(self, label: str, *, merges: bool) -> tuple[int, str, list[Row], list[Row]]:
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
        unwritten = self._unwritten.pop((key, tick), len(rows))
        written = rows[: len(rows) if merges else unwritten]
        rows.sort(key=CANONICAL)
        return tick, key, rows, written


def _merged(rows: list[Row]) -> Row:
    effective, _, _, level, _, _ = rows[0]
    return effective, "", 0, level, sum(row[4] for row in rows), sum(row[5] for row in rows)
