"""Accounts: whose samples count in one source partition, decided by pattern alone.

Each statistic has a rule of its own, in `accounts.py` of its folder: a sample counts, and goes out in a block at once
or later, or the rule says why it does not. What a rule must remember stands in stores: numbers by name, which know what
changed since the last transaction.

Stores are kept by periods. A period is open while an event can have an effective time in it; then it is closed, and the
changelog loses it, a bounded number of records in each transaction. A restart half way finds what is left and goes on.
What is never closed is one period without end.

Changelog keys: tag of the store, [period, 8 bytes], name.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from shoal.mechanisms.statistic import COUNT_BITS, Block

PERIOD_BYTES = 8
ACCOUNT_BYTES = 8
ONE_MEMBER = 1 << COUNT_BITS  # of an account that counts groups, or cells, beside samples
Changes = list[tuple[bytes, bytes | None]]  # changelog records; None: a tombstone


# Why a sample does not count. Of the first five the reason is counted, of the others the record is a dead letter.
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
    stores: Callable[..., "Periods"] | None = None  # what makes stores in place of `Periods`

    def tag(self, kind: bytes) -> bytes:
        """The beginning of the changelog keys of a kind of records."""
        return kind + self.label.encode() + b"\x00"

    def periods(self, length: int | None, *kinds: "RecordKind") -> "Periods":
        """Empty stores for the accounts of this metric."""
        return (self.stores or Periods)(length, *kinds, durable=self.durable)


class Holding(NamedTuple):
    """What accounts hold of one user, in one period, and there in one group or cell or in all of them together."""

    start: int | None  # of the period, in microseconds; None: it has no end
    place: str | None  # group or cell; None: all of them, or there are none
    samples: int | None  # that count; None where only the place is remembered
    waiting: int = 0  # of these the samples that are still to be sent
    open_sum: int = 0  # of those that do not fill a block yet, in grid steps


class Store:
    """Numbers by name, and those of them that changed; the hot path sets both itself, which saves a call."""

    __slots__ = ("changed", "get", "held")

    def __init__(self) -> None:
        self.held: dict[bytes, int] = {}
        self.changed: dict[bytes, int] = {}
        self.get = self.held.get

    def put(self, name: bytes, number: int) -> None:
        self.held[name] = self.changed[name] = number

    def pop(self, most: int) -> Iterator[bytes]:
        """Remove at most `most` names, and yield them."""
        for _ in range(min(most, len(self.held))):
            yield self.held.popitem()[0]


class RecordKind(NamedTuple):
    """One kind of changelog records: a store in each period."""

    tag: bytes  # its keys begin with it
    width: int  # bytes of a value


class Periods:
    """The stores of one metric in one source partition, by period."""

    def __init__(self, length: int | None, *kinds: RecordKind, durable: bool) -> None:
        self._length = length  # microseconds; None: one period without end
        self._durable = durable
        self._open: dict[int, tuple[Store, ...]] = {}
        self._closed: deque[tuple[bytes, tuple[Store, ...]]] = deque()
        self.kinds = kinds
        self.forever = self.of(0) if length is None else None  # of a period without end
        self._unsorted: list[dict[bytes, int]] = [{} for _ in kinds]  # of a changelog that is being restored

    def of(self, time: int) -> tuple[Store, ...]:
        """The stores of the period of an effective time, which are made if there are none."""
        return self._stores(0 if self._length is None else time // self._length)

    def _stores(self, period: int) -> tuple[Store, ...]:
        stores = self._open.get(period)
        if stores is None:
            stores = self._open[period] = tuple(Store() for _ in self.kinds)
        return stores

    def _prefix(self, period: int) -> bytes:
        return b"" if self._length is None else period.to_bytes(PERIOD_BYTES, "big", signed=True)

    @property
    def sizes(self) -> list[int]:
        """The number of changelog records of each kind, those of closed periods that are not dropped yet included."""
        periods = [*self._open.values(), *(stores for _, stores in self._closed)]
        return [sum(len(stores[kind].held) for stores in periods) for kind in range(len(self.kinds))]

    def newest(self, name: bytes) -> int | None:
        """The number of a name in the latest open period that has it, among the records of the first kind."""
        numbers = (self._open[period][0].get(name) for period in sorted(self._open, reverse=True))
        return next((number for number in numbers if number is not None), None)

    def each(self) -> Iterator[tuple[int | None, tuple[Store, ...]]]:
        """(start, stores) of each period, the oldest first."""
        for period in sorted(self._open):
            yield None if self._length is None else period * self._length, self._open[period]

    def restore(self, kind: int) -> Callable[[bytes, bytes], None]:
        """The function that takes a restored record of a kind: its key without the tag, and its value."""
        held = self._unsorted[kind] if self.forever is None else self.forever[kind].held

        def take(key: bytes, value: bytes) -> None:
            held[key] = int.from_bytes(value, "big")

        return take

    def restored(self) -> None:
        """Sort the records that were taken by periods."""
        for kind, unsorted in enumerate(self._unsorted):
            while unsorted:  # one by one: there may be many, and not twice in memory
                key, number = unsorted.popitem()
                stores = self._stores(int.from_bytes(key[:PERIOD_BYTES], "big", signed=True))
                stores[kind].held[key[PERIOD_BYTES:]] = number

    def changes(self) -> Changes:
        """The records that changed since the last call."""
        changes: Changes = []
        for period, stores in self._open.items():
            for (tag, width), store in zip(self.kinds, stores, strict=True):
                changed = store.changed
                if self._durable:
                    before = tag + self._prefix(period)
                    changes += [(before + name, number.to_bytes(width, "big")) for name, number in changed.items()]
                changed.clear()
        return changes

    def close(self, promise: int | None, most: int) -> Changes:
        """Close the periods that end by the promise; return at most `most` tombstones, of the oldest periods first.

        No effective time will be before the promise, and `changes` was called. What has its tombstone is forgotten.
        """
        for period in self._over(promise):
            self._closed.append((self._prefix(period), self._open.pop(period)))
        if not self._durable:
            self._closed.clear()
        dropped: Changes = []
        while self._closed and len(dropped) < most:
            prefix, stores = self._closed[0]
            for (tag, _), store in zip(self.kinds, stores, strict=True):
                dropped += [(tag + prefix + name, None) for name in store.pop(most - len(dropped))]
            if not any(store.held for store in stores):
                self._closed.popleft()
        return dropped

    def _over(self, promise: int | None) -> list[int]:
        length = self._length
        if length is None or promise is None:
            return []
        return sorted(period for period in self._open if (period + 1) * length <= promise)


class Accounts(ABC):
    """The accounts of one metric's units in one source partition; a rule is a subclass with `add`."""

    def __init__(self, *periods: Periods) -> None:
        self._periods = periods

    @abstractmethod
    def add(self, user: bytes, group: str | None, value: int, time: int, effective: int) -> WhyNotCounted | None:
        """Count a sample, a grid index, and send the block that it closes; or return why it does not count.

        A sample that does not count touches nothing. `time` is the event's own, `effective` that at which it counts.
        """

    def flush(self, promise: int | None, *, idle: bool) -> None:  # noqa: B027 - most rules keep nothing for a tick
        """Send the blocks kept for ticks that end by the promise; if the partition is idle, all of them."""

    @property
    def sizes(self) -> list[int]:
        """The number of changelog records of each kind after `changes` and `close`."""
        return [size for periods in self._periods for size in periods.sizes]

    def count(self, user: bytes, group: str | None) -> int | None:
        """The samples of a user that count against the cap now; None where there is no such account."""
        return None

    def of_user(self, user: bytes) -> Iterator[Holding]:
        """All that they hold of a user: nothing, where a rule keeps nothing."""
        return iter(())

    # ---------------------------------------------------------------- the changelog

    def takers(self) -> Mapping[bytes, Callable[[bytes, bytes], None]]:
        """The functions that take restored records, by tag: each gets the key without the tag, and the value."""
        return {
            kind.tag: periods.restore(number) for periods in self._periods for number, kind in enumerate(periods.kinds)
        }

    def restored(self) -> None:
        """Complete the restoration: the takers have taken all records."""
        for periods in self._periods:
            periods.restored()

    def changes(self) -> Changes:
        """The records that changed since the last call."""
        changes: Changes = []
        for periods in self._periods:
            changes += periods.changes()
        return changes

    def close(self, promise: int | None, most: int) -> Changes:
        """Close the periods in which no event can count any more, as none will be before the promise.

        At most `most` tombstones are returned; the rest comes with the next calls.
        """
        dropped: Changes = []
        for periods in self._periods:
            dropped += periods.close(promise, most - len(dropped))
        return dropped
