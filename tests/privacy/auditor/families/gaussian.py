"""Continual means with a delta: sharp and naive with Gaussian noise, and with what is chosen."""

import random
from dataclasses import replace
from fractions import Fraction

from tests.privacy.auditor.families import means, sharp
from tests.privacy.auditor.streams import Case

TICKS = 30  # at most as horizon: every element of an epoch has a draw


def draw(drawn: random.Random) -> Case:
    """One case."""
    delta = Fraction(drawn.choice(["0.01", "0.001", "1e-6"]))
    while True:
        case: Case = drawn.choice([sharp.draw, means.draw])(drawn)
        metric, hours = case.metric, str(case.metric.get("life", "1000h")).removesuffix("h")
        if metric["algorithm"] == "naive" or (metric["algorithm"] == "sharp" and int(hours) <= TICKS):
            break
    epsilons = ["1", "5"] if metric["algorithm"] == "naive" else ["5", "3000", "20000", "100000"]
    epsilon = drawn.choice(epsilons)
    return replace(
        case,
        label=f"{case.label}/delta",
        metric=metric | {"epsilon": epsilon},
        delta=delta,
        is_gaussian=drawn.random() < 0.8,
    )
