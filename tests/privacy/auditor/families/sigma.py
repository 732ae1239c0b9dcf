"""Sharp means of subgaussian samples: with a private centre and without, caps below and at the configuration's."""

import random
from typing import Any

from tests.privacy.auditor.streams import HIGH, HOUR, Case, Event, of_user

MOST_EVENTS = 500


def draw(drawn: random.Random) -> Case:
    """One case. Values lie far outside the range, on both sides."""
    most, users = drawn.choice([1, 2, 3, 4, 7, 8, 16, 20, 33, 64, 100]), drawn.choice([1, 2, 3, 5, 8, 12])
    ticks = drawn.choice([1, 4, 8, 16, 24])
    while users * most > MOST_EVENTS:
        most //= 2
    low = drawn.choice([0, 300, 500])
    metric: dict[str, Any] = {
        "statistic": "mean", "every": drawn.choice(["1h", "1h", "1h", "contribution"]), "value": "x",
        "range": (low, low + drawn.choice([10, 100, 400])), "grid": drawn.choice([4, 64, 1000, 1024]),
        "sigma": drawn.choice(["0.01", "1/3", "1", "5", "40", "3000"]), "max_contributions": most,
        "epsilon": drawn.choice(["1", "10", "40", "200", "3000"]), "algorithm": "sharp", "clamp": False,
    }  # fmt: skip
    if drawn.random() < 0.5:  # so that a centre pays
        metric |= {"range": (low, low + 400), "sigma": drawn.choice(["0.01", "1/3", "1", "3"])}
        metric["epsilon"] = str(drawn.choice([100, 200, 600]) // min(users, 5) + 1)
    if metric["every"] != "contribution":
        metric["life"] = f"{drawn.choice([1, 2, ticks, 4 * ticks])}h"
    if drawn.random() < 0.8:
        metric["users"] = drawn.choice([1, users, 2 * users, 50 * users])
    if drawn.random() < 0.3:
        metric["lateness"] = "2h"
    if drawn.random() < 0.3:
        metric |= {"group": "g", "max_groups": drawn.choice([1, 2])}
    return Case("sharp with sigma", metric, _events(drawn, users, most, ticks), of_user())


def _events(drawn: random.Random, users: int, most: int, ticks: int) -> list[Event]:
    found = []
    for user in range(users):
        for index in range(drawn.choice([most, most, most + 1, most + 3, -(-most // 2)])):
            tick = index * ticks // most + drawn.choice([0, 0, 0, 1])
            number = str(float(drawn.randrange(HIGH + 1)))
            found.append(Event(f"u{user}", HOUR * tick, f"g{drawn.randrange(2)}", (number,)))
    drawn.shuffle(found)
    return sorted(found, key=lambda event: event.time + (drawn.choice([0, HOUR]) if drawn.random() < 0.1 else 0))
