"""Sums and means over windows of updates: the units, groups and manners of sums, with few events and long silences."""

import random
from dataclasses import replace
from fractions import Fraction

from tests.privacy.auditor.families import sums
from tests.privacy.auditor.streams import Case


def draw(drawn: random.Random) -> Case:
    """One case."""
    case = sums.draw(drawn)
    metric = {key: value for key, value in case.metric.items() if key not in ("life", "decay")}
    algorithm = drawn.choice(["sharp", "patent"])
    metric |= {"decay": {"kind": "window", "updates": drawn.choice([1, 2, 3, 5, 8])}, "algorithm": algorithm}
    metric |= {"max_gap": drawn.choice([1, 3, 20])}
    return replace(case, label=f"{algorithm}/updates", metric=metric, delta=Fraction(0))
