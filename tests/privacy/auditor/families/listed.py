"""Sums and means with listed weights: the units, groups and manners of sums, with tables and formulas for decays."""

import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tests.privacy.auditor.families import sums
from tests.privacy.auditor.streams import Case

FORMULAS = ("1/(1+i)^4", "exp(-i)", "0.3^(i+1)")


def draw(drawn: random.Random) -> Case:
    """One case."""
    case = sums.draw(drawn)
    metric = {key: value for key, value in case.metric.items() if key not in ("life", "decay")}
    kind, decay = _decay(drawn)
    algorithm = drawn.choice(["sharp", "patent"])
    metric |= {"decay": {"kind": kind} | decay, "algorithm": algorithm}
    return replace(case, label=f"{algorithm}/{kind}", metric=metric, delta=Fraction(0))


def _decay(drawn: random.Random) -> tuple[str, dict[str, Any]]:
    if drawn.random() < 0.3:
        return "formula", {"weight": drawn.choice(FORMULAS), "horizon": "8h"}
    if drawn.random() < 0.2:  # so long that trees are better than a draw per step
        return "table", {"weights": [1] * drawn.choice([20, 30])}
    weights = sorted((Fraction(drawn.randint(0, 8), 8) for _ in range(drawn.choice([1, 3, 8]))), reverse=True)
    return "table", {"weights": [str(weight) for weight in (Fraction(1), *weights)]}
