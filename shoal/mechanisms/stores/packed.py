"""The changelog's entries: names with their numbers, one after the other, as bytes.

An entry is the length of the name, the name, and the number. A length has seven bits in each byte, the low ones first.
A number is written in two such pieces, without leading zeros: first its low 32 bits, doubled, plus one if the second
piece follows; then the bits above, if any is set. The number of an account has a count in its low bits and a sum above
it. Both are mostly small, so that 8 or 16 bytes become one to six. In a kind without width what a name holds is no
number but bytes, with their length before them.

How many bytes a number takes depends on values, so it must decide nothing. Where entries are cut, and how many are
written again, is decided by their *cost*, which counts each number with the most bytes that its kind can take.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

CHUNK = 200_000  # cost, approximately, of entries that are packed together
LOW_BITS = 32  # bits of a number that are in its first part
LOW = (1 << LOW_BITS) - 1
Runs = list[tuple[int, int]]  # end of a run of names, and the number of the record that has the whole run; ascending


class Packed(NamedTuple):
    """Entries of the same kind and period that are written together, as a section of the changelog."""

    period: int
    names: int  # how many names they have
    entries: bytes
    cost: int  # the most bytes that the entries could have, whatever the values


class Logged(Protocol):
    """One kind of entries of one metric, as the changelog needs it: names by period, in an order."""

    @property
    def tag(self) -> bytes:
        """The tag that its sections have."""

    @property
    def width(self) -> int:
        """Bytes of a number; 0 if names hold bytes of any length."""

    def cleared(self) -> list[int]:
        """The periods that were closed, or became empty again, since the last call."""

    def changed(self) -> list[Packed]:
        """The entries that changed since the last call, without those of closed periods."""

    def periods(self) -> Sequence[int]:
        """The periods that hold something."""

    def size(self, period: int) -> int:
        """The number of names that a period holds."""

    def pack(self, period: int, first: int, most: int, room: int) -> list[Packed]:
        """Entries of names from number `first` on: at least one, at most `most`, until their cost reaches `room`."""

    def begin(self, record: int) -> None:
        """Begin to restore this record of the changelog."""

    def take(self, period: int, entries: bytes, *, in_order: bool) -> None:
        """Restore a section's entries; if they are `in_order`, their names move to the end of the order.

        Raises:
            ValueError: they are not well formed.
        """

    def clear(self, period: int) -> None:
        """Forget all that a period holds."""

    def restored(self, period: int) -> Runs:
        """Complete the restoration of a period; return which records have its names."""


def length(size: int) -> bytes:
    """A length in one byte, or in two or more, seven bits each, the low ones first."""
    out = bytearray()
    while size > 127:
        out.append(size & 127 | 128)
        size >>= 7
    out.append(size)
    return bytes(out)


def read_length(entries: bytes, at: int, most: int = 5) -> tuple[int, int]:
    """The length at this position, and the position after it.

    Raises:
        ValueError: it does not end within `most` bytes.
    """
    size = shift = 0
    while at < len(entries) and shift < 7 * most:
        byte = entries[at]
        at += 1
        size |= (byte & 127) << shift
        if byte < 128:
            return size, at
        shift += 7
    raise ValueError("entries are cut off")


_SHORT = [length(size) for size in range(1024)]


def number_bytes(number: int) -> bytes:
    r"""A number without leading zeros.

    >>> number_bytes(63), number_bytes(64), number_bytes((5 << 32) + 1)
    (b'~', b'\x80\x01', b'\x03\x05')
    """
    high, low = number >> LOW_BITS, (number & LOW) << 1
    if high:
        return length(low | 1) + length(high)
    return _SHORT[low] if low < 1024 else length(low)


def most_bytes(width: int) -> tuple[int, int]:
    """The most bytes that each of the two parts of a number can take, if its kind has `width` bytes.

    >>> most_bytes(1), most_bytes(4), most_bytes(16)
    ((2, 0), (5, 0), (5, 14))
    """
    low = min(8 * width, LOW_BITS)
    return -(-(low + 1) // 7), -(-(8 * width - low) // 7)


def read_number(entries: bytes, at: int, width: int) -> tuple[int, int]:
    """The number at this position, and the position after it.

    Raises:
        ValueError: it is cut off, or has more bytes than its kind.
    """
    most_low, most_high = most_bytes(width)
    twice, at = read_length(entries, at, most_low)
    number = twice >> 1
    if number > LOW:
        raise ValueError("entries have a number that is too large")
    if twice & 1:
        high, at = read_length(entries, at, most_high)
        number |= high << LOW_BITS
    if number >> 8 * width:
        raise ValueError("entries have a number that is too large")
    return number, at


def pack_numbers(period: int, items: Iterable[tuple[bytes, int]], width: int, room: int | None = None) -> list[Packed]:
    r"""Pack names and numbers in chunks. A chunk ends with the entry by which its cost reaches CHUNK.

    room: return one chunk only, which ends when its cost reaches this much.

    Raises:
        OverflowError: a number has more bytes than its kind.

    >>> pack_numbers(7, [(b"a", 1), (b"bc", 2)], 2)
    [Packed(period=7, names=2, entries=b'\x01a\x02\x02bc\x04', cost=11)]
    """
    packed: list[Packed] = []
    parts: list[bytes] = []
    cost, full, of_number, bits = 0, min(CHUNK, room or CHUNK), sum(most_bytes(width)), 8 * width
    for name, number in items:
        if number >> bits:  # of a negative number, too
            raise OverflowError("a number of an account is too large")
        its = len(name)
        head = _SHORT[its] if its < 1024 else length(its)
        parts.append(head + name + number_bytes(number))
        cost += len(head) + its + of_number
        if cost >= full:
            packed.append(Packed(period, len(parts), b"".join(parts), cost))
            parts, cost = [], 0
            if room is not None:
                return packed
    if parts:
        packed.append(Packed(period, len(parts), b"".join(parts), cost))
    return packed


def select(entries: bytes, width: int, is_wanted: Callable[[bytes], bool]) -> bytes:
    """Entries whose names satisfy `is_wanted`."""
    if not width:
        wanted = ((name, length(len(held)) + held) for name, held in unpack(entries) if is_wanted(name))
    else:
        numbers = unpack_numbers(entries, width)
        wanted = ((name, number_bytes(number)) for name, number in numbers if is_wanted(name))
    return b"".join(length(len(name)) + name + held for name, held in wanted)


def unpack(entries: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The names in entries of a kind without width, and what they hold.

    Raises:
        ValueError: the entries are cut off.
    """
    at, end = 0, len(entries)
    while at < end:
        size, at = read_length(entries, at)
        name, at = entries[at : at + size], at + size
        size, at = read_length(entries, at)
        if at + size > end:
            raise ValueError("entries are cut off")
        yield name, entries[at : at + size]
        at += size


def unpack_numbers(entries: bytes, width: int) -> Iterator[tuple[bytes, int]]:
    """The names and numbers in entries of a kind with this width.

    Raises:
        ValueError: the entries are cut off, or a number is too large.
    """
    at, end, bits, most_high = 0, len(entries), 8 * width, most_bytes(width)[1]
    while at < end:
        size, at = (entries[at], at + 1) if entries[at] < 128 else read_length(entries, at)
        name, at = entries[at : at + size], at + size
        if at >= end or (twice := entries[at]) > 127:
            number, at = read_number(entries, at, width)
        elif twice & 1:  # as `read_number` does it, without a call: counts are small, and there are many
            high, at = read_length(entries, at + 1, most_high)
            number = high << LOW_BITS | twice >> 1
            if number >> bits:
                raise ValueError("entries have a number that is too large")
        else:
            number, at = twice >> 1, at + 1
        yield name, number
