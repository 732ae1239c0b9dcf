"""The picture: variance over the length of the window, and over the number of steps that an exponential sum holds."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from benchmarks.decay import textbook
from benchmarks.decay.contenders import BLUE, EXPONENTIAL, HATS, PATENT, ROOT, STEPS, WINDOW
from benchmarks.decay.report import Row
from benchmarks.picture import End, drawn, labels, lined, titled
from shoal.agents.pictures import INK

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


def draw(rows: Sequence[Row], path: Path) -> None:
    """Write the picture as PNG."""
    headline = "Variance of a sum that forgets, epsilon = 1 per event"
    below = (
        "Mean over all steps, in squares of the range [0, 1].  Lines: formula.  Dots: measured with real draws, "
        "± 2 standard errors.  Dashes: 1.05 × the variance to reach."
    )
    edges = {"left": 0.06, "right": 0.905, "top": 0.79, "bottom": 0.125, "wspace": 0.46, "below_at": 0.892}
    with drawn(path, (13, 6.4), headline, below, **edges) as figure:
        left, right = figure.subplots(1, 2)
        _panel(left, [row for row in rows if row.family == WINDOW], textbook.WINDOWS)
        titled(left, "The last W steps")
        left.set_xlabel("W")
        _panel(right, [row for row in rows if row.family == EXPONENTIAL], textbook.EXPONENTIALS)
        titled(right, "Exponential decay")
        right.set_xlabel("1 / (1 − α), the steps that it holds")


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
        ends.append(End(formula[-1], NAMES[mechanism], look["color"], "bold" if mechanism == HATS else "normal"))
    shown = {row.x for row in rows}
    at = {x: textbook.SLACK * target for x, target in targets.items() if x in shown}
    panel.plot(list(at), list(at.values()), linestyle="", marker="_", markersize=17, markeredgewidth=2.2,
               color=INK, zorder=4)  # fmt: skip
    panel.set_xticks(sorted(shown), [_tick(rows, x) for x in sorted(shown)])
    panel.minorticks_off()
    lined(panel)
    labels(panel, ends)


def _tick(rows: Sequence[Row], x: float) -> str:
    if rows[0].family == WINDOW:
        return f"$2^{{{int(x).bit_length() - 1}}}$"
    alpha = next(row.at for row in rows if row.x == x)
    return f"{x:,.0f}\nα = {alpha}"
