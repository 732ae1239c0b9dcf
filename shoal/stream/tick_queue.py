"""Contributions that wait for their tick, by (metric, tick, group), and which of them is due next.

Rows wait in the runs that they came in; partials add up, cell by cell, whatever pieces they came in. Ticks come out in
time order, their groups in the order of their names, and wait until they are dropped: a transaction may end before it.
"""

import heapq
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any

import orjson

from shoal.mechanisms.groups import Closed, Groups
from shoal.mechanisms.statistic import PART_BITS, PART_MASK, Contribution
from shoal.models.records import Row
from shoal.stream.contributions import add_samples, most_cells

CANONICAL = itemgetter(0, 1, 2, 3)  # all but samples and total: unique, so that no value ever decides
CHUNK_BITS = 6  # cells of a chunk, which is one record of the changelog: a few samples do not write a whole tick again

GroupTick = tuple[str, int]  # a group's key in messages, and a tick
# First bytes of their names in the changelog. A run is the rows of a group's tick from one message, so no record of the
# changelog is larger than a message; up to format 2 each row had a record of its own.
RUN, CHUNK, ROW = b"r", b"p", b"w"


def _chunk_name(group_tick: GroupTick, chunk: int) -> bytes:
    return CHUNK + orjson.dumps([*group_tick, chunk])


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


class Waiting:
    """The waiting contributions of all metrics and groups of one partition."""

    def __init__(self, parts: Mapping[str, int]) -> None:
        """`parts` says of each metric how many a level of merged samples has."""
        self.count = 0  # rows that wait, and cells: as many as the pattern allows, for values must not pace a source
        self.dropped: list[bytes] = []  # names of what waited in the changelog and waits no more
        self._parts = parts
        self._rows: dict[GroupTick, list[Row]] = {}
        self._cells: dict[GroupTick, Cells] = {}
        self._unwritten: dict[GroupTick, list[int]] = {}  # first rows of the runs that the changelog lacks
        self._written: dict[GroupTick, list[bytes]] = {}  # names of the runs, or rows, that it has
        self._changed: dict[GroupTick, Cells] = {}
        self._ticks: dict[str, list[int]] = {label: [] for label in parts}  # heaps
        self._keys: dict[tuple[str, int], set[str]] = {}  # by label and tick

    def add(self, label: str, key: str, tick: int, rows: list[Row]) -> None:
        """Let contributions wait."""
        group_tick = key, tick
        waiting = self._open(label, group_tick)
        self._unwritten.setdefault(group_tick, []).append(len(waiting))
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
            rows = held if name.startswith(RUN) else [(*rest, *held)]
            self._open(label, (key, tick)).extend(rows)
            self._written.setdefault((key, tick), []).append(name)
            self.count += len(rows)

    def _cells_of(self, label: str, key: str, tick: int) -> Cells:
        group_tick = key, tick
        cells = self._cells.get(group_tick)
        if cells is None:
            self._open(label, group_tick)
            cells = self._cells[group_tick] = Cells()
        return cells

    def _open(self, label: str, group_tick: GroupTick) -> list[Row]:
        rows = self._rows.get(group_tick)
        if rows is not None:
            return rows
        key, tick = group_tick
        if (label, tick) not in self._keys:
            self._keys[label, tick] = set()
            heapq.heappush(self._ticks[label], tick)
        self._keys[label, tick].add(key)
        opened = self._rows[group_tick] = []
        return opened

    def take_changes(self) -> list[tuple[bytes, bytes | None]]:
        """For the changelog: what waits no more, and what still does and no earlier call gave; most closes before."""
        changes: list[tuple[bytes, bytes | None]] = [(name, None) for name in self.dropped]
        changes += [run for group_tick in self._unwritten for run in self._runs(group_tick)]
        changes += [
            (_chunk_name(group_tick, chunk), orjson.dumps(flat))
            for group_tick, cells in self._changed.items()
            for chunk, flat in cells.take_changes()
        ]
        self.dropped, self._unwritten, self._changed = [], {}, {}
        return changes

    def _runs(self, group_tick: GroupTick) -> Iterator[tuple[bytes, bytes]]:
        """Those that the changelog lacks; each has its name from its first row's place among those that wait."""
        rows, firsts = self._rows[group_tick], self._unwritten[group_tick]
        begins = RUN + orjson.dumps(group_tick)[:-1]
        written = self._written.setdefault(group_tick, [])
        for first, end in zip(firsts, (*firsts[1:], len(rows)), strict=True):
            name = b"%b,%d]" % (begins, first)
            written.append(name)
            yield name, orjson.dumps(rows[first:end])

    def first(self, label: str) -> int | None:
        """The metric's earliest tick in which something came."""
        ticks = self._ticks[label]
        return ticks[0] if ticks else None

    def rows(self, label: str, tick: int, every: int) -> Iterator[tuple[str, list[Contribution]]]:
        """Group and contributions of each group in a tick of this length, in the order of names; they go on waiting."""
        for key in sorted(self._keys.get((label, tick), ())):
            rows, cells = self._rows[key, tick], self._cells.get((key, tick)) or Cells()
            waiting = map(Contribution._make, sorted(rows, key=CANONICAL))
            # What was merged has no pseudonym, and comes first.
            yield key[len(label) + 1 :], [*cells.contributions(tick * every), *waiting]

    def drop(self, label: str, tick: int, group: str | None = None) -> int:
        """What waits of a group, or of the whole tick, has been used; of how many groups that was."""
        keys = self._keys.get((label, tick), set())
        used = sorted(keys) if group is None else [key for key in (f"{label}|{group}",) if key in keys]
        self.dropped += [name for key in used for name in self._forget(label, (key, tick))]
        keys.difference_update(used)
        if used and not keys:
            del self._keys[label, tick]
            heapq.heappop(self._ticks[label])  # ticks are used up in their order
        return len(used)

    def _forget(self, label: str, group_tick: GroupTick) -> list[bytes]:
        rows, cells = self._rows.pop(group_tick), self._cells.pop(group_tick, None) or Cells()
        self._changed.pop(group_tick, None)
        self.count -= len(rows) + most_cells(cells.samples, self._parts[label])
        self._unwritten.pop(group_tick, None)
        return self._written.pop(group_tick, []) + [_chunk_name(group_tick, chunk) for chunk in cells.written]


class Closing:
    """The ticks of one metric, closed one after the other, group by group.

    A closing may take seconds. What waits for a tick is dropped as it is used, so that a transaction may end between
    two groups; what several groups are made of waits until the last one is, and the state says which was made so far.
    """

    def __init__(self, label: str, every: int, groups: Groups, waiting: Waiting, *, alone: int | None = None) -> None:
        """`alone`: the lateness of a clock that goes by beats, where each tick has transactions of its own."""
        self.reached: tuple[int, str] | None = None  # tick and group that was made of what others are made of, too
        self._label, self._every, self._groups, self._waiting = label, every, groups, waiting
        self._alone = alone
        self._open: tuple[int, Iterator[Closed | None]] | None = None

    @property
    def is_open(self) -> bool:
        """Whether a tick is being closed."""
        return self._open is not None

    def due(self) -> int | None:
        """The earliest tick in which a group is to be released."""
        ticks = self._waiting.first(self._label), self._groups.due()
        return min((tick for tick in ticks if tick is not None), default=None)

    def go_on(self, clock: int | None) -> tuple[int, Closed | None] | None:
        """End of the tick, and its next group if one is ready; None: no tick has ended by the clock."""
        while opened := self._open or self._begin(clock):
            tick, closing = opened
            end = (tick + 1) * self._every
            for closed in closing:
                if closed is not None:
                    self._use(tick, closed)
                return end, closed
            self._open = None
            if self._waiting.drop(self._label, tick) or self._alone is not None:
                return end, None
        return None

    @property
    def rank(self) -> int:
        """The beat that makes its tick due, where ticks stand alone: several metrics' are closed in this order.

        How many are due at once depends on load; in this order they are closed however many that are.
        """
        tick = self.due() if self._open is None else self._open[0]
        return 0 if self._alone is None or tick is None else (tick + 1) * self._every + self._alone

    def is_due(self, clock: int | None) -> bool:
        """Whether a tick is being closed, or has ended by the clock."""
        return self.is_open or self._ended(clock) is not None

    def _ended(self, clock: int | None) -> int | None:
        tick = self.due()
        return None if tick is None or clock is None or (tick + 1) * self._every > clock else tick

    def _begin(self, clock: int | None) -> tuple[int, Iterator[Closed | None]] | None:
        tick = self._ended(clock)
        if tick is None:
            return None
        before, group = self.reached or (None, None)
        rows = self._waiting.rows(self._label, tick, self._every)
        self._open = tick, self._groups.close(tick, rows, group if before == tick else None)
        return self._open

    def _use(self, tick: int, closed: Closed) -> None:
        if closed.is_part:
            self.reached = tick, closed.group
        else:
            self._waiting.drop(self._label, tick, closed.group)


def _sum(one: Any, other: Any) -> Any:
    """Of two totals, or of two lists with one for each coordinate."""
    return one + other if type(one) is int else [a + b for a, b in zip(one, other, strict=True)]
