"""H3 cells as polygons on a plane 1,000 units wide, for metrics whose groups are cells, and what is said of a map.

Without h3, which is an extra, there is no map, and the page says so; all else is there.
"""

from collections.abc import Collection
from typing import Any

WIDTH = 1000.0
MOST = 20_000  # cells that are drawn; a map of more is no map
INSTALL = "pip install 'shoal[geo]'"
SHORTEST, LONGEST = 15, 16  # characters of an H3 cell's name
FIRST = "What a person did in a place is protected. That they were there, and when, is not."
FIRST_OF_PRESENCE = "Whether a person was in a place is protected, and what they did there."
ABSENT, ABSENT_OF_PRESENCE = "nothing in this slot", "not shown in this slot"  # of a cell that another one has

THINNED = "not kept, or nothing in this slot"  # the same where older releases were thinned


def said(hides_presence: bool, *, is_thinned: bool = False) -> tuple[str, str]:
    """What is to be said first, and what is said of a cell that has no release in a slot."""
    first, absent = (FIRST_OF_PRESENCE, ABSENT_OF_PRESENCE) if hides_presence else (FIRST, ABSENT)
    return first, THINNED if is_thinned else absent


def polygons(groups: Collection[str]) -> dict[str, Any] | None:
    """The cells' points by name, height and scale of their plane; None if the groups are no cells."""
    if not groups or not all(map(_may_be_cell, groups)):
        return None
    if len(groups) > MOST:
        return {
            "missing": f"If these {len(groups):,} groups are H3 cells, they are too many for a map: it has {MOST:,}."
        }
    try:
        import h3

        from shoal.agents.dashboard.geometry import on_plane
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
    return SHORTEST <= len(name) <= LONGEST and all(character in "0123456789abcdefABCDEF" for character in name)
