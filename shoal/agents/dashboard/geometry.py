"""H3 cells as polygons on a plane that is undistorted in the middle of the map."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import h3

KM_PER_DEGREE = 111.195
Point = tuple[float, float]


@dataclass(frozen=True)
class Plane:
    """Polygons in km, x to the east, y to the north, and the box that holds them."""

    polygons: list[list[Point]]
    west: float
    east: float
    south: float
    north: float

    @property
    def width(self) -> float:
        return self.east - self.west

    @property
    def height(self) -> float:
        return self.north - self.south


def on_plane(cells: Sequence[str]) -> Plane:
    """The cells' polygons, in their order; a map may lie on the date line."""
    first = h3.cell_to_latlng(cells[0])[1]
    rings = [[(lat, (lon - first + 180) % 360 - 180) for lat, lon in h3.cell_to_boundary(cell)] for cell in cells]
    middle = math.fsum(lat for ring in rings for lat, _ in ring) / sum(map(len, rings))
    stretch = KM_PER_DEGREE * math.cos(math.radians(middle))
    polygons = [[(lon * stretch, (lat - middle) * KM_PER_DEGREE) for lat, lon in ring] for ring in rings]
    xs, ys = zip(*(point for polygon in polygons for point in polygon), strict=True)
    return Plane(polygons, min(xs), max(xs), min(ys), max(ys))


def round_length(most: float) -> float:
    """The longest of 1, 2, 5, 10, ... that is not longer.

    >>> round_length(7.3), round_length(0.3), round_length(20)
    (5.0, 0.2, 20.0)
    """
    power = 10.0 ** math.floor(math.log10(most))
    return max(factor * power for factor in (1.0, 2.0, 5.0) if factor * power <= most)
