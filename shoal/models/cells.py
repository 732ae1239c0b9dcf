"""Cells: in which place an event counts, by its pattern alone.

An H3 cell is the hexagon of the grid around the event's latitude and longitude; its name is the usual 15 hex digits.
Coordinates are pattern, hence public: which events are refused for them may depend on their numbers.
"""

from collections.abc import Callable
from typing import Any

import h3

from shoal.models.events import MISSING, Refused, getter, read_group
from shoal.models.slot import CellSection

Reader = Callable[[dict[str, Any], bytes], str]  # event and its bytes -> name of the cell
ANYWHERE = ""  # the cell of what has neither coordinates nor a group


def cell_reader(cell: CellSection | None, group: str | None) -> Reader:
    """What finds an event's cell.

    >>> read = cell_reader(CellSection(h3=8, lat="lat", lon="lon"), None)
    >>> read({"lat": 52.5, "lon": 13.4}, b"")
    '881f1d48b7fffff'
    """
    if cell is not None:
        return _hexagons(cell)
    if group is None:
        return lambda event, raw: ANYWHERE
    get, path = getter(group), group
    return lambda event, raw: read_group(get(event), raw, path)


def _hexagons(cell: CellSection) -> Reader:
    get_lat, get_lon, resolution = getter(cell.lat), getter(cell.lon), cell.h3
    hexagon: Callable[[float, float, int], str] = h3.latlng_to_cell

    def read(event: dict[str, Any], raw: bytes) -> str:
        return hexagon(_degrees(get_lat(event), 90, "lat"), _degrees(get_lon(event), 180, "lon"), resolution)

    return read


def _degrees(found: Any, most: int, role: str) -> int | float:
    """A coordinate: a JSON number between -most and most.

    Raises:
        Refused: missing, no number, or none that is on Earth.
    """
    kind = found.__class__
    if (kind is not float and kind is not int) or not -most <= found <= most:
        raise Refused(f"no-{role}" if found is MISSING else f"bad-{role}")
    degrees: int | float = found
    return degrees
