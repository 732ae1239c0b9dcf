"""map.html: all slots of a metric by place, on one page that loads nothing else.

The page is page.html with the cells as polygons and the releases as JSON in it; all text from releases is escaped for
its place.
"""

import html
from pathlib import Path
from string import Template
from typing import Any

import orjson

from shoal.agents.map import NOISE
from shoal.agents.map.colors import EMPTY, HATCH, HATCHED, MARGINS, VALUES, moment, palette, scales
from shoal.agents.map.geometry import Plane, Point, on_plane, round_length
from shoal.agents.map.releases import MapCell, Places

TEMPLATE = Path(__file__).with_name("page.html")
WIDTH = 1000.0
EDGE = 10.0  # around the cells
FOOT = 30.0  # below them, for the scale


def page(places: Places, label: str, note: str = "") -> str:
    """The page's text; `label` names the value, `note` is a last line."""
    cells = places.cells
    plane = on_plane(cells)
    factor = (WIDTH - 2 * EDGE) / plane.width
    height = plane.height * factor + 2 * EDGE + FOOT
    texts = {
        "title": f"{label}, by place",
        "subtitle": "; ".join(
            filter(None, [f"metric {places.metric}", places.promise, "one release per cell and slot"])
        ),
        "label": label,
        "noise": NOISE,
        "first": places.first,
        "absent": places.absent,
        "note": note,
        "width": f"{WIDTH:.0f}",
        "height": f"{height:.0f}",
        "start": str(list(places.slots).index(places.fullest)),
        "last": str(len(places.slots) - 1),
        "hatch": HATCH,
        "hatched": HATCHED,
        "empty": EMPTY,
    } | _length(plane, factor, height)
    filled = {name: html.escape(text) for name, text in texts.items()}
    filled["polygons"] = "\n".join(_polygon(plane, factor, polygon) for polygon in plane.polygons)
    filled["data"] = _json(_data(places, cells, label))
    return Template(TEMPLATE.read_text("utf-8")).substitute(filled)


def _polygon(plane: Plane, factor: float, polygon: list[Point]) -> str:
    points = (((x - plane.west) * factor + EDGE, (plane.north - y) * factor + EDGE) for x, y in polygon)
    return f'<polygon points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'


def _length(plane: Plane, factor: float, height: float) -> dict[str, str]:
    """The bar that shows how long a round number of kilometres is."""
    length = round_length(plane.width / 5)
    end, base = WIDTH - EDGE, height - EDGE
    return {
        "scale_path": f"M{end - length * factor:.1f} {base:.1f}H{end:.1f}",
        "scale_x": f"{end - length * factor / 2:.1f}",
        "scale_y": f"{base - 8:.1f}",
        "scale_text": f"{length:g} km",
    }


def _data(places: Places, cells: list[str], label: str) -> dict[str, Any]:
    """The data of the script: for each slot the cells that have a release, by their number among the polygons."""
    numbers = {cell: str(number) for number, cell in enumerate(cells)}
    slots = [
        {"at": moment(at), "cells": {numbers[name]: _row(cell) for name, cell in slot.items()}}
        for at, slot in places.slots.items()
    ]
    return {
        "label": label,
        "names": cells,
        "absent": places.absent,
        "about": "about " if places.hides_presence else "",
        "scales": [[scale.low, scale.high] for scale in scales(places)],
        "colors": [palette(VALUES), palette(MARGINS)],
        "slots": slots,
    }


def _row(cell: MapCell) -> list[float | int | None]:
    numbers = [None if number is None else float(f"{number:.5g}") for number in (cell.value, cell.margin, cell.error)]
    return [*numbers, cell.samples, cell.users]


def _json(data: dict[str, Any]) -> str:
    """JSON that cannot end the element in which it stands."""
    return orjson.dumps(data).decode().replace("<", "\\u003c")
