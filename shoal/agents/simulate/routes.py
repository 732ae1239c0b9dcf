"""The lines of a city: paths between H3 cells, bent as roads are, as tables of places in equal steps of time.

Every cell has one crossing, so lines that pass through the same cells meet. Some lines go through the centre, some
along the ring road, some across.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import h3
import numpy as np

from shoal.agents.simulate.city import City, Floats, Ints
from shoal.models.errors import InputError

STEP = 5.0  # seconds between two rows of a line's table
GRAIN = 0.025  # km between two points of a road
RING = 0.72  # where the ring road is, in radii
BUSES_PER_LINE = 10
LINES = (12, 160)  # least and most
BENDS = 2  # times that corners are cut
OFF_CENTRE = 0.5  # how far crossings lie from the centres of their cells, in edges of a cell


@dataclass(frozen=True)
class Roads:
    """All lines, one after the other: points at equal distances."""

    cells: tuple[str, ...]  # that any line touches, sorted
    lat: Floats
    lon: Floats
    cell: Ints  # its number in `cells`
    starts: Ints  # of each line; one more at the end


@dataclass(frozen=True)
class Lines:
    """All lines, one after the other: where a bus is after 0, 5, 10, ... seconds of driving at the lines' mean pace."""

    lat: Floats
    lon: Floats
    cell: Ints
    starts: Ints

    def __len__(self) -> int:
        return len(self.starts) - 1

    def rows(self, line: Ints, driven: Floats) -> Ints:
        """Rows of the tables for buses of these lines that have driven so long, to and fro."""
        length = self.starts[line + 1] - self.starts[line]
        there = (driven / STEP).astype(np.int64) % (2 * length)
        row: Ints = self.starts[line] + np.minimum(there, 2 * length - 1 - there)
        return row


def number_of_lines(users: int) -> int:
    """How many lines such a fleet drives.

    >>> number_of_lines(3), number_of_lines(400), number_of_lines(50_000)
    (12, 40, 160)
    """
    return min(max(LINES[0], users // BUSES_PER_LINE), LINES[1])


def build_roads(city: City, count: int, rng: np.random.Generator) -> Roads:
    """So many lines.

    Raises:
        InputError: H3 finds no paths there.
    """
    try:
        paths = [_path(city, points) for points in _waypoints(city, count, rng)]
    except h3.H3BaseException:
        raise InputError("H3 finds no paths between cells there, near a pentagon; choose another --city") from None
    crossings = _crossings(city, sorted({cell for path in paths for cell in path}), rng)
    lines = [_even(_bent(np.array([crossings[cell] for cell in path]))) for path in paths]
    lat, lon = city.place(*np.concatenate(lines).T)
    texts = [h3.latlng_to_cell(*point, city.resolution) for point in zip(lat.tolist(), lon.tolist(), strict=True)]
    cells, numbers = np.unique(np.array(texts), return_inverse=True)
    return Roads(tuple(cells.tolist()), lat, lon, numbers.astype(np.int64), _starts([len(line) for line in lines]))


def timetable(roads: Roads, pace: Floats) -> Lines:
    """Places in equal steps of time; `pace` is the mean speed in each cell, km/h."""
    tables, lengths = [], []
    for first, end in zip(roads.starts[:-1], roads.starts[1:], strict=True):
        took = np.cumsum(GRAIN / pace[roads.cell[first:end]] * 3600)
        at = np.arange(0.0, max(took[-1], 2 * STEP), STEP)
        points = np.arange(end - first)
        where = np.interp(at, took, points)
        lat, lon = (np.interp(where, points, degrees[first:end]) for degrees in (roads.lat, roads.lon))
        tables.append((lat, lon, roads.cell[first:end][np.rint(where).astype(np.int64)]))
        lengths.append(len(at))
    lats, lons, cells = (np.concatenate(parts) for parts in zip(*tables, strict=True))
    return Lines(lats, lons, cells, _starts(lengths))


def _starts(lengths: Sequence[int]) -> Ints:
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)


def _waypoints(city: City, count: int, rng: np.random.Generator) -> Iterator[list[tuple[float, float]]]:
    """Points that each line must pass, in km from the centre: half through the centre, a quarter along the ring."""
    for number in range(count):
        turn = rng.uniform(0, 2 * math.pi)
        if number % 4 == 3:
            span = rng.uniform(0.35, 1.0) * math.pi
            angles = np.linspace(turn, turn + span, 7)
            radii = np.full(7, RING)
        elif number % 4 == 2:
            angles = turn + np.cumsum(rng.uniform(0.4, 1.1, 4))
            radii = rng.uniform(0.35, 1.0, 4)
        else:
            angles = turn + np.array([0.0, rng.normal(0, 0.35), 0.0, math.pi, math.pi]) + rng.normal(0, 0.15, 5)
            radii = np.array([rng.uniform(0.75, 1.0), 0.45, rng.uniform(0, 0.12), 0.45, rng.uniform(0.75, 1.0)])
        points = city.radius * radii * np.array([np.cos(angles), np.sin(angles)])
        yield [(float(east), float(north)) for east, north in points.T]


def _path(city: City, points: list[tuple[float, float]]) -> list[str]:
    """Cells from point to point, without repeating one in a row."""
    east, north = np.array(points).T
    visited = zip(*(degrees.tolist() for degrees in city.place(east, north)), strict=True)
    stops = [h3.latlng_to_cell(*point, city.resolution) for point in visited]
    path = stops[:1]
    for here, there in zip(stops, stops[1:], strict=False):
        path += list(h3.grid_path_cells(here, there))[1:]
    return path


def _crossings(city: City, cells: list[str], rng: np.random.Generator) -> dict[str, tuple[float, float]]:
    """A random point in each cell, in km from the centre."""
    lat, lon = np.array([h3.cell_to_latlng(cell) for cell in cells]).T
    shift = h3.average_hexagon_edge_length(city.resolution, unit="km") * OFF_CENTRE
    points = np.array(city.offset(lat, lon)) + rng.uniform(-shift, shift, (2, len(cells)))
    return {cell: (float(east), float(north)) for cell, (east, north) in zip(cells, points.T, strict=True)}


def _bent(points: Floats) -> Floats:
    """Cut corners off, and the corners of what is left."""
    for _ in range(BENDS):
        if len(points) < 3:
            break
        first, second = points[:-1], points[1:]
        cut = np.stack((0.75 * first + 0.25 * second, 0.25 * first + 0.75 * second), axis=1).reshape(-1, 2)
        points = np.concatenate((points[:1], cut, points[-1:]))
    return points


def _even(points: Floats) -> Floats:
    """Points at equal distances along the way, at least two."""
    way = np.concatenate(([0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))))
    at = np.arange(0.0, max(way[-1], 2 * GRAIN), GRAIN)
    return np.stack([np.interp(at, way, points[:, axis]) for axis in (0, 1)], axis=1)
