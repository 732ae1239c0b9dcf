"""Means per slot of one to three coordinates, by all algorithms that clip or average, with or without a share."""

import random
from typing import Any

from tests.privacy.auditor.families.means import of_coordinates
from tests.privacy.auditor.families.slots import PERIODS
from tests.privacy.auditor.streams import Case, Stream, of_period, of_user

ALGORITHMS = ["best", "best", "baseline", "array-averaging", "levy", "fixed-quantile", "epsilon-quantile"]


def draw(drawn: random.Random) -> Case:
    """One case."""
    algorithm, count = drawn.choice(ALGORITHMS), drawn.choice([1, 2, 2, 3])
    unit, has_cells = drawn.choice(["user-slot", "user-slot", "user-6h", "user"]), drawn.random() < 0.6
    metric: dict[str, Any] = {
        "statistic": "mean", "slot": "1h", "grid": 1024, "epsilon": drawn.choice(["0.5", "1", "4", "60"]),
        "unit": unit, "algorithm": algorithm, "max_contributions": drawn.choice([1, 3, 8]), "clamp": False,
        **of_coordinates(count),
    }  # fmt: skip
    if algorithm == "best" and drawn.random() < 0.5:
        metric["spread_share"] = drawn.choice(["0.1", "1/2"])
    if unit != "user-slot":
        metric["max_slots"] = drawn.choice([1, 3])
    if has_cells:
        metric |= {"group": "g", "max_groups": drawn.choice([1, 2])}
        metric["across_cells"] = drawn.choice(["split", "chop-user"])
    if drawn.random() < 0.5:
        metric["contribution_cap"] = drawn.choice([1, 2, "median", "optimal"])
    if drawn.random() < 0.4:
        metric["lateness"] = drawn.choice(["30m", "2h"])
    events = Stream(
        drawn.choice([2, 4, 12]), drawn.choice([10, 30, 60]), 3 if has_cells else 1, 4, drawn.random() < 0.3, count,
        drawn,
    ).make()  # fmt: skip
    mine = of_period(events, PERIODS[unit], drawn) if unit in PERIODS else of_user()
    return Case(f"{algorithm}/{count} coordinates", metric, events, mine)
