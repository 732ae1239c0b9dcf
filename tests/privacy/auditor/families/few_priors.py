"""Means on blocks whose prior is chosen by few users, or by none, at the end of the tick by which they have come."""

import random
from fractions import Fraction
from typing import Any

from tests.privacy.auditor.families.means import for_each, of_coordinates
from tests.privacy.auditor.streams import HIGH, HOUR, Case, Event, of_user


def draw(drawn: random.Random) -> Case:
    """One case."""
    algorithm, count = drawn.choice(["wishful", "single-tree", "multi-tree"]), drawn.choice([1, 1, 2])
    most, users = drawn.choice([1, 2, 4, 5, 8]), drawn.choice([4, 6, 8, 12])
    metric: dict[str, Any] = {
        "statistic": "mean", "every": drawn.choice(["1h", "contribution"]), "grid": 1024, "clamp": False,
        "epsilon": drawn.choice(["200", "700", "2000"]), "max_contributions": most, "algorithm": algorithm,
        "users": drawn.choice([1, 3, users]), "failure": drawn.choice(["0.9", "0.1"]), "prior": "few-users",
    } | of_coordinates(count)  # fmt: skip
    if drawn.random() < 0.7:
        metric["sigma"] = for_each(count, lambda: drawn.choice([1, 5, 100]))
    if drawn.random() < 0.3:
        metric |= {"group": "g", "max_groups": 2}
    if drawn.random() < 0.3:
        metric["lateness"] = "2h"
    events = []
    for user in range(users):
        for index in range(drawn.choice([most, most, most + 1, most // 2 or 1])):
            numbers = tuple(str(float(drawn.randrange(HIGH + 1))) for _ in range(count))
            at = HOUR * (index + drawn.choice([0, 0, 0, 1]))
            events.append(Event(f"u{user}", at, f"g{drawn.randrange(2)}", numbers))
    drawn.shuffle(events)
    delta = drawn.choice([Fraction(1, 1000), Fraction(1, 50)])
    if drawn.random() < 0.8:  # some come in time, others late
        events = sorted(events, key=lambda event: event.time)
    return Case(algorithm, metric, events, of_user(), delta)
