"""JSON that is kept: bytes that take no more memory than they have.

`orjson.dumps` writes into a buffer and hands it out: what it returns keeps four kilobytes, however short it is. That is
fine for what is sent on at once. What waits by the thousand, as releases do until their transaction is committed, would
take a hundred times its length.
"""

from typing import Any

import orjson


def json_bytes(value: Any) -> bytes:
    """The JSON of a value, in bytes of its own.

    >>> json_bytes({"seq": 7})
    b'{"seq":7}'
    """
    return bytes(memoryview(orjson.dumps(value)))
