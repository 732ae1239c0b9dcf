"""What waits for its tick: contributions by (metric, tick, group), and which of them is due next.

Partials of a mechanism that merges become one row, whatever pieces they came in. Ticks come out in time order, their
groups in the order of their names.
"""

import heapq
from collections.abc import Iterable
from operator import itemgetter

from shoal.models.records import Row

CANONICAL = itemgetter(0, 1, 2)  # effective time, pseudonym, number: unique, so that no value ever decides


class Waiting:
    """The waiting contributions of all metrics and groups of one partition."""

    def __init__(self, labels: Iterable[str]) -> None:
        self._rows: dict[tuple[str, int], list[Row]] = {}  # (group's key, tick) -> rows
        self._ticks: dict[str, list[int]] = {label: [] for label in labels}  # heaps
        self._keys: dict[tuple[str, int], list[str]] = {}  # (label, tick) -> keys of its groups
        self.count = 0  # rows that wait
        self._closing: dict[str, int] = {}  # label -> the tick whose keys are sorted, last first

    def add(self, label: str, key: str, tick: int, row: Row, *, merges: bool) -> Row:
        """Let a contribution wait; the row that now waits: its own, or what it merged into."""
        rows = self._rows.get((key, tick))
        if rows is None:
            self._rows[key, tick] = [row]
            self.count += 1
            keys = self._keys.get((label, tick))
            if keys is None:
                self._keys[label, tick] = [key]
                heapq.heappush(self._ticks[label], tick)
            else:
                keys.append(key)
        elif merges:
            effective, _, _, level, samples, total = rows[0]
            row = rows[0] = (effective, "", 0, level, samples + row[4], total + row[5])
        else:
            rows.append(row)
            self.count += 1
        return row

    def first(self, label: str) -> int | None:
        """The metric's earliest tick with something waiting."""
        ticks = self._ticks[label]
        return ticks[0] if ticks else None

    def last(self, label: str) -> int | None:
        """The metric's latest tick with something waiting."""
        return max(self._ticks[label], default=None)

    def pop(self, label: str) -> tuple[int, str, list[Row]]:
        """The earliest tick's next group: (tick, key, rows in canonical order)."""
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
        rows.sort(key=CANONICAL)
        return tick, key, rows
