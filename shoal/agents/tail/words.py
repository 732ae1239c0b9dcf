"""A release or an activation in a line, its numbers with as many digits as their noise leaves meaning in.

Names of groups come from events: nothing in them reaches a terminal but what can be printed.
"""

from collections.abc import Mapping
from typing import Any

from shoal.agents.dashboard.book import Release, release_of
from shoal.agents.reading.digits import interval, reach, short, when
from shoal.agents.reading.fields import OF_MEANS, parts_of
from shoal.models.config.metric import MetricSection
from shoal.models.printable import printable
from shoal.models.records import CLIP, SHOWN

GAP = "  "


class Columns:
    """Lines whose columns are as wide as anything that was in them."""

    def __init__(self) -> None:
        self._widths: list[int] = []

    def line(self, fields: dict[str, Any], sections: Mapping[str, MetricSection]) -> str:
        """One line: time, metric, group, and what is said; of what has no group the column is empty."""
        group = fields.get("group")
        cells = [when(fields["at"]), printable(fields["metric"]), printable(group if isinstance(group, str) else "")]
        self._widths = self._widths or [0] * len(cells)
        self._widths = [max(width, len(cell)) for width, cell in zip(self._widths, cells, strict=True)]
        begun = [cell.ljust(width) for cell, width in zip(cells, self._widths, strict=True) if width]
        return GAP.join([*begun, said(fields, sections.get(fields["metric"]))])


def said(fields: dict[str, Any], section: MetricSection | None) -> str:
    """What a release or an activation says beside time, metric and group."""
    release = release_of(fields)
    if release is None:
        return activation(fields)
    is_current = section is not None and section.version == release.version
    known = section if is_current else None
    parts = [value(fields, release, known), counted(release, fields.get("samples")), left_out(release)]
    parts.append("" if section is None or is_current else f"version {release.version}")
    return GAP.join(filter(None, parts))


def value(fields: dict[str, Any], release: Release, section: MetricSection | None) -> str:
    """The value with its interval, or why there is none."""
    if fields["value"] is None:
        few = release.samples_sd is not None
        return "no release: too few samples for the noise" if few else "no release"
    if is_empty(fields, release, section):
        return "nothing known yet"
    parts, names = parts_of(fields)
    texts = [GAP.join(filter(None, [name, interval(part)])) for part, name in zip(parts, names, strict=True)]
    if isinstance(fields["value"], dict) and "histogram" in fields["value"]:
        bins = fields["value"]["histogram"]
        shares = f"shares of {len(bins) if isinstance(bins, list) else 0} bins: --json"
        texts = [*(texts if fields["value"].get("quantiles") else []), shares]
    return ";  ".join(texts) + drowned(fields, section)


def is_empty(fields: dict[str, Any], release: Release, section: MetricSection | None) -> bool:
    """Whether it is a mean of no samples: its value is the middle of the range, and says nothing."""
    is_mean = fields.get("mechanism") in OF_MEANS if section is None else "mean" in section.statistic
    return is_mean and release.samples == 0 and release.samples_sd is None


def drowned(fields: dict[str, Any], section: MetricSection | None) -> str:
    """Why the value of a mean says nothing: its noise interval holds the range, or only an end of it."""
    low, high = fields.get("low"), fields.get("high")
    is_mean = section is not None and section.statistic in ("mean", "slot-mean")
    if section is None or not is_mean or not isinstance(low, int | float) or not isinstance(high, int | float):
        return ""
    least, most = section.ranges[0]
    if low <= least and most <= high:
        return "  says nothing: its noise is wider than the range"
    is_outside = low < high and (high <= least or most <= low)
    return "  says nothing: its noise took it out of the range" if is_outside else ""


def counted(release: Release, samples: Any) -> str:
    """On how many samples the value rests, as far as that is told; of several coordinates for each."""
    if isinstance(samples, list):
        return f"{_plain(samples)} samples"
    if release.samples is None:
        return ""
    if release.samples_sd is not None:
        margin = 2 * release.samples_sd
        return f"about {short(release.samples, margin)} ± {reach(margin)} samples"
    number = short(round(release.samples, 2), 0)
    return f"{number} sample{'' if number == '1' else 's'}"


def left_out(release: Release) -> str:
    """How many samples of a cell were left out, if any were."""
    dropped = release.extras.get("dropped")
    return f"{short(dropped, 0)} left out" if isinstance(dropped, int | float) and dropped else ""


def activation(fields: dict[str, Any]) -> str:
    """What begins with this tick.

    >>> activation({"kind": "shown", "epsilon": 0.5}), activation({"kind": "clip", "high": 20.0, "epsilon": 0.22})
    ('is shown from here on', 'values are clipped to 20 from here on')
    >>> activation({"level": 3, "prior": 34.61})
    'blocks of level 3 count from here on, clipped around 34.61'
    """
    match fields.get("kind"):
        case kind if kind == SHOWN:
            return "is shown from here on"
        case kind if kind == CLIP:
            return f"values are clipped to {_plain(fields.get('high'))} from here on"
    prior = fields.get("prior")
    around = "" if prior is None else f", clipped around {_plain(prior)}"
    return f"blocks of level {_plain(fields.get('level'))} count from here on{around}"


def _plain(found: Any) -> str:
    if isinstance(found, list):
        return ", ".join("none" if each is None else _plain(each) for each in found)
    return f"{found:.6g}" if isinstance(found, int | float) else printable(str(found))
