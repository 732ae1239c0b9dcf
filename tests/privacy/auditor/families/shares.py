"""Means per slot by `best` with a share of epsilon for centre and spread: where it pays, with many users."""

import random
from typing import Any

from tests.privacy.auditor.streams import HOUR, Case, Stream, of_period

DAY = 24 * HOUR


def draw(drawn: random.Random) -> Case:
    """One case."""
    has_groups = drawn.random() < 0.3
    metric: dict[str, Any] = {
        "statistic": "mean", "slot": "1d", "grid": 1024, "epsilon": drawn.choice(["8", "20", "60"]),
        "spread_share": drawn.choice(["0.1", "0.3", "1/2", "0.9"]), "max_contributions": drawn.choice([1, 3, 8]),
        "clamp": False,
    }  # fmt: skip
    if has_groups:
        metric |= {"group": "g", "max_groups": 2, "across_cells": drawn.choice(["split", "chop-user"])}
    if drawn.random() < 0.4:
        metric["contribution_cap"] = drawn.choice([1, 2])
    if drawn.random() < 0.3:
        metric["lateness"] = "2h"
    stream = Stream(drawn.choice([12, 25]), 80, 2 if has_groups else 1, 1, drawn.random() < 0.3, drawn=drawn)
    events = stream.make()
    return Case("best/share", metric, events, of_period(events, DAY, drawn))
