"""What each transaction writes again of what accounts hold, so that no record of the changelog is needed for long.

Names of one kind and period are a *shelf*; they stand in an order, in which names that come are the last. Of each name
some record is known that has it, as it is there or in a later record that changed it. The numbers of those records
ascend from a shelf's place on, for a name that came is later than all that the round before wrote; and they ascend up
to the place: what this round wrote. So the oldest record that is needed is the smaller of two, of the first name
and of the one at the place, on all shelves; and the names at the place are written again next. A name that comes during
a round stands in the record of its transaction, whatever the round has passed.

A transaction writes about as many bytes again as it has changed, and at least `LEAST`; in the time in which all is
written again once, as much is changed as there is. So what is needed has about twice the bytes of what there is.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from shoal.mechanisms.stores.packed import CHUNK, Logged, Packed, Runs
from shoal.stream.deltas.record import CHANGED, CLEARED, KEPT, Section

LEAST = 2_048  # bytes that a transaction writes again: about what its mark and the frames of its records have
BESIDE = 64  # bytes of a section, about, beside its entries


class Shelf:
    """The names of one kind and period: in which records they stand."""

    __slots__ = ("_ahead", "_behind", "place", "size")

    def __init__(self, runs: Runs) -> None:
        self._ahead = deque(runs)  # from the place on
        self._behind: Runs = []  # before it: written in this round
        self.place = 0  # number of the name to be written again next
        self.size = runs[-1][0] if runs else 0

    def grow(self, size: int, record: int) -> None:
        """Names came, with this record."""
        if size > self.size:
            self._ahead.append((size, record))
            self.size = size

    @property
    def oldest(self) -> int:
        """The first record that is needed for its names."""
        behind, ahead = self._behind, self._ahead
        if not ahead or (behind and behind[-1][1] <= ahead[0][1]):  # all ascends: the next round
            ahead.extendleft(reversed(behind))
            self._behind, self.place = [], 0
            return ahead[0][1]
        return min(behind[0][1], ahead[0][1]) if behind else ahead[0][1]

    def next_names(self, record: int, most: int) -> int:
        """How many of the names from the place on need no record after this one, at least one; about `most` at most."""
        end = self._ahead[0][0]
        for end_of_run, needed in self._ahead:
            if needed > record or end - self.place >= most:
                break
            end = end_of_run
        return end - self.place

    def written(self, count: int, record: int) -> None:
        """The next names were written again with this record."""
        self.place += count
        while self._ahead and self._ahead[0][0] <= self.place:
            self._ahead.popleft()
        if self._behind and self._behind[-1][1] == record:
            self._behind.pop()
        self._behind.append((self.place, record))


class Entered(NamedTuple):
    """A section, and the most bytes that it may have."""

    section: Section
    cost: int


class Rolling:
    """The shelves of one source partition."""

    def __init__(self, logged: Sequence[Logged]) -> None:
        self._logged = logged
        self._shelves: dict[tuple[int, int], Shelf] = {}  # by kind and period

    def restored(self, needed: int) -> None:
        """All was restored; no record before the one that the mark needs will be asked for again."""
        for number, one in enumerate(self._logged):
            for period in one.periods():
                runs = [(end, max(record, needed)) for end, record in one.restored(period)]
                self._shelves[number, period] = Shelf(runs)

    def take(self, record: int) -> list[Entered]:
        """The sections of the transaction that begins with this record: what changed, and what is written again."""
        entered = list(self._changes())
        self._find(record)
        room = max(LEAST, sum(one.cost for one in entered))
        return entered + self._again(record, room)

    def needed(self, record: int) -> int:
        """The first record that a successor needs, if this transaction begins with `record`."""
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
        """Note what came, and forget the shelves that are gone."""
        there = {(n, period): one.size(period) for n, one in enumerate(self._logged) for period in one.periods()}
        for gone in self._shelves.keys() - there.keys():
            del self._shelves[gone]
        for key, size in there.items():
            self._shelves.setdefault(key, Shelf([])).grow(size, record)

    def _again(self, record: int, room: int) -> list[Entered]:
        entered: list[Entered] = []
        while room > 0:
            oldest = sorted((shelf.oldest, key) for key, shelf in self._shelves.items() if shelf.size)[:2]
            if not oldest or oldest[0][0] >= record:
                break
            key = oldest[0][1]
            one, shelf = self._logged[key[0]], self._shelves[key]
            until = min(record - 1, oldest[1][0]) if oldest[1:] else record - 1
            for packed in one.pack(key[1], shelf.place, shelf.next_names(until, room), min(room, CHUNK)):
                entered.append(_entered(KEPT, one, packed))
                shelf.written(packed.names, record)
                room -= entered[-1].cost
        return entered


def _entered(kind: int, one: Logged, packed: Packed) -> Entered:
    section = Section(kind, one.tag, packed.period, one.width, packed.entries)
    return Entered(section, packed.cost + BESIDE + len(one.tag))
