"""What a record of the releases topic, or a line of a file of releases, is: a release, an activation or neither.

Everything comes as bytes that somebody wrote, and nothing here fails because of them.
"""

import math
from typing import Any

import orjson

from shoal.models.records import CLIP, SHOWN
from shoal.models.times import time_of_text

LATE = 3  # further digits that a number keeps than its noise leaves meaning in
MOST_WHOLE = (1 << 63) - 1  # that tables have room for
OF_MEANS = (None, "gaussian", "laplace")  # mechanisms that means without a decay have, and nothing else
Part = tuple[float | None, float | None, float | None]  # value, low, high


def object_of(raw: bytes | None) -> dict[str, Any] | None:
    """The object in a record; None if there is none."""
    try:
        fields = orjson.loads(raw or b"")
    except orjson.JSONDecodeError:
        return None
    return fields if isinstance(fields, dict) else None


def is_release(fields: dict[str, Any]) -> bool:
    """Whether it has what every release has.

    >>> is_release({"metric": "a", "group": None, "seq": 1, "version": 1, "at": "2026-01-05", "value": None})
    True
    >>> is_release({"metric": "a", "seq": 1, "version": 1, "at": "2026-01-05", "value": None})
    False
    """
    at = fields.get("at")
    timed = isinstance(at, str) and time_of_text(at) is not None
    named = isinstance(fields.get("metric"), str) and isinstance(fields.get("group", 0), str | None)
    return timed and named and is_count(fields.get("seq")) and is_count(fields.get("version")) and "value" in fields


def is_activation(fields: dict[str, Any]) -> bool:
    """Whether it says that a level, a key or a clip range begins."""
    at = fields.get("at")
    known = isinstance(fields.get("metric"), str) and isinstance(at, str) and time_of_text(at) is not None
    return known and ("level" in fields or fields.get("kind") in (SHOWN, CLIP)) and "value" not in fields


def parts_of(fields: dict[str, Any]) -> tuple[list[Part], list[str]]:
    """The numbers of a release with their intervals, and what they are called.

    >>> parts_of({"value": [1.5, None], "low": [1, None], "high": [2, None]})
    ([(1.5, 1.0, 2.0), (None, None, None)], ['1', '2'])
    >>> parts_of({"value": {"mean": 3.25, "variance": 1}, "low": {"mean": 3, "variance": 0}, "high": {}})[1]
    ['mean', 'variance']
    """
    value, low, high = fields["value"], fields.get("low"), fields.get("high")
    if isinstance(value, list) and value:
        names = [str(place) for place in range(1, len(value) + 1)]
        return [part_of(each, item(low, i), item(high, i)) for i, each in enumerate(value)], names
    if isinstance(value, dict) and isinstance(value.get("quantiles"), dict) and value["quantiles"]:
        value, low, high = value["quantiles"], inside(low, "quantiles"), inside(high, "quantiles")
        names = sorted(value, key=_number_in)
        parts = [part_of(value[name], item(low, name), item(high, name)) for name in names]
        return parts, [f"quantile {name}" for name in names]
    if isinstance(value, dict) and value:
        return [part_of(each, item(low, name), item(high, name)) for name, each in value.items()], list(value)
    return [part_of(value, low, high)], [""]


def part_of(value: Any, low: Any, high: Any) -> Part:
    """Value and interval, with no more digits than their noise leaves meaning in, and some."""
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
    """What is at a name or a place; None where nothing is."""
    if isinstance(of, dict):
        return of.get(key)
    return of[key] if isinstance(of, list) and isinstance(key, int) and key < len(of) else None


def inside(of: Any, name: str) -> Any:
    """What an object has under a name; None of anything else."""
    return of.get(name) if isinstance(of, dict) else None


def number(value: Any) -> float | None:
    """A finite number; None for anything else.

    >>> number(3), number(True), number("3"), number(float("inf"))
    (3.0, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def is_count(value: Any) -> bool:
    """Whether it is a whole number from 1 on."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MOST_WHOLE


def _number_in(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.inf
