"""What waits for its tick: contributions by (metric, tick, group), and which of them is due next.

Rows wait one by one; partials add up, cell by cell, whatever pieces they came in. Ticks come out in time order, their
groups in the order of their names. What is released at every step is due in ticks, too, in which nothing came.
"""

import heapq
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any, NamedTuple

import orjson

from shoal.mechanisms.statistic import PART_BITS, PART_MASK, Contribution
from shoal.models.records import Row
from shoal.stream.merged_cells import add_samples, most_cells

CANONICAL = itemgetter(0, 1, 2, 3)  # all but samples and total: unique, so that no value ever decides
CHUNK_BITS = 6  # cells of a chunk, which is one record of the changelog: a few samples do not write a whole tick again

Place = tuple[str, int]  # a group's key in messages, and a tick
ROW, CHUNK = b"w", b"p"  # first bytes of their names in the changelog


def _row_name(place: Place, row: Row) -> bytes:
    return ROW + orjson.dumps([*place, *row[:4]])


def _chunk_name(place: Place, chunk: int) -> bytes:
    return CHUNK + orjson.dumps([*place, chunk])


class Cells:
    """Count and sum of each cell of one group's tick."""

    __slots__ = ("held", "samples", "_stale", "_written")

    def __init__(self) -> None:
        self.held: dict[int, list[Any]] = {}  # cell -> [samples, total]
        self.samples: dict[int, int] = {}  # by level
        self._stale: set[int] = set()  # chunks that the changelog lacks, or has in an older state
        self._written: set[int] = set()  # those that it has in some state

    def add(self, flat: list[Any]) -> None:
        """[cell, samples, total, ...]"""
        held, stale = self.held, self._stale
        add_samples(self.samples, flat)
        parts = iter(flat)
        for cell, samples, total in zip(parts, parts, parts, strict=True):
            old = held.get(cell)
            if old is None:
                held[cell] = [samples, total]
            else:
                old[0] += samples
                old[1] = _sum(old[1], total)
            stale.add(cell >> CHUNK_BITS)

    def restore(self, chunk: int, flat: list[Any]) -> None:
        """Take over what the changelog has."""
        self.add(flat)
        self._stale.discard(chunk)
        self._written.add(chunk)

    def take_changes(self) -> Iterator[tuple[int, list[Any]]]:
        """Chunks with their cells that changed since the last call."""
        held = self.held
        for chunk in sorted(self._stale):
            flat: list[Any] = []
            first = chunk << CHUNK_BITS
            for cell in filter(held.__contains__, range(first, first + (1 << CHUNK_BITS))):
                flat.append(cell)
                flat += held[cell]
            yield chunk, flat
        self._written |= self._stale
        self._stale = set()

    @property
    def written(self) -> list[int]:
        """Chunks that the changelog has."""
        return sorted(self._written)

    def contributions(self, start: int) -> list[Contribution]:
        """Of the tick that starts then, in canonical order."""
        return [
            Contribution(start, "", cell & PART_MASK, cell >> PART_BITS, samples, total)
            for cell, (samples, total) in sorted(self.held.items())
        ]


class Due(NamedTuple):
    """One group's tick, complete."""

    tick: int
    key: str
    contributions: list[Contribution]  # in canonical order
    written: list[bytes]  # names of what the changelog may have of it


class Waiting:
    """The waiting contributions of all metrics and groups of one partition."""

    def __init__(self, parts: Mapping[str, int]) -> None:
        """`parts` says of each metric how many a level of merged samples has."""
        self.count = 0  # rows that wait, and cells: as many as the pattern allows, for values must not pace a source
        self._parts = parts
        self._rows: dict[Place, list[Row]] = {}
        self._cells: dict[Place, Cells] = {}
        self._unwritten: dict[Place, int] = {}  # index of the first row that the changelog lacks
        self._changed: dict[Place, Cells] = {}
        self._due: dict[str, list[tuple[int, str]]] = {label: [] for label in parts}  # heaps of (tick, key)

    def add(self, label: str, key: str, tick: int, rows: list[Row]) -> None:
        """Let contributions wait."""
        place = key, tick
        waiting = self._open(label, place)
        self._unwritten.setdefault(place, len(waiting))
        waiting += rows
        self.count += len(rows)

    def add_cells(self, label: str, key: str, tick: int, flat: list[Any]) -> None:
        """Add partials to those that wait: [cell, samples, total, ...]."""
        cells, parts = self._cells_of(label, key, tick), self._parts[label]
        self.count -= most_cells(cells.samples, parts)
        cells.add(flat)
        self.count += most_cells(cells.samples, parts)
        self._changed[key, tick] = cells

    def restore(self, label: str, name: bytes, value: bytes) -> None:
        """Take over what the changelog has."""
        key, tick, *rest = orjson.loads(name[1:])
        held = orjson.loads(value)
        if name.startswith(CHUNK):
            cells, parts = self._cells_of(label, key, tick), self._parts[label]
            self.count -= most_cells(cells.samples, parts)
            cells.restore(rest[0], held)
            self.count += most_cells(cells.samples, parts)
        else:
            self.add(label, key, tick, [(*rest, *held)])
            del self._unwritten[key, tick]

    def _cells_of(self, label: str, key: str, tick: int) -> Cells:
        place = key, tick
        cells = self._cells.get(place)
        if cells is None:
            self._open(label, place)
            cells = self._cells[place] = Cells()
        return cells

    def _open(self, label: str, place: Place) -> list[Row]:
        rows = self._rows.get(place)
        if rows is not None:
            return rows
        self.expect(label, *place)
        opened = self._rows[place] = []
        return opened

    def expect(self, label: str, key: str, tick: int) -> None:
        """A group's tick is due in its turn, whatever comes in it."""
        heapq.heappush(self._due[label], (tick, key))

    def take_changes(self) -> list[tuple[bytes, bytes]]:
        """For the changelog: all that still waits and is not what an earlier call gave; most closes before one."""
        changes = [
            (_row_name(place, row), orjson.dumps(row[4:]))
            for place, first in self._unwritten.items()
            for row in self._rows[place][first:]
        ]
        changes += [
            (_chunk_name(place, chunk), orjson.dumps(flat))
            for place, cells in self._changed.items()
            for chunk, flat in cells.take_changes()
        ]
        self._unwritten, self._changed = {}, {}
        return changes

    def first(self, label: str) -> int | None:
        """The metric's earliest tick in which a group is due."""
        due = self._due[label]
        return due[0][0] if due else None

    def peek(self, label: str) -> list[Contribution]:
        """The rows of the earliest tick's next group, in canonical order; they go on waiting."""
        tick, key = self._due[label][0]
        return list(map(Contribution._make, sorted(self._rows.get((key, tick), []), key=CANONICAL)))

    def _take_due(self, label: str) -> Place:
        """The earliest tick's next group, which is due no more."""
        due = self._due[label]
        first = heapq.heappop(due)
        while due and due[0] == first:  # expected, and something came
            heapq.heappop(due)
        return first[1], first[0]

    def drop(self, label: str) -> list[bytes]:
        """The earliest tick's next group has been made of its rows: names of what the changelog may have of them."""
        place = self._take_due(label)
        rows = self._rows.pop(place, [])
        self.count -= len(rows)
        return [_row_name(place, row) for row in rows[: self._unwritten.pop(place, len(rows))]]

    def pop(self, label: str, every: int) -> Due:
        """The earliest tick's next group; a tick is so long."""
        place = key, tick = self._take_due(label)
        rows, cells = self._rows.pop(place, []), self._cells.pop(place, None) or Cells()
        self._changed.pop(place, None)
        self.count -= len(rows) + most_cells(cells.samples, self._parts[label])
        written = [_row_name(place, row) for row in rows[: self._unwritten.pop(place, len(rows))]]
        written += [_chunk_name(place, chunk) for chunk in cells.written]
        rows.sort(key=CANONICAL)
        # What was merged has no pseudonym, and comes first.
        return Due(tick, key, cells.contributions(tick * every) + list(map(Contribution._make, rows)), written)


def _sum(one: Any, other: Any) -> Any:
    """Of two totals, or of two lists with one for each coordinate."""
    return one + other if type(one) is int else [a + b for a, b in zip(one, other, strict=True)]
