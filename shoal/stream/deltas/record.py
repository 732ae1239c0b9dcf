r"""Records of bound's changelog.

Records are numbered from 1. Each has three digests: its own, that of the record before it, and that of the
transaction's mark. So a record that is missing, repeated, altered or from another log is noticed. Each record has a key
of its own, so that compaction would remove none.

    key      "\0log", number (8 bytes)
    value    format (1 byte), digest (16), digest of the record before (16), digest of the mark (16; only in the last
             record of a transaction, else zeros), then sections
    section  kind (1 byte), length of the tag, tag, period (8 bytes);
             unless the kind is CLEARED also width, length of the entries, entries (`stores/packed.py`)

A tag is a letter, the metric's label, a zero byte. A CLEARED section says that a period holds nothing any more. The
last entry of a name is the valid one, whether its section is CHANGED or KEPT. KEPT sections are written in order and
change nothing.

The digest covers the format, so that a record of one format cannot pass as one of another. A record of a later format
is refused by its first byte.
"""

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import NamedTuple

from shoal.mechanisms.accounts import PERIOD_BYTES
from shoal.mechanisms.stores.packed import length, read_length
from shoal.stream.state_mark import FORMAT

PREFIX = b"\x00log"
NUMBER_BYTES = 8
DIGEST_BYTES = 16
NO_DIGEST = bytes(DIGEST_BYTES)
SECTIONS_AT = 1 + 3 * DIGEST_BYTES
CLEARED, CHANGED, KEPT = 0, 1, 2
MOST_BYTES = 700_000  # of a record, approximately; brokers take a million by default


class Section(NamedTuple):
    """The part of a record about one kind of entries in one period."""

    kind: int
    tag: bytes
    period: int
    width: int = 0
    entries: bytes = b""

    def encode(self) -> bytes:
        head = bytes((self.kind,)) + length(len(self.tag)) + self.tag
        head += self.period.to_bytes(PERIOD_BYTES, "big", signed=True)
        return head if self.kind == CLEARED else head + length(self.width) + length(len(self.entries)) + self.entries


class LogRecord(NamedTuple):
    """A record that was read."""

    number: int
    digest: bytes
    before: bytes
    mark: bytes
    value: bytes

    def sections(self) -> Iterator[Section]:
        """Its sections, in order.

        Raises:
            ValueError: they are not well formed.
        """
        return read_sections(self.value)


def digest_of(*parts: bytes | memoryview) -> bytes:
    """The digest of these bytes, by which later records refer to them."""
    found = blake2b(digest_size=DIGEST_BYTES)
    for part in parts:
        found.update(part)
    return found.digest()


def key_of(number: int) -> bytes:
    """The key of a record."""
    return PREFIX + number.to_bytes(NUMBER_BYTES, "big")


def encode(number: int, before: bytes, mark: bytes, sections: Iterable[bytes]) -> tuple[bytes, bytes]:
    """A record's digest and value; `mark` is the digest of the mark."""
    rest = b"".join((before, mark, *sections))
    digest = digest_of(bytes((FORMAT,)), number.to_bytes(NUMBER_BYTES, "big"), rest)
    return digest, bytes((FORMAT,)) + digest + rest


def decode(key: bytes, value: bytes) -> LogRecord:
    """Read a record.

    Raises:
        ValueError: shoal did not write it like this; the message continues "has a record that".
    """
    if len(key) != len(PREFIX) + NUMBER_BYTES or len(value) < SECTIONS_AT or value[0] != FORMAT:
        raise ValueError("is none that shoal writes")
    number = key[len(PREFIX) :]
    digest, before, mark = (value[1 + n * DIGEST_BYTES : 1 + (n + 1) * DIGEST_BYTES] for n in range(3))
    if digest_of(value[:1], number, memoryview(value)[1 + DIGEST_BYTES :]) != digest:
        raise ValueError("is not as it was written")
    return LogRecord(int.from_bytes(number, "big"), digest, before, mark, value)


def read_sections(value: bytes) -> Iterator[Section]:
    """The sections of a record's value.

    Raises:
        ValueError: they are not well formed; the message continues "has a record that".
    """
    at, end = SECTIONS_AT, len(value)
    while at < end:
        kind = value[at]
        size, at = read_length(value, at + 1)
        tag, at = value[at : at + size], at + size
        period, at = int.from_bytes(value[at : at + PERIOD_BYTES], "big", signed=True), at + PERIOD_BYTES
        if kind == CLEARED and at <= end:
            yield Section(kind, tag, period)
            continue
        if kind not in (CHANGED, KEPT) or at >= end:
            raise ValueError("has a section that this version does not know")
        width, at = read_length(value, at)
        size, at = read_length(value, at)
        if at + size > end:
            raise ValueError("has a section that is cut off")
        yield Section(kind, tag, period, width, value[at : at + size])
        at += size
