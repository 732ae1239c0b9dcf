"""Continual means of all algorithms: at ticks and per contribution, with coordinates, groups and late events."""

import random
from dataclasses import replace
from typing import Any

from tests.privacy.auditor.streams import HIGH, HOUR, LOW, Case, Stream, of_event, of_user

OTHERS = ["naive", "wishful", "single-tree", "multi-tree", "full"]
WITH_PRIOR = ("wishful", "single-tree", "multi-tree")
FIELDS = ("x", "y", "z")
PRIORS = [0, 100, 512, 1024]


def draw(drawn: random.Random) -> Case:
    """One case; some say what they withhold."""
    case = _draw(drawn)
    tells = case.metric["every"] != "contribution" and drawn.random() < 0.4
    return replace(case, metric=case.metric | {"withheld": True}) if tells else case


def _draw(drawn: random.Random) -> Case:
    algorithm = drawn.choice(["sharp"] * 4 + OTHERS)
    is_sharp, has_groups = algorithm == "sharp", drawn.random() < 0.4
    most = drawn.choice([1, 2, 3, 5, 8, 16, 33] + ([64, 70, 100, 130] * 2 if is_sharp else []))
    count = drawn.choice([1, 1, 1, 2, 3])
    metric: dict[str, Any] = {
        "statistic": "mean", "every": drawn.choice(["1h", "1h", "1h", "contribution"]), "grid": 1024,
        "epsilon": drawn.choice(["1", "20", "500", "3000", "20000"] if is_sharp else ["1", "5"]),
        "max_contributions": most, "algorithm": algorithm, "clamp": False,
    }  # fmt: skip
    metric |= of_coordinates(count)
    if not is_sharp or drawn.random() < 0.5:
        metric["users"] = drawn.choice([1, 2, 5, 20])
    if is_sharp and metric["every"] != "contribution":
        metric["life"] = f"{drawn.choice([3, 8, 16, 24])}h"
    if algorithm in WITH_PRIOR:
        metric["prior"] = for_each(count, lambda: drawn.choice(PRIORS))
    if algorithm in (*WITH_PRIOR, "full") and drawn.random() < 0.4:
        metric["sigma"] = for_each(count, lambda: drawn.choice([1, 30]))
    if drawn.random() < 0.3:
        metric["lateness"] = f"{drawn.choice([1, 2])}h"
    if has_groups:
        metric |= {"group": "g", "max_groups": drawn.choice([1, 2, 3])}
    length = drawn.choice([12, 40, 90]) if most < 64 else drawn.choice([60, 300, 600])
    events = Stream(drawn.choice([1, 2, 3, 6]), length, 2 if has_groups else 1, fields=count, drawn=drawn).make()
    if most >= 64:  # in few ticks
        spread = [HOUR * (16 * index // length) for index in range(length)]
        events = [type(one)(one.user, at, one.group, one.numbers) for one, at in zip(events, spread, strict=True)]
    if metric["every"] != "contribution" and (algorithm == "naive" or is_sharp and count == 1) and drawn.random() < 0.3:
        for key in ("max_contributions", "max_groups"):
            metric.pop(key, None)
        is_mine = of_event(events, drawn)
        if drawn.random() < 0.3:
            metric["max_events_per_user"] = drawn.choice([1, 3, 100])
        return Case(f"{algorithm}/event", metric | {"unit": "event"}, events, is_mine)
    return Case(algorithm, metric, events, of_user())


def of_coordinates(count: int) -> dict[str, Any]:
    """Value and range of so many."""
    if count == 1:
        return {"value": "x", "range": (LOW, HIGH)}
    return {"value": FIELDS[:count], "range": ((LOW, HIGH),) * count}


def for_each(count: int, number: Any) -> Any:
    """One number, or one for each of several coordinates."""
    return number() if count == 1 else tuple(number() for _ in range(count))
