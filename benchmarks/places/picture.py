"""The pictures: every algorithm's error over the least, in every cell; and noise as samples and users grow."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from benchmarks.picture import End, drawn, labels, lined, titled
from benchmarks.places.errors import ALGORITHMS, NEAR, Row
from benchmarks.places.scaling import PEOPLE, SAMPLES, Line
from shoal.agents.pictures import INK

COLORS = {
    "best": "#c8553d",
    "best, spread_share": "#c8553d",
    "baseline": "#8a94a0",
    "array-averaging": "#1f5f8b",
    "levy": "#6b4e9b",
    "fixed-quantile": "#2f8f5b",
    "epsilon-quantile": "#b8860b",
}
TICKS = [digit * 10**place for place in range(-4, 4) for digit in (1, 2, 5)]
DASHES: dict[str, Any] = {"linestyle": (0, (4, 2)), "linewidth": 1.1, "color": INK}


def draw_errors(rows: Sequence[Row], path: Path) -> None:
    """A column of dots for each algorithm and epsilon."""
    epsilons = sorted({row.epsilon for row in rows})
    headline = "Error in a cell, over the least of all choices in hindsight"
    below = (
        f"A dot is one of {len(rows) // len(epsilons)} cells, synthetic (filled) or of simulated trips (open).  "
        "Dashes: 10 % above the least."
    )
    edges = {"left": 0.065, "right": 0.985, "top": 0.815, "bottom": 0.155, "below_at": 0.888}
    with drawn(path, (13, 6.0), headline, below, **edges) as figure:
        panel = figure.subplots()
        ticks = []
        for group, name in enumerate(ALGORITHMS):
            for place, epsilon in enumerate(epsilons):
                x = group * (len(epsilons) + 1.2) + place
                ticks.append((x, f"{epsilon:g}"))
                _column(panel, [row for row in rows if row.epsilon == epsilon], name, x)
            middle = group * (len(epsilons) + 1.2) + (len(epsilons) - 1) / 2
            panel.text(middle, -0.135, name, transform=panel.get_xaxis_transform(), ha="center", size=11,
                       weight="bold" if name.startswith("best") else "normal", color=COLORS[name])  # fmt: skip
        panel.axhline(NEAR, zorder=1, **DASHES)
        panel.set_yscale("log")
        ticks_of_ratios = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)
        panel.set_yticks(ticks_of_ratios, [f"{tick:g}" for tick in ticks_of_ratios])
        panel.minorticks_off()
        ratios = [row.of(name) / row.errors[row.least] for row in rows for name in ALGORITHMS]
        panel.set_ylim(0.96 * min(ratios), 1.15 * max(ratios))
        panel.set_xticks([x for x, _ in ticks], [said for _, said in ticks])
        panel.set_xlabel("ε", loc="left", labelpad=-11)
        lined(panel)


def _column(panel: Axes, rows: Sequence[Row], name: str, x: float) -> None:
    """Dots beside one another, in the order of cells."""
    ratios = [row.of(name) / row.errors[row.least] for row in rows]
    shifts = np.linspace(-0.32, 0.32, len(rows)) if len(rows) > 1 else np.zeros(1)
    for kind, filled in (("synthetic", True), ("trips", False)):
        own = [(x + shift, ratio) for row, shift, ratio in zip(rows, shifts, ratios, strict=True) if row.kind == kind]
        face = COLORS[name] if filled else "white"
        if own:
            panel.scatter([at for at, _ in own], [ratio for _, ratio in own], s=13, facecolor=face,
                          edgecolor=COLORS[name], linewidth=0.9, zorder=3)  # fmt: skip
    middle = float(np.median(ratios))
    panel.plot([x - 0.4, x + 0.4], [middle, middle], color=INK, linewidth=1.8, zorder=4)


def draw_scaling(lines: Sequence[Line], path: Path) -> None:
    """Two panels: more samples of every user, and more users."""
    below = (
        "Standard deviation in km/h, ε = 2.  Dots: measured.  Dashes: the slopes that the paper derives, through the "
        "last point."
    )
    edges = {"left": 0.06, "right": 0.895, "top": 0.79, "bottom": 0.12, "wspace": 0.44}
    with drawn(path, (13, 6.0), "Noise as cells grow", below, **edges) as figure:
        panels = figure.subplots(1, 2)
        for panel, scaled, title in zip(
            panels, (SAMPLES, PEOPLE), ("Every user has λ times as many samples", "λ times as many users"), strict=True
        ):
            _panel(panel, [line for line in lines if line.scaled == scaled])
            titled(panel, title)


def _panel(panel: Axes, lines: Sequence[Line]) -> None:
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    for line in lines:
        panel.plot(line.factors, line.noise, marker="o", markersize=4.6, linewidth=1.6, color=COLORS[line.algorithm])
        if line.expected is not None:
            x = np.array([max(line.factors[-1] / 16, line.factors[0]), line.factors[-1]], dtype=np.float64)
            panel.plot(x, line.noise[-1] * (x / x[-1]) ** line.expected, zorder=6, **DASHES)
    factors = lines[0].factors
    panel.set_xticks(factors, [str(factor) for factor in factors])
    panel.set_xlabel("λ")
    least, most = min(min(line.noise) for line in lines), max(max(line.noise) for line in lines)
    panel.set_yticks(ticks := [t for t in TICKS if least / 1.5 <= t <= most * 1.5], [f"{t:g}" for t in ticks])
    panel.minorticks_off()
    lined(panel)
    labels(panel, [End(line.noise[-1], line.algorithm, COLORS[line.algorithm]) for line in lines], x=1.03)
