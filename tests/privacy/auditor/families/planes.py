"""Few users with values of several coordinates, in slots: balls so small that a choice's law can be enumerated."""

import random
from fractions import Fraction
from typing import Any

from tests.privacy.auditor.families.means import of_coordinates
from tests.privacy.auditor.streams import HOUR, Case, Stream, of_period, of_user


def draw(drawn: random.Random) -> Case:
    """One case."""
    unit, has_cells, count = drawn.choice(["user-slot", "user"]), drawn.random() < 0.6, drawn.choice([2, 2, 3])
    metric: dict[str, Any] = {
        "statistic": "mean", "slot": "1h", "grid": 16, "epsilon": drawn.choice(["0.5", "1", "4"]), "unit": unit,
        "algorithm": "few-users", "max_contributions": drawn.choice([1, 3, 8]), "clamp": False,
        **of_coordinates(count),
    }  # fmt: skip
    if count == 3 or drawn.random() < 0.5:
        metric["sigma"] = tuple(drawn.choice(["0.01", 10]) for _ in range(count))
    if unit == "user":
        metric["max_slots"] = drawn.choice([1, 3])
    if has_cells:
        metric |= {"group": "g", "max_groups": drawn.choice([1, 2])}
        metric["across_cells"] = drawn.choice(["split", "chop-user"])
    if drawn.random() < 0.5:
        metric["contribution_cap"] = drawn.choice([1, 2])
    if drawn.random() < 0.4:
        metric["lateness"] = drawn.choice(["30m", "2h"])
    events = Stream(
        drawn.choice([2, 4, 8]), drawn.choice([10, 30]), 3 if has_cells else 1, 4, drawn.random() < 0.3, count, drawn
    ).make()
    mine = of_period(events, HOUR, drawn) if unit == "user-slot" else of_user()
    return Case(f"few-users/{count} values", metric, events, mine, Fraction(drawn.choice(["0.05", "0.001"])))
