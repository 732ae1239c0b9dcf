"""Intake of slot statistics: each user's samples of the open slots, kept until their slot is over.

Of a unit's samples at most `max_contributions` count in each cell, and only in its first `max_slots` slots. With
`across_cells = "split"` a unit's first `max_cells` cells of a slot count; else release leaves it out of cells, of its
first 4,096 or so. All of it is decided by pattern alone.

    slot books    per user: cells, and samples sent or kept, of the slot. Gone when the slot is over
    unit books    per user: slots; per user and cell: samples. Where a slot is the unit, its own book says it all
    kept samples  per slot and user, in order of arrival. They go when the clock passes the slot or the partition falls
                  idle, under the user's pseudonym, or when there are so many that a transaction would become large;
                  what has been sent is dropped from the changelog

An event whose own time lies in another unit (or, where a slot is the unit, in another slot) than the one it would count
in is late, even where late events are folded: a unit's values move the releases of its own slots, and no others.
Proof: docs/proofs/units.md
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import orjson

from shoal.mechanisms.statistic import COUNT_BITS, COUNT_MASK, new_block
from shoal.models.cells import ANYWHERE
from shoal.models.events import MAX_NAME_BYTES, Refused
from shoal.stream.accounts import PERIOD_BYTES, Books, Changes
from shoal.stream.contributions import SAMPLE_BYTES, Outlet
from shoal.stream.event_time import Progress
from shoal.stream.intake import Intake
from shoal.stream.topic import Metric, TopicPlan

MOST_CELLS = 4096  # of a unit in a slot, of which release chooses: it takes a time that grows with their square
KEPT_SAMPLES = 100_000  # of a slot, at most, after a transaction
PIECE_BYTES = 100_000  # of one contribution or changelog record, about: a user may have more than one record can carry
BESIDE = SAMPLE_BYTES + 3  # a name's quotes and comma
LARGEST = 6 * MAX_NAME_BYTES + BESIDE
ONE_CELL = 1 << COUNT_BITS  # of a slot's account: cells << COUNT_BITS | samples


class Kept:
    """Samples that are to be sent, of one slot."""

    __slots__ = ("cells", "count", "fresh", "samples", "written")

    def __init__(self) -> None:
        self.samples: dict[bytes, list[Any]] = {}  # user -> [number of the first], then cell, value, cell, value, ...
        self.fresh: dict[bytes, int] = {}  # user -> place in that list, from where on the changelog lacks it
        self.written: list[bytes] = []  # names of records in the changelog
        self.cells: dict[str, str] = {}  # names of cells, each once in memory
        self.count = 0  # of samples


class SlotIntake(Intake):
    """Units user-slot, user-<period> and user."""

    def __init__(
        self, plan: TopicPlan, metric: Metric, partition: int, outlet: Outlet, counters: Counter[str],
        progress: Progress, *, checks: bool,
    ) -> None:  # fmt: skip
        super().__init__(plan, metric, partition, outlet, counters, checks=checks)
        section = metric.section
        self._progress = progress
        self._slot = section.slot or 1
        self._unit = section.of.period
        self._most_slots = section.slot_limit
        self._most_cells = (
            section.cell_limit if section.across_cells == "split" else max(MOST_CELLS, section.cell_limit)
        )
        self._slots = Books(self._slot)
        self._units = None if self._unit == self._slot else Books(self._unit)
        self._kept: dict[int, Kept] = {}
        self._tombstones: Changes = []

    def take_in(self, event: dict[str, Any], raw: bytes, effective: int) -> None:
        """Read the metric's sample and keep it, if its unit may have one more there.

        Raises:
            Refused: the metric cannot use the record; nothing was touched.
        """
        user, cell, value = self._read(event, raw)
        cell = cell or ANYWHERE
        slot = effective // self._slot
        self._check_unit(effective)
        accounts, name = self._slots.of(slot).accounts, len(user).to_bytes(2, "big") + user
        if self._checks and name not in accounts and not self._is_home(user):
            raise Refused("wrong-partition")
        if self._admit_sample(effective, slot, name, cell.encode()):
            self._keep(slot, user, accounts[name] & COUNT_MASK, cell, value)

    def _check_unit(self, effective: int) -> None:
        """An event's own unit is the one in which it counts."""
        unit = self._unit
        if unit is not None and self._progress.time // unit != effective // unit:
            raise Refused("late")

    def _is_home(self, user: bytes) -> bool:
        return self._plan.partition_of(user, self._plan.source_partitions) == self._partition

    def _admit_sample(self, effective: int, slot: int, name: bytes, cell: bytes) -> bool:
        """Whether a sample counts; if so it has been counted."""
        book = self._slots.of(slot)
        account, place = book.accounts.get(name), name + b"/" + cell
        here = book.accounts.get(place, 0)
        is_new_slot, is_new_cell = account is None, not here
        unit = None if self._units is None else self._units.forever or self._units.of(effective // (self._unit or 1))
        count = here if unit is None else unit.accounts.get(place, 0)
        if count >= self._cap:
            self._counters["over_cap"] += 1
            return False
        if unit is not None and is_new_slot and unit.accounts.get(name, 0) >= self._most_slots:
            self._counters["slots_left_out"] += 1
            return False
        if is_new_cell and (account or 0) // ONE_CELL >= self._most_cells:
            self._counters["cells_left_out"] += 1
            return False
        if unit is not None:
            unit.accounts[place] = unit.touched[place] = count + 1
            if is_new_slot:
                unit.accounts[name] = unit.touched[name] = unit.accounts.get(name, 0) + 1
        book.accounts[place] = book.touched[place] = here + 1
        account = (account or 0) + 1 + (ONE_CELL if is_new_cell else 0)
        book.accounts[name] = book.touched[name] = account
        return True

    def _keep(self, slot: int, user: bytes, number: int, cell: str, value: int) -> None:
        """A user's sample of this number in the slot waits for the slot's end."""
        kept = self._kept.get(slot)
        if kept is None:
            kept = self._kept[slot] = Kept()
        samples = kept.samples.get(user)
        if samples is None:
            samples = kept.samples[user] = [number]
        kept.fresh.setdefault(user, len(samples))
        samples += kept.cells.setdefault(cell, cell), value
        kept.count += 1

    # ---------------------------------------------------------------- out

    def flush(self, promise: int | None, *, idle: bool) -> None:
        """Send the samples of the slots that end by the promise, or have many; if the partition is idle, all."""
        for slot in sorted(self._kept):
            is_over = promise is not None and (slot + 1) * self._slot <= promise
            if idle or is_over or self._kept[slot].count > KEPT_SAMPLES:
                self._send_slot(slot, self._kept.pop(slot))

    def _send_slot(self, slot: int, kept: Kept) -> None:
        self._tombstones += [(name, None) for name in kept.written]
        for user, samples in kept.samples.items():
            for number, part in _pieces(samples, 1):
                cells: dict[str, list[int]] = {}
                for cell, value in zip(part[::2], part[1::2], strict=True):
                    cells.setdefault(cell, []).append(value)
                self._send(None, slot * self._slot, user, new_block((number, 0, len(part) // 2, cells, None)))

    # ---------------------------------------------------------------- state

    @property
    def sizes(self) -> list[int]:
        """How many records of slot and of unit books, and of kept samples, the changelog holds."""
        units = 0 if self._units is None else self._units.sizes[0]
        return [self._slots.sizes[0], units, sum(len(kept.written) for kept in self._kept.values())]

    def restored(self) -> None:
        """Sort what the changelog has by slots and units."""
        self._slots.restore(self.accounts, {})
        if self._units is not None:
            if self._units.forever is not None:
                self._units.forever.accounts.update(self.groups)
            else:
                self._units.restore(self.groups, {})
        for name in sorted(self.samples):  # by slot, number and user
            self._restore_samples(name, orjson.loads(self.samples[name]))
        self.samples.clear()

    def _restore_samples(self, name: bytes, flat: list[Any]) -> None:
        slot = int.from_bytes(name[:PERIOD_BYTES], "big", signed=True)
        number = int.from_bytes(name[PERIOD_BYTES : PERIOD_BYTES + 4], "big")
        user = name[PERIOD_BYTES + 4 :]
        for cell, value in zip(flat[::2], flat[1::2], strict=True):
            self._keep(slot, user, number, cell, value)
        kept = self._kept[slot]
        kept.written.append(self.samples_tag + name)
        kept.fresh.pop(user)

    def count(self, user: bytes, group: str | None) -> int | None:
        """Samples of a user in the latest open slot, of one cell or of all together."""
        name = len(user).to_bytes(2, "big") + user
        account = self._slots.newest(name if group is None else name + b"/" + group.encode())
        return None if account is None else account & COUNT_MASK

    def take_changes(self) -> Changes:
        """Changelog records of what changed since the last call; what was sent is dropped."""
        changes, self._tombstones = self._tombstones, []
        changes += self._slots.take_changes(self.tag, b"")
        if self._units is not None:
            changes += self._units.take_changes(self.groups_tag, b"")
        for slot, kept in self._kept.items():
            before = self.samples_tag + slot.to_bytes(PERIOD_BYTES, "big", signed=True)
            for user, place in kept.fresh.items():
                for number, part in _pieces(kept.samples[user], place):
                    name = before + number.to_bytes(4, "big") + user
                    kept.written.append(name)
                    changes.append((name, orjson.dumps(part)))
            kept.fresh = {}
        return changes

    def close(self, promise: int | None) -> None:
        """Slots and units that end by then are over."""
        if promise is not None:
            for books in self._all:
                books.close(promise)

    def drop(self, most: int) -> Changes:
        """Some of what belongs to slots and units that are over."""
        dropped = self._slots.drop(self.tag, b"", most)
        if self._units is not None:
            dropped += self._units.drop(self.groups_tag, b"", most - len(dropped))
        return dropped

    def forget_changes(self) -> None:
        """Nobody asks for them."""
        self._tombstones = []
        for books in self._all:
            books.forget_changes()
        for kept in self._kept.values():
            kept.fresh = {}

    def forget_closed(self) -> None:
        """There is no changelog."""
        for books in self._all:
            books.forget_closed()

    @property
    def _all(self) -> list[Books]:
        return [self._slots] if self._units is None else [self._slots, self._units]


def _pieces(samples: list[Any], place: int) -> Iterator[tuple[int, list[Any]]]:
    """A user's samples from a place on, cut so that each piece fits into a record: number of its first, and the piece.

    By the cells' names alone, which JSON may write six times as long; a name stands beside each of its samples.

    >>> [piece for piece in _pieces([7, "a", 5, "b", 6], 1)]
    [(7, ['a', 5, 'b', 6])]
    """
    if (len(samples) - place) // 2 * LARGEST <= PIECE_BYTES:  # nearly always
        yield samples[0] + (place - 1) // 2, samples[place:]
        return
    begin, size = place, 0
    for end in range(place, len(samples), 2):
        cost = 6 * len(samples[end]) + BESIDE
        if size and size + cost > PIECE_BYTES:
            yield samples[0] + (begin - 1) // 2, samples[begin:end]
            begin, size = end, 0
        size += cost
    yield samples[0] + (begin - 1) // 2, samples[begin:]
