"""What the golden cases are made of: a case, what a metric lacks, and metrics of each kind."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.golden.events import Stream

USUAL: Mapping[str, Any] = {
    "topic": "events", "user": "u", "value": "x", "time": "t", "range": (0, 100), "grid": 1000, "epsilon": "1",
    "max_contributions": 12, "max_ahead": "30d",
}  # fmt: skip
Metric = Mapping[str, Any]


@dataclass(frozen=True, eq=False)  # a case is itself alone: what was made of it is kept
class Case:
    """One configuration, and the events that come."""

    name: str
    metrics: tuple[Metric, ...]
    stream: Stream = Stream()
    kafka: Mapping[str, Any] = field(default_factory=dict)
    at_once: bool = False  # all events of a source partition in one transaction, so that messages must be cut
    in_full: bool = False  # releases and messages are stored as they are, for diff


def mean(name: str, algorithm: str, every: str = "6h", **more: Any) -> Metric:
    """A continual mean."""
    usual = {"name": name, "statistic": "mean", "algorithm": algorithm, "every": every, "users": 40}
    return usual | limit_of(more) | more


def stepped(name: str, statistic: str, decay: Metric | None = None, **more: Any) -> Metric:
    """A sum, count or mean that is released at every step."""
    usual = {"name": name, "statistic": statistic, "algorithm": "sharp", "every": "4h", "max_gap": 6}
    decayed = {} if decay is None else {"decay": decay}
    nothing = {"value": None, "range": None, "epsilon": None, "grid": None} if statistic == "count" else {}
    return usual | decayed | nothing | more


def slotted(name: str, statistic: str = "mean", **more: Any) -> Metric:
    """What is released once per cell, at the end of a slot."""
    return {"name": name, "statistic": statistic, "slot": "3h"} | limit_of(more) | more


def limit_of(more: Metric) -> dict[str, Any]:
    """The usual limit of a unit's samples, where each group has one of its own."""
    return {"max_contributions": None, "max_per_group": 12} if {"group", "cell"} & more.keys() else {}


WINDOW = {"kind": "window", "length": "1d"}
HEXAGONS = {"h3": 5, "lat": "lat", "lon": "lon"}
PLANE: dict[str, Any] = {"value": ("x", "y", "z.w"), "range": ((0, 100), (-2000, 2000), ("0.05", 50))}
EVENTS: dict[str, Any] = {"unit": "event", "max_contributions": None, "max_per_group": None}
LONG = Stream(start=-200_000, pace=2400)  # begins before 1970, and lasts for weeks
EVEN = Stream(in_order=True)
QUIET = Stream(count=400)
BUSY = Stream(count=900, pace=80, silence=30_000, units=40)
