"""Sums and means with a decay: all decays and mechanisms, all units, groups, late events, rests."""

import random
from fractions import Fraction
from typing import Any

from tests.privacy.auditor.streams import HOUR, Case, Stream, of_event, of_period, of_user

DECAYS = ("none", "window", "all-windows", "exponential", "polynomial")
SIX_HOURS = 6 * HOUR


def draw(drawn: random.Random) -> Case:
    """One case."""
    kind = drawn.choice(DECAYS)
    algorithm = drawn.choice(["sharp", "patent"]) if kind != "none" else "sharp"
    unit = drawn.choice(["user", "user", "user-6h", "event"])
    has_groups = drawn.random() < 0.5
    metric: dict[str, Any] = {
        "statistic": drawn.choice(["sum", "mean"]), "every": "1h", "grid": 1024, "unit": unit, "algorithm": algorithm,
        "epsilon": drawn.choice(["0.5", "1", "3", "7.3"]), "clamp": False,
    }  # fmt: skip
    if metric["statistic"] == "sum":
        del metric["clamp"]
    if kind != "none" or metric["statistic"] == "mean" or drawn.random() < 0.5:
        metric["decay"] = {"kind": kind} | rate(kind, drawn)
    if unit != "event":
        metric["max_contributions"] = drawn.choice([1, 2, 3, 5])
    metric |= _manners(drawn, algorithm)
    if has_groups:
        metric["group"] = "g"
        if unit != "event":
            metric["max_groups"] = drawn.choice([1, 2, 3])
    gaussian = algorithm == "sharp" and kind == "window" and drawn.random() < 0.4
    delta = Fraction(drawn.choice(["0.001", "1e-6"])) if gaussian else Fraction(0)
    events = Stream(
        drawn.choice([1, 2, 4]), drawn.choice([8, 20, 40]), 3 if has_groups else 1, drawn.choice([3, 12]),
        drawn.random() < 0.4, drawn=drawn,
    ).make()  # fmt: skip
    mine = {"event": lambda: of_event(events, drawn), "user-6h": lambda: of_period(events, SIX_HOURS, drawn)}
    is_mine = mine.get(unit, of_user)()
    if unit == "event" and drawn.random() < 0.3:
        metric["max_events_per_user"] = drawn.choice([1, 3])
    return Case(f"{algorithm}/{kind}", metric, events, is_mine, delta)


def rate(kind: str, drawn: random.Random) -> dict[str, Any]:
    """How fast a decay forgets."""
    match kind:
        case "window":
            return {"length": f"{drawn.choice([1, 2, 3, 5, 8, 16, 40])}h"}
        case "exponential":
            half_life, alpha = f"{drawn.choice([1, 3, 20, 60])}h", drawn.choice(["0.1", "0.5", "0.9", "0.97"])
            return drawn.choice([{"half_life": half_life}, {"alpha": alpha}])
        case "polynomial":
            return {"exponent": drawn.choice(["1.2", "1.5", "2", "3"])}
    return {}


def _manners(drawn: random.Random, algorithm: str) -> dict[str, Any]:
    """What a metric says of time."""
    said: dict[str, Any] = {}
    if drawn.random() < 0.3 and algorithm == "sharp":
        said["life"] = f"{drawn.choice([3, 10, 30])}h"
    elif algorithm == "sharp":
        said["life"] = "16h"  # the default has more draws than can be solved for
    if drawn.random() < 0.3:
        said["lateness"] = f"{drawn.choice([1, 2])}h"
    if drawn.random() < 0.3:
        said["late"] = "drop"
    if drawn.random() < 0.3:
        said["max_gap"] = drawn.choice([1, 3, 10])
    return said
