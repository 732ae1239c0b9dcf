"""Contributions that wait for their tick, by (metric, tick, group), and which of them is due next.

Rows wait in the runs that they came in; partials add up, cell by cell, whatever pieces they came in. Ticks come out in
time order, their groups in the order of their names, and wait until they are dropped: a transaction may end before it.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from operator import itemgetter
from typing import Any, TypeVar

import orjson

from shoal.mechanisms.groups import Closed, Groups
from shoal.mechanisms.statistic import PART_BITS, PART_MASK, Contribution
from shoal.models.json_bytes import json_of_each
from shoal.models.records import Row
from shoal.stream.contributions import add_samples, most_cells

# A contribution from its six fields, in a third of the time.
new_contribution: Callable[[Iterable[Any]], Contribution] = partial(tuple.__new__, Contribution)
CANONICAL = itemgetter(0, 1, 2, 3)  # all but samples and total: unique, so that no value ever decides
CELL = itemgetter(0)
Of = TypeVar("Of")
CHUNK_BITS = 6  # cells of a chunk, which is one record of the changelog: a few samples do not write a whole tick again

# First bytes of their names in the changelog. A run is the rows of a group's tick from one message, so no record of the
# changelog is larger than a message; up to format 2 each row had a record of its own.
RUN, CHUNK, ROW = b"r", b"p", b"w"


class Cells:
    """Count and sum of each cell of one group's tick; those of one message, which is what most have, as they came."""

    __slots__ = ("most", "_flat", "_held", "_samples", "_stale", "_written")

    def __init__(self) -> None:
        self.most = 0  # cells that their samples can fill
        self._flat: list[Any] = []  # [cell, samples, total, ...] of one message; empty once there was another
        self._held: dict[int, list[Any]] | None = None  # cell -> [samples, total]
        self._samples: dict[int, int] | None = None  # by level
        # Sets of chunks, as bits: those that the changelog lacks or has in an older state, and those in some state.
        self._stale = self._written = 0

    def add(self, flat: list[Any], parts: int) -> None:
        """[cell, samples, total, ...], of a metric that has so many parts of a level."""
        cells = flat[::3]
        for cell in cells:
            self._stale |= 1 << (cell >> CHUNK_BITS)
        if self._held is None and not self._flat and len(set(cells)) == len(cells):
            self._flat = flat
        else:
            self._add(flat)
        if len(flat) == 3 and self._flat:
            self.most = min(flat[1], parts)
            return
        samples = self._samples = self._samples or {}
        add_samples(samples, flat)
        self.most = most_cells(samples, parts)

    def _add(self, flat: list[Any]) -> None:
        held = self._by_cell()
        parts = iter(flat)
        for cell, samples, total in zip(parts, parts, parts, strict=True):
            old = held.get(cell)
            if old is None:
                held[cell] = [samples, total]
            else:
                old[0] += samples
                old[1] = _sum(old[1], total)

    def _by_cell(self) -> dict[int, list[Any]]:
        """All cells, and from now on one by one."""
        if self._held is None:
            self._held = {cell: [samples, total] for cell, samples, total in _triples(self._flat)}
            if self._samples is None:
                self._samples = {}
                add_samples(self._samples, self._flat)
            self._flat = []
        return self._held

    def restore(self, chunk: int, flat: list[Any], parts: int) -> None:
        """Take over what the changelog has."""
        self.add(flat, parts)
        self._stale &= ~(1 << chunk)
        self._written |= 1 << chunk

    def take_changes(self) -> Iterator[tuple[int, list[Any]]]:
        """Chunks with their cells that changed since the last call."""
        stale, self._stale = self._stale, 0
        self._written |= stale
        if self._flat and stale & (stale - 1) == 0:
            yield stale.bit_length() - 1, [number for cell in sorted(_triples(self._flat), key=CELL) for number in cell]
            return
        held = self._by_cell()
        for chunk in _numbers(stale):
            flat: list[Any] = []
            first = chunk << CHUNK_BITS
            for cell in filter(held.__contains__, range(first, first + (1 << CHUNK_BITS))):
                flat.append(cell)
                flat += held[cell]
            yield chunk, flat

    @property
    def written(self) -> Iterator[int]:
        """Chunks that the changelog has."""
        return _numbers(self._written)

    def contributions(self, start: int) -> list[Contribution]:
        """Of the tick that starts then, in canonical order."""
        triples = _triples(self._flat) if self._held is None else ((cell, *held) for cell, held in self._held.items())
        return [
            new_contribution((start, "", cell & PART_MASK, cell >> PART_BITS, samples, total))
            for cell, samples, total in sorted(triples, key=CELL)
        ]


NOTHING: list[Any] = []  # never changed: one list for all piles that have none


class Pile:
    """What waits of one group for one tick."""

    __slots__ = ("cells", "key", "names", "rows", "tick", "unwritten")

    def __init__(self, key: str, tick: int) -> None:
        self.key, self.tick = key, tick
        self.rows: list[Row] = NOTHING
        self.unwritten: list[int] = NOTHING  # first rows of the runs that the changelog lacks
        self.names: list[bytes] = NOTHING  # of the runs, or rows, that it has
        self.cells: Cells | None = None

    @property
    def count(self) -> int:
        """Rows, and as many cells as the pattern allows."""
        return len(self.rows) + (self.cells.most if self.cells else 0)

    def contributions(self, start: int) -> list[Contribution]:
        """All, in canonical order; what was merged has no pseudonym, and comes first."""
        rows = self.rows if len(self.rows) < 2 else sorted(self.rows, key=CANONICAL)
        waiting = [new_contribution(row) for row in rows]
        return self.cells.contributions(start) + waiting if self.cells else waiting


class Waiting:
    """The waiting contributions of all metrics and groups of one partition."""

    def __init__(self, parts: Mapping[str, int]) -> None:
        """`parts` says of each metric how many a level of merged samples has."""
        self.count = 0  # rows that wait, and cells: as many as the pattern allows, for values must not pace a source
        self.dropped: list[bytes] = []  # names of what waited in the changelog and waits no more
        self._parts = parts
        self._piles: dict[str, dict[int, dict[str, Pile]]] = {label: {} for label in parts}  # by label, tick and key
        self._ticks: dict[str, list[int]] = {label: [] for label in parts}  # heaps
        self._with_runs: dict[Pile, None] = {}  # that have runs which the changelog lacks
        self._with_cells: dict[Pile, None] = {}  # whose cells changed

    def add(self, label: str, key: str, tick: int, rows: list[Row]) -> None:
        """Let contributions wait."""
        pile = self._pile(label, key, tick)
        pile.unwritten = _joined(pile.unwritten, [len(pile.rows)])
        pile.rows = _joined(pile.rows, rows)
        self._with_runs[pile] = None
        self.count += len(rows)

    def add_cells(self, label: str, key: str, tick: int, flat: list[Any]) -> None:
        """Add partials to those that wait: [cell, samples, total, ...]."""
        pile = self._pile(label, key, tick)
        cells = pile.cells = pile.cells or Cells()
        before = cells.most
        cells.add(flat, self._parts[label])
        self.count += cells.most - before
        self._with_cells[pile] = None

    def restore(self, label: str, name: bytes, value: bytes) -> None:
        """Take over what the changelog has."""
        key, tick, *rest = orjson.loads(name[1:])
        held, pile = orjson.loads(value), self._pile(label, key, tick)
        self.count -= pile.count
        if name.startswith(CHUNK):
            pile.cells = pile.cells or Cells()
            pile.cells.restore(rest[0], held, self._parts[label])
        else:
            pile.rows = _joined(pile.rows, held if name.startswith(RUN) else [(*rest, *held)])
            pile.names = _joined(pile.names, [name])
        self.count += pile.count

    def _pile(self, label: str, key: str, tick: int) -> Pile:
        piles = self._piles[label].get(tick)
        if piles is None:
            piles = self._piles[label][tick] = {}
            heapq.heappush(self._ticks[label], tick)
        pile = piles.get(key)
        if pile is None:
            pile = piles[key] = Pile(key, tick)
        return pile

    def take_changes(self) -> list[tuple[bytes, bytes | None]]:
        """For the changelog: what waits no more, and what still does and no earlier call gave; most closes before."""
        changes: list[tuple[bytes, bytes | None]] = [(name, None) for name in self.dropped]
        changes += self._take_runs()
        chunks = [(pile, *change) for pile in self._with_cells if pile.cells for change in pile.cells.take_changes()]
        names = map(CHUNK.__add__, json_of_each([(pile.key, pile.tick, chunk) for pile, chunk, _ in chunks]))
        changes += zip(names, json_of_each([flat for *_, flat in chunks]), strict=True)
        self.dropped, self._with_cells = [], {}
        return changes

    def _take_runs(self) -> Iterable[tuple[bytes, bytes]]:
        """Those that the changelog lacks; each has its name from its first row's place among those that wait."""
        places: list[tuple[str, int, int]] = []
        runs: list[Sequence[Row]] = []
        for pile in self._with_runs:
            firsts, rows = pile.unwritten, pile.rows
            places += [(pile.key, pile.tick, first) for first in firsts]
            runs += [rows[first:end] for first, end in zip(firsts, (*firsts[1:], len(rows)), strict=True)]
        names = [RUN + name for name in json_of_each(places)]
        mine = iter(names)
        for pile in self._with_runs:
            pile.names = _joined(pile.names, list(islice(mine, len(pile.unwritten))))
            pile.unwritten = NOTHING
        self._with_runs = {}
        return zip(names, json_of_each(runs, depth=2), strict=True)

    def first(self, label: str) -> int | None:
        """The metric's earliest tick in which something came."""
        ticks = self._ticks[label]
        return ticks[0] if ticks else None

    def rows(self, label: str, tick: int, every: int) -> Iterator[tuple[str, list[Contribution]]]:
        """Group and contributions of each group in a tick of this length, in the order of names; they go on waiting."""
        piles, start, begins = self._piles[label].get(tick, {}), tick * every, len(label) + 1
        for key in sorted(piles):
            yield key[begins:], piles[key].contributions(start)

    def drop(self, label: str, tick: int, group: str | None = None) -> int:
        """What waits of a group, or of the whole tick, has been used; of how many groups that was."""
        piles = self._piles[label].get(tick, {})
        used = sorted(piles) if group is None else [key for key in (f"{label}|{group}",) if key in piles]
        for key in used:
            self._forget(piles.pop(key))
        if used and not piles:
            del self._piles[label][tick]
            heapq.heappop(self._ticks[label])  # ticks are used up in their order
        return len(used)

    def _forget(self, pile: Pile) -> None:
        self.count -= pile.count
        self.dropped += pile.names
        if pile.unwritten:
            del self._with_runs[pile]
        if pile.cells is not None:
            self._with_cells.pop(pile, None)
            self.dropped += [CHUNK + orjson.dumps([pile.key, pile.tick, chunk]) for chunk in pile.cells.written]


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


def _joined(held: list[Of], more: list[Of]) -> list[Of]:
    """What is held and more, in the list that is held if there is one; else in that of the others."""
    if not held:
        return more
    held += more
    return held


def _triples(flat: list[Any]) -> Iterator[tuple[int, int, Any]]:
    """Cell, samples and total of each cell in [cell, samples, total, ...]."""
    parts = iter(flat)
    return zip(parts, parts, parts, strict=True)


def _numbers(bits: int) -> Iterator[int]:
    """The bits that are set, from below.

    >>> list(_numbers(0b1011))
    [0, 1, 3]
    """
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
