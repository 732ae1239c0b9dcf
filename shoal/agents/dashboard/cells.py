"""H3 cells as polygons on a plane 1,000 units wide, for metrics whose groups are cells.

Without h3, which is an extra, there is no map, and the page says so; all else is there.
"""

from collections.abc import Collection
from typing import Any

WIDTH = 1000.0
MOST = 20_000  # cells that are drawn; a map of more is no map
INSTALL = "pip install 'shoal[geo]'"
FIRST, LAST = 15, 16  # characters of an H3 cell's name


def polygons(groups: Collection[str]) -> dict[str, Any] | None:
    """The cells' points by name, height and scale of their plane; None if the groups are no cells."""
    if not groups or len(groups) > MOST or not all(map(_may_be_cell, groups)):
        return None
    try:
        import h3

        from shoal.agents.map.geometry import on_plane
    except ImportError:
        return {"missing": f"If these groups are H3 cells, they are a map once geo is there: {INSTALL}"}
    if not all(map(h3.is_valid_cell, groups)):
        return None
    cells = sorted(groups)
    plane = on_plane(cells)
    factor = WIDTH / plane.width
    points = [
        " ".join(f"{(x - plane.west) * factor:.1f},{(plane.north - y) * factor:.1f}" for x, y in ring)
        for ring in plane.polygons
    ]
    return {
        "height": round(plane.height * factor),
        "km": factor,
        "cells": dict(zip(cells, points, strict=True)),
    }


def _may_be_cell(name: str) -> bool:
    """Whether the name looks like one, so that h3 need not be loaded for other groups.

    >>> _may_be_cell("881f1d4887fffff"), _may_be_cell("north")
    (True, False)
    """
    return FIRST <= len(name) <= LAST and all(character in "0123456789abcdefABCDEF" for character in name)
