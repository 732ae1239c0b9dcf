"""What the pictures of all reports have in common: the frame, the headline, the grid, labels at the ends of lines."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shoal.agents.pictures import INK, QUIET, STYLE

APART = 0.052  # of the panel's height: labels nearer than that would touch


@contextmanager
def drawn(path: Path, size: tuple[float, float], headline: str, below: str, **edges: float) -> Iterator[Figure]:
    """A figure with a headline and a line below it; written as PNG when all is drawn.

    `edges` are those of `subplots_adjust`, and `headline_at` and `below_at`, the heights of the two lines.
    """
    heights = edges.pop("headline_at", 0.935), edges.pop("below_at", 0.89)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=size, dpi=110)
        figure.subplots_adjust(**edges)
        figure.text(edges["left"], heights[0], headline, size=16, weight="bold")
        figure.text(edges["left"], heights[1], below, color=QUIET)
        yield figure
        figure.savefig(path, format="png", facecolor="white")


def titled(panel: Axes, title: str, size: float = 11.5) -> None:
    """The title of a panel, above its left end."""
    panel.set_title(title, loc="left", size=size, weight="bold", color=INK, pad=10)


def lined(panel: Axes) -> None:
    """Pale lines across, behind what is drawn."""
    panel.grid(axis="y", color="#eceff2", linewidth=0.8)
    panel.set_axisbelow(True)


class End(NamedTuple):
    """What is written at the right end of a line."""

    height: float  # in the units of the data
    label: str
    color: str
    weight: str = "normal"


def labels(panel: Axes, ends: Sequence[End], x: float = 1.035) -> None:
    """Labels at the right ends of lines, no two on top of each other."""
    panel.figure.canvas.draw()
    low, high = panel.transAxes.transform([(0, 0), (0, 1)])[:, 1]
    places = [float(panel.transData.transform((1, end.height))[1] - low) / (high - low) for end in ends]
    for end, place in zip(ends, spaced(places, APART), strict=True):
        look: Mapping[str, Any] = {"color": end.color, "weight": end.weight, "size": 9.5}
        panel.text(x, place, end.label, transform=panel.transAxes, va="center", clip_on=False, **look)


def spaced(places: Sequence[float], apart: float) -> list[float]:
    """The same places, moved up as little as keeps them apart.

    >>> [round(place, 2) for place in spaced([0.9, 0.1, 0.12], 0.05)]
    [0.9, 0.1, 0.15]
    """
    moved, least = list(places), float("-inf")
    for index in sorted(range(len(places)), key=places.__getitem__):
        moved[index] = max(places[index], least)
        least = moved[index] + apart
    return moved
