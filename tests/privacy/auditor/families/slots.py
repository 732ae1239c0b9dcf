"""Slots: all algorithms, prior, mean and variance, distribution; cells, slots and units; late and folded events."""

import random
from fractions import Fraction
from typing import Any

from tests.privacy.auditor.streams import HOUR, Case, Stream, of_period, of_user

STATISTICS = ["mean"] * 4 + ["variance", "distribution"]
ALGORITHMS = [
    "best", "baseline", "array-averaging", "levy", "fixed-quantile", "epsilon-quantile", "few-users",
]  # fmt: skip
PERIODS = {"user-slot": HOUR, "user-6h": 6 * HOUR}


def draw(drawn: random.Random) -> Case:
    """One case."""
    statistic = drawn.choice(STATISTICS)
    algorithm = drawn.choice(ALGORITHMS if statistic == "mean" else ["best", "baseline"])
    has_prior = statistic == "mean" and algorithm == "best" and drawn.random() < 0.4
    unit, has_cells = drawn.choice(["user-slot", "user-slot", "user-6h", "user"]), drawn.random() < 0.8
    metric: dict[str, Any] = {
        "statistic": statistic, "slot": "1h", "grid": 1024, "epsilon": drawn.choice(["0.5", "1", "4"]), "unit": unit,
        "algorithm": algorithm, "max_contributions": drawn.choice([1, 2, 3, 8]), "clamp": False,
    }  # fmt: skip
    delta = Fraction(0)
    if algorithm == "few-users" or has_prior:
        delta = Fraction(drawn.choice(["0.05", "0.001"]))
        if drawn.random() < 0.5:
            metric["sigma"] = drawn.choice([1, 10, 100])
    if has_prior:
        metric["prior"] = "few-users"
    if unit != "user-slot":
        metric["max_slots"] = drawn.choice([1, 2, 3])
    if has_cells:
        metric |= {"group": "g", "max_groups": drawn.choice([1, 2, 3])}
        metric["across_cells"] = drawn.choice(["split", "chop-user", "clip-user"])
    metric |= _manners(drawn, statistic)
    events = Stream(
        drawn.choice([2, 4, 8]), drawn.choice([10, 30, 60]), 4 if has_cells else 1, 4, drawn.random() < 0.3,
        drawn=drawn,
    ).make()  # fmt: skip
    mine = of_period(events, PERIODS[unit], drawn) if unit in PERIODS else of_user()
    label = f"{statistic}/{algorithm}{'+prior' if has_prior else ''}"
    return Case(label, metric, events, mine, delta)


def _manners(drawn: random.Random, statistic: str) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if drawn.random() < 0.5:
        said["contribution_cap"] = drawn.choice([1, 2, "median", "optimal"])
    if drawn.random() < 0.3:
        said["min_users"] = drawn.choice([1, 2, 3])
    if drawn.random() < 0.4:
        said["lateness"] = drawn.choice(["30m", "1h", "2h"])
    if statistic == "distribution":
        said["bins"] = drawn.choice([2, 5, 16])
    return said
