"""Cells: in which place an event counts, by its pattern alone.

An H3 cell is the hexagon of the grid around the event's latitude and longitude; its name is the usual 15 hex digits.
Coordinates are pattern, hence public: which events are refused for them may depend on their numbers.
"""

from collections.abc import Callable
from typing import Any

from shoal.mechanisms.parts.per import Field, Hexagons
from shoal.models.events import MISSING, Reader, Refusal, getter, group_reader
from shoal.models.extras import hexagons
from shoal.models.numerals import json_number


def cell_reader(place: Field | Hexagons) -> Reader[str]:
    """The function that finds an event's key.

    >>> read = cell_reader(Hexagons(8, "lat", "lon"))
    >>> read({"lat": 52.5, "lon": 13.4}, b"")
    '881f1d48b7fffff'
    """
    return _hexagons(place) if isinstance(place, Hexagons) else group_reader(place.name)


def _hexagons(place: Hexagons) -> Reader[str]:
    get_lat, get_lon, resolution = getter(place.latitude), getter(place.longitude), place.resolution
    hexagon: Callable[[float, float, int], str] = hexagons().latlng_to_cell

    def read(event: dict[str, Any], raw: bytes) -> str | Refusal:
        lat, lon = _degrees(get_lat(event), 90, "lat"), _degrees(get_lon(event), 180, "lon")
        if isinstance(lat, Refusal):
            return lat
        return lon if isinstance(lon, Refusal) else hexagon(lat, lon, resolution)

    return read


def _number(field: Any) -> Any:
    """A number that stands in a text, as every field of a CSV does; anything else as it is."""
    if field.__class__ is not str:
        return field
    number = json_number(field)
    return field if number is None else float(number)


def _degrees(field: Any, most: int, role: str) -> int | float | Refusal:
    """A coordinate: a number, or a text of one, between -most and most."""
    degrees = _number(field)
    if (type(degrees) is float or type(degrees) is int) and -most <= degrees <= most:
        return degrees
    return Refusal(f"no-{role}" if field is MISSING else f"bad-{role}")
