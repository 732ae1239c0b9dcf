"""Draws both maps of a metric."""

from typing import Any, BinaryIO

from shoal.agents.dashboard.file import page_by_place
from shoal.agents.map.picture import draw
from shoal.agents.map.releases import Places
from shoal.models.printable import printable

PICTURE, PAGE = "map.png", "map.html"


def draw_map(places: Places, picture: BinaryIO, page: BinaryIO, label: str, note: str = "") -> dict[str, Any]:
    """Write the picture as PNG and the page as HTML, to their last bytes; what is on them."""
    label = printable(label)
    draw(places, picture, label, note)
    page.write(page_by_place(places.lines, label, note).encode())
    picture.flush(), page.flush()  # neither takes its place where the other one finds the disk full
    released = sum(1 for _ in places.released())
    cells = sum(map(len, places.slots.values()))
    return {
        "metric": places.metric,
        "slots": len(places.slots),
        "cells": len(places.cells),
        "released": released,
        "not_released": cells - released,
    }
