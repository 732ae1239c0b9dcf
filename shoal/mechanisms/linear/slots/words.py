"""The guarantee of a statistic per slot under relation add-remove in words: whose, which cells, how exact a count."""

from collections.abc import Iterator

from shoal.mechanisms.error_bars import six_digits
from shoal.mechanisms.linear.bounding import declared_of
from shoal.mechanisms.linear.slots import bounding
from shoal.mechanisms.linear.words import people
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.per import Keys
from shoal.mechanisms.selection.first_crossing import FirstCrossing
from shoal.mechanisms.words import exact_text, many, number


def clauses(metric: Metric, loss: str, count_sd: float) -> Iterator[str]:
    """What is protected, which cells are released, and how exact the count is."""
    unit, slot = metric.unit, metric.every.microseconds
    yield loss
    shared = ["cells"] * isinstance(metric.per, Keys) + ["slots"] * (unit.period != slot)
    where = f", over all {' and '.join(shared)} together" if shared else ""
    yield f"at most {many(metric.samples, 'sample')} of a {unit.words()} count{where}"
    selection = bounding.selection_of(metric)
    if selection is not None:
        yield from _found(unit.words(), selection)
    elif (declared := declared_of(metric)) is not None:
        yield (
            f"the {many(len(declared), 'cell')} of groups are public, and released in every slot from start on "
            "whether anybody is there or not; records elsewhere do not count"
        )
    yield (
        "the number of samples, which is released beside the value, has noise of standard deviation "
        f"{number(six_digits(count_sd))} in each slot"
    )


def _found(unit: str, selection: FirstCrossing) -> Iterator[str]:
    count = len(selection.weights)
    yield (
        f"cells that nobody declared are found in each slot anew, with epsilon = {exact_text(selection.epsilon)} of "
        f"that and its delta: one is released once about {people(selection, 1)} have come to it, each a {unit}"
    )
    own = "the first cell of a slot" if count == 1 else f"the first {count} cells of slots"
    yield f"a {unit} counts so for {own} that they are in, and with their samples in every cell that is released"
