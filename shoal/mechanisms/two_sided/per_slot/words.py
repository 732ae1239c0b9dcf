"""The guarantee of a statistic per slot under relation add-remove in words: whose, which cells, how exact a count."""

from collections.abc import Iterator

from shoal.mechanisms.error_bars import six_digits
from shoal.mechanisms.selection.first_crossing import FirstCrossing
from shoal.mechanisms.spec import Spec
from shoal.mechanisms.two_sided.per_slot import keys
from shoal.mechanisms.two_sided.words import people
from shoal.mechanisms.words import exact_text, many, number


def clauses(spec: Spec, loss: str, count_sd: float) -> Iterator[str]:
    """What is protected, which cells are released, and how exact the count is."""
    unit = spec.privacy_unit
    yield loss
    shared = ["cells"] * keys.has_cells(spec) + ["slots"] * (unit.period != spec.slot)
    where = f", over all {' and '.join(shared)} together" if shared else ""
    yield f"at most {many(spec.contribution_limit, 'sample')} of a {unit.words()} count{where}"
    selection = keys.selection_of(spec)
    if selection is not None:
        yield from _found(spec, selection)
    elif spec.groups is not None:
        yield (
            f"the {many(len(spec.groups), 'cell')} of groups are public, and released in every slot from start on "
            "whether anybody is there or not; records elsewhere do not count"
        )
    yield (
        "the number of samples, which is released beside the value, has noise of standard deviation "
        f"{number(six_digits(count_sd))} in each slot"
    )


def _found(spec: Spec, selection: FirstCrossing) -> Iterator[str]:
    unit, count = spec.privacy_unit.words(), len(selection.weights)
    yield (
        f"cells that nobody declared are found in each slot anew, with epsilon = {exact_text(selection.epsilon)} of "
        f"that and its delta: one is released once about {people(selection, 1)} have come to it, each a {unit}"
    )
    own = "the first cell of a slot" if count == 1 else f"the first {count} cells of slots"
    yield f"a {unit} counts so for {own} that they are in, and with their samples in every cell that is released"
