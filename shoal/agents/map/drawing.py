"""Draws both maps of a metric into a folder."""

from pathlib import Path
from typing import Any

from shoal.agents.dashboard.file import page_by_place
from shoal.agents.map.picture import draw
from shoal.agents.map.releases import Places
from shoal.models.errors import InputError


def draw_map(places: Places, folder: Path, label: str, note: str = "") -> dict[str, Any]:
    """Write map.png and map.html; where they are, and what is on them.

    Raises:
        InputError: the folder cannot be written.
    """
    picture, text = folder / "map.png", folder / "map.html"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        draw(places, picture, label, note)
        text.write_text(page_by_place(places.lines, label, note), "utf-8")
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror}); choose another place with --out") from None
    released = sum(1 for _ in places.released())
    cells = sum(map(len, places.slots.values()))
    return {
        "metric": places.metric,
        "slots": len(places.slots),
        "cells": len(places.cells),
        "released": released,
        "not_released": cells - released,
        "picture": str(picture),
        "page": str(text),
    }
