"""Releases as text, for tests and benchmarks of what only reads them: not made by shoal, and in its form."""

import json
import math
from collections.abc import Iterator
from typing import Any

from shoal.models.times import iso

START = 1_772_323_200  # 1 March 2026, in seconds
HOUR, DAY = 3600, 86_400
CELLS = ("881f1d4887fffff", "881f1d4885fffff", "881f1d4881fffff", "881f1d4883fffff", "881f1d488dfffff")

# Names that every object of JavaScript inherits, or that change its prototype.
INHERITED = ("__proto__", "constructor", "hasOwnProperty", "toString", "valueOf", "__defineGetter__")


def release(
    metric: str, seq: int, value: Any, half: float = 1.0, *, group: str | None = None, every: int = DAY, **more: Any
) -> dict[str, Any]:
    """One release, with an interval of so much on both sides."""
    number = isinstance(value, int | float)
    return {
        "metric": metric, "group": group, "seq": seq, "id": f"{metric}/1/{group or ''}/{seq}",
        "at": iso((START + seq * every) * 1_000_000), "value": value, "noise_sd": half / 2 if number else None,
        "low": value - half if number else None, "high": value + half if number else None, "samples": 10 * seq,
        "epsilon": 1.0, "delta": 0.0, "unit": "user", "relation": "values", "algorithm": "sharp", "version": 1,
    } | more  # fmt: skip


def town(days: int = 60, groups: int = 1000) -> Iterator[dict[str, Any]]:
    """A mean by day, a sum of twelve regions, an exact count, many groups by week, and cells by hour."""
    for day in range(1, days + 1):
        begun = day > days // 15
        width = 3 + 60 / day
        yield release("basket", day, 35 + 4 * math.sin(day / 9), width, samples=120 * day if begun else 0)
        yield release("orders", day, 300 * day, 0, mechanism="exact", samples=300 * day)
        for region in range(12):
            value = 900 * math.sin(day / 20 + region)
            yield release("sales", day, value, 400, group=f"region {region}", mechanism="steps")
    for week in range(1, max(2, days // 7) + 1):
        for group in range(groups):
            value, width = 40 + 11 * math.sin(group * 1.7) + week / 9, 2 + 30 / (1 + group % 40)
            yield release("visit", week, value, width, group=f"store-{group:04}", every=7 * DAY, samples=3 + group)
    for hour in range(1, 25):
        for number, cell in enumerate(CELLS):
            is_out = (hour + number) % 5 == 0
            speed = None if is_out else 30 + 10 * math.sin(hour / 4 + number)
            more = {"users": 3 + number, "error": 1.0, "algorithm": "best"}
            yield release("speed", hour, speed, 4, group=cell, every=HOUR, **more)


def lines(releases: Iterator[dict[str, Any]] | list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in releases)
