"""An injective encoding of names, of which keys and digests are made."""

import struct


def encode(*parts: bytes | str | int) -> bytes:
    """An injective encoding of a tuple: the number of parts, then the type, length and bytes of each.

    >>> encode("a", "bc") == encode("ab", "c"), encode("1") == encode(1), encode(b"a") == encode("a")
    (False, False, False)
    """
    return struct.pack(">I", len(parts)) + b"".join(_tagged(part) for part in parts)


def _tagged(part: bytes | str | int) -> bytes:
    if isinstance(part, bytes):
        tag, body = b"b", part
    elif isinstance(part, str):
        tag, body = b"s", part.encode()
    else:
        tag, body = b"i", b"%d" % part
    return tag + struct.pack(">Q", len(body)) + body
