"""Releases as a chart for a notebook: SVG in HTML, without scripts, styles or anything from elsewhere.

Text and lines of the grid have the colour of the text around them, so that it is at home on light and on dark pages.
It is honest as the dashboard's page is: every number with its noise interval, with no more digits than the noise leaves
meaning in, and said where the noise drowns it. Names come from events: they go in as text, never as markup.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html import escape
from typing import TYPE_CHECKING

from shoal.agents.guarantee import words_of
from shoal.agents.reading.series import (
    DAY,
    MONTHS,
    NONE,
    STEPS,
    UNKNOWN,
    Point,
    Series,
    is_mean,
    reach,
    series_of,
    thinned,
    ticks,
)
from shoal.mechanisms.parts.of import Count, PublicCount, Sum, Users
from shoal.models.loss_words import brief_of_release
from shoal.models.printable import printable
from shoal.models.releases.digits import interval, short, when
from shoal.models.releases.numbers import part_of
from shoal.models.releases.record import OF_BINS, QUANTILE, Release
from shoal.models.times import EPOCH, iso, iso_of

if TYPE_CHECKING:
    from shoal.agents.reading.source import MetricOf
    from shoal.mechanisms.parts.metric import Metric

MOST_METRICS, MOST_PANELS = 8, 12
WIDTH, HEIGHT = 660, 190  # of one panel alone
SMALL_WIDTH, SMALL_HEIGHT = 320, 120
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 8, 22
ACCENT = "#14838c"  # seen well on white and on black
FIRST, LAST = -62_135_596_800, 253_402_300_799  # seconds since 1970 of the years 1 to 9999
QUIET = "opacity:.75"
EXACT = "exact"
LEGEND = (
    "Line: what was published, until the next release. Band: the noise interval; 95 % of the noise stays within it."
)


@dataclass(frozen=True)
class Figure:
    """The releases of one metric, of its newest version."""

    name: str
    metric: "Metric | None"
    series: tuple[Series, ...]
    all_of_them: int  # series that there are

    @property
    def last(self) -> Release:
        return max((each.release for each in self.series), key=lambda release: release.at)

    @property
    def is_exact(self) -> bool:
        return self.last.mechanism == EXACT


def html_of(releases: Sequence[Release], metric_of: "MetricOf") -> str:
    """The chart of all metrics, one below the other."""
    if not releases:
        return "<div>no releases</div>"
    by_metric: dict[str, list[Release]] = {}
    for release in releases:
        by_metric.setdefault(release.metric, []).append(release)
    names = sorted(by_metric)
    figures = [_figure(name, by_metric[name], metric_of) for name in names[:MOST_METRICS]]
    more = [f"and {len(names) - MOST_METRICS:,} more metrics: only(metric=...) chooses"] if names[MOST_METRICS:] else []
    has_unknown = any(point.missing == UNKNOWN for each in figures for one in each.series for point in one.points)
    notes = [*more, LEGEND + (" Grey: nothing known yet." if has_unknown else "")]
    parts = [
        *(_drawn(each) for each in figures),
        *(f'<div style="{QUIET};font-size:85%">{escape(each)}</div>' for each in notes),
    ]
    return f'<div style="font-family:system-ui,sans-serif;max-width:{WIDTH}px">{"".join(parts)}</div>'


def _figure(metric: str, releases: list[Release], metric_of: "MetricOf") -> Figure:
    version = max(release.version for release in releases)
    groups: dict[str | None, list[Release]] = {}
    for release in releases:
        if release.version == version:
            groups.setdefault(release.group, []).append(release)
    found = metric_of(metric, version)
    names = _names(releases)
    pairs = [(group, name) for name in names for group in sorted(groups, key=str)]
    of_means = is_mean(releases[-1], found)
    series = [series_of(group, name, groups[group], is_mean=of_means) for group, name in pairs[:MOST_PANELS]]
    return Figure(metric, found, tuple(series), len(pairs))


def _names(releases: Iterable[Release]) -> list[str]:
    """Which numbers are drawn: all, but of a distribution its median, or the quantile that is nearest to it."""
    numbers = {number.name: number for release in releases for number in release.numbers if release.released}
    quantiles = [number for number in numbers.values() if number.part == QUANTILE]
    if quantiles:
        return [min(quantiles, key=lambda number: abs((number.quantile or 0) - 0.5)).name]
    return [name for name, number in numbers.items() if number.part not in OF_BINS] or [""]


# ---------------------------------------------------------------- words


def _drawn(figure: Figure) -> str:
    last = figure.last
    about = [f"version {last.version}"] if last.version > 1 else []
    if figure.is_exact:
        about.append("exact and public")
    elif last.epsilon is not None:
        about.append(_loss(figure))
    shown = len(figure.series)
    if figure.all_of_them > shown:
        about.append(f"{shown} of {figure.all_of_them:,} shown: only(group=...) chooses")
    told = escape("; ".join(filter(None, about)))
    title = f"<b>{escape(printable(figure.name))}</b> <span style='{QUIET}'>{told}</span>"
    small = shown > 1
    scales = {
        name: reach([s for s in figure.series if s.name == name], zero=figure.is_exact)
        for name in {s.name for s in figure.series}
    }
    times = min(each.begin for each in figure.series), max(each.end for each in figure.series)
    panels = "".join(_panel(figure, each, scales[each.name], times, small) for each in figure.series)
    grid = f'<div style="display:flex;flex-wrap:wrap;gap:4px 16px">{panels}</div>'
    return f'<div style="margin:0 0 12px"><div>{title}</div>{grid}</div>'


def _loss(figure: Figure) -> str:
    """Loss of one unit in all releases of the metric: by the configuration, or as the last release states it."""
    if figure.metric is not None:
        return words_of(figure.metric).brief
    last = figure.last
    return brief_of_release(last.epsilon, last.delta, printable(last.unit or "unit"))


def _panel(figure: Figure, series: Series, scale: tuple[float, float], times: tuple[float, float], small: bool) -> str:
    width, height = (SMALL_WIDTH, SMALL_HEIGHT) if small else (WIDTH, HEIGHT)
    named = " ".join(filter(None, [printable(series.group or ""), _coordinate(figure, series.name)]))
    words = _told(figure, series)
    label = f"{printable(figure.name)} {named}: {', '.join(words)}".replace(" :", ":")
    drawing = _svg(series, scale, times, width, height, label)
    head = f"<b>{escape(named)}</b> " if named else ""
    told = ", ".join(f'<span style="white-space:nowrap">{escape(each)}</span>' for each in words)
    said = f'<div style="font-size:90%">{head}{told}</div>'
    return f'<div style="width:{width}px;max-width:100%">{said}{drawing}</div>'


def _coordinate(figure: Figure, name: str) -> str:
    """What a number is called: a coordinate by its field, where a configuration says it."""
    if not name.isdecimal():
        return name
    fields = () if figure.metric is None else figure.metric.names
    return fields[int(name) - 1] if 0 < int(name) <= len(fields) else f"coordinate {name}"


def _told(figure: Figure, series: Series) -> list[str]:
    """The last number, what it is worth, and of when it is."""
    number, release, point = series.last, series.release, series.points[-1]
    moment = when(iso(release.time))
    if point.missing == NONE:
        return ["no release", moment]
    if point.missing == UNKNOWN:
        return ["nothing known yet", moment]
    said = interval(part_of(number.value, number.low, number.high))
    return list(filter(None, [said, _doubt(figure, series), moment]))


def _doubt(figure: Figure, series: Series) -> str:
    """What must be said of a number before anyone uses it."""
    number, point = series.last, series.points[-1]
    if figure.is_exact or number.low is None or not point.high > point.low:
        return ""
    kind, metric = _kind(figure, number.part), figure.metric
    if kind == "mean":
        if metric is None or not metric.ranges:
            return ""
        low, high = metric.ranges[(number.coordinate or 1) - 1]
        wide = (point.high - point.low) / 2 > float(high - low) / 4
        return "noise as wide as half of the range: not of use" if wide else ""
    return "zero is within the noise" if point.low <= 0 and (kind == "variance" or point.high >= 0) else ""


def _kind(figure: Figure, part: str) -> str:
    if "variance" in part:
        return "variance"
    if figure.metric is None:
        return "mean" if is_mean(figure.last, None) or figure.last.users is not None else "sum"
    match figure.metric.of:
        case Sum() | Count() | PublicCount() | Users():
            return "sum"
    return "mean"


# ---------------------------------------------------------------- the drawing


def _svg(
    series: Series, scale: tuple[float, float], times: tuple[float, float], width: int, height: int, label: str
) -> str:
    (y0, y1), (t0, t1) = scale, times
    right, bottom = width - RIGHT, height - BOTTOM

    def x(time: float) -> float:
        return LEFT + (time - t0) / (t1 - t0) * (right - LEFT)

    def y(value: float) -> float:
        return max(-50.0, min(height + 50.0, TOP + (y1 - value) / (y1 - y0) * (bottom - TOP)))

    some = ticks(y0, y1, (bottom - TOP) / 42)
    rows = some if len(some) > 1 else ticks(y0, y1, (bottom - TOP) / 24)
    texts = "".join(_row(value, y(value), right, _axis(value, y1 - y0)) for value in rows)
    if all(point.begin == t0 for point in series.points):
        marks = [(t0, when(iso_of(_utc(t0))))]
    else:
        marks = _times(t0, t1, (right - LEFT) / 80)
    texts += "".join(_mark(max(LEFT + 14.0, min(right - 24.0, x(time))), height, text) for time, text in marks)
    inner = "".join(_stretches(thinned(series.points, right - LEFT), x, y, series.end, bottom))
    return (
        f'<svg role="img" aria-label="{escape(label)}" width="100%" viewBox="0 0 {width} {height}" '
        f'style="display:block;font:11px system-ui,sans-serif" fill="currentColor">'
        f"<title>{escape(label)}</title>{texts}"
        f'<svg x="{LEFT}" y="{TOP - 2}" width="{right - LEFT + 6}" height="{bottom - TOP + 4}" '
        f'viewBox="{LEFT} {TOP - 2} {right - LEFT + 6} {bottom - TOP + 4}" overflow="hidden">{inner}</svg></svg>'
    )


def _stretches(
    points: Sequence[Point], x: Callable[[float], float], y: Callable[[float], float], end: float, bottom: float
) -> Iterator[str]:
    """Bands, lines of steps and grey stretches; broken where nothing is released."""
    line, band = [], []
    joined: float | None = None  # where the last point ends, if a line goes on there
    for point, after in zip(points, [*points[1:], None], strict=True):
        to = point.end if point.end is not None else end if after is None else after.begin
        if point.missing:
            joined = None
            if point.missing == UNKNOWN:
                yield (
                    f'<rect x="{x(point.begin):.1f}" y="{TOP}" width="{max(2.0, x(to) - x(point.begin)):.1f}" '
                    f'height="{bottom - TOP}" fill-opacity=".08"/>'
                )
            continue
        left, right, at = f"{x(point.begin):.1f}", f"{x(to):.1f}", f"{y(point.value):.1f}"
        is_joined = joined is not None and abs(joined - point.begin) < 1e-6
        line.append(f"V{at}H{right}" if is_joined else f"M{left} {at}H{right}")
        if point.high > point.low:
            band.append(f"M{left} {y(point.high):.1f}H{right}V{y(point.low):.1f}H{left}Z")
        joined = to
    yield f'<path d="{"".join(band)}" fill="{ACCENT}" fill-opacity=".22"/>'
    yield f'<path d="{"".join(line)}" fill="none" stroke="{ACCENT}" stroke-width="1.8"/>'
    if not points[-1].missing:
        last = points[-1].end if points[-1].end is not None else points[-1].begin
        yield f'<circle cx="{x(last):.1f}" cy="{y(points[-1].value):.1f}" r="3.5" fill="{ACCENT}"/>'


def _row(value: float, y: float, right: float, text: str) -> str:
    """A line of the grid with its number."""
    opacity = ".45" if value == 0 else ".15"
    return (
        f'<path d="M{LEFT} {y:.1f}H{right}" stroke="currentColor" stroke-opacity="{opacity}"/>'
        f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" fill-opacity=".75">{text}</text>'
    )


def _mark(x: float, height: int, text: str) -> str:
    return f'<text x="{x:.1f}" y="{height - 5}" text-anchor="middle" fill-opacity=".75">{text}</text>'


def _axis(value: float, whole: float) -> str:
    """A round number of an axis.

    >>> _axis(1_200_000.0, 3e6), _axis(-0.25, 1.0), _axis(40.0, 100.0)
    ('1.2 M', '−0.25', '40')
    """
    text = f"{value / 1e6:,.6g} M" if whole >= 1e6 else short(value, 0)
    return text.replace("-", "−")


def _times(begin: float, end: float, count: float) -> list[tuple[float, str]]:
    """Times of an axis: whole seconds to weeks, else months or years; at most about `count`."""
    most = max(1.0, count)
    step = next((step for step in STEPS if (end - begin) / step <= most), None)
    if step is not None:
        first = int(-(-begin // step))
        return [(time, _moment(time, step)) for time in range(first * step, int(end) + 1, step)]
    months = next((each for each in MONTHS if (end - begin) / (each * 30.4 * DAY) <= most), MONTHS[-1])
    return [
        (each.timestamp(), str(each.year) if each.month == 1 or months >= 12 else f"{each:%b}")
        for each in _firsts(begin, end, months)
    ]


def _moment(time: int, step: int) -> str:
    at = _utc(time)
    if time % DAY == 0 or step >= DAY:
        return f"{at.day} {at:%b}"
    return f"{at:%H:%M:%S}" if step < 60 else f"{at:%H:%M}"


def _firsts(begin: float, end: float, months: int) -> Iterator[datetime]:
    """First days of every so many months."""
    from_ = _utc(begin)
    number = -(-(from_.year * 12 + from_.month - 1) // months) * months
    while number // 12 <= 9999:
        first = datetime(max(1, number // 12), number % 12 + 1, 1, tzinfo=UTC)
        if first.timestamp() > end:
            return
        if first.timestamp() >= begin:
            yield first
        number += months


def _utc(time: float) -> datetime:
    """The time, or the first or last one that there is: a slot may begin before the year 1."""
    return EPOCH + timedelta(seconds=min(max(time, FIRST), LAST))
