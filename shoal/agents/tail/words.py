"""A release or an activation in a line, its numbers with as many digits as their noise leaves meaning in.

Names of groups come from events: nothing in them reaches a terminal but what can be printed.
"""

from collections.abc import Mapping
from typing import Any

from shoal.agents.reading.series import is_mean
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.of import Mean
from shoal.models.printable import printable
from shoal.models.records import CLIP, SHOWN
from shoal.models.releases.digits import interval, reach, short, when
from shoal.models.releases.record import Activation, Release
from shoal.models.times import iso

GAP = "  "


class Columns:
    """Lines whose columns are as wide as anything that was in them."""

    def __init__(self) -> None:
        self._widths: list[int] = []

    def line(self, record: Release | Activation, metrics: Mapping[str, Metric]) -> str:
        """One line: time, metric, group, and what is said; of what has no group the column is empty."""
        cells = [when(iso(record.time)), printable(record.metric), printable(record.group or "")]
        self._widths = self._widths or [0] * len(cells)
        self._widths = [max(width, len(cell)) for width, cell in zip(self._widths, cells, strict=True)]
        begun = [cell.ljust(width) for cell, width in zip(cells, self._widths, strict=True) if width]
        return GAP.join([*begun, said(record, metrics.get(record.metric))])


def said(record: Release | Activation, metric: Metric | None) -> str:
    """What a release or an activation says beside time, metric and group."""
    if isinstance(record, Activation):
        return activation(record)
    is_current = metric is not None and metric.version == record.version
    parts = [value(record, metric if is_current else None), counted(record), left_out(record)]
    parts.append("" if metric is None or is_current else f"version {record.version}")
    return GAP.join(filter(None, parts))


def value(release: Release, metric: Metric | None) -> str:
    """The value with its interval, or why there is none."""
    samples, deviation = release.counted
    if release.value is None:
        return "no release" if deviation is None else "no release: too few samples for the noise"
    if is_mean(release, metric) and samples == 0 and deviation is None:
        return "nothing known yet"  # the middle of the range
    texts = [GAP.join(filter(None, [name, interval(part)])) for part, name in zip(*release.parts(), strict=True)]
    if isinstance(release.value, Mapping) and "histogram" in release.value:
        bins = release.value["histogram"]
        shares = f"shares of {len(bins) if isinstance(bins, list) else 0} bins: --json"
        texts = [*(texts if release.value.get("quantiles") else []), shares]
    return ";  ".join(texts) + drowned(release, metric)


def drowned(release: Release, metric: Metric | None) -> str:
    """Why the value of a mean says nothing: its noise interval holds the range, or only an end of it."""
    low, high = release.low, release.high
    if metric is None or not isinstance(metric.of, Mean):
        return ""
    if not isinstance(low, int | float) or not isinstance(high, int | float):
        return ""
    least, most = metric.ranges[0]
    if low <= least and most <= high:
        return "  says nothing: its noise is wider than the range"
    is_outside = low < high and (high <= least or most <= low)
    return "  says nothing: its noise took it out of the range" if is_outside else ""


def counted(release: Release) -> str:
    """Number of samples that the value rests on; empty if the release states none."""
    samples, deviation = release.counted
    if samples is None:
        return ""
    if deviation is not None:
        return f"about {short(samples, 2 * deviation)} ± {reach(2 * deviation)} samples"
    number = short(round(samples, 2), 0)
    return f"{number} sample{'' if number == '1' else 's'}"


def left_out(release: Release) -> str:
    """How many samples of a cell were left out, if any were."""
    return f"{short(release.dropped, 0)} left out" if release.dropped else ""


def activation(record: Activation) -> str:
    """What begins with this tick.

    >>> activation(Activation({"kind": "clip", "high": 20.0}, 0))
    'values are clipped to 20 from here on'
    >>> activation(Activation({"level": 3, "prior": 34.61}, 0))
    'blocks of level 3 count from here on, clipped around 34.61'
    """
    if record.kind == SHOWN:
        return "is shown from here on"
    if record.kind == CLIP:
        return f"values are clipped to {_plain(record.high)} from here on"
    around = "" if record.prior is None else f", clipped around {_plain(record.prior)}"
    return f"blocks of level {record.level} count from here on{around}"


def _plain(found: Any) -> str:
    if isinstance(found, tuple):
        return ", ".join("none" if each is None else _plain(each) for each in found)
    return f"{found:.6g}" if isinstance(found, int | float) else printable(str(found))
