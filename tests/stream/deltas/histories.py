"""Accounts without a stream around them, whose changelog is a log: what they hold, and what a successor makes of it."""

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any

from shoal.mechanisms.accounts import Accounts, Holding, Periods, RecordKind, WhyNotCounted
from shoal.mechanisms.parts.lengths import Even
from shoal.stream.deltas.record import PREFIX
from shoal.stream.deltas.restoring import Restoring
from shoal.stream.deltas.rolling import Rolling
from shoal.stream.deltas.writing import Entries, LogEnd
from shoal.stream.kernel.stores import KernelPeriods
from shoal.stream.state_mark import FORMAT

PERIOD = 10
Make = Callable[..., Periods]
State = list[tuple[Any, ...]]


class Plain(Accounts):
    """Numbers by name, for ever and by period; no rule."""

    def __init__(self, make: Make) -> None:
        self.forever = make(None, RecordKind(b"am/1\x00", 2), RecordKind(b"gm/1\x00", 1))
        self.by_period = make(Even(PERIOD), RecordKind(b"sm/1\x00", 3))
        super().__init__(self.forever, self.by_period)

    def add(self, user: bytes, group: str | None, value: int, time: int, effective: int) -> WhyNotCounted | None:
        raise NotImplementedError("histories put numbers into the stores themselves")

    def count(self, user: bytes, group: str | None) -> int | None:
        raise NotImplementedError("numbers of a history are of no user")

    def of_user(self, user: bytes) -> Iterator[Holding]:
        raise NotImplementedError("numbers of a history are of no user")

    def put(self, store: int, name: bytes, number: int, time: int) -> None:
        stores = (*self.forever.of(0), *self.by_period.of(time))
        stores[store].put(name, number)

    def state(self) -> State:
        """All names with their numbers."""
        found: State = []
        for periods in (self.forever, self.by_period):
            for start, stores in periods.each():
                for kind, store in enumerate(stores):
                    found += [(start, kind, name, store.get(name)) for name in store.held]
        return sorted(found, key=repr)


def twin(length: Even | None, *kinds: RecordKind) -> Periods:
    return Periods(length, *kinds, durable=True)


def native(length: Even | None, *kinds: RecordKind) -> Periods:
    kernel: Any = import_module("shoal_kernel")
    span = None if length is None else length.microseconds
    return KernelPeriods(kernel.Stores(span, [kind.width for kind in kinds], True), length, *kinds)


class History:
    """One partition: its accounts, its log, and the log's part that is needed."""

    def __init__(self, make: Make = twin) -> None:
        self.make = make
        self.log: list[tuple[bytes, bytes]] = []  # records and marks that are not deleted
        self.promise: int | None = None
        self.accounts = Plain(make)
        self.end = LogEnd(Rolling(self.accounts.logged))

    def commit(self) -> Entries:
        """One transaction; what is not needed is deleted."""
        self.accounts.close(self.promise)
        entries = self.end.write({"format": FORMAT, "sizes": self.accounts.sizes, "promise": self.promise})
        self.log += [(key, value or b"") for key, value in entries]
        while self.log and self.end.needs and number_of(self.log[0][0], self.end.needs) < self.end.needs:
            self.log.pop(0)
        return entries

    def restart(self, log: Iterable[tuple[bytes, bytes]] | None = None) -> None:
        """What was not committed is gone; somebody else takes over."""
        self.accounts = Plain(self.make)
        self.end = LogEnd(Rolling(self.accounts.logged))
        restoring = Restoring("here", [self.accounts], lambda _: None, self._adopt)
        for key, value in self.log if log is None else log:
            restoring.take(key, value)
        restoring.done()

    def _adopt(self, mark: dict[str, Any], end: LogEnd) -> None:
        self.end = end
        assert mark["sizes"] == self.accounts.sizes
        self.promise = mark["promise"]

    @property
    def bytes_of_log(self) -> int:
        return sum(len(key) + len(value) for key, value in self.log)

    @property
    def bytes_of_state(self) -> int:
        """Of all entries, each once."""
        widths = {(False, 0): 2, (False, 1): 1, (True, 0): 3}
        return sum(1 + len(name) + widths[start is not None, kind] for start, kind, name, _ in self.accounts.state())


def number_of(key: bytes, else_: int) -> int:
    """The number of a record; what is no record goes with those before it."""
    return int.from_bytes(key[len(PREFIX) :], "big") if key.startswith(PREFIX) else else_ - 1
