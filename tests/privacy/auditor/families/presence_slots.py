"""Statistics per slot that protect presence, of declared cells; the unit is there, or is not.

As of other statistics that protect presence, the noisy sides are looked at, of which what is published is a function.
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from shoal.stream.topic import TopicPlan
from tests.privacy.auditor.families.presence import KEYS, PresenceCase, sent_of
from tests.privacy.auditor.families.sums import SIX_HOURS
from tests.privacy.auditor.streams import HIGH, HOUR, LOW, Event, Stream, of_period, of_user
from tests.privacy.auditor.unknowns import Unknowns
from tests.privacy.auditor.worlds import Seen

SLOTS = 3


class SlotCase(PresenceCase):
    """Neighbours with and without a unit, slot by slot."""

    def run(self, plan: TopicPlan, world: Sequence[Event], unknowns: Unknowns) -> Seen:
        """What is released of a world."""
        (metric,) = plan.metrics
        of: Any = metric.parameters
        sent, pattern, numbers = sent_of(metric, world), list[tuple[int, str]](), list[float]()
        with unknowns.installed():
            for slot in range(of.first, of.end):
                for cell in of.groups:
                    pattern.append((slot, cell))
                    numbers += of.noisy_sides(metric.key, cell.encode(), slot, sent.get((cell, slot), ()))
        return Seen((pattern, None), np.array(numbers, dtype=float), [], len(pattern))


def draw(drawn: random.Random) -> SlotCase:
    """One case."""
    unit = drawn.choice(["user-slot", "user-slot", "user-6h", "user"])
    statistic = drawn.choice(["mean", "variance", "distribution"])
    metric: dict[str, Any] = {
        "statistic": statistic, "relation": "add-remove", "slot": "1h", "start": "1970-01-01", "unit": unit,
        "end": f"1970-01-01T{SLOTS:02}:00:00Z", "epsilon": drawn.choice(["0.5", "1", "3", "7.3"]),
        "grid": drawn.choice([8, 1024]), "range": (LOW, HIGH), "max_contributions": drawn.choice([1, 2, 3, 5]),
    }  # fmt: skip
    if statistic == "distribution":
        metric["bins"] = drawn.choice([2, 3, 5, 8])
    if drawn.random() < 0.7:
        metric |= {"group": "g", "groups": list(KEYS[: drawn.choice([1, 2, 3])])}
    events = Stream(drawn.choice([1, 2, 4]), drawn.choice([6, 12, 30]), 3, drawn=drawn).make()
    events = [replace(event, time=drawn.randrange((SLOTS + 1) * HOUR)) for event in events]
    lengths = {"user-slot": HOUR, "user-6h": SIX_HOURS}
    is_mine = of_period(events, lengths[unit], drawn) if unit in lengths else of_user()
    return SlotCase(f"{statistic}/{unit}", metric, events, is_mine)
