"""The picture: variance over the length of the window, and over the number of steps that an exponential sum holds."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.decay import textbook
from benchmarks.decay.contenders import BLUE, EXPONENTIAL, HATS, PATENT, ROOT, STEPS, WINDOW
from benchmarks.decay.report import Row

STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "axes.edgecolor": "#c4c9d0",
    "axes.labelcolor": "#6b7280",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": "#6b7280",
    "ytick.color": "#6b7280",
    "text.color": "#1f2933",
}
LOOKS: dict[str, dict[str, Any]] = {
    STEPS: {"color": "#8a94a0", "linewidth": 1.5},
    PATENT: {"color": "#1f5f8b", "linewidth": 1.6},
    BLUE: {"color": "#2f8f5b", "linewidth": 1.6},
    HATS: {"color": "#c8553d", "linewidth": 2.4, "zorder": 5},
    ROOT: {"color": "#6b4e9b", "linewidth": 1.4, "linestyle": (0, (4, 2))},
}
NAMES = {
    STEPS: "per-step noise",
    PATENT: "patent",
    BLUE: "BLUE blocks",
    HATS: "hats",
    ROOT: "square root,  δ = 1e-6",
}
APART = 0.052  # of the panel's height: labels nearer than that would touch
PALE = "#6b7280"


def draw(rows: Sequence[Row], path: Path) -> None:
    """Write the picture as PNG."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(13, 6.4), dpi=110)
        left, right = figure.subplots(1, 2)
        figure.subplots_adjust(left=0.06, right=0.905, top=0.79, bottom=0.125, wspace=0.46)
        figure.text(0.06, 0.935, "Variance of a sum that forgets, epsilon = 1 per event", size=16, weight="bold")
        figure.text(
            0.06, 0.892, "Mean over all steps, in squares of the range [0, 1].  Lines: formula.  Dots: measured with "
            "real draws, ± 2 standard errors.  Dashes: 1.05 × the variance to reach.", color=PALE,
        )  # fmt: skip
        _panel(left, [row for row in rows if row.family == WINDOW], textbook.WINDOWS)
        left.set_title("The last W steps", loc="left", size=11.5, weight="bold", pad=10)
        left.set_xlabel("W")
        _panel(right, [row for row in rows if row.family == EXPONENTIAL], textbook.EXPONENTIALS)
        right.set_title("Exponential decay", loc="left", size=11.5, weight="bold", pad=10)
        right.set_xlabel("1 / (1 − α), the steps that it holds")
        figure.savefig(path, format="png", facecolor="white")


def _panel(panel: Axes, rows: Sequence[Row], targets: Mapping[int, float]) -> None:
    panel.set_xscale("log", base=2 if rows and rows[0].family == WINDOW else 10)
    panel.set_yscale("log")
    ends = []
    for mechanism, look in LOOKS.items():
        own = sorted((row for row in rows if row.mechanism == mechanism), key=lambda row: row.x)
        if not own:
            continue
        x, formula = [row.x for row in own], [row.found.mean for row in own]
        panel.plot(x, formula, **look)
        bars = [2 * row.found.mean * row.found.error for row in own]
        measured = [row.found.measured for row in own]
        panel.errorbar(x, measured, yerr=bars, fmt="o", markersize=4.6, color=look["color"], markeredgecolor="white",
                       markeredgewidth=0.8, elinewidth=1.1, capsize=2.2, zorder=6)  # fmt: skip
        ends.append((formula[-1], mechanism))
    shown = {row.x for row in rows}
    at = {x: textbook.SLACK * target for x, target in targets.items() if x in shown}
    panel.plot(list(at), list(at.values()), linestyle="", marker="_", markersize=17, markeredgewidth=2.2,
               color="#1f2933", zorder=4)  # fmt: skip
    panel.set_xticks(sorted(shown), [_tick(rows, x) for x in sorted(shown)])
    panel.minorticks_off()
    panel.grid(axis="y", color="#eceff2", linewidth=0.8)
    panel.set_axisbelow(True)
    _labels(panel, ends)


def _tick(rows: Sequence[Row], x: float) -> str:
    if rows[0].family == WINDOW:
        return f"$2^{{{int(x).bit_length() - 1}}}$"
    alpha = next(row.at for row in rows if row.x == x)
    return f"{x:,.0f}\nα = {alpha}"


def _labels(panel: Axes, ends: Sequence[tuple[float, str]]) -> None:
    """At the right end of each line, no two on top of each other."""
    panel.figure.canvas.draw()
    height = panel.transData.transform
    low, high = panel.transAxes.transform([(0, 0), (0, 1)])[:, 1]
    places = {name: (float(height((1, end))[1]) - low) / (high - low) for end, name in ends}
    for name, place in zip(places, spaced(list(places.values()), APART), strict=True):
        weight = "bold" if name == HATS else "normal"
        panel.text(1.035, place, NAMES[name], transform=panel.transAxes, va="center", size=9.5, weight=weight,
                   color=LOOKS[name]["color"], clip_on=False)  # fmt: skip


def spaced(places: Sequence[float], apart: float) -> list[float]:
    """The same places, moved up as little as keeps them apart.

    >>> [round(place, 2) for place in spaced([0.9, 0.1, 0.12], 0.05)]
    [0.9, 0.1, 0.15]
    """
    found, least = list(places), float("-inf")
    for index in sorted(range(len(places)), key=places.__getitem__):
        found[index] = max(places[index], least)
        least = found[index] + apart
    return found
