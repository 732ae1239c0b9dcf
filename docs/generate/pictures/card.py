"""What all pictures of docs/explanation/algorithms have in common: a white card, colours, and the file that is written.

A picture is a module with `data`, numbers from the code of the package, and `draw`, which draws them and nothing else.
The file has the numbers in its description, so that a test can make them again and compare, whatever version of
matplotlib drew the file. One version always draws the same bytes: identifiers come from a fixed salt, there is no date.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from typing import Any, Protocol

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shoal.agents.pictures import INK, QUIET, STYLE

Data = dict[str, Any]
SMALLER = 0.87  # so that words are large enough where a page has little room
DIGITS = 6  # of a number that is stored: more would differ between machines

RED, BLUE, GREEN, VIOLET, GOLD, GREY = "#c8553d", "#1f5f8b", "#2f8f5b", "#6b4e9b", "#b8860b", "#8a94a0"
PALE = {RED: "#f6e0da", BLUE: "#d9e7f0", GREEN: "#dcefe4", VIOLET: "#e5dff0", GOLD: "#f3e8cc", GREY: "#eceff2"}


class Picture(Protocol):
    """A module that makes a picture."""

    def data(self) -> Data:
        """Everything that is drawn, as JSON could have it."""
        ...

    def draw(self, data: Data) -> Figure: ...


@contextmanager
def card(width: float, height: float, title: str, below: str = "", **edges: float) -> Iterator[Figure]:
    """A figure with a title, and a quieter line below it; sizes are in inches, of paper that is then made smaller."""
    width, height = SMALLER * width, SMALLER * height
    with matplotlib.rc_context({**STYLE, "font.size": 10}):
        figure = Figure(figsize=(width, height), facecolor="white")
        figure.subplots_adjust(
            **{"left": 0.08, "right": 0.97, "bottom": 0.55 / height, "top": 1 - 1.2 / height, **edges}
        )
        figure.text(0.25 / width, 1 - 0.3 / height, title, size=13, weight="bold", va="center")
        figure.text(0.25 / width, 1 - 0.58 / height, below, color=QUIET, va="center")
        yield figure


def plain(panel: Axes, title: str = "") -> None:
    """Pale lines across, and the panel's title above its left end."""
    panel.grid(axis="y", color=PALE[GREY], linewidth=0.8)
    panel.set_axisbelow(True)
    if title:
        panel.set_title(title, loc="left", size=10.5, weight="bold", color=INK, pad=8)


def empty(panel: Axes) -> None:
    """A panel without axes, for boxes and arrows."""
    panel.set_axis_off()


def stored(value: Any) -> Any:
    """Numbers as they are stored in a picture, nested as they are.

    >>> stored({"error": (1 / 3, 2)})
    {'error': [0.333333, 2]}
    """
    if isinstance(value, dict):
        return {str(key): stored(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [stored(each) for each in value]
    return float(f"{float(value):.{DIGITS}g}") if isinstance(value, float) else value


def svg(picture: Picture) -> str:
    """The text of the picture's file."""
    data = stored(picture.data())
    with matplotlib.rc_context({"svg.hashsalt": "shoal", "svg.fonttype": "path"}):
        file = StringIO()
        description = json.dumps(data, separators=(",", ":"))
        metadata = {"Date": None, "Creator": None, "Description": description}
        picture.draw(data).savefig(file, format="svg", facecolor="white", metadata=metadata)
    return "".join(f"{line.rstrip()}\n" for line in file.getvalue().splitlines())
