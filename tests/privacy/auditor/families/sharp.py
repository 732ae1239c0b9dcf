"""Sharp through all its beginnings: first samples, first blocks, octaves that are alike and that are not."""

import random
from typing import Any

from tests.privacy.auditor.families.means import of_coordinates
from tests.privacy.auditor.streams import HIGH, HOUR, Case, Event, of_user

MOST_EVENTS = 1400


def draw(drawn: random.Random) -> Case:
    """One case: users who fill long blocks, who give some samples, or so few that first samples decide."""
    way = drawn.choice(["long", "long", "some", "firsts"])
    most, users, ticks, per_user, epsilon = _shape(way, drawn)
    while users * per_user > MOST_EVENTS:
        users -= 1
    count, has_groups = drawn.choice([1, 1, 1, 2]), drawn.random() < 0.25
    horizon = drawn.choice([1, 2, 3] if way == "firsts" else [ticks, ticks, max(1, ticks // 2), 2 * ticks, 3])
    metric: dict[str, Any] = {
        "statistic": "mean", "every": "1h", "grid": drawn.choice([1024, 1024, 64, 1000]), "epsilon": epsilon,
        "max_contributions": most, "algorithm": "sharp", "clamp": False, "life": f"{horizon}h",
        "users": drawn.choice([1, users, users, 4 * users]),
    } | of_coordinates(count)  # fmt: skip
    if drawn.random() < 0.3:
        metric["lateness"] = "2h"
    if has_groups:
        metric |= {"group": "g", "max_groups": drawn.choice([1, 2])}
    return Case(way, metric, _events(drawn, users, per_user, ticks, count), of_user())


def _shape(way: str, drawn: random.Random) -> tuple[int, int, int, int, str]:
    """Cap, users, ticks, samples of a user, epsilon."""
    if way == "firsts":
        epsilon = drawn.choice(["50", "400", "3000", "20000"])
        most, users = drawn.choice([20, 30, 40, 63, 64, 100]), drawn.choice([12, 25, 40])
        return most, users, drawn.choice([3, 5, 8]), drawn.choice([1, 1, 2, 3]), epsilon
    ticks = drawn.choice([8, 16, 24, 40])
    if way == "long":
        most, users = drawn.choice([64, 65, 96, 100, 128, 192, 256]), drawn.choice([3, 5, 8])
        return most, users, ticks, min(most + drawn.choice([0, 0, 3]), 260), drawn.choice(["5000", "20000", "100000"])
    most, users = drawn.choice([1, 2, 3, 7, 16, 40, 64, 90]), drawn.choice([6, 20, 40])
    epsilon = drawn.choice(["50", "400", "3000", "20000"])
    return most, users, ticks, min(drawn.choice([1, 2, most, most + 3]) + drawn.choice([0, 0, 3]), 260), epsilon


def _events(drawn: random.Random, users: int, per_user: int, ticks: int, count: int) -> list[Event]:
    found = []
    for user in range(users):
        gives = per_user if drawn.random() < 0.85 else max(1, per_user // drawn.choice([2, 5]))
        for index in range(gives):
            tick = index * ticks // per_user + drawn.choice([0, 0, 0, 1])
            numbers = tuple(str(float(drawn.randrange(HIGH + 1))) for _ in range(count))
            found.append(Event(f"u{user}", HOUR * tick, f"g{drawn.randrange(2)}", numbers))
    drawn.shuffle(found)
    return sorted(found, key=lambda event: event.time + (drawn.choice([0, HOUR]) if drawn.random() < 0.1 else 0))
