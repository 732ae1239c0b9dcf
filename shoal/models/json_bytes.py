"""JSON that is kept: bytes that take no more memory than they have.

`orjson.dumps` writes into a buffer and hands it out: what it returns keeps four kilobytes, however short it is. That is
fine for what is sent on at once. What waits by the thousand, as releases do until their transaction is committed, would
take a hundred times its length.
"""

from collections.abc import Sequence
from typing import Any

import orjson

MANY = 1000  # lists by one call: all of them at once would need their bytes twice


def json_bytes(value: Any) -> bytes:
    """The JSON of a value, in bytes of its own.

    >>> json_bytes({"seq": 7})
    b'{"seq":7}'
    """
    return bytes(memoryview(orjson.dumps(value)))


def json_of_each(lists: Sequence[Sequence[Any]], depth: int = 1) -> list[bytes]:
    """The JSON of each list, by one call for all of them: at their seams it is cut again.

    `depth`: how many brackets each begins and ends with; 2 for lists of lists that begin with something else.

    >>> json_of_each([(1, "a"), ()]), json_of_each([(1, "],["), (2, [3])])
    ([b'[1,"a"]', b'[]'], [b'[1,"],["]', b'[2,[3]]'])
    >>> json_of_each([[[1, [2]], [3, [4]]], [[5, 6]]], depth=2)
    [b'[[1,[2]],[3,[4]]]', b'[[5,6]]']
    """
    if len(lists) > MANY:
        parts = range(0, len(lists), MANY)
        return [one for first in parts for one in json_of_each(lists[first : first + MANY], depth)]
    begins, seam, ends = b"[" * depth, b"]" * depth + b"," + b"[" * depth, b"]" * depth
    cut = orjson.dumps(lists)[depth + 1 : -depth - 1].split(seam)
    if len(cut) != len(lists):  # there are none, or a text or a nested list has what looks like a seam
        return [json_bytes(one) for one in lists]
    return [b"%b%b%b" % (begins, one, ends) for one in cut]
