"""Sums, means and slots in a worker of several partitions, which fall idle, wake late, are lost and taken over."""

import random
from dataclasses import replace

from tests.privacy.auditor.families import means, slots, sums
from tests.privacy.auditor.streams import Case

SOURCES = 3
MOST_EVENTS = 100


def draw(drawn: random.Random) -> Case:
    """A case of another family; one that releases at every contribution follows the order of the log."""
    kind = drawn.choice(["sums", "slots", "slots", "means"])
    case = {"sums": sums.draw, "slots": slots.draw, "means": means.draw}[kind](drawn)
    while case.metric.get("every") == "contribution":
        case = means.draw(drawn)
    return replace(case, label=kind, events=case.events[:MOST_EVENTS], sources=SOURCES)
