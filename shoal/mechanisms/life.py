"""Life of a metric: how long it is expected to run, and how many releases of a group are expected in that time.

Life and releases are public, and tune accuracy alone: the guarantee is the same before the end of a life and beyond it.
"""

from collections.abc import Iterator

from shoal.mechanisms.parts.at import AllWindows, At, EachContribution, Forward, Steps, Ticks, Undecayed
from shoal.mechanisms.parts.by import Sharp
from shoal.mechanisms.parts.hides import AddRemove
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.of import PublicCount
from shoal.mechanisms.words import exact_duration

DAY = 86_400_000_000  # microseconds
DEFAULT = 365 * DAY
UNKNOWN_USERS = 1000  # of a group, where a release per contribution needs a number and `users` is missing
MOST = 1 << 40  # releases expected, where there is one per contribution


def life_of(metric: Metric) -> int:
    """Life of a metric in microseconds: `life` if stated, else the time from `start` to `end`, else 365 days."""
    stated = _stated(metric)
    return DEFAULT if stated is None else stated


def is_default(metric: Metric) -> bool:
    """Whether neither `life` nor both `start` and `end` are stated, so that 365 days are assumed."""
    return _stated(metric) is None


def stated_life(metric: Metric) -> int | None:
    """Life that the metric states by key `life`, in microseconds; None: it does not."""
    return metric.at.life if isinstance(metric.at, Ticks | Steps) else None


def _stated(metric: Metric) -> int | None:
    stated = stated_life(metric)
    if stated is not None:
        return stated
    if isinstance(metric.hides, AddRemove) and metric.hides.end is not None:
        return metric.hides.end - metric.hides.start
    return None


def expected_releases(metric: Metric) -> int:
    """Releases expected of a group over the metric's life, at least 1.

    With a release per contribution: all contributions that `users` users may make, or 1,000 users if it is missing.
    """
    if isinstance(metric.at, EachContribution):
        return min((metric.by.users or UNKNOWN_USERS) * metric.samples, MOST)
    return max(1, metric.at.length.count(life_of(metric)))


def uses_life(metric: Metric) -> bool:
    """Whether counters of the metric are made for its life: their noise grows with the number of releases."""
    if not _grows(metric.at):
        return False
    return isinstance(metric.hides, AddRemove) or (
        isinstance(metric.by, Sharp) and not isinstance(metric.of, PublicCount)
    )


def _grows(at: At) -> bool:
    return isinstance(at, Ticks) or (isinstance(at, Steps) and isinstance(at.decay, Undecayed | AllWindows | Forward))


def in_words(metric: Metric) -> str:
    """Sentence on a metric's life: its length, whether that is the default, and the releases expected of a group."""
    how = ", by default" if is_default(metric) else ""
    releases = f"{expected_releases(metric):,}"
    return f"life is {exact_duration(life_of(metric))}{how}: {releases} releases of a group are expected"


def remarks(metric: Metric) -> Iterator[str]:
    """Remark of a plan on the life of a metric, if counters are made for it."""
    if uses_life(metric):
        yield f"{in_words(metric)}, for which counters are made."
