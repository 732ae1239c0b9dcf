"""How many keys of each kind release's changelog has, and a digest of all of them that does not depend on their order.

Both are kept up to date with each record that is written. What a record adds to the digest, and takes away when it is
written again or dropped, is

    heads, chunks, closings          the checksum of name and value, which is kept in memory
    kept, runs, a hidden group's     a checksum of the name. Such a record is written once, or (of a hidden group) says
                                     how often it was, by which the checksum is multiplied; and it has a seal. So no
                                     memory is needed of what may be millions of records
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import NamedTuple
from zlib import crc32

from shoal.stream.state_mark import MARK
from shoal.stream.table.seals import all_sealed, checksum, unsealed
from shoal.stream.tick_queue import CHUNK, RUN

HEAD, KEPT, REACHED, HIDDEN = b"h", b"k", b"s", b"c"
KINDS = {
    HEAD: "heads of groups",
    KEPT: "kept contributions",
    RUN: "runs of waiting contributions",
    CHUNK: "waiting sums",
    REACHED: "open closings",
    HIDDEN: "hidden groups",
}
# How many there are depends on values: sums fall into cells by their parts, and a window keeps no step whose sum is 0.
# Of hidden groups it tells who is there.
UNTOLD = frozenset({CHUNK, KEPT, HIDDEN})
REWRITTEN = frozenset({CHUNK[0], REACHED[0]})
SEALED = frozenset({KEPT, RUN, HIDDEN})
DIGEST_MASK = (1 << 64) - 1
SEALED_ONCE = 1 << 32
KIND = itemgetter(0)  # of a key: its first byte

Entry = tuple[bytes, bytes | None]


class HiddenEntry(NamedTuple):
    """A record of a hidden group, or its tombstone."""

    name: bytes
    value: bytes | None
    before: int  # how often it was written before


class Inventory:
    """How many keys of each kind a changelog has, and its digest.

    >>> inventory = Inventory()
    >>> first = inventory.note([(b"ra", b"[1]"), (b"rb", b"[2]"), (b"pc", b"[3]")])
    >>> then = inventory.note([(b"ra", None), (b"pc", b"[4]")])
    >>> left = [(name, value) for name, value in first + then if name == b"rb" or value and value == b"[4]"]
    >>> inventory.dump() == Inventory.of(dict(left)).dump()
    True
    """

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()  # by the kinds' bytes
        self._digest = 0
        self._checksums: dict[bytes, int] = {}  # of chunks and closings, by name

    @classmethod
    def of(cls, items: Mapping[bytes, bytes]) -> "Inventory":
        """Of a changelog's last values."""
        inventory = cls()
        for name, value in items.items():
            if name != MARK:
                inventory._restore(name, value)
        return inventory

    def _restore(self, name: bytes, value: bytes) -> None:
        kind = name[0]
        if kind == HEAD[0]:
            self.note_head(0, checksum(name, value))
        elif kind in REWRITTEN:
            self._write_again(name, value)
        else:
            self._count(kind, 1, _name_sum(name) * (_writings(value) if kind == HIDDEN[0] else 1))

    def note(self, entries: Iterable[Entry]) -> list[Entry]:
        """Count records of all kinds but heads and hidden groups; return them as they are to be written, with seals.

        A value of None is a tombstone, of a record that the changelog has.
        """
        others: list[Entry] = []
        once: list[tuple[bytes, bytes]] = []
        gone: list[bytes] = []
        for name, value in entries:
            if name[0] in REWRITTEN:
                others.append((name, value))
                self._write_again(name, value)
            elif value is None:
                others.append((name, None))
                gone.append(name)
            else:
                once.append((name, value))
        self._drop(gone)
        return others + self._write_once(once)

    def _write_once(self, entries: list[tuple[bytes, bytes]]) -> list[Entry]:
        """Count and seal records that are written once.

        Every contribution that waits or is kept comes this way, so it makes a few passes over all, each in C.
        """
        names = [name for name, _ in entries]
        sums = list(map(crc32, names))
        self._counts.update(map(KIND, names))
        self._digest += sum(sums) + len(sums) * SEALED_ONCE
        return list(zip(names, all_sealed([value for _, value in entries], sums), strict=True))

    def _drop(self, names: list[bytes]) -> None:
        self._counts.subtract(Counter(map(KIND, names)))
        self._digest -= sum(map(crc32, names)) + len(names) * SEALED_ONCE

    def _write_again(self, name: bytes, value: bytes | None) -> None:
        before, after = self._checksums.get(name, 0), 0
        if value is None:
            del self._checksums[name]
        else:
            after = self._checksums[name] = checksum(name, value)
        self._count(name[0], (value is not None) - (before != 0), after - before)

    def note_hidden(self, entries: Iterable[HiddenEntry]) -> list[Entry]:
        """Count records of hidden groups; return them as they are to be written, with seals."""
        written: list[Entry] = []
        for name, value, before in entries:
            if before:
                self._count(HIDDEN[0], -1, -_name_sum(name) * before)
            if value is not None:
                self._count(HIDDEN[0], 1, _name_sum(name) * (before + 1))
                (value,) = all_sealed([value], [crc32(name)])
            written.append((name, value))
        return written

    def note_head(self, before: int, after: int) -> None:
        """Count a head by its checksum; `before` is that of the head that it replaces, 0 if there is none."""
        self._count(HEAD[0], not before, after - before)

    def _count(self, kind: int, more: int, by: int) -> None:
        self._counts[kind] += more
        self._digest += by

    def dump(self) -> dict[str, int]:
        """For the mark: kind -> number of keys, and the digest."""
        counts = {chr(kind): count for kind, count in sorted(self._counts.items()) if count}
        return counts | {"digest": self._digest & DIGEST_MASK}


def _name_sum(name: bytes) -> int:
    """What a sealed record adds to the digest each time it is written."""
    return crc32(name) + SEALED_ONCE


def _writings(value: bytes) -> int:
    """How often the record of a hidden group was written; that of what came in a tick is written once."""
    held = json.loads(unsealed(value))
    return int(held[-1]) if len(held) > len(("samples", "total")) else 1
