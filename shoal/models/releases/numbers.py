"""Checked conversions of JSON values: each returns None for a value of another type."""

import math
from typing import Any

LATE = 3  # further digits that a number keeps than its noise leaves meaning in
MOST_WHOLE = (1 << 63) - 1  # that tables have room for
Part = tuple[float | None, float | None, float | None]  # value, low, high


def part_of(value: Any, low: Any, high: Any) -> Part:
    """Value and noise interval, rounded to `LATE` digits more than the noise leaves meaning in."""
    numbers = number(value), number(low), number(high)
    if numbers[0] is None:
        return None, None, None
    width = 0.0 if numbers[1] is None or numbers[2] is None else numbers[2] - numbers[1]
    if not 0 < width < math.inf:
        return numbers
    digits = LATE - math.floor(math.log10(width))
    short = [None if each is None else round(each, digits) for each in numbers]
    return short[0], short[1], short[2]


def item(of: Any, key: Any) -> Any:
    """Element of an object, a list or a tuple; None if it has no such element."""
    if isinstance(of, dict):
        return of.get(key)
    is_there = isinstance(of, list | tuple) and isinstance(key, int) and key < len(of)
    return of[key] if is_there else None


def number(value: Any) -> float | None:
    """A finite number.

    >>> number(3), number(True), number("3"), number(float("inf"))
    (3.0, None, None, None)
    """
    if type(value) not in (int, float):  # a bool is an int by isinstance
        return None
    found = float(value)
    return found if math.isfinite(found) else None


def as_it_came(value: Any) -> float | int | None:
    """A finite number; an integer stays one."""
    return None if number(value) is None else value


def whole(value: Any) -> int | None:
    """An integer that fits into 64 bits, as a column of a table needs it."""
    return value if type(value) is int and abs(value) <= MOST_WHOLE else None


def is_count(value: Any) -> bool:
    """Whether a value is an integer from 1 on."""
    return type(value) is int and 0 < value <= MOST_WHOLE


def text(value: Any) -> str | None:
    """The value if it is a string; else None."""
    return value if isinstance(value, str) else None
