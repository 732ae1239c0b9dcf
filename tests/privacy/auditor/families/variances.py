"""Variances: the decays, units, groups and manners of sums."""

import random
from dataclasses import replace
from fractions import Fraction

from tests.privacy.auditor.families import sums
from tests.privacy.auditor.streams import Case


def draw(drawn: random.Random) -> Case:
    """One case."""
    case = sums.draw(drawn)
    while case.label.endswith("/all-windows"):
        case = sums.draw(drawn)
    return replace(case, metric=case.metric | {"statistic": "variance", "clamp": False}, delta=Fraction(0))
