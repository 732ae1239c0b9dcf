"""Checksums of single records of release's changelog: with name and value, in memory or in the record itself.

They are against faults: who may write to the changelog could write other checksums as well. A *seal* stands in a record
that is written once, of which there is no older value: it need only tell of what was altered by accident, for which 32
bits are enough. CRC-32 misses none of up to 32 bits beside one another, and takes a third of the time of a digest, for
every block of a user's samples. Where an older value may come, 64 bits of a digest are kept.
"""

from collections.abc import Sequence
from hashlib import blake2b
from zlib import crc32

from shoal.stream.state_mark import MARK

BYTES = 8
SEAL = b',"%08x"]'
OF_LIST = len(SEAL % 0)  # characters at the end of a list that has a seal
OF_MARK = len(',"seal":""}') + 2 * BYTES


def checksum(name: bytes, value: bytes) -> int:
    """The checksum of a record with this name and value, which is never 0."""
    return int.from_bytes(blake2b(name + value, digest_size=BYTES).digest()) or 1


def all_sealed(values: Sequence[bytes], sums: Sequence[int]) -> list[bytes]:
    """The JSON of lists, each with the checksum of name and value as its last element; `sums` are those of the names.

    >>> all_sealed([b"[1]"], [crc32(b"ra")]), unsealed(all_sealed([b"[1]"], [crc32(b"ra")])[0])
    ([b'[1,"75c43f7e"]'], b'[1]')
    """
    return [value[:-1] + SEAL % seal for value, seal in zip(values, map(crc32, values, sums), strict=True)]


def unsealed(value: bytes) -> bytes:
    """The list without its seal."""
    return value[:-OF_LIST] + b"]"


def is_whole(name: bytes, value: bytes) -> bool:
    """Whether a list has the seal of this name and value."""
    return all_sealed([unsealed(value)], [crc32(name)]) == [value]


def sealed_mark(mark: bytes) -> bytes:
    """The JSON of a mark, with the checksum of itself as its last field.

    >>> sealed_mark(b'{"offset":7}')
    b'{"offset":7,"seal":"21a637dd7d452377"}'
    """
    return b'%b,"seal":"%016x"}' % (mark[:-1], checksum(MARK, mark))


def is_whole_mark(mark: bytes) -> bool:
    """Whether a mark has the seal of what it says."""
    return sealed_mark(mark[:-OF_MARK] + b"}") == mark
