"""Accounts without a stream around them, whose changelog is a log: what they hold, and what a successor makes of it."""

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

import orjson

from shoal.mechanisms.accounts import Accounts, Periods, RecordKind, WhyNotCounted
from shoal.mechanisms.stores.packed import length, unpack_numbers
from shoal.stream.deltas.record import CLEARED, NO_DIGEST, PREFIX, Section, decode, digest_of
from shoal.stream.deltas.restoring import Restoring
from shoal.stream.deltas.rolling import Rolling
from shoal.stream.deltas.writing import Entries, LogEnd
from shoal.stream.kernel.stores import KernelPeriods
from shoal.stream.state_mark import FORMAT, LOG_FORMAT, MARK

PERIOD = 10
Make = Callable[..., Periods]
State = list[tuple[Any, ...]]


class Plain(Accounts):
    """Numbers by name, for ever and by period; no rule."""

    def __init__(self, make: Make) -> None:
        self.forever = make(None, RecordKind(b"am/1\x00", 2), RecordKind(b"gm/1\x00", 1))
        self.by_period = make(PERIOD, RecordKind(b"sm/1\x00", 3))
        super().__init__(self.forever, self.by_period)

    def add(self, user: bytes, group: str | None, value: int, time: int, effective: int) -> WhyNotCounted | None:
        raise NotImplementedError("histories put numbers into the stores themselves")

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


def twin(length: int | None, *kinds: RecordKind) -> Periods:
    return Periods(length, *kinds, durable=True)


def native(length: int | None, *kinds: RecordKind) -> Periods:
    kernel: Any = import_module("shoal_kernel")
    return KernelPeriods(kernel.Stores(length, [kind.width for kind in kinds], True), length, *kinds)


class History:
    """One partition: its accounts, its log, and the log's part that is needed."""

    def __init__(self, make: Make = twin) -> None:
        self.make = make
        self.before: dict[bytes, bytes] = {}  # records of a format before
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
            self.before = {}
        return entries

    def restart(self, log: Iterable[tuple[bytes, bytes]] | None = None) -> None:
        """What was not committed is gone; somebody else takes over."""
        self.accounts = Plain(self.make)
        self.end = LogEnd(Rolling(self.accounts.logged))
        restoring = Restoring("here", [self.accounts], lambda _: None, self._adopt)
        for key, value in [*self.before.items(), *(self.log if log is None else log)]:
            restoring.take(key, value)
        restoring.done()

    def _adopt(self, mark: dict[str, Any], end: LogEnd) -> None:
        self.end = end
        if "sizes" in mark:
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


def old_changelog(names: Iterable[tuple[int, bytes, int, int]]) -> dict[bytes, bytes]:
    """Records of format 2 of these names: store, name, number and time."""
    found = {}
    for store, name, number, time in names:
        tag, width = ((b"am/1\x00", 2), (b"gm/1\x00", 1), (b"sm/1\x00", 3))[store]
        period = (time // PERIOD).to_bytes(8, "big", signed=True) if store == 2 else b""
        found[tag + period + name] = number.to_bytes(width, "big")
    return found | {MARK: orjson.dumps({"format": 2})}


def as_format_3(log: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The same log, as version 3 of the format wrote it: with fixed numbers, and digests of all but the format."""
    found: list[tuple[bytes, bytes]] = []
    waiting: list[tuple[bytes, bytes]] = []  # records of the transaction: key and sections
    before = None
    for key, value in log:
        if key != MARK:
            record = decode(key, value)
            before = record.before if before is None else before  # of the first, which may have lost those before it
            waiting.append((key, b"".join(_in_format_3(section) for section in record.sections())))
            continue
        fields = orjson.loads(value)
        del fields["cost"]
        mark = orjson.dumps(fields | {"format": LOG_FORMAT})
        for number, (record_key, sections) in enumerate(waiting, 1):
            rest = (before or NO_DIGEST) + (digest_of(mark) if number == len(waiting) else NO_DIGEST) + sections
            before = digest_of(record_key[len(PREFIX) :], rest)
            found.append((record_key, bytes((LOG_FORMAT,)) + before + rest))
        found.append((MARK, mark))
        waiting = []
    return found


def _in_format_3(section: Section) -> bytes:
    if section.kind == CLEARED:
        return section.encode()
    numbers = unpack_numbers(section.entries, section.width)
    entries = [length(len(name)) + name + number.to_bytes(section.width, "big") for name, number in numbers]
    return section._replace(entries=b"".join(entries)).encode()
