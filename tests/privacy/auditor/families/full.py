"""`full` with so much epsilon that its private first estimates are made and levels activate."""

import random
from typing import Any

from tests.privacy.auditor.families.means import for_each, of_coordinates
from tests.privacy.auditor.streams import HIGH, HOUR, Case, Event, of_user


def draw(drawn: random.Random) -> Case:
    """One case."""
    most, users, count = drawn.choice([2, 4, 8, 16, 20]), drawn.choice([3, 6, 12]), drawn.choice([1, 1, 2])
    every = drawn.choice(["1h", "contribution"])
    metric: dict[str, Any] = {
        "statistic": "mean", "every": every, "grid": 1024, "epsilon": drawn.choice(["2000", "20000"]),
        "max_contributions": most, "algorithm": "full", "clamp": False,
        "users": drawn.choice([1, users, 2 * users]), "failure": drawn.choice(["0.5", "0.001"]),
    } | of_coordinates(count)  # fmt: skip
    if drawn.random() < 0.3:
        metric["sigma"] = for_each(count, lambda: drawn.choice([5, 100]))
    if drawn.random() < 0.3:
        metric |= {"group": "g", "max_groups": 2}
    events = []
    for user in range(users):
        for index in range(drawn.choice([most, most, most + 2, most // 2 or 1])):
            numbers = tuple(str(float(drawn.randrange(HIGH + 1))) for _ in range(count))
            at = HOUR * (index + drawn.choice([0, 0, 1]))
            events.append(Event(f"u{user}", at, f"g{drawn.randrange(2)}", numbers))
    drawn.shuffle(events)
    return Case(every, metric, sorted(events, key=lambda event: event.time), of_user())
