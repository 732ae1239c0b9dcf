"""The guarantee of what is released at every step under relation values, in words."""

from collections.abc import Iterator

from shoal.mechanisms.parts.hides import Events, Overall
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.of import PublicCount
from shoal.mechanisms.parts.per import Keys
from shoal.mechanisms.spec import PATTERN
from shoal.mechanisms.words import event_limit, many


def clauses(metric: Metric, loss: str) -> Iterator[str]:
    """Clauses of the guarantee: protected data, limits of a unit."""
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
