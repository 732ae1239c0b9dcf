"""Sums and means with forward decay: the units, groups and manners of sums."""

import random
from dataclasses import replace
from fractions import Fraction

from tests.privacy.auditor.families import sums
from tests.privacy.auditor.streams import Case


def draw(drawn: random.Random) -> Case:
    """One case."""
    case = sums.draw(drawn)
    decay = {"kind": "forward", "exponent": drawn.choice(["0.25", "0.5", "1", "1.5", "2", "16"])}
    metric = dict(case.metric) | {"decay": decay, "algorithm": "sharp"}
    metric.pop("life", None)
    if drawn.random() < 0.6:
        metric["life"] = f"{drawn.choice([3, 10, 30, 200])}h"
    return replace(case, label="forward", metric=metric, delta=Fraction(0))
