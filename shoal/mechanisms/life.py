"""Life of a metric: how long it is expected to run, and how many releases of a group are expected in that time.

Life and releases are public, and tune accuracy alone: the guarantee is the same before the end of a life and beyond it.
"""

from collections.abc import Iterator

from shoal.mechanisms.spec import PER_SLOT, Spec
from shoal.mechanisms.words import exact_duration

DAY = 86_400_000_000  # microseconds
DEFAULT = 365 * DAY
UNKNOWN_USERS = 1000  # of a group, where a release per contribution needs a number and `users` is missing
MOST = 1 << 40  # releases expected, where there is one per contribution
GROWING = ("none", "all-windows", "forward")  # decays under which noise grows with the number of releases


def life_of(spec: Spec) -> int:
    """Life of a metric in microseconds: `life` if stated, else the time from `start` to `end`, else 365 days."""
    if spec.life is not None:
        return spec.life
    if spec.start is not None and spec.end is not None:
        return spec.end - spec.start
    return DEFAULT


def is_default(spec: Spec) -> bool:
    """Whether neither `life` nor both `start` and `end` are stated, so that 365 days are assumed."""
    return spec.life is None and (spec.start is None or spec.end is None)


def expected_releases(spec: Spec) -> int:
    """Releases expected of a group over the metric's life, at least 1.

    With a release per contribution: all contributions that `users` users may make, or 1,000 users if it is missing.
    """
    if spec.cadence is None:
        return min((spec.users or UNKNOWN_USERS) * spec.contribution_limit, MOST)
    return max(1, -(-life_of(spec) // spec.cadence))


def uses_life(spec: Spec) -> bool:
    """Whether counters of the metric are made for its life: their noise grows with the number of releases."""
    if spec.statistic in PER_SLOT or spec.cadence is None or spec.decay_or_none.kind not in GROWING:
        return False
    return spec.protects_presence or (spec.algorithm == "sharp" and spec.statistic != "count")


def in_words(spec: Spec) -> str:
    """Sentence on a metric's life: its length, whether that is the default, and the releases expected of a group."""
    how = ", by default" if is_default(spec) else ""
    return f"life is {exact_duration(life_of(spec))}{how}: {expected_releases(spec):,} releases of a group are expected"


def remarks(spec: Spec) -> Iterator[str]:
    """Remark of a plan on the life of a metric, if counters are made for it."""
    if uses_life(spec):
        yield f"{in_words(spec)}, for which counters are made."
