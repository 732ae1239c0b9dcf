"""How far a time may be ahead of its record's timestamp where the configuration does not say it."""

from shoal.mechanisms.parts.lengths import Even
from shoal.mechanisms.parts.metric import Metric

# Microseconds. A clock that is fast by a minute is common, and one by a day would close a day of a daily metric.
LEAST_AHEAD, MOST_AHEAD = 5 * 60 * 10**6, 60 * 60 * 10**6


def ahead_by_default(length: Even | None) -> int:
    """Default of `max_ahead` in microseconds: `length`, but 5 min to 1 h."""
    return min(max(0 if length is None else length.microseconds, LEAST_AHEAD), MOST_AHEAD)


def default_ahead(metric: Metric) -> int:
    """`max_ahead` in microseconds of a metric whose file does not set it."""
    return ahead_by_default(metric.length)


def expects_times_ahead(metric: Metric) -> bool:
    """Whether `max_ahead` is set above its default, as for bookings."""
    return metric.source.max_ahead > default_ahead(metric)
