"""map.png: the fullest slot of a metric by place, its values on the left and their noise on the right."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO

import matplotlib
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from shoal.agents.dashboard.geometry import Plane, on_plane, round_length
from shoal.agents.map.colors import EMPTY, HATCH, HATCHED, MARGINS, VALUES, Scale, moment, scales
from shoal.agents.map.releases import MapCell, Places
from shoal.agents.pictures import INK, QUIET, STYLE

NOISE = "\N{PLUS-MINUS SIGN} of 95 % of the noise"
WIDTH, DPI = 12.0, 110
LEFT, GAP, PANEL = 0.35, 0.9, 4.85  # inches
ABOVE, BELOW = 2.0, 0.4
TALLEST, FLATTEST = 7.0, 2.5
PLAIN: dict[str, Any] = {"va": "center", "parse_math": False}  # a label may hold dollars
BOLD: dict[str, Any] = {"weight": "bold"}
MARGIN = 0.02  # around the cells, in widths of the map


@dataclass(frozen=True)
class _Kind:
    """One panel: the number of a cell that it shows, and how."""

    name: str
    number: Callable[[MapCell], float | None]
    scale: Scale
    colors: str
    extend: str  # which ends of the scale stand for what lies beyond too


def _kinds(places: Places, label: str) -> tuple[_Kind, _Kind]:
    values, margins = scales(places)
    return (
        _Kind(label, lambda cell: cell.value, values, VALUES, "both"),
        _Kind(NOISE, lambda cell: cell.margin, margins, MARGINS, "max"),
    )


def draw(places: Places, file: BinaryIO, label: str, note: str = "") -> None:
    """Write the picture as PNG; `label` names the value, `note` is a last line."""
    cells = places.cells
    plane = on_plane(cells)
    slot = places.slots[places.fullest]
    tall = min(max(PANEL * plane.height / plane.width, FLATTEST), TALLEST)
    height = ABOVE + tall + BELOW
    with matplotlib.rc_context(STYLE | {"hatch.linewidth": 0.6}):
        figure = Figure(figsize=(WIDTH, height), dpi=DPI)
        _words(figure, places, slot, label, height)
        for number, kind in enumerate(_kinds(places, label)):
            left = LEFT + number * (PANEL + GAP)
            figure.text(left / WIDTH, (BELOW + tall + 0.24) / height, kind.name, size=11, **PLAIN, **BOLD)
            panel = figure.add_axes((left / WIDTH, BELOW / height, PANEL / WIDTH, tall / height))
            shown = _hexagons(panel, plane, cells, slot, kind)
            _bar(figure, shown, kind, ((left + PANEL + 0.12) / WIDTH, BELOW / height, tall / height))
        _length(figure.axes[0], plane)
        figure.text(LEFT / WIDTH, 0.2 / height, note, color=QUIET, size=8, **PLAIN)
        figure.savefig(file, format="png", facecolor="white")


def _words(figure: Figure, places: Places, slot: dict[str, MapCell], label: str, height: float) -> None:
    """Write title, subtitle and legend."""
    released = sum(cell.released for cell in slot.values())
    facts = [f"slot that ends {moment(places.fullest)}", places.promise]
    facts.append(f"{released:,} cells released, {len(slot) - released:,} not")
    figure.text(LEFT / WIDTH, 1 - 0.33 / height, f"{label}, by place", size=16, **PLAIN, **BOLD)
    figure.text(LEFT / WIDTH, 1 - 0.66 / height, "; ".join(filter(None, facts)), color=QUIET, **PLAIN)
    handles = [
        Patch(facecolor=HATCHED, edgecolor=HATCH, hatch="/////", linewidth=0.6, label="not released"),
        Patch(facecolor="none", edgecolor=QUIET, linewidth=0.6, label=places.absent),
    ]
    legend = figure.legend(
        handles=handles, title=places.first, alignment="left", loc="upper left",
        bbox_to_anchor=(LEFT / WIDTH, 1 - 0.87 / height), borderaxespad=0,
        ncols=2, fontsize=9.5, labelcolor=INK, edgecolor="#c4c9d0", borderpad=0.8, handlelength=1.6, columnspacing=1.6,
    )  # fmt: skip
    legend.get_title().set(weight="bold", color=INK)


def _hexagons(panel: Axes, plane: Plane, cells: list[str], slot: dict[str, MapCell], kind: _Kind) -> PolyCollection:
    """Draw cells that are released, cells that are not, and cells without anything in this slot."""
    kinds: dict[str, list[Any]] = {"released": [], "not": [], "none": []}
    numbers = []
    for cell, polygon in zip(cells, plane.polygons, strict=True):
        release = slot.get(cell)
        number = None if release is None else kind.number(release)
        kinds["none" if release is None else "not" if number is None else "released"].append(polygon)
        if number is not None:
            numbers.append(number)
    panel.add_collection(PolyCollection(kinds["none"], facecolors="none", edgecolors=EMPTY, linewidths=0.6))
    panel.add_collection(
        PolyCollection(kinds["not"], facecolors=HATCHED, edgecolors=HATCH, hatch="/////", linewidths=0.4)
    )
    shown = PolyCollection(
        kinds["released"], array=numbers, cmap=kind.colors, norm=Normalize(kind.scale.low, kind.scale.high),
        edgecolors="white", linewidths=0.5,
    )  # fmt: skip
    panel.add_collection(shown)
    room = MARGIN * plane.width
    panel.set_xlim(plane.west - room, plane.east + room)
    panel.set_ylim(plane.south - room, plane.north + room)
    panel.set_aspect("equal")
    panel.set_axis_off()
    return shown


def _bar(figure: Figure, shown: PolyCollection, kind: _Kind, corner: tuple[float, float, float]) -> None:
    left, bottom, tall = corner
    axes = figure.add_axes((left, bottom + 0.1 * tall, 0.14 / WIDTH, 0.8 * tall))
    bar = figure.colorbar(shown, cax=axes, extend=kind.extend)
    bar.outline.set_visible(False)
    axes.tick_params(length=2, labelsize=8.5)


def _length(panel: Axes, plane: Plane) -> None:
    """Draw the bar that shows how long a round number of kilometres is."""
    length = round_length(plane.width / 5)
    end, y = plane.east, plane.south
    panel.plot([end - length, end], [y, y], color=QUIET, linewidth=1.5, solid_capstyle="butt")
    panel.annotate(
        f"{length:g} km", (end - length / 2, y), (0, 4), textcoords="offset points", ha="center", color=QUIET, size=8
    )
