"""Lines of a check on how long metrics are expected to run, and how long a mean waits before it begins."""

from collections.abc import Iterable, Iterator

from shoal.mechanisms.forecast.mean_source import one_mean
from shoal.mechanisms.life import DAY, in_words, is_default, uses_life
from shoal.mechanisms.parts.at import Ticks
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.words import exact_duration

SHORTER = "life is 365d, by default: a trial of a day begins sooner and has less noise with life = '1d'"


def lives(metrics: Iterable[Metric]) -> Iterator[str]:
    """Lines on the life of each metric whose counters are made for it, its longest wait, and a life for trials."""
    for metric in metrics:
        if uses_life(metric):
            yield f'metric "{metric.name}": {in_words(metric)}'
            yield from _wait(metric)
            if is_default(metric) and metric.length is not None and metric.length.microseconds < DAY:
                yield f'metric "{metric.name}": {SHORTER}'


def _wait(metric: Metric) -> Iterator[str]:
    """Line on the longest time from the first event of a mean's group to releases that rest on samples."""
    if not isinstance(metric.at, Ticks):
        return
    ticks = max(one_mean(metric, coordinate).latest(0) for coordinate in range(len(metric.names)))
    longest = exact_duration(metric.at.length.span(ticks))
    yield (
        f'metric "{metric.name}": a group begins with its first release from {longest} after its first event on; until '
        "then its releases are the middle of the range, and `waiting` says until when"
    )
