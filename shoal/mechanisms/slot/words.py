"""The guarantee of a statistic per slot in words: what is protected, and how slots and cells share epsilon."""

from collections.abc import Iterator

from shoal.mechanisms.parts.at import Slots
from shoal.mechanisms.parts.by import FewUsers
from shoal.mechanisms.parts.expect import expect
from shoal.mechanisms.parts.hides import PerCell
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.per import Field, Hexagons, Keys
from shoal.mechanisms.spec import PATTERN
from shoal.mechanisms.words import many

PLACES = "what a person did in a place is protected; that they were there, and when, is not"


def clauses(metric: Metric, loss: str) -> Iterator[str]:
    """Clauses of the guarantee: protected data, shares of slots and cells, caps."""
    limits, slot = expect(metric.hides.limits, PerCell), expect(metric.at, Slots)
    place = metric.per.place if isinstance(metric.per, Keys) else None
    yield PLACES if isinstance(place, Hexagons) else f"what a person did is protected; {PATTERN}"
    yield loss
    where = "group" if isinstance(place, Field) else "cell"
    if metric.unit.period != slot.length.microseconds:
        slots = many(limits.slots, "slot")
        yield f"a {metric.unit.words()} counts in at most {slots}, each with epsilon / {limits.slots}"
    if place is not None:
        share = "" if limits.cells == 1 else ", which share what the slot has"
        yield f"in a slot they count in at most {many(limits.cells, where)}{share}"
    yield f"with at most {many(metric.samples, 'sample')} in each"
    count = len(metric.fields.names) if metric.fields else 1
    if count > 1 and not isinstance(metric.by, FewUsers):
        yield f"all {count} coordinates of a value together"
    if metric.per.min_units > 1:
        few = f"{where}s with fewer than {many(metric.per.min_units, 'user')}"
        yield f"{few} are not released, which is a courtesy"
