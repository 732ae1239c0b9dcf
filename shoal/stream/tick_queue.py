"""Contributions that wait for their tick, by (metric, tick, group), and which tick is closed next.

Rows wait in the runs in which they came; partials are added up, cell by cell. Ticks are closed in the order of time,
and their groups in the order of names. What waits is dropped only after its use: a transaction may end in between.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

import orjson

from shoal.mechanisms.groups import Closed, Groups
from shoal.mechanisms.parts.lengths import Even
from shoal.mechanisms.statistic import PART_BITS, PART_MASK, Contribution
from shoal.models.json_bytes import json_of_each
from shoal.models.records import Row
from shoal.stream.contributions import TIME, add_samples, most_cells

# A contribution from its six fields, in a third of the time.
new_contribution: Callable[[Iterable[Any]], Contribution] = partial(tuple.__new__, Contribution)
CANONICAL = itemgetter(0, 1, 2, 3)  # all but samples and total: they are unique, so that no value decides the order
CELL = itemgetter(0)
Of = TypeVar("Of")
FIRST_CHUNK = (0,)  # alone, as with most groups
CHUNK_BITS = 6  # a chunk, one record of the changelog, has 2**6 cells, so that few samples do not write a whole tick

# The first bytes of names in the changelog. A run has the rows that one message has for a group's tick, so no record of
# the changelog is larger than a message.
RUN, CHUNK = b"r", b"p"


class Cells:
    """Count and sum of each cell of one group's tick; the cells of a single message are kept as they came."""

    __slots__ = ("most", "_flat", "_held", "_samples", "_stale", "_written")

    def __init__(self) -> None:
        self.most = 0  # the most cells that this many samples can fill
        self._flat: list[Any] = []  # [cell, samples, total, ...] of the first message; empty once there was another
        self._held: dict[int, list[Any]] | None = None  # cell -> [samples, total]
        self._samples: dict[int, int] | None = None  # by level
        # Sets of chunks, as bits: those of which the changelog lacks the present state, and those that it has in any.
        self._stale = self._written = 0

    def add(self, flat: list[Any], parts: int) -> None:
        """Add [cell, samples, total, ...]; `parts` is the number of parts that a level of the metric has."""
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
        """All cells by number; from now on they are kept like that."""
        if self._held is None:
            self._held = {cell: [samples, total] for cell, samples, total in _triples(self._flat)}
            if self._samples is None:
                self._samples = {}
                add_samples(self._samples, self._flat)
            self._flat = []
        return self._held

    def restore(self, chunk: int, flat: list[Any], parts: int) -> None:
        """Restore a chunk from the changelog."""
        self.add(flat, parts)
        self._stale &= ~(1 << chunk)
        self._written |= 1 << chunk

    def take_changes(self) -> Iterator[tuple[int, list[Any]]]:
        """The chunks that changed since the last call, each with all of its cells."""
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
    def written(self) -> Sequence[int]:
        """Chunks that the changelog has."""
        return FIRST_CHUNK if self._written == 1 else tuple(_numbers(self._written))

    def contributions(self, start: int) -> list[Contribution]:
        """The contributions of all cells, in canonical order; the tick starts at `start`."""
        triples = _triples(self._flat) if self._held is None else ((cell, *held) for cell, held in self._held.items())
        return [
            new_contribution((start, "", cell & PART_MASK, cell >> PART_BITS, samples, total))
            for cell, samples, total in sorted(triples, key=CELL)
        ]


NOTHING: list[Any] = []  # shared by all piles that have no such list; never changed


class Pile:
    """The contributions of one group that wait for one tick."""

    __slots__ = ("cells", "key", "names", "rows", "tick", "unwritten")

    def __init__(self, key: str, tick: int) -> None:
        self.key, self.tick = key, tick
        self.rows: list[Row] = NOTHING
        self.unwritten: list[int] = NOTHING  # indices of the first rows of runs that the changelog lacks
        self.names: list[bytes] = NOTHING  # names of the runs, or rows, that the changelog has
        self.cells: Cells | None = None

    @property
    def count(self) -> int:
        """The number of rows, plus the most cells that the samples can fill."""
        return len(self.rows) + (self.cells.most if self.cells else 0)

    def contributions(self, start: int) -> list[Contribution]:
        """All contributions in canonical order; merged ones have no pseudonym, and come first."""
        rows = self.rows
        if len(rows) > 1:  # rarely do two have the same time: then it alone decides the order, in half the time
            alone = len(set(map(TIME, rows))) == len(rows)
            rows = sorted(rows, key=TIME if alone else CANONICAL)
        waiting = list(map(new_contribution, rows))
        return self.cells.contributions(start) + waiting if self.cells else waiting


class Gone(NamedTuple):
    """What the changelog has of a pile that waits no more."""

    key: str
    tick: int
    names: Sequence[bytes]  # of runs, or rows
    chunks: Sequence[int]


class Waiting:
    """The waiting contributions of all metrics and groups of one partition."""

    def __init__(self, parts: Mapping[str, int]) -> None:
        """`parts`: the number of parts that a level of merged samples has, by metric."""
        self.count = 0  # rows, plus the most cells that samples can fill: values must not decide when a source pauses
        self._gone: list[Gone] = []  # that the changelog has and that waits no longer
        self._parts = parts
        self._piles: dict[str, dict[int, dict[str, Pile]]] = {label: {} for label in parts}  # by label, tick and key
        self._ticks: dict[str, list[int]] = {label: [] for label in parts}  # heaps
        self._with_runs: dict[Pile, None] = {}  # piles with runs that the changelog lacks
        self._with_cells: dict[Pile, None] = {}  # piles whose cells changed

    def add(self, label: str, key: str, tick: int, rows: list[Row]) -> None:
        """Add contributions to those that wait."""
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
        """Restore a record of the changelog."""
        key, tick, *rest = orjson.loads(name[1:])
        held, pile = orjson.loads(value), self._pile(label, key, tick)
        self.count -= pile.count
        if name.startswith(CHUNK):
            pile.cells = pile.cells or Cells()
            pile.cells.restore(rest[0], held, self._parts[label])
        else:
            pile.rows = _joined(pile.rows, held)
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
        """The changelog's entries since the last call: tombstones of what waits no longer, and what is new and waits.

        Most contributions are used before the transaction ends, and are never written.
        """
        changes: list[tuple[bytes, bytes | None]] = [(name, None) for name in self.dropped]
        changes += self._take_runs()
        chunks = [(pile, *change) for pile in self._with_cells if pile.cells for change in pile.cells.take_changes()]
        names = map(CHUNK.__add__, json_of_each([(pile.key, pile.tick, chunk) for pile, chunk, _ in chunks]))
        changes += zip(names, json_of_each([flat for *_, flat in chunks]), strict=True)
        self._gone, self._with_cells = [], {}
        return changes

    @property
    def dropped(self) -> list[bytes]:
        """Names of what waited in the changelog and waits no more; those of chunks are made by one call."""
        chunks = iter(json_of_each([(one.key, one.tick, chunk) for one in self._gone for chunk in one.chunks]))
        names: list[bytes] = []
        for one in self._gone:
            names += one.names
            names += map(CHUNK.__add__, islice(chunks, len(one.chunks)))
        return names

    @property
    def has_dropped(self) -> bool:
        """Whether the changelog has something that waits no more."""
        return bool(self._gone)

    def forget_dropped(self) -> None:
        """Note nothing of what waits no more, for there is no changelog."""
        self._gone.clear()

    def _take_runs(self) -> Iterable[tuple[bytes, bytes]]:
        """The runs that the changelog lacks; a run is named by the index of its first row in its pile."""
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
        """The metric's earliest tick for which something waits."""
        ticks = self._ticks[label]
        return ticks[0] if ticks else None

    def rows(self, label: str, tick: int, start: int) -> Iterator[tuple[str, list[Contribution]]]:
        """(group, contributions) of each group in a tick that begins at `start`, by name; they still wait."""
        piles, begins = self._piles[label].get(tick, {}), len(label) + 1
        for key in sorted(piles):
            yield key[begins:], piles[key].contributions(start)

    def drop(self, label: str, tick: int, group: str | None = None) -> int:
        """Drop what waits for a tick, of one group or of all, since it was used; return the number of groups."""
        piles = self._piles[label].get(tick)
        if piles is None:
            return 0
        before = len(piles)
        if group is None:
            for key in sorted(piles):
                self._forget(piles.pop(key))
        elif (pile := piles.pop(f"{label}|{group}", None)) is not None:
            self._forget(pile)
        if not piles:
            del self._piles[label][tick]
            heapq.heappop(self._ticks[label])  # ticks are used up in their order
        return before - len(piles)

    def _forget(self, pile: Pile) -> None:
        self.count -= pile.count
        chunks = pile.cells.written if pile.cells is not None else ()
        if pile.names or chunks:
            self._gone.append(Gone(pile.key, pile.tick, pile.names, chunks))
        if pile.unwritten:
            del self._with_runs[pile]
        if pile.cells is not None:
            self._with_cells.pop(pile, None)


class Closing:
    """Closes the ticks of one metric, one after the other, group by group.

    That may take seconds. What waits for a tick is dropped as it is used, so that a transaction may end between two
    groups. Contributions that several groups are made of wait until the last of these is made, and the state says which
    groups have been made so far.
    """

    def __init__(self, label: str, length: Even, groups: Groups, waiting: Waiting, *, alone: int | None = None) -> None:
        """`alone`: the clock's lateness if it goes by beats, so that each tick has transactions of its own."""
        self.reached: tuple[int, str] | None = None  # tick, and last group made of contributions that it shares
        self._label, self._length, self._groups, self._waiting = label, length, groups, waiting
        self._alone = alone
        self._open: tuple[int, Iterator[Closed | None]] | None = None

    @property
    def is_open(self) -> bool:
        """Whether a tick is being closed."""
        return self._open is not None

    def due(self) -> int | None:
        """The earliest tick in which a group may be released."""
        ticks = self._waiting.first(self._label), self._groups.due()
        return min((tick for tick in ticks if tick is not None), default=None)

    def go_on(self, clock: int | None) -> tuple[int, Closed | None] | None:
        """The end of the tick that is being closed, and its next group if one is ready; None if no tick has ended."""
        while opened := self._open or self._begin(clock):
            tick, closing = opened
            end = self._length.end(tick)
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
        """The beat that makes its tick due, if ticks have transactions of their own; else 0.

        Metrics are closed in the order of their ranks. How many are due at once depends on load; their order does not.
        """
        tick = self.due() if self._open is None else self._open[0]
        return 0 if self._alone is None or tick is None else self._length.end(tick) + self._alone

    def is_due(self, clock: int | None) -> bool:
        """Whether a tick is being closed, or has ended by the clock."""
        return self.is_open or self._ended(clock) is not None

    def _ended(self, clock: int | None) -> int | None:
        tick = self.due()
        return None if tick is None or clock is None or self._length.end(tick) > clock else tick

    def _begin(self, clock: int | None) -> tuple[int, Iterator[Closed | None]] | None:
        tick = self._ended(clock)
        if tick is None:
            return None
        before, group = self.reached or (None, None)
        rows = self._waiting.rows(self._label, tick, self._length.start(tick))
        self._open = tick, self._groups.close(tick, rows, group if before == tick else None)
        return self._open

    def _use(self, tick: int, closed: Closed) -> None:
        if closed.is_part:
            self.reached = tick, closed.group
        else:
            self._waiting.drop(self._label, tick, closed.group)


def _sum(one: Any, other: Any) -> Any:
    """The sum of two totals, or of two lists with a total for each coordinate."""
    return one + other if type(one) is int else [a + b for a, b in zip(one, other, strict=True)]


def _joined(held: list[Of], more: list[Of]) -> list[Of]:
    """Both lists in one: the first, extended, or the second itself if the first is empty."""
    if not held:
        return more
    held += more
    return held


def _triples(flat: list[Any]) -> Iterator[tuple[int, int, Any]]:
    """Cell, samples and total of each cell in [cell, samples, total, ...]."""
    parts = iter(flat)
    return zip(parts, parts, parts, strict=True)


def _numbers(bits: int) -> Iterator[int]:
    """The numbers of the bits that are set, the lowest first.

    >>> list(_numbers(0b1011))
    [0, 1, 3]
    """
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
