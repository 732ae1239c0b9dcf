"""The guarantee of relation add-remove in words: whose, which keys are shown and when, and how exact a count is."""

import math
from collections.abc import Iterator

from shoal.mechanisms.bins.shares import BINS
from shoal.mechanisms.bins.tree import even_tree
from shoal.mechanisms.error_bars import six_digits
from shoal.mechanisms.selection.first_crossing import FirstCrossing
from shoal.mechanisms.spec import DISTRIBUTION, Spec
from shoal.mechanisms.stepped.statistic import SteppedStatistic
from shoal.mechanisms.two_sided import keys
from shoal.mechanisms.words import exact_text, many, number

COUNTED = ("count", "users")  # statistics whose value is itself the count


def clauses(spec: Spec, loss: str, statistic: SteppedStatistic) -> Iterator[str]:
    """What is protected, which keys are released, and how exact the count is."""
    unit = spec.privacy_unit
    yield loss
    over = "" if spec.group is None else ", over all keys together"
    yield f"at most {many(spec.contribution_limit, 'sample')} of a {unit.words()} count{over}"
    selection = keys.selection_of(spec)
    if selection is not None:
        yield from _found(spec, selection)
    elif spec.groups is not None:
        yield (
            f"the {many(len(spec.groups), 'key')} of groups are public, and released from start on whether anybody has "
            "them or not; records of other keys do not count"
        )
    if (clip := keys.clip_of(spec)) is not None:
        yield (
            f"where the range ends is chosen for each key with epsilon = {exact_text(clip.cost)} of that, from the "
            f"first value of each {unit.words()}, once about {clip.needed:,} have come to it; until then neither value "
            "nor count is released, and from then on what lies above counts as that end"
        )
    if (sd := count_sd(spec, statistic, releases(spec))) is not None:
        what = (
            "the value" if spec.statistic in COUNTED else "the number of samples, which is released beside the value,"
        )
        yield f"{what} has noise of standard deviation {number(six_digits(sd))} after {releases(spec):,} releases"


def _found(spec: Spec, selection: FirstCrossing) -> Iterator[str]:
    unit = spec.privacy_unit
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


def releases(spec: Spec) -> int:
    """Number of releases of a key up to the metric's `end`, or expected over its life if it has no `end`."""
    if spec.end is not None:
        return max(1, (spec.end - (spec.start or 0)) // (spec.cadence or 1))
    return spec.expected_releases


def side_sd(spec: Spec, statistic: SteppedStatistic, t: int) -> float:
    """The standard deviation of the noise in each side's sum of release t; a sample adds 1 to all sides together."""
    sums = statistic.decayed[0]
    return float(sums.noise_sd(t) * keys.unit_samples(spec) / sums.width)


def count_sd(spec: Spec, statistic: SteppedStatistic, t: int) -> float | None:
    """The standard deviation of the noise in the number of samples, of release t; None where none is released."""
    sides = len(statistic.decayed)
    if spec.statistic == DISTRIBUTION:
        return float(statistic.decayed[0].noise_sd(t)) * math.sqrt(even_tree(spec.bins or BINS).total_variance)
    if spec.statistic == "sum" and sides == 1:
        return None
    return side_sd(spec, statistic, t) * math.sqrt(sides)
