"""Reads ahead: a thread makes the next items while the caller works on this one.

It pays where either leaves the interpreter to the other, as reading a file, hashing it and the kernel do.
"""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

AHEAD = 2  # items: blocks of a megabyte

Item = TypeVar("Item")


def read_ahead(items: Iterator[Item]) -> Iterator[Item]:
    """The items in their order, as they are made, and what making them raises; a few of them are made ahead.

    >>> list(read_ahead(iter("abcd")))
    ['a', 'b', 'c', 'd']
    """
    end: Any = object()
    with ThreadPoolExecutor(1) as thread:
        waiting = deque(thread.submit(next, items, end) for _ in range(AHEAD))
        try:
            while (item := waiting.popleft().result()) is not end:
                waiting.append(thread.submit(next, items, end))
                yield item
        finally:
            for future in waiting:
                future.cancel()
