"""The guarantee of sums of samples in words: whose, which keys are shown and when, and how exact a count is."""

import math
from collections.abc import Iterator, Sequence

from shoal.mechanisms.bins.tree import even_tree
from shoal.mechanisms.error_bars import six_digits
from shoal.mechanisms.life import expected_releases
from shoal.mechanisms.linear import bounding
from shoal.mechanisms.parts.expect import expect
from shoal.mechanisms.parts.hides import AddRemove, Events, Overall
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.of import Count, Distribution, PublicCount, Sum, Users
from shoal.mechanisms.parts.per import Keys, One
from shoal.mechanisms.parts.unit import Unit
from shoal.mechanisms.selection.first_crossing import FirstCrossing
from shoal.mechanisms.spec import PATTERN
from shoal.mechanisms.sums.sums import DecayedSum
from shoal.mechanisms.words import event_limit, exact_text, many, number


def clauses(metric: Metric, loss: str, decayed: Sequence[DecayedSum]) -> Iterator[str]:
    """Clauses of the guarantee; `decayed`: the sum of each noised side."""
    return _of_presence(metric, loss, decayed) if metric.protects_presence else _of_values(metric, loss)


def _of_values(metric: Metric, loss: str) -> Iterator[str]:
    """What is protected, and the limits of a unit."""
    is_public, limits = isinstance(metric.of, PublicCount), metric.hides.limits
    if is_public:
        yield f"a count is exact, public and for free: {PATTERN}"
    else:
        yield loss
        yield PATTERN
    if isinstance(limits, Events):
        yield from event_limit(limits.of_a_user)
    elif isinstance(metric.per, Keys) and isinstance(limits, Overall):
        split = "" if is_public else ", so that epsilon is not split"
        yield (
            f"a {metric.unit.words()} counts in at most {many(limits.keys, 'group')}, with at most "
            f"{limits.samples} samples in all{split}"
        )


def _of_presence(metric: Metric, loss: str, decayed: Sequence[DecayedSum]) -> Iterator[str]:
    """What is protected, which keys are released, and how exact the count is."""
    yield loss
    over = "" if isinstance(metric.per, One) else ", over all keys together"
    yield f"at most {many(metric.samples, 'sample')} of a {metric.unit.words()} count{over}"
    selection = bounding.selection_of(metric)
    if selection is not None:
        yield from _found(metric.unit, selection)
    elif (declared := bounding.declared_of(metric)) is not None:
        yield (
            f"the {many(len(declared), 'key')} of groups are public, and released from start on whether anybody has "
            "them or not; records of other keys do not count"
        )
    if (clip := bounding.clip_of(metric)) is not None:
        yield (
            f"where the range ends is chosen for each key with epsilon = {exact_text(clip.cost)} of that, from the "
            f"first value of each {metric.unit.words()}, once about {clip.needed:,} have come to it; until then "
            "neither value nor count is released, and from then on what lies above counts as that end"
        )
    if (sd := count_sd(metric, decayed, releases(metric))) is not None:
        is_count = isinstance(metric.of, Count | Users)
        what = "the value" if is_count else "the number of samples, which is released beside the value,"
        yield f"{what} has noise of standard deviation {number(six_digits(sd))} after {releases(metric):,} releases"


def _found(unit: Unit, selection: FirstCrossing) -> Iterator[str]:
    whose = f"{'an' if unit.is_event else 'a'} {unit.words()}"
    # A metric that ends has one threshold in all its steps; in one that goes on it rises with every doubling.
    later = "" if selection.ends else f" ({people(selection, selection.horizon * 8)} at 8 times the life)"
    yield (
        f"keys that nobody declared are found with epsilon = {exact_text(selection.epsilon)} of that and its delta: "
        f"one is shown, for ever, once about {people(selection, 1)} have come to it, each {whose}{later}"
    )
    own = "its first key" if len(selection.weights) == 1 else f"its first {len(selection.weights)} keys"
    yield f"{whose} counts so for {own}, and with its samples in every key that is shown"


def people(selection: FirstCrossing, tick: int) -> int:
    """About how many units, with their first key there, a key needs to be shown: the threshold, rounded up."""
    return -(-selection.threshold(tick) // selection.weights[0])


def releases(metric: Metric) -> int:
    """Number of releases of a key up to the metric's `end`, or expected over its life if it has no `end`."""
    hides, length = expect(metric.hides, AddRemove), metric.every
    if hides.end is not None:
        return max(1, length.index(hides.end) - length.index(hides.start))
    return expected_releases(metric)


def side_sd(metric: Metric, decayed: Sequence[DecayedSum], t: int) -> float:
    """The standard deviation of the noise in each side's sum of release t; a sample adds 1 to all sides together."""
    sums = decayed[0]
    return float(sums.noise_sd(t) * bounding.unit_samples(metric) / sums.width)


def count_sd(metric: Metric, decayed: Sequence[DecayedSum], t: int) -> float | None:
    """The standard deviation of the noise in the number of samples, of release t; None where none is released."""
    sides = len(decayed)
    if isinstance(metric.of, Distribution):
        return float(decayed[0].noise_sd(t)) * math.sqrt(even_tree(metric.of.bins).total_variance)
    if isinstance(metric.of, Sum) and sides == 1:
        return None
    return side_sd(metric, decayed, t) * math.sqrt(sides)
