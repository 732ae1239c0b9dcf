"""Sums and means of predicates: the decays, units, groups and manners of sums, of what holds of a field."""

import random
from dataclasses import replace

from tests.privacy.auditor.families import sums
from tests.privacy.auditor.streams import Case

PREDICATES = ("x > 512", "not x < 64.5", "x == 0 or x >= 1024", "x != 300 and x > -1e9", "x > 7.5 and not x == 1e9")


def draw(drawn: random.Random) -> Case:
    """One case."""
    case = sums.draw(drawn)
    return replace(case, metric=case.metric | {"value": drawn.choice(PREDICATES), "range": (0, 1)})
