"""One number of a group over time, made ready for a chart: what holds when, how far its noise reaches, where gaps are.

The rules are those of the page (shoal/agents/dashboard/web/series.js), which draws the same in a browser: a release
holds until the next one, or is of its slot alone; gaps stay gaps; an axis shows the noise of all releases but those
with far more noise than most.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median_low

from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.of import Mean, Variance
from shoal.models.releases.record import Number, Release

FAR = 2.5  # an interval so many times as wide as the middle one is cut off
PAD = 0.07  # of the height, above and below
DAY = 86_400
STEPS = (1, 5, 15, 60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600, DAY, 2 * DAY, 7 * DAY, 14 * DAY)
MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 600, 6000)
OF_MEANS = (None, "gaussian", "laplace")  # mechanisms that means without a decay have, and nothing else
NONE, UNKNOWN = "none", "unknown"  # why a point has no value: there is no release, or nothing came yet


@dataclass(frozen=True, slots=True)
class Point:
    """What holds from a time to another one, in seconds since 1970."""

    begin: float
    end: float | None  # None: until the next one
    value: float
    low: float
    high: float
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Series:
    """The points of one number of a group, in order of time."""

    group: str | None
    name: str  # of the number among those of its release
    points: tuple[Point, ...]
    last: Number
    release: Release  # the last one

    @property
    def begin(self) -> float:
        return self.points[0].begin

    @property
    def end(self) -> float:
        """A little beyond the last release, for it holds until the next one; or the end of the last slot."""
        last = self.points[-1]
        if last.end is not None:
            return last.end
        step = last.begin - self.points[-2].begin if len(self.points) > 1 else 1
        return last.begin + (min(step, (last.begin - self.begin) * 0.03) if last.begin > self.begin else 1)


def is_mean(release: Release, metric: Metric | None) -> bool:
    """Whether a release is of a mean: by its configuration, or without one by its mechanism."""
    return release.mechanism in OF_MEANS if metric is None else isinstance(metric.of, Mean | Variance)


def series_of(group: str | None, name: str, releases: Sequence[Release], *, is_mean: bool) -> Series:
    """One number of a group's releases, which are in order of time."""
    slot = _slot(releases)
    points, last = [], Number("", None, None, None, None, None, None, None)
    for release in releases:
        found = next((number for number in release.numbers if number.name == name), None)
        last = last._replace(value=None, low=None, high=None) if found is None else found
        points.append(_point(release, last, slot, is_mean))
    return Series(group, name, tuple(points), last, releases[-1])


def _point(release: Release, number: Number, slot: float | None, is_mean: bool) -> Point:
    at = release.at.timestamp()
    begin = at if slot is None else at - slot
    end = None if slot is None else at
    if number.value is None:
        return Point(begin, end, 0.0, 0.0, 0.0, NONE)
    value = float(number.value)
    low, high = sorted(value if side is None else float(side) for side in (number.low, number.high))
    is_empty = is_mean and release.samples == 0
    return Point(begin, end, value, low, high, UNKNOWN if is_empty else "")


def _slot(releases: Sequence[Release]) -> float | None:
    """The length of a slot, of what is released once for each; of cells as short as two of them are apart."""
    if releases[0].users is None:
        return None
    times = [release.at.timestamp() for release in releases]
    apart = [after - before for before, after in zip(times, times[1:], strict=False) if after > before]
    return min(apart, default=3600.0) if releases[0].since is None else times[0] - releases[0].since.timestamp()


def thinned(points: Sequence[Point], most: int) -> list[Point]:
    """At most about so many: the last value of each stretch, with all that noise intervals reach in it. Gaps stay."""
    if len(points) <= most:
        return list(points)
    first, whole = points[0].begin, max(1e-9, points[-1].begin - points[0].begin)
    kept: list[Point] = []
    before = -1
    for point in points:
        place = math.floor((point.begin - first) / whole * most)
        if place != before or point.missing or kept[-1].missing:
            kept.append(point)
        else:
            old = kept[-1]
            low, high = min(old.low, point.low), max(old.high, point.high)
            kept[-1] = Point(old.begin, point.end, point.value, low, high)
        before = place
    return kept


def reach(series: Iterable[Series], *, zero: bool) -> tuple[float, float]:
    """What an axis shows of all of them."""
    known = [point for each in series for point in each.points if not point.missing]
    if not known:
        return 0.0, 1.0
    most = FAR * median_low([point.high - point.low for point in known]) + 1e-12
    shown = [point for point in known if point.high - point.low <= most]
    low, high = min(point.low for point in shown), max(point.high for point in shown)
    if zero:
        low, high = min(0.0, low), max(0.0, high)
    if high - low < 1e-9 * max(1.0, abs(high)):
        margin = abs(high) * 0.05 or 1.0
        low, high = low - margin, high + margin
    pad = (high - low) * PAD
    return (0.0 if zero and low == 0 else low - pad), (0.0 if zero and high == 0 else high + pad)


def ticks(low: float, high: float, count: float) -> list[float]:
    """At most about `count` round numbers between two.

    >>> ticks(0, 10, 5), ticks(-0.2, 0.35, 3)
    ([0.0, 2.0, 4.0, 6.0, 8.0, 10.0], [-0.2, 0.0, 0.2])
    """
    raw = (high - low) / max(1.0, count)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-6)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return [round(number * step, digits) + 0.0 for number in range(first, last + 1)]
