"""Which partition a record key belongs to, as Kafka's producers decide it.

`murmur2` is the default of the Java client and of aiokafka, `crc32` of librdkafka (its `consistent` partitioners).
"""

import struct
import zlib
from collections.abc import Callable

Partitioner = Callable[[bytes, int], int]
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF
_UNPACK = tuple(struct.Struct(f"<{words}I").unpack_from for words in range(65))  # user ids have at most 256 bytes


def murmur2(data: bytes) -> int:
    """MurmurHash2, 32 bits, with Kafka's seed.

    >>> murmur2(b"21")
    3321034988
    """
    length = len(data)
    words = length >> 2
    h = 0x9747B28C ^ length
    for k in _UNPACK[words](data) if words < len(_UNPACK) else struct.unpack_from(f"<{words}I", data):
        k = k * _M & _MASK
        h = (h * _M ^ (k ^ k >> 24) * _M) & _MASK
    if length & 3:
        h = (h ^ int.from_bytes(data[words << 2 :], "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15


def _murmur2_partition(key: bytes, partitions: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def _crc32_partition(key: bytes, partitions: int) -> int:
    return zlib.crc32(key) % partitions


PARTITIONERS: dict[str, Partitioner] = {"murmur2": _murmur2_partition, "crc32": _crc32_partition}
