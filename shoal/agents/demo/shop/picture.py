"""The picture of a demo: truth, estimate and noise interval over time; a panel per metric, for their scales differ."""

import math
import textwrap
from datetime import date
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shoal.agents.demo.progress import interval
from shoal.agents.demo.shop.outcome import SCALES, MetricOutcome, heading, sentences
from shoal.agents.pictures import INK, QUIET, STYLE

TRUTH, ESTIMATE, NOISE, BAND = "#c8553d", "#1f5f8b", "#7fa8c4", "#cfe1ee"
DAY = 86_400_000_000  # microseconds
YEARS = range(1997, 1999)  # of the purchases
WIDTH, HEIGHT, DPI = 10.0, 9.6, 110
LEFT, RIGHT = 0.08, 0.855
NAME_STYLE: dict[str, Any] = {"weight": "bold", "size": 11}
HEADING_STYLE: dict[str, Any] = {"color": QUIET, "size": 8.5}
CAPTION = 156  # characters in a line
ROW_INCHES = 0.19  # between two labels


def draw(metrics: list[MetricOutcome], path: Path, verdict: str) -> None:
    """Write the picture as PNG."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, HEIGHT), dpi=DPI)
        ratios = [3] + [2] * (len(metrics) - 1)
        panels = figure.subplots(len(metrics), 1, sharex=True, squeeze=False, height_ratios=ratios)[:, 0]
        figure.subplots_adjust(left=LEFT, right=RIGHT, top=0.842, bottom=0.232, hspace=0.34)
        figure.text(LEFT, 0.957, "The average purchase, released once a day", size=16, weight="bold", va="center")
        subtitle = f"{len(metrics[0].releases)} days of an online music shop; running mean since the first day"
        figure.text(LEFT, 0.919, subtitle, color=QUIET, va="center")
        for panel, metric in zip(panels, metrics, strict=True):
            _panel(panel, metric)
        _dates(panels[-1])
        figure.text(LEFT, 0.165, _caption(metrics, verdict), size=8, color=QUIET, va="top", linespacing=1.55)
        figure.savefig(path, format="png", facecolor="white")


def _panel(panel: Axes, metric: MetricOutcome) -> None:
    """Interval, estimate and truth of one metric."""
    first, last = SCALES[metric.metric.name]
    days = [release.time / DAY for release in metric.releases]
    numbers = {
        name: [_number(getattr(release, name)) for release in metric.releases] for name in ("value", "low", "high")
    }
    panel.fill_between(days, numbers["low"], numbers["high"], color=BAND, linewidth=0)
    panel.plot(days, numbers["value"], color=ESTIMATE, linewidth=1.3)
    panel.plot(days, metric.truths, color=TRUTH, linewidth=1.8)
    panel.set_ylim(first, last)
    panel.margins(x=0.005)
    panel.grid(axis="y", color="#eceff2", linewidth=0.8)
    panel.set_axisbelow(True)
    panel.tick_params(length=3)
    panel.set_ylabel("dollars")
    panel.yaxis.set_label_coords(-0.058, 0.5)
    panel.yaxis.set_major_formatter(lambda y, _: f"{y:,.0f}".replace("-", "\N{MINUS SIGN}"))
    for x, text, style in ((0.0, metric.metric.name, NAME_STYLE), (0.135, heading(metric), HEADING_STYLE)):
        panel.annotate(text, (x, 1), (0, 15), "axes fraction", textcoords="offset points", va="baseline", **style)
    _label_ends(panel, metric, days[-1])
    _mark_activations(panel, metric)


def _number(value: float | None) -> float:
    """A number to draw; a gap where nothing is released."""
    return math.nan if value is None else value


def _label_ends(panel: Axes, metric: MetricOutcome, end: float) -> None:
    """Names and last numbers where the lines end, kept apart where the lines meet."""
    (value, low, high), truth = interval(metric.last), metric.truths[-1]
    first, last = SCALES[metric.metric.name]
    row = (last - first) * ROW_INCHES / panel.get_position().height / HEIGHT
    middle = min(max((value + truth) / 2, first + 2 * row), last - row)
    half = max(min(abs(value - truth), last - first), row) / 2
    up = half if value >= truth else -half
    labels = (
        (middle + up, f"estimate {value:,.2f}", ESTIMATE),
        (middle - up, f"true mean {truth:,.2f}", TRUTH),
        (middle - half - row, f"noise \N{PLUS-MINUS SIGN}{(high - low) / 2:,.2f}", NOISE),
    )
    for y, label, color in labels:
        text = label.replace("-", "\N{MINUS SIGN}")
        panel.annotate(text, (end, y), (8, 0), textcoords="offset points", color=color, va="center", weight="bold")


def _mark_activations(panel: Axes, metric: MetricOutcome) -> None:
    """A numbered circle where a level began to count."""
    top = SCALES[metric.metric.name][1]
    for level in metric.activations:
        at = float(_day(level.at.date()))
        panel.axvline(at, color=QUIET, linewidth=0.7, linestyle=(0, (2, 2)))
        panel.plot(at, top, "o", markersize=9.5, color="white", markeredgecolor=INK, clip_on=False, zorder=5)
        panel.text(
            at, top, str(level.level), size=6.5, color=INK, weight="bold", ha="center", va="center_baseline", zorder=6
        )


def _dates(panel: Axes) -> None:
    """A name at every quarter, a mark at every month."""
    first, last = panel.get_xlim()
    months = [date(year, month, 1) for year in YEARS for month in range(1, 13)]
    shown = [month for month in months if first <= _day(month) <= last]
    quarters = [month for month in shown if month.month % 3 == 1]
    panel.set_xticks([_day(month) for month in quarters], [f"{month:%b %Y}" for month in quarters])
    panel.set_xticks([_day(month) for month in shown], minor=True)
    panel.set_xlabel("end of the day that a release includes (event time, UTC)")


def _day(day: date) -> int:
    return (day - date(1970, 1, 1)).days


def _caption(metrics: list[MetricOutcome], verdict: str) -> str:
    """Write what was left out, what activated and what did not, below the panels."""
    paragraphs = [f"{metric.metric.name}: {'; '.join(sentences(metric))}." for metric in metrics]
    legend = (
        "Light blue: where 95 % of the noise stays; what is left out comes on top. Circles: levels as they activate."
    )
    return "\n".join(textwrap.fill(paragraph, CAPTION) for paragraph in (*paragraphs, legend, verdict))
