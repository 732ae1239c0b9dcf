"""Cells: in which place an event counts, by its pattern alone.

An H3 cell is the hexagon of the grid around the event's latitude and longitude; its name is the usual 15 hex digits.
Coordinates are pattern, hence public: which events are refused for them may depend on their numbers.
"""

from collections.abc import Callable
from typing import Any

from shoal.models.config.cell import CellSection
from shoal.models.config.reading import FIRST
from shoal.models.events import MISSING, Refused, getter, read_group
from shoal.models.numerals import json_number

Reader = Callable[[dict[str, Any], bytes], str]  # event and its bytes -> name of the cell
ANYWHERE = ""  # the cell of what has neither coordinates nor a group


def cell_reader(cell: CellSection | None, group: str | None, reading: int = FIRST) -> Reader:
    """The function that finds an event's cell.

    >>> read = cell_reader(CellSection(h3=8, lat="lat", lon="lon"), None)
    >>> read({"lat": 52.5, "lon": 13.4}, b"")
    '881f1d48b7fffff'
    """
    if cell is not None:
        return _hexagons(cell, reading)
    if group is None:
        return lambda event, raw: ANYWHERE
    get, path = getter(group), group
    return lambda event, raw: read_group(get(event), raw, path, reading)


def _hexagons(cell: CellSection, reading: int) -> Reader:
    get_lat, get_lon, resolution = getter(cell.lat), getter(cell.lon), cell.h3
    hexagon: Callable[[float, float, int], str] = cell.grid().latlng_to_cell

    def read(event: dict[str, Any], raw: bytes) -> str:
        lat, lon = get_lat(event), get_lon(event)
        if reading != FIRST:
            lat, lon = _number(lat), _number(lon)
        return hexagon(_degrees(lat, 90, "lat"), _degrees(lon, 180, "lon"), resolution)

    return read


def _number(field: Any) -> Any:
    """A number that stands in a text, as every field of a CSV does; anything else as it is."""
    if field.__class__ is not str:
        return field
    number = json_number(field)
    return field if number is None else float(number)


def _degrees(field: Any, most: int, role: str) -> int | float:
    """A coordinate: a JSON number between -most and most.

    Raises:
        Refused: it is missing, not a number, or not on Earth.
    """
    kind = field.__class__
    if (kind is not float and kind is not int) or not -most <= field <= most:
        raise Refused(f"no-{role}" if field is MISSING else f"bad-{role}")
    degrees: int | float = field
    return degrees
