"""The picture: error by size of the input, and over the stream."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from benchmarks.accuracy.comparators import BY_ELEMENT, BY_RELEASE, OPENDP, ROOT
from benchmarks.accuracy.inputs import Input
from benchmarks.accuracy.scoring import Curve, late
from benchmarks.picture import drawn, lined, titled

LOOKS: dict[str, dict[str, Any]] = {
    "sharp": {"color": "#c8553d", "linewidth": 2.6, "zorder": 5},
    "naive": {"color": "#1f5f8b", "linewidth": 1.5},
    "full": {"color": "#6b4e9b", "linewidth": 1.5},
    BY_ELEMENT: {"color": "#4c9f70", "linewidth": 1.3, "linestyle": (0, (4, 2))},
    BY_RELEASE: {"color": "#2f6b4a", "linewidth": 1.5},
    OPENDP: {"color": "#d39b2a", "linewidth": 1.5},
    ROOT: {"color": "#8a94a0", "linewidth": 1.3, "linestyle": (0, (1.5, 1.5))},
}
POINTS = 120
SIZES = ("65536-8", "8192-64", "1024-1024", "4096-4096", "8192-8", "1024-64")
OVER_TIME = (("beta-1024-1024", "beta-1024-64"), ("heavy-8192-64", "heavy-8192-8"), ("purchases-1500", "unalike"))


@dataclass(frozen=True)
class Line:
    """A curve, thinned out for the eye; errors as parts of the range."""

    name: str
    share: list[float]  # of the stream
    error: list[float]
    late: float


def thin(curve: Curve, data: Input) -> Line:
    """At most POINTS groups of neighbouring looks, the squared errors of each averaged."""
    groups = np.array_split(np.arange(len(curve.at)), min(POINTS, len(curve.at)))
    share = [float(curve.at[group].mean()) / data.count for group in groups]
    error = [float(np.sqrt(curve.squares[group].mean())) / data.width for group in groups]
    return Line(curve.name, share, error, float(np.sqrt(curve.squares[late(curve.at)].mean())) / data.width)


def draw(found: Mapping[str, Mapping[str, Sequence[Line]]], path: Path) -> None:
    """Write the picture as PNG."""
    headline = "Error of a continual private mean, epsilon = 1 per person"
    below = "RMSE against the true mean of all events so far, as a part of the range"
    edges = {"left": 0.065, "right": 0.985, "top": 0.86, "bottom": 0.115, "hspace": 0.42, "wspace": 0.22}
    with drawn(path, (12.5, 8.4), headline, below, **edges, headline_at=0.955, below_at=0.923) as figure:
        panels = figure.subplots(2, 3, squeeze=False)
        sized = [(size, found[f"beta-{size}"]) for size in SIZES if f"beta-{size}" in found]
        for cadence, panel in enumerate(panels[0]):
            if sized:
                _by_size(panel, sized, cadence)
            elif found:
                _over_time(panel, next(iter(found)), next(iter(found.values())), cadence)
        for names, panel in zip(OVER_TIME, panels[1], strict=True):
            name = next((name for name in names if name in found), None)
            if name is None:
                panel.set_axis_off()
            else:
                _over_time(panel, name, found[name], 2)
        handles, labels = panels[0][-1].get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower center", ncols=len(labels), frameon=False, handlelength=2.2)


def _by_size(panel: Axes, sized: Sequence[tuple[str, Mapping[str, Sequence[Line]]]], cadence: int) -> None:
    """RMSE over the last three quarters, by number of users and samples."""
    for name, look in LOOKS.items():
        points = [(place, line.late) for place, (_, cadences) in enumerate(sized)
                  for line in list(cadences.values())[cadence] if line.name == name]  # fmt: skip
        if points:
            panel.plot(*zip(*points, strict=True), marker="o", markersize=4, label=name, **look)
    titles = ("a release per contribution", "32 releases", "365 releases")
    panel.set_xticks(range(len(sized)), [size.replace("-", " × ") for size, _ in sized], size=8.5)
    panel.set_xlabel("users × samples of each, Beta(2, 5)")
    _finish(panel, f"{titles[cadence]}: last three quarters")


def _over_time(panel: Axes, name: str, cadences: Mapping[str, Sequence[Line]], cadence: int) -> None:
    """RMSE over the stream."""
    title, lines = list(cadences.items())[cadence]
    for line in lines:
        if line.name in LOOKS:
            panel.plot([100 * share for share in line.share], line.error, label=line.name, **LOOKS[line.name])
    panel.set_xlabel("per cent of the stream")
    _finish(panel, f"{name}: {title}")


def _finish(panel: Axes, title: str) -> None:
    panel.set_yscale("log")
    lined(panel)
    titled(panel, title, 10.5)
