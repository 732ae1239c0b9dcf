"""What accounts hold, as the changelog has it: names with their numbers, one after the other, in bytes.

An entry is the length of the name, the name, and the number in as many bytes as numbers of this kind have. Of what has
no such width, the length stands before it, too. A length has seven bits in each byte, the low ones first.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

CHUNK = 200_000  # bytes of entries that are packed together, about
Runs = list[tuple[int, int]]  # end of a run of names, and the number of the record that has all of the run, ascending


class Packed(NamedTuple):
    """Names of one period, with what they hold, as bytes."""

    period: int
    names: int  # that are done with it
    entries: bytes
    cost: int  # the most bytes that the entries may have, whatever the values


class Logged(Protocol):
    """One kind of what accounts hold, as the changelog has it: names by period, in an order."""

    @property
    def tag(self) -> bytes:
        """What its sections begin with."""

    @property
    def width(self) -> int:
        """Bytes of a number; 0: what names hold is of any length."""

    def cleared(self) -> list[int]:
        """The periods that are closed, or empty again, since the last call."""

    def changed(self) -> list[Packed]:
        """What changed since the last call, but for those periods."""

    def periods(self) -> Sequence[int]:
        """The periods that hold something."""

    def size(self, period: int) -> int:
        """The number of names that a period holds."""

    def pack(self, period: int, first: int, most: int, room: int) -> list[Packed]:
        """Names from number `first` on, at most `most`, and one more than have room at most; at least one."""

    def begin(self, record: int) -> None:
        """What is restored from now on is of this record of the changelog."""

    def take(self, period: int, entries: bytes, *, in_order: bool) -> None:
        """Restore entries; those that are `in_order` are now the last in the order.

        Raises:
            ValueError: they are none.
        """

    def clear(self, period: int) -> None:
        """Forget all that a period holds."""

    def restored(self, period: int) -> Runs:
        """Complete the restoration of a period, and tell in which records its names stand."""


def length(size: int) -> bytes:
    """A length in one byte, or in two or more, seven bits each, the low ones first."""
    out = bytearray()
    while size > 127:
        out.append(size & 127 | 128)
        size >>= 7
    out.append(size)
    return bytes(out)


def read_length(entries: bytes, at: int) -> tuple[int, int]:
    """A length, and where it ends.

    Raises:
        ValueError: it ends nowhere.
    """
    size = shift = 0
    while at < len(entries) and shift < 35:
        byte = entries[at]
        at += 1
        size |= (byte & 127) << shift
        if byte < 128:
            return size, at
        shift += 7
    raise ValueError("entries are cut off")


_SHORT = [length(size) for size in range(1024)]


def pack_numbers(period: int, items: Iterable[tuple[bytes, int]], width: int, room: int | None = None) -> list[Packed]:
    r"""Names and numbers in chunks, each of which ends with the entry that fills it; with `room` the first chunk alone.

    >>> pack_numbers(7, [(b"a", 1), (b"bc", 2)], 2)
    [Packed(period=7, names=2, entries=b'\x01a\x00\x01\x02bc\x00\x02', cost=9)]
    """
    packed: list[Packed] = []
    parts: list[bytes] = []
    size, full = 0, min(CHUNK, room or CHUNK)
    for name, number in items:
        its = len(name)
        entry = (_SHORT[its] if its < 1024 else length(its)) + name + number.to_bytes(width, "big")
        parts.append(entry)
        size += len(entry)
        if size >= full:
            packed.append(Packed(period, len(parts), b"".join(parts), size))
            parts, size = [], 0
            if room is not None:
                return packed
    if parts:
        packed.append(Packed(period, len(parts), b"".join(parts), size))
    return packed


def select(entries: bytes, width: int, is_wanted: Callable[[bytes], bool]) -> bytes:
    """The entries of these names alone."""
    return b"".join(
        length(len(name)) + name + (held if width else length(len(held)) + held)
        for name, held in unpack(entries, width)
        if is_wanted(name)
    )


def unpack(entries: bytes, width: int) -> Iterator[tuple[bytes, bytes]]:
    """Names, and what they hold; with width 0 its length stands before it.

    Raises:
        ValueError: these are no entries.
    """
    at, end = 0, len(entries)
    while at < end:
        size, at = read_length(entries, at)
        name, at = entries[at : at + size], at + size
        size, at = (width, at) if width else read_length(entries, at)
        if at + size > end:
            raise ValueError("entries are cut off")
        yield name, entries[at : at + size]
        at += size
