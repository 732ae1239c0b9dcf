"""The picture of a plan: error over time by algorithm, and error by cap; a row for each metric."""

import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from shoal.agents.pictures import INK, QUIET, STYLE
from shoal.agents.plan.mean import MetricPlan, Outlook
from shoal.agents.plan.mean_view import duration, number, percent, recommended, title, workload
from shoal.agents.plan.observed import NOT_PRIVATE
from shoal.agents.plan.sums import StepPlan

COLORS = {
    "sharp": "#1f5f8b",
    "naive": "#c8553d",
    "wishful": "#8a6d3b",
    "single-tree": "#7b5ea7",
    "multi-tree": "#3f8f5f",
    "full": "#b0567f",
    "patent": "#c8553d",
}
WIDTH, ROW, MARGIN, DPI = 12.0, 5.4, 0.75, 110  # inches
HEADING, FOOT = 1.15, 1.25  # inches above and below the panels of a row
LEFT, RIGHT, GAP = 0.065, 0.985, 0.32
TITLE = 130  # characters in a line
HIGHEST = 3.0  # of the range: errors above it are all the same
FEW_DECADES = 500.0
MINUTE = 60_000_000
TIMES = [
    MINUTE * minutes
    for minutes in (1, 10, 60, 360, 1440, 2880, 5760, 14_400, 43_200, 129_600, 525_600, 1_576_800, 5_256_000)
]
MARKS = 8
LABEL = 0.052  # of a panel's height, between two labels


@dataclass(frozen=True)
class Row:
    """A metric: what is written about it, and two panels."""

    name: str
    said: str  # what is planned
    workload: str
    recommended: str
    private: bool
    left: Callable[[Axes], None]
    right: Callable[[Axes], None] | None


def row(plan: MetricPlan) -> Row:
    """Error over time, and error by cap."""
    return Row(
        plan.section.name, title(plan), workload(plan), recommended(plan), plan.private,
        lambda panel: _over_time(panel, plan), lambda panel: by_cap(panel, plan),
    )  # fmt: skip


def draw(rows: Sequence[Row], path: Path) -> None:
    """Write the picture as PNG."""
    with matplotlib.rc_context(STYLE):
        private = all(one.private for one in rows)
        margin = MARGIN / 2 if private else MARGIN
        height = margin + ROW * len(rows)
        figure = Figure(figsize=(WIDTH, height), dpi=DPI)
        for index, one in enumerate(rows):
            _row(figure, one, height - margin - ROW * index, height)
        if not private:
            figure.text(LEFT, 1 - 0.3 / height, NOT_PRIVATE, color="#b00020", weight="bold", size=12, va="center")
        figure.savefig(path, format="png", facecolor="white")


def _row(figure: Figure, one: Row, top: float, height: float) -> None:
    text = textwrap.fill(one.said, TITLE)
    figure.text(LEFT, (top - 0.02) / height, one.name, size=14, weight="bold", va="center")
    below = f"{text.partition(': ')[2]}\n{textwrap.fill('for ' + one.workload, TITLE)}"
    figure.text(LEFT, (top - 0.22) / height, below, color=QUIET, va="top", linespacing=1.4)
    figure.text(
        LEFT, (top - ROW + 0.7) / height, f"recommended: {one.recommended}", color=INK, weight="bold", va="center"
    )
    bottom, tall = (top - ROW + FOOT + 0.2) / height, (ROW - HEADING - FOOT) / height
    one.left(figure.add_axes((LEFT, bottom, 0.49 if one.right else RIGHT - LEFT - 0.155, tall)))
    if one.right is not None:
        one.right(figure.add_axes((LEFT + 0.49 + 0.17, bottom, RIGHT - LEFT - 0.66, tall)))


def limits(plan: MetricPlan | StepPlan, errors: Sequence[float]) -> tuple[float, float]:
    """Of an axis of errors."""
    known = [error for error in errors if error and not math.isinf(error)]
    top = min(max(known, default=plan.width), HIGHEST * plan.width)
    low = min(min(known, default=plan.width), top)
    return low / 1.6, max(top * 1.6, low * 10)


def _over_time(panel: Axes, plan: MetricPlan) -> None:
    """A line for each algorithm; a ring where its releases become useful."""
    shown = [one for one in plan.outlooks if any(not math.isinf(look.error) for look in one.looks)]
    low, high = limits(plan, [look.error for one in shown for look in one.looks])
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_ylim(low, high)
    panel.margins(x=0.01)
    for one in shown:
        _line(panel, plan, one)
    style_axes(panel, high / low)
    panel.set_title("error over time (noise and bias)", loc="left", size=10, pad=8)
    timed = bool(shown) and shown[0].looks[-1].at is not None
    time_axis(panel, timed=timed)
    panel.set_xlabel(f"{'since the start' if timed else 'part of the time'}; ring: the first useful release")
    names = [one.section.algorithm + ("*" if one.needs_prior else "") for one in shown]
    ends = [(name, one.error, COLORS[one.section.algorithm]) for name, one in zip(names, shown, strict=True)]
    label_ends(panel, ends, low, high)
    if any(one.needs_prior for one in shown):
        panel.annotate(
            "* needs a prior", (1, 0), (8, -8), "axes fraction", textcoords="offset points", color=QUIET, size=8
        )


def time_axis(panel: Axes, *, timed: bool = True) -> None:
    """Marks at times that people use, not too many of them."""
    first, last = panel.get_xlim()
    marks = [float(time) for time in TIMES] if timed else [10.0**power for power in range(-5, 1)]
    shown = [mark for mark in marks if first <= mark <= last * 1.001]
    shown = shown[:: max(1, math.ceil(len(shown) / MARKS))]
    labels = [duration(round(mark)) if timed else f"{100 * mark:g} %" for mark in shown]
    panel.set_xticks(shown, labels)


def _line(panel: Axes, plan: MetricPlan, one: Outlook) -> None:
    found = {*one.looks, *([] if one.useful is None else [one.useful])}
    looks = sorted((look for look in found if not math.isinf(look.error)), key=lambda look: look.part)
    x = [look.part if look.at is None else look.at for look in looks]
    bold = one is plan.best
    style: dict[str, Any] = {"color": COLORS[one.section.algorithm], "linewidth": 2.4 if bold else 1.3}
    if one.needs_prior:
        style["linestyle"] = (0, (4, 2))
    panel.plot(x, [look.error for look in looks], zorder=3 if bold else 2, **style)
    if len(looks) == 1:
        panel.plot(x, [looks[0].error], "o", markersize=4, color=style["color"])
    if one.useful is not None:
        at = one.useful.part if one.useful.at is None else one.useful.at
        panel.plot(
            at, one.useful.error, "o", markersize=7, color="white", markeredgecolor=style["color"],
            markeredgewidth=1.6, zorder=4,
        )  # fmt: skip


def label_ends(panel: Axes, ends: Sequence[tuple[str, float, str]], low: float, high: float) -> None:
    """Names and last errors beside the ends of lines, in their colors, kept apart where the lines meet."""
    scale = math.log(high / low)
    order = sorted(ends, key=lambda end: end[1])
    heights = [math.log(min(max(error, low), high) / low) / scale for _, error, _ in order]
    for index in range(1, len(heights)):
        heights[index] = max(heights[index], heights[index - 1] + LABEL)
    over = max(0.0, heights[-1] - 1.0) if heights else 0.0
    for index in reversed(range(len(heights))):  # push down what went out at the top
        most = 1.0 if index == len(heights) - 1 else heights[index + 1] - LABEL
        heights[index] = min(heights[index], most) if over else heights[index]
    for height, (name, error, color) in zip(heights, order, strict=True):
        panel.annotate(
            f"{name}  {number(error)}", (1, height), (8, 0), "axes fraction", textcoords="offset points", va="center",
            color=color, weight="bold", annotation_clip=False,
        )  # fmt: skip


def by_cap(panel: Axes, plan: MetricPlan | StepPlan) -> None:
    """Noise, bias and both at the end, by max_contributions."""
    caps = [cap for cap, _ in plan.caps]
    looks = [look for _, look in plan.caps]
    errors = [look.error for look in looks]
    low, high = limits(plan, [*errors, *(look.noise_sd or math.inf for look in looks)])
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    panel.set_ylim(low, high)
    color = COLORS[plan.best.section.algorithm]
    noise = [math.nan if look.noise_sd is None else look.noise_sd for look in looks]
    panel.plot(caps, noise, color=QUIET, linewidth=1.2, linestyle=(0, (1, 1.5)), label="noise")
    biases = [abs(look.bias) if abs(look.bias) > low else math.nan for look in looks]
    panel.plot(caps, biases, color=QUIET, linewidth=1.2, linestyle=(0, (5, 2)), label="bias")
    panel.plot(caps, errors, color=color, linewidth=2.2, marker="o", markersize=4, label="error")
    best = next(look for cap, look in plan.caps if cap == plan.advised.cap)
    if not math.isinf(best.error):
        panel.plot(
            plan.advised.cap,
            best.error,
            "o",
            markersize=9,
            color="white",
            markeredgecolor=color,
            markeredgewidth=2,
        )
    style_axes(panel, high / low)
    algorithm = plan.best.section.algorithm
    panel.set_title(f"error at the end by max_contributions, {algorithm}", loc="left", size=10, pad=8)
    panel.set_xticks(caps, [f"{cap:,}" for cap in caps], size=8, rotation=0 if len(caps) < 9 else 60)
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.set_xlabel(f"ring: recommended; leaves out {percent(best.left_out)} of samples")
    panel.legend(loc="best", frameon=False, fontsize=8, labelcolor=INK)


def style_axes(panel: Axes, ratio: float) -> None:
    """Marks and lines of an axis of errors whose ends have this ratio."""
    panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if ratio < FEW_DECADES else (1,)))
    panel.grid(axis="y", color="#eceff2", linewidth=0.8)
    panel.set_axisbelow(True)
    panel.tick_params(length=3)
    panel.tick_params(which="minor", length=0)
    panel.yaxis.set_major_formatter(FuncFormatter(lambda y, _: number(y)))
    panel.yaxis.set_minor_formatter(NullFormatter())
    panel.xaxis.set_minor_formatter(NullFormatter())
