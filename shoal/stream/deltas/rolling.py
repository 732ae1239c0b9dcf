"""Chooses what each transaction writes again of the accounts, so that no record of the changelog is needed for long.

The names of one kind in one period are a *shelf*. They have an order, in which a new name is the last, and a *place*:
the position up to which the present round has written them again. For each name a record is known that has it; what the
name holds is in that record, or in a later one that changed it. From the place on the numbers of these records ascend,
because the round before wrote the names in this order, and names that are new since then came after it. Before the
place they ascend, too, as the present round wrote them. So the oldest record that a shelf needs is that of its first
name or that of the name at its place. The names written next are those at the place of the shelf that needs the oldest
record of all. A new name is in the record of its own transaction, however far the round has come.

A transaction writes about as many bytes again as it changes, and at least `LEAST`. So while one round writes everything
once, about as many bytes of changes are written between, and the part of the log that is needed has about twice the
bytes of what the accounts hold.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from shoal.mechanisms.stores.packed import CHUNK, Logged, Packed, Runs
from shoal.stream.deltas.record import CHANGED, CLEARED, KEPT, Section

LEAST = 2_048  # bytes that a transaction writes again at least: about as many as its mark and frames of records take
BESIDE = 64  # bytes of a section, approximately, without its entries


class Shelf:
    """The names of one kind in one period, as runs: the names up to an end, and the record that has them."""

    __slots__ = ("_ahead", "_behind", "place", "size")

    def __init__(self, runs: Runs) -> None:
        self._ahead = deque(runs)  # runs of names from the place on
        self._behind: Runs = []  # runs of names before it, which this round has written
        self.place = 0  # position of the name to be written again next
        self.size = runs[-1][0] if runs else 0

    def grow(self, size: int, record: int) -> None:
        """Note that names came with this record, and how many names there now are."""
        if size > self.size:
            self._ahead.append((size, record))
            self.size = size

    @property
    def oldest(self) -> int:
        """The first record that is needed for its names; begins the next round where this one is over."""
        behind, ahead = self._behind, self._ahead
        if not ahead or (behind and behind[-1][1] <= ahead[0][1]):  # all records ascend: begin the next round
            ahead.extendleft(reversed(behind))
            self._behind, self.place = [], 0
            return ahead[0][1]
        return min(behind[0][1], ahead[0][1]) if behind else ahead[0][1]

    def next_names(self, record: int, most: int) -> int:
        """How many names from the place on to write: those that are in records up to this one, about `most` at most.

        At least the first run, whatever its record.
        """
        end = self._ahead[0][0]
        for end_of_run, needed in self._ahead:
            if needed > record or end - self.place >= most:
                break
            end = end_of_run
        return end - self.place

    def written(self, count: int, record: int) -> None:
        """Note that this many names from the place on were written again, with this record."""
        self.place += count
        while self._ahead and self._ahead[0][0] <= self.place:
            self._ahead.popleft()
        if self._behind and self._behind[-1][1] == record:
            self._behind.pop()
        self._behind.append((self.place, record))


class Entered(NamedTuple):
    """A section, and its cost: the most bytes that it could have, whatever the values."""

    section: Section
    cost: int


class Rolling:
    """The shelves of one source partition."""

    def __init__(self, logged: Sequence[Logged]) -> None:
        self._logged = logged
        self._shelves: dict[tuple[int, int], Shelf] = {}  # by kind and period

    def restored(self, needed: int) -> None:
        """Complete the restoration; `needed` is the first record that the mark needs, and older ones may be gone."""
        for number, one in enumerate(self._logged):
            for period in one.periods():
                runs = [(end, max(record, needed)) for end, record in one.restored(period)]
                self._shelves[number, period] = Shelf(runs)

    def take(self, record: int) -> list[Entered]:
        """The sections of the transaction that begins with this record: changes, then what is written again."""
        entered = list(self._changes())
        self._find(record)
        room = max(LEAST, sum(one.cost for one in entered))
        return entered + self._again(record, room)

    def needed(self, record: int) -> int:
        """The first record that a successor needs after the transaction that begins with `record`."""
        return min((shelf.oldest for shelf in self._shelves.values() if shelf.size), default=record)

    def _changes(self) -> Iterator[Entered]:
        for number, one in enumerate(self._logged):
            for period in one.cleared():
                self._shelves.pop((number, period), None)
                yield Entered(Section(CLEARED, one.tag, period), BESIDE)
        for one in self._logged:
            for packed in one.changed():
                yield _entered(CHANGED, one, packed)

    def _find(self, record: int) -> None:
        """Note names that came, and forget shelves whose period is closed."""
        there = {(n, period): one.size(period) for n, one in enumerate(self._logged) for period in one.periods()}
        for gone in self._shelves.keys() - there.keys():
            del self._shelves[gone]
        for key, size in there.items():
            self._shelves.setdefault(key, Shelf([])).grow(size, record)

    def _again(self, record: int, room: int) -> list[Entered]:
        """Names to write again, those in the oldest records first, until they cost about as much as there is room."""
        entered: list[Entered] = []
        oldest = [(shelf.oldest, key) for key, shelf in self._shelves.items() if shelf.size]
        heapify(oldest)  # there may be thousands of periods, of which each is a shelf
        while room > 0 and oldest and oldest[0][0] < record:
            _, key = heappop(oldest)
            one, shelf = self._logged[key[0]], self._shelves[key]
            until = min(record - 1, oldest[0][0]) if oldest else record - 1
            for packed in one.pack(key[1], shelf.place, shelf.next_names(until, room), min(room, CHUNK)):
                entered.append(_entered(KEPT, one, packed))
                shelf.written(packed.names, record)
                room -= entered[-1].cost
            heappush(oldest, (shelf.oldest, key))
        return entered


def _entered(kind: int, one: Logged, packed: Packed) -> Entered:
    section = Section(kind, one.tag, packed.period, one.width, packed.entries)
    return Entered(section, packed.cost + BESIDE + len(one.tag))
