"""Makes the kernel's stores look like `Periods` and `Store`, so that the twin's rules run on them unchanged."""

from collections.abc import Iterator, Sequence
from typing import Any

from shoal.mechanisms.accounts import Periods, RecordKind, Store
from shoal.mechanisms.parts.lengths import Even
from shoal.mechanisms.stores.packed import CHUNK, Packed, Runs


class KernelStore(Store):
    """One store of the kernel. `held` and `changed` are both the store itself, since the kernel notes what changes."""

    __slots__ = ("_kind", "_period", "_stores")

    def __init__(self, stores: Any, kind: int, period: int) -> None:
        self._stores, self._kind, self._period = stores, kind, period
        self.get = self._get
        self.held = self.changed = self  # type: ignore[assignment]  # it does what the rules ask of a dict

    def _get(self, name: bytes, default: Any = None) -> Any:
        number = self._stores.get(self._kind, self._period, name)
        return default if number is None else number

    def put(self, name: bytes, number: int) -> None:
        self._stores.put(self._kind, self._period, name, number)

    __setitem__ = put

    def __contains__(self, name: bytes) -> bool:
        return self._stores.get(self._kind, self._period, name) is not None

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._stores.names(self._kind, self._period))

    def __len__(self) -> int:
        size: int = self._stores.size(self._kind, self._period)
        return size


class KernelPeriods(Periods):
    """The kernel's stores of one metric in one source partition, by period."""

    def __init__(self, stores: Any, length: Even | None, *kinds: RecordKind) -> None:
        self.native, self._length, self.kinds = stores, length, kinds
        self._record = 0
        self._views: dict[int, tuple[Store, ...]] = {}  # of open periods
        self.forever = self.of(0) if length is None else None

    def _stores(self, period: int) -> tuple[Store, ...]:
        views = self._views.get(period)
        if views is None:
            self.native.open(period)
            views = tuple(KernelStore(self.native, kind, period) for kind in range(len(self.kinds)))
            self._views[period] = views
        return views

    @property
    def sizes(self) -> list[int]:
        sizes: list[int] = self.native.sizes()
        return sizes

    def newest(self, name: bytes) -> int | None:
        numbers = (self.native.get(0, period, name) for period in reversed(self.native.periods()))
        return next((number for number in numbers if number is not None), None)

    def each(self) -> Iterator[tuple[int | None, tuple[Store, ...]]]:
        for period in self.native.periods():
            yield None if self._length is None else self._length.start(period), self._stores(period)

    def close(self, promise: int | None) -> None:
        self._views.clear()  # the periods of some may close now
        if self._length is None:
            self._views[0] = self.forever or ()
        self.native.close(promise)

    def cleared(self, kind: int) -> list[int]:
        closed: list[int] = self.native.cleared(kind)
        return closed

    def changed(self, kind: int) -> list[Packed]:
        found = self.native.changed(kind, CHUNK)
        return [Packed(*one) for one in found]

    def periods(self) -> Sequence[int]:
        periods: list[int] = self.native.periods()
        return periods

    def size(self, kind: int, period: int) -> int:
        size: int = self.native.size(kind, period)
        return size

    def pack(self, kind: int, period: int, first: int, most: int, room: int) -> list[Packed]:
        return [Packed(*self.native.pack(kind, period, first, most, min(CHUNK, room)))]

    def take(self, kind: int, period: int, entries: bytes, *, in_order: bool) -> None:
        self.native.take(kind, period, self._record, entries, in_order)

    def clear(self, period: int) -> None:
        self._views.pop(period, None)
        self.native.clear(period)

    def runs(self, kind: int, period: int) -> Runs:
        runs: Runs = self.native.settle(kind, period)
        return runs
