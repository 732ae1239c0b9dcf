"""Variances with listed weights: the units, groups and manners of sums, with tables and formulas for decays."""

import random
from dataclasses import replace

from tests.privacy.auditor.families import listed
from tests.privacy.auditor.streams import Case


def draw(drawn: random.Random) -> Case:
    """One case."""
    case = listed.draw(drawn)
    return replace(case, metric=case.metric | {"statistic": "variance", "clamp": False})
