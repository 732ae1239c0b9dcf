"""Accounts of slot statistics: each user's samples of the open slots, kept until their slot is over.

Of a unit's samples at most `max_contributions` count in each cell, and only in its first `max_slots` slots. With
`across_cells = "split"` a unit's first `max_groups` cells of a slot count; else release leaves it out of cells, of its
first 4,096 or so. All of it is decided by pattern alone.

    slots         per user: cells, and samples sent or kept, of the slot. Gone when the slot is over
    units         per user: slots; per user and cell: samples. Where a slot is the unit, the slot's account says it all
    kept samples  per slot and user, in order of arrival. They go when the clock passes the slot or the partition falls
                  idle, under the user's pseudonym, or when there are so many that a transaction would become large;
                  what has been sent is dropped from the changelog

An event whose own time lies in another unit (or, where a slot is the unit, in another slot) than the one it would count
in is late, even where late events are folded: a unit's values move the releases of its own slots, and no others.
Proof: docs/proofs/units.md
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import orjson

from shoal.mechanisms.accounts import (
    ACCOUNT_BYTES,
    ONE_MEMBER,
    Accounts,
    Holding,
    RecordKind,
    Site,
    WhyNotCounted,
)
from shoal.mechanisms.parts.lengths import Even
from shoal.mechanisms.slot.samples import Samples
from shoal.mechanisms.statistic import COUNT_MASK, new_block
from shoal.mechanisms.stores.packed import CHUNK, Logged, Packed, Runs, length, unpack

ANYWHERE = ""  # the cell of what has neither coordinates nor a group
MOST_CELLS = 4096  # of a unit in a slot, of which release chooses: it takes a time that grows with their square
KEPT_SAMPLES = 100_000  # of a slot, at most, after a transaction
PIECE_BYTES = 100_000  # of one contribution or changelog record, about: a user may have more than one record can carry
NUMBER_BYTES = 4
BESIDE = 14  # bytes beside a cell's name: of each coordinate of its sample, at most 2**32, of quotes and commas
LARGEST = 6 * 256 + BESIDE  # of a sample with its cell, whose name has 256 bytes at most, as JSON may write them


@dataclass(frozen=True, slots=True)
class Rule:
    """The limits by which a sample of a slot counts."""

    max_contributions: int  # of a unit in a cell
    slot: Even
    unit: Even | None  # its period; None: for ever
    max_slots: int  # of a unit
    max_groups: int  # of a unit in a slot
    splits: bool  # epsilon by max_groups; otherwise release leaves units out of cells
    coordinates: int = 1  # of a sample

    @property
    def most_cells(self) -> int:
        """The number of cells in which a unit's samples are sent."""
        return self.max_groups if self.splits else max(MOST_CELLS, self.max_groups)


class Kept:
    """The samples of one slot that wait to be sent."""

    __slots__ = ("cells", "count", "fresh", "is_logged", "samples")

    def __init__(self) -> None:
        self.samples: dict[bytes, list[Any]] = {}  # user -> [number of the first], then cell, value, cell, value, ...
        self.fresh: dict[bytes, int] = {}  # user -> place in that list, from where on the changelog lacks it
        self.is_logged = False  # whether the changelog has any of them
        self.cells: dict[str, str] = {}  # names of cells, each once in memory
        self.count = 0  # of samples


class SlotAccounts(Accounts):
    """Accounts of the units user-slot, user-<period> and user."""

    def __init__(self, rule: Rule, site: Site) -> None:
        self._rule, self._site, self._most_cells = rule, site, rule.most_cells
        self._packing = Samples(rule.coordinates) if rule.coordinates > 1 else None
        self._slots = site.periods(rule.slot, RecordKind(site.tag(b"a"), ACCOUNT_BYTES))
        self._units = None
        if rule.unit != rule.slot:
            self._units = site.periods(rule.unit, RecordKind(site.tag(b"g"), ACCOUNT_BYTES))
        super().__init__(self._slots, *([] if self._units is None else [self._units]))
        self._samples_tag = site.tag(b"s")
        self._again: dict[int, dict[bytes, dict[int, tuple[str, Any]]]] = {}  # by slot, user, number: restored so far
        self._kept: dict[int, Kept] = {}
        self._sent: list[int] = []  # slots of whose samples the changelog has some, which are sent

    def add(self, user: bytes, group: str | None, value: int, time: int, effective: int) -> WhyNotCounted | None:
        rule, cell = self._rule, group or ANYWHERE
        if rule.unit is not None and rule.unit.index(time) != rule.unit.index(effective):
            return "late"
        name = len(user).to_bytes(2, "big") + user
        (accounts,) = self._slots.of(effective)
        if name not in accounts.held and not self._site.is_home(user):
            return "wrong-partition"
        out = self._admit(effective, name, name + b"/" + cell.encode())
        if out is None:
            sample = value if self._packing is None else self._packing.listed(value)
            self._keep(rule.slot.index(effective), user, accounts.held[name] & COUNT_MASK, cell, sample)
        return out

    def _admit(self, effective: int, name: bytes, place: bytes) -> WhyNotCounted | None:
        """Count a user's sample in a cell, whose names `place` joins, or return why it does not count."""
        rule, (slot,) = self._rule, self._slots.of(effective)
        unit = None if self._units is None else self._units.of(effective)[0]
        account, here = slot.get(name), slot.get(place, 0)
        count = here if unit is None else unit.get(place, 0)
        if count >= rule.max_contributions:
            return "over_cap"
        if unit is not None and account is None and unit.get(name, 0) >= rule.max_slots:
            return "slots_left_out"
        if not here and (account or 0) // ONE_MEMBER >= self._most_cells:
            return "cells_left_out"
        if unit is not None:
            unit.put(place, count + 1)
            if account is None:
                unit.put(name, unit.get(name, 0) + 1)
        slot.put(place, here + 1)
        slot.put(name, (account or 0) + 1 + (0 if here else ONE_MEMBER))
        return None

    def _keep(self, slot: int, user: bytes, number: int, cell: str, value: Any) -> None:
        """Keep a user's sample, with its number in the slot, until the slot's end."""
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
        """Send the samples of slots that end by the promise or hold many; if the partition is idle, all of them."""
        for slot in sorted(self._kept):
            is_over = promise is not None and self._rule.slot.end(slot) <= promise
            if idle or is_over or self._kept[slot].count > KEPT_SAMPLES:
                self._send_slot(slot, self._kept.pop(slot))

    def _send_slot(self, slot: int, kept: Kept) -> None:
        if kept.is_logged:
            self._sent.append(slot)
        for user, samples in kept.samples.items():
            for number, part in _pieces(samples, 1, self._rule.coordinates):
                cells: dict[str, list[Any]] = {}
                for cell, value in zip(part[::2], part[1::2], strict=True):
                    cells.setdefault(cell, []).append(value)
                block = new_block((number, 0, len(part) // 2, cells, None))
                self._site.send(None, self._rule.slot.start(slot), user, block)

    # ---------------------------------------------------------------- state

    @property
    def sizes(self) -> list[int]:
        """The numbers of names of slots and of units, and of kept samples."""
        units = [0] if self._units is None else self._units.sizes
        return [*self._slots.sizes, *units, sum(kept.count for kept in self._kept.values())]

    @property
    def logged(self) -> list[Logged]:
        return [*super().logged, _LoggedSamples(self, self._samples_tag)]

    def restore_samples(self, slot: int, name: bytes, held: bytes) -> None:
        """Take some of a user's samples, which may be taken twice, until `keep_again`."""
        flat = orjson.loads(held)
        samples = self._again.setdefault(slot, {}).setdefault(name[NUMBER_BYTES:], {})
        first = int.from_bytes(name[:NUMBER_BYTES], "big")
        samples.update(enumerate(zip(flat[::2], flat[1::2], strict=True), first))

    def keep_again(self, slot: int) -> None:
        """Keep what was taken of a slot, in the order of numbers and users."""
        taken = self._again.pop(slot, {})
        for user, samples in sorted(taken.items(), key=lambda one: (min(one[1]), one[0])):
            first = min(samples)
            for number in range(first, first + len(samples)):
                self._keep(slot, user, first, *samples[number])
        if taken:
            self._kept[slot].fresh = {}
            self._kept[slot].is_logged = True

    def count(self, user: bytes, group: str | None) -> int | None:
        """The samples of a user in the latest open slot, of one cell or of all together."""
        name = len(user).to_bytes(2, "big") + user
        account = self._slots.newest(name if group is None else name + b"/" + group.encode())
        return None if account is None else account & COUNT_MASK

    def of_user(self, user: bytes) -> Iterator[Holding]:
        """Of longer units the samples in each cell, then of the open slots those in each cell, and in all together."""
        name = len(user).to_bytes(2, "big") + user
        for periods in (self._units, self._slots):
            for start, (accounts,) in () if periods is None else periods.each():
                is_slot = periods is self._slots
                waiting = Counter(self._waiting(user, start)) if is_slot else Counter()
                for place in sorted(place for place in accounts.held if place.startswith(name + b"/")):
                    cell = place[len(name) + 1 :].decode()
                    yield Holding(start, cell, accounts.held[place], waiting[cell])
                if is_slot and name in accounts.held:
                    yield Holding(start, None, accounts.held[name] & COUNT_MASK, waiting.total())

    def _waiting(self, user: bytes, start: int | None) -> list[str]:
        """The cells of a user's samples that wait for the end of a slot, one by one."""
        kept = None if start is None else self._kept.get(self._rule.slot.index(start))
        return [] if kept is None else kept.samples.get(user, [])[1::2]


class _LoggedSamples:
    """Kept samples, as the changelog has them: by slot, the number of the first and the user are a name."""

    width = 0

    def __init__(self, accounts: SlotAccounts, tag: bytes) -> None:
        self._accounts, self.tag = accounts, tag

    def cleared(self) -> list[int]:
        sent, self._accounts._sent = self._accounts._sent, []
        return sorted(set(sent))

    def changed(self) -> list[Packed]:
        packed: list[Packed] = []
        for slot, kept in sorted(self._accounts._kept.items()):
            if kept.fresh and self._accounts._site.durable:
                packed += self._packed(slot, kept, list(kept.fresh.items()), CHUNK)
                kept.is_logged = True
            kept.fresh = {}
        return packed

    def periods(self) -> Sequence[int]:
        return sorted(self._accounts._kept.keys() | self._accounts._again.keys())

    def size(self, period: int) -> int:
        return len(self._accounts._kept[period].samples)

    def pack(self, period: int, first: int, most: int, room: int) -> list[Packed]:
        kept = self._accounts._kept[period]
        packed: list[Packed] = []
        for user in islice(kept.samples, first, first + most):
            pieces = self._packed(period, kept, [(user, 1)], CHUNK)
            packed += pieces
            room -= sum(piece.cost for piece in pieces)
            if room <= 0:
                break
        return packed

    def _packed(self, slot: int, kept: Kept, begins: list[tuple[bytes, int]], room: int) -> list[Packed]:
        """The samples of users, each from a place in the list on; the last piece of a user counts as the user's."""
        packed: list[Packed] = []
        entries, cost, count = bytearray(), 0, 0
        for user, begin in begins:
            for number, part in _pieces(kept.samples[user], begin, self._accounts._rule.coordinates):
                name, held = number.to_bytes(NUMBER_BYTES, "big") + user, orjson.dumps(part)
                entries += length(len(name)) + name + length(len(held)) + held
                cost += len(name) + 8 + sum(6 * len(cell.encode()) for cell in part[::2])
                cost += len(part) // 2 * BESIDE * self._accounts._rule.coordinates
                if cost >= room:
                    packed.append(Packed(slot, count, bytes(entries), cost))
                    entries, cost, count = bytearray(), 0, 0
            count += 1
        packed.append(Packed(slot, count, bytes(entries), cost))
        return packed

    def begin(self, record: int) -> None:
        """Samples keep no order over a restart."""

    def take(self, period: int, entries: bytes, *, in_order: bool) -> None:
        for name, held in unpack(entries):
            self._accounts.restore_samples(period, name, held)

    def clear(self, period: int) -> None:
        self._accounts._again.pop(period, None)

    def restored(self, period: int) -> Runs:
        self._accounts.keep_again(period)
        return [(self.size(period), 0)]


def _pieces(samples: list[Any], begin: int, coordinates: int) -> Iterator[tuple[int, list[Any]]]:
    """A user's samples from a position on, in pieces that each fit into a record, with the number of the first.

    The cells' names alone decide, which JSON may write six times as long; a name stands beside each of its samples.

    >>> [piece for piece in _pieces([7, "a", 5, "b", 6], 1, 1)]
    [(7, ['a', 5, 'b', 6])]
    """
    if (len(samples) - begin) // 2 * (LARGEST + BESIDE * (coordinates - 1)) <= PIECE_BYTES:  # nearly always
        yield samples[0] + (begin - 1) // 2, samples[begin:]
        return
    size = 0
    for end in range(begin, len(samples), 2):
        cost = 6 * len(samples[end]) + BESIDE * coordinates
        if size and size + cost > PIECE_BYTES:
            yield samples[0] + (begin - 1) // 2, samples[begin:end]
            begin, size = end, 0
        size += cost
    yield samples[0] + (begin - 1) // 2, samples[begin:]
