"""Accounts: whose samples count in one source partition, decided by pattern alone.

There are three rules: `overall_accounts.py`, `continual_mean/accounts.py` and `slot/accounts.py`. By a rule a sample
counts, and is sent in a block, at once or later; or the rule says why it does not count. What a rule must remember is
in stores: numbers by name. A store knows which numbers changed since the last transaction.

There are stores for each period. A period is open while an event can have an effective time in it; then it is closed,
and the changelog says so. Accounts that are kept for ever are in a single period without end.

The changelog has entries of names with their numbers (`Logged`): those that changed since the last transaction, and the
next ones in order, so that the part of it that is needed stays short (`shoal/stream/deltas/`). Names are in the order
in which they came; after a restart, in the order in which the changelog has them. So the next owner of the partition
continues where the one before it was.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, NamedTuple

from shoal.mechanisms.parts.lengths import Even
from shoal.mechanisms.statistic import COUNT_BITS, Block
from shoal.mechanisms.stores.packed import Logged, Packed, Runs, pack_numbers, unpack_numbers

PERIOD_BYTES = 8
ACCOUNT_BYTES = 8
ONE_MEMBER = 1 << COUNT_BITS  # one group or cell, in an account that counts these above its samples


# Why a sample does not count. The first five reasons are only counted; the others make the record a dead letter.
WhyNotCounted = Literal[
    "over_cap", "groups_left_out", "slots_left_out", "cells_left_out", "undeclared",
    "wrong-partition", "late", "before-start", "after-end",
]  # fmt: skip
COUNTED = frozenset({"over_cap", "groups_left_out", "slots_left_out", "cells_left_out", "undeclared"})


@dataclass(frozen=True, slots=True)
class Site:
    """One source partition, as the accounts of one metric see it."""

    label: str  # of the metric
    send: Callable[[str | None, int, bytes, Block], None]  # group, effective time, user, block
    is_home: Callable[[bytes], bool]  # whether a user belongs to the partition
    durable: bool = True  # False: there is no changelog
    stores: Callable[..., "Periods"] | None = None  # makes the kernel's stores; None: those below are used

    def tag(self, kind: bytes) -> bytes:
        """The beginning of the changelog keys of a kind of records."""
        return kind + self.label.encode() + b"\x00"

    def periods(self, length: Even | None, *kinds: "RecordKind") -> "Periods":
        """Empty stores for the accounts of this metric."""
        return (self.stores or Periods)(length, *kinds, durable=self.durable)


class Holding(NamedTuple):
    """What accounts hold about one user in one period, in one group or cell or in all of them together."""

    start: int | None  # of the period, in microseconds; None: it has no end
    place: str | None  # group or cell; None: all of them, or there are none
    samples: int | None  # that count; None where only the place is remembered
    waiting: int = 0  # of these the samples that are still to be sent
    open_sum: int = 0  # of those that do not fill a block yet, in grid steps


class Store:
    """Numbers by name, and those of them that changed. The hot path sets both directly, which saves a call."""

    __slots__ = ("changed", "get", "held")

    def __init__(self) -> None:
        self.held: dict[bytes, int] = {}
        self.changed: dict[bytes, int] = {}
        self.get = self.held.get

    def put(self, name: bytes, number: int) -> None:
        self.held[name] = self.changed[name] = number


class RecordKind(NamedTuple):
    """One kind of changelog records: a store in each period."""

    tag: bytes  # its keys begin with it
    width: int  # bytes of a value


class Periods:
    """The stores of one metric in one source partition, by period."""

    def __init__(self, length: Even | None, *kinds: RecordKind, durable: bool) -> None:
        self._length = length  # None: one period without end
        self._durable = durable
        self._open: dict[int, tuple[Store, ...]] = {}
        self._closed: list[list[int]] = [[] for _ in kinds]  # by kind: closed periods that the changelog still has
        self._names: dict[tuple[int, int], list[bytes]] = {}  # by kind and period: names in order, while packed
        self._record = 0  # the record that is being restored
        self.kinds = kinds
        self.forever = self.of(0) if length is None else None  # the stores of the period without end

    def of(self, time: int) -> tuple[Store, ...]:
        """The stores of the period of an effective time, which are made if there are none."""
        return self._stores(0 if self._length is None else self._length.index(time))

    def _stores(self, period: int) -> tuple[Store, ...]:
        stores = self._open.get(period)
        if stores is None:
            stores = self._open[period] = tuple(Store() for _ in self.kinds)
        return stores

    @property
    def sizes(self) -> list[int]:
        """The number of names of each kind."""
        return [sum(len(stores[kind].held) for stores in self._open.values()) for kind in range(len(self.kinds))]

    def newest(self, name: bytes) -> int | None:
        """The number of a name in the latest open period that has it, among the records of the first kind."""
        numbers = (self._open[period][0].get(name) for period in sorted(self._open, reverse=True))
        return next((number for number in numbers if number is not None), None)

    def each(self) -> Iterator[tuple[int | None, tuple[Store, ...]]]:
        """(start, stores) of each period, the oldest first."""
        for period in sorted(self._open):
            yield None if self._length is None else self._length.start(period), self._open[period]

    # ---------------------------------------------------------------- the changelog: see `Logged`

    def close(self, promise: int | None) -> None:
        """Forget the periods that end at or before the promise: no effective time will be before it."""
        length = self._length
        if length is None or promise is None:
            return
        for period in sorted(period for period in self._open if length.end(period) <= promise):
            self._forget(period)
            for closed in self._closed if self._durable else ():
                closed.append(period)

    def _forget(self, period: int) -> None:
        self._open.pop(period, None)
        for kind in range(len(self.kinds)):
            self._names.pop((kind, period), None)

    def cleared(self, kind: int) -> list[int]:
        closed, self._closed[kind] = self._closed[kind], []
        return closed

    def changed(self, kind: int) -> list[Packed]:
        packed: list[Packed] = []
        for period in sorted(self._open):
            changed = self._open[period][kind].changed
            if changed and self._durable:
                packed += pack_numbers(period, changed.items(), self.kinds[kind].width)
            changed.clear()
        return packed

    def periods(self) -> Sequence[int]:
        return sorted(self._open)

    def size(self, kind: int, period: int) -> int:
        return len(self._open[period][kind].held)

    def pack(self, kind: int, period: int, first: int, most: int, room: int) -> list[Packed]:
        held = self._open[period][kind].held
        names = self._names.setdefault((kind, period), [])
        if not first:
            names.clear()
        if len(names) < first + most:  # add the names that came since the last call
            names += islice(held, len(names), None)
        width = self.kinds[kind].width
        next_ones = names[first : first + min(most, room // width + 1)]  # enough: each costs more than its width
        packed = pack_numbers(period, ((name, held[name]) for name in next_ones), width, room)
        if first + packed[0].names == len(held):
            self._names.pop((kind, period))
        return packed

    def begin(self, record: int) -> None:
        self._record = record

    def take(self, kind: int, period: int, entries: bytes, *, in_order: bool) -> None:
        held: dict[Any, int] = self._stores(period)[kind].held
        held.setdefault(self._record, 0)  # a number among the names: the record that the names after it are from
        for name, number in unpack_numbers(entries, self.kinds[kind].width):
            if in_order:
                held.pop(name, None)
            held[name] = number

    def clear(self, period: int) -> None:
        self._forget(period)

    def runs(self, kind: int, period: int) -> Runs:
        held: dict[Any, int] = self._open[period][kind].held
        runs, count, record = Runs(), 0, 0
        for name in held:
            if type(name) is not int:
                count += 1
                continue
            if count > (runs[-1][0] if runs else 0):
                runs.append((count, record))
            record = name
        if count > (runs[-1][0] if runs else 0):
            runs.append((count, record))
        for name in [name for name in held if type(name) is int]:
            del held[name]
        return runs


class LoggedNumbers(NamedTuple):
    """One kind of the stores of `Periods`, as the changelog needs it: see `Logged`."""

    stores: Periods
    kind: int
    tag: bytes
    width: int

    def cleared(self) -> list[int]:
        return self.stores.cleared(self.kind)

    def changed(self) -> list[Packed]:
        return self.stores.changed(self.kind)

    def periods(self) -> Sequence[int]:
        return self.stores.periods()

    def size(self, period: int) -> int:
        return self.stores.size(self.kind, period)

    def pack(self, period: int, first: int, most: int, room: int) -> list[Packed]:
        return self.stores.pack(self.kind, period, first, most, room)

    def begin(self, record: int) -> None:
        self.stores.begin(record)

    def take(self, period: int, entries: bytes, *, in_order: bool) -> None:
        self.stores.take(self.kind, period, entries, in_order=in_order)

    def clear(self, period: int) -> None:
        self.stores.clear(period)

    def restored(self, period: int) -> Runs:
        return self.stores.runs(self.kind, period)


class Accounts(ABC):
    """The accounts of one metric's units in one source partition; a rule is a subclass with `add`."""

    def __init__(self, *periods: Periods) -> None:
        self._periods = periods

    @abstractmethod
    def add(self, user: bytes, group: str | None, value: int, time: int, effective: int) -> WhyNotCounted | None:
        """Count a sample, a grid index, and send the block that it closes; or return why it does not count.

        A sample that does not count changes nothing. `time` is the event's own, `effective` the one at which it counts.
        """

    def flush(self, promise: int | None, *, idle: bool) -> None:  # noqa: B027 - most rules keep nothing for a tick
        """Send the blocks kept for ticks that end by the promise; if the partition is idle, all of them."""

    @property
    def sizes(self) -> list[int]:
        """The number of names of each kind."""
        return [size for periods in self._periods for size in periods.sizes]

    @abstractmethod
    def count(self, user: bytes, group: str | None) -> int | None:
        """The samples of a user that count against the cap now; None where there is no such account."""

    @abstractmethod
    def of_user(self, user: bytes) -> Iterator[Holding]:
        """All that they hold about a user; nothing if the rule keeps nothing."""

    # ---------------------------------------------------------------- the changelog

    @property
    def logged(self) -> list[Logged]:
        """What they hold, as the changelog needs it."""
        return [
            LoggedNumbers(periods, kind, tag, width)
            for periods in self._periods
            for kind, (tag, width) in enumerate(periods.kinds)
        ]

    def close(self, promise: int | None) -> None:
        """Forget the periods in which no event can count any more, as none will be before the promise."""
        for periods in self._periods:
            periods.close(promise)
