"""The exact means of each cell and slot, from the events: what private estimates are compared with."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import h3

from shoal.mechanisms.parts.lengths import Even
from shoal.models.times import time_of_number, time_of_text


@dataclass(frozen=True)
class Truth:
    """The exact statistics of one cell in one slot."""

    mean: float
    variance: float
    samples: int
    users: int


def true_means(events: Iterable[Mapping[str, Any]], *, slot: int, resolution: int) -> dict[tuple[int, str], Truth]:
    """By end of the slot (microseconds since the epoch, as a release's `at`) and H3 cell, in that order.

    >>> event = {"bus": "a", "at": "1970-01-01T00:59:59Z", "lat": 0, "lon": 0, "speed": 30}
    >>> true_means([event, event | {"speed": 40}], slot=3_600_000_000, resolution=1)
    {(3600000000, '81757ffffffffff'): Truth(mean=35.0, variance=25.0, samples=2, users=1)}
    """
    cells: dict[tuple[int, str], tuple[list[float], set[Any]]] = {}
    ends: dict[Any, int] = {}
    for event in events:
        at = event["at"]
        end = ends.get(at)
        if end is None:
            end = ends[at] = _end(at, slot)
        values, users = cells.setdefault((end, h3.latlng_to_cell(event["lat"], event["lon"], resolution)), ([], set()))
        values.append(event["speed"])
        users.add(event["bus"])
    return {key: _truth(*cells[key]) for key in sorted(cells)}


def _end(at: str | int, slot: int) -> int:
    time = time_of_text(at) if isinstance(at, str) else time_of_number(at)
    if time is None:
        raise ValueError("an event has no time")
    return Even(slot).end_after(time)


def _truth(values: list[float], users: set[Any]) -> Truth:
    mean = math.fsum(values) / len(values)
    return Truth(mean, math.fsum((value - mean) ** 2 for value in values) / len(values), len(values), len(users))
