"""The picture of plans: a row for each, with its title and workload, and one or two panels."""

import math
import textwrap
from collections.abc import Sequence
from typing import BinaryIO

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from shoal.agents.pictures import INK, QUIET, STYLE
from shoal.mechanisms.plan import NOT_PRIVATE, Curve, Marks, Panel, Plan
from shoal.mechanisms.words import duration, number
from shoal.models.printable import printable

COLORS = {
    "sharp": "#1f5f8b",
    "naive": "#c8553d",
    "wishful": "#8a6d3b",
    "single-tree": "#7b5ea7",
    "multi-tree": "#3f8f5f",
    "full": "#b0567f",
    "patent": "#c8553d",
    "by hand": "#8a94a0",
}
WIDTH, ROW, MARGIN, DPI = 12.0, 5.4, 0.75, 110  # inches
HEADING, FOOT = 1.15, 1.25  # inches above and below the panels of a row
LEFT, RIGHT = 0.065, 0.985
FIRST, GAP, NAMES = 0.49, 0.17, 0.155  # widths of the first of two panels, between them, and of names at the end of one
TITLE = 130  # characters in a line
FEW_DECADES = 500.0
MINUTE = 60_000_000
TIMES = [
    MINUTE * minutes
    for minutes in (1, 10, 60, 360, 1440, 2880, 5760, 14_400, 43_200, 129_600, 525_600, 1_576_800, 5_256_000)
]
MARKS, FEW_MARKS = 8, 4
LABEL = 0.052  # of a panel's height, between two labels


def draw(plans: Sequence[Plan], file: BinaryIO) -> None:
    """Write the picture as PNG."""
    with matplotlib.rc_context(STYLE):
        private = all(plan.private for plan in plans)
        margin = MARGIN / 2 if private else MARGIN
        height = margin + ROW * len(plans)
        figure = Figure(figsize=(WIDTH, height), dpi=DPI)
        for index, plan in enumerate(plans):
            _row(figure, plan, height - margin - ROW * index, height)
        if not private:
            figure.text(LEFT, 1 - 0.3 / height, NOT_PRIVATE, color="#b00020", weight="bold", size=12, va="center")
        figure.savefig(file, format="png", facecolor="white")


def _row(figure: Figure, plan: Plan, top: float, height: float) -> None:
    text = textwrap.fill(plan.title, TITLE).partition(": ")[2]
    figure.text(LEFT, (top - 0.02) / height, plan.spec.name, size=14, weight="bold", va="center")
    below = f"{text}\n{textwrap.fill(printable(f'for {plan.workload}'), TITLE)}"
    figure.text(LEFT, (top - 0.22) / height, below, color=QUIET, va="top", linespacing=1.4)
    figure.text(
        LEFT, (top - ROW + 0.7) / height, f"recommended: {plan.recommended}", color=INK, weight="bold", va="center"
    )
    bottom, tall = (top - ROW + FOOT + 0.2) / height, (ROW - HEADING - FOOT) / height
    first, *second = plan.panels
    _panel(figure.add_axes((LEFT, bottom, FIRST if second else RIGHT - LEFT - NAMES, tall)), first)
    for panel in second:
        _panel(figure.add_axes((LEFT + FIRST + GAP, bottom, RIGHT - LEFT - FIRST - GAP, tall)), panel)


def _panel(axes: Axes, panel: Panel) -> None:
    axes.set_title(panel.title, loc="left", size=10, pad=8)
    axes.set_xlabel(panel.below)
    axes.margins(x=0.01)
    low, high = _limits(panel)
    if not panel.is_linear:
        axes.set_xscale("log")
        axes.set_yscale("log")
    axes.set_ylim(low, high)
    for curve in panel.curves:
        _curve(axes, curve)
    _error_axis(axes, panel, high / low if low else math.inf)
    if panel.marks is not None:
        _marks(axes, panel.marks)
    else:
        _time_axis(axes, panel)
    if panel.names_ends:
        _name_ends(axes, panel, low, high)
    elif any(curve.name for curve in panel.curves):
        axes.legend(loc="best", frameon=False, fontsize=8, labelcolor=INK)
    if panel.remark:
        axes.annotate(
            panel.remark, (1, 0), (8, -8), "axes fraction", textcoords="offset points", color=QUIET, size=8
        )  # fmt: skip


def _limits(panel: Panel) -> tuple[float, float]:
    """The limits of the axis of errors."""
    known = [y for curve in panel.curves for _, y in curve.points if y]
    if panel.is_linear:
        return 0.0, 1.08 * max(known, default=1.0)
    fallback = panel.most if math.isfinite(panel.most) else 1.0
    top = min(max(known, default=fallback), panel.most)
    errors = [y for curve in panel.curves for _, y in curve.points if y and curve.name != "bias"]
    low = min(min(errors, default=fallback), top)
    return low / 1.6, max(top * 1.6, low * 10)


def _color(curve: Curve) -> str:
    return COLORS.get(curve.colour or curve.name, QUIET)


def _curve(axes: Axes, curve: Curve) -> None:
    color, order = _color(curve), 3 if curve.is_best else 2
    axes.plot(
        [x for x, _ in curve.points], [y for _, y in curve.points], color=color, label=curve.name or None,
        linewidth=2.4 if curve.is_best else 1.3, linestyle=(0, (4, 2)) if curve.is_dashed else "-", zorder=order,
        marker="o" if len(curve.points) == 1 else None, markersize=4,
    )  # fmt: skip
    if curve.ring is not None:
        axes.plot(
            *curve.ring, "o", markersize=8, color="white", markeredgecolor=color, markeredgewidth=1.8, zorder=order + 1
        )


def _error_axis(axes: Axes, panel: Panel, ratio: float) -> None:
    if not panel.is_linear:
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if ratio < FEW_DECADES else (1,)))
        axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(axis="y", color="#eceff2", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=3)
    axes.tick_params(which="minor", length=0)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: number(y)))


def _marks(axes: Axes, marks: Marks) -> None:
    axes.set_xticks(marks.at, marks.texts, size=8, rotation=0 if len(marks.at) < 9 else 60)
    axes.xaxis.set_minor_formatter(NullFormatter())


def _time_axis(axes: Axes, panel: Panel) -> None:
    """Mark times that people use, not too many of them."""
    axes.xaxis.set_minor_formatter(NullFormatter())
    first, last = axes.get_xlim()
    if panel.is_linear:
        apart = max([time for time in TIMES if last >= FEW_MARKS * time], default=round(last))
        marks = [float(mark) for mark in range(apart, round(last) + 1, apart)]
    else:
        marks = [float(time) for time in TIMES] if panel.is_timed else [10.0**power for power in range(-5, 1)]
    shown = [mark for mark in marks if first <= mark <= last * 1.001]
    shown = shown[:: max(1, math.ceil(len(shown) / MARKS))]
    axes.set_xticks(shown, [duration(round(mark)) if panel.is_timed else f"{100 * mark:g} %" for mark in shown])


def _name_ends(axes: Axes, panel: Panel, low: float, high: float) -> None:
    """Write names and last errors beside the ends of curves, in their colours, apart where the curves meet."""

    def height(y: float) -> float:
        inside = min(max(y, low), high)
        return inside / high if panel.is_linear else math.log(inside / low) / math.log(high / low)

    curves = sorted((curve for curve in panel.curves if curve.points), key=lambda curve: curve.points[-1][1])
    heights = spread([height(curve.points[-1][1]) for curve in curves])
    for level, curve in zip(heights, curves, strict=True):
        axes.annotate(
            f"{curve.name}  {number(curve.points[-1][1])}", (1, level), (8, 0), "axes fraction",
            textcoords="offset points", va="center", color=_color(curve), weight="bold", annotation_clip=False,
        )  # fmt: skip


def spread(heights: Sequence[float]) -> list[float]:
    """Ascending heights of labels, moved so far that none covers another, and pushed down from above 1.

    >>> [round(height, 3) for height in spread([0.5, 0.51, 1.0, 1.0])]
    [0.5, 0.552, 0.948, 1.0]
    """
    apart = list(heights)
    for index in range(1, len(apart)):
        apart[index] = max(apart[index], apart[index - 1] + LABEL)
    most = 1.0
    if apart and apart[-1] > most:
        for index in reversed(range(len(apart))):
            apart[index] = min(apart[index], most)
            most = apart[index] - LABEL
    return apart
