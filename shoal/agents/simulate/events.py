"""Trips as events: in order of time, in batches of ten minutes.

Each batch has a random stream of its own, so the first hour is the same however many hours follow. Same arguments, same
machine, same bytes; elsewhere a last digit may differ, where numpy's functions do.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from shoal.agents.simulate.city import City, Floats, Ints
from shoal.agents.simulate.fleet import SHIFT, Fleet, build_fleet
from shoal.agents.simulate.forms import Report, Writer, json_lines
from shoal.agents.simulate.routes import Lines, build_roads, number_of_lines, timetable
from shoal.agents.simulate.traffic import MOST, SPREAD, Traffic, build_traffic

BATCH = 600  # seconds; divides hours and shifts
JITTER = 0.1  # of a bus's interval
WANDER = 0.00006  # degrees: what a receiver of satellites is wrong by


@dataclass(frozen=True)
class Trips:
    """A simulation: the number of buses, and its start and end in seconds since the epoch."""

    users: int
    start: int
    end: int
    seed: int = 0
    city: City = City()


@dataclass(frozen=True)
class _World:
    """All that does not change while the buses drive."""

    trips: Trips
    fleet: Fleet
    lines: Lines
    traffic: Traffic
    hours: Floats  # full hours, and how far
    driven: Floats  # they are in seconds of free driving


def batches(trips: Trips, write: Writer = json_lines) -> Iterator[tuple[int, int, bytes]]:
    """Yield ten minutes at a time: seconds that are done, number of events, and these as they are written."""
    world = _build(trips)
    for start in range(trips.start - trips.start % BATCH, trips.end, BATCH):
        reports = _measured_reports(world, start)
        yield min(start + BATCH, trips.end) - trips.start, len(reports), write(world.fleet, reports)


def _build(trips: Trips) -> _World:
    rng = np.random.default_rng([trips.seed])
    roads = build_roads(trips.city, number_of_lines(trips.users), rng)
    traffic = build_traffic(trips.city, roads.cells, rng)
    lines = timetable(roads, traffic.base)
    fleet = build_fleet(trips.users, len(lines), rng)
    return _World(trips, fleet, lines, traffic, *traffic.driven(trips.start, trips.end))


def _measured_reports(world: _World, start: int) -> list[Report]:
    """The events of the ten minutes from this start."""
    trips = world.trips
    rng = np.random.default_rng([trips.seed, start])
    bus, second = _reports(world, start, rng)
    lat, lon, speed = _measured(world, bus, second, start, rng)
    keep = (second >= trips.start) & (second < trips.end)
    columns = (column[keep].tolist() for column in (bus, second, lat, lon, speed))
    return list(zip(*columns, strict=True))


def _reports(world: _World, start: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Which bus reports when, in order of time; at the same time in order of the buses."""
    fleet, trips = world.fleet, world.trips
    driving = np.flatnonzero(fleet.rank < world.traffic.service(start))
    interval, phase = fleet.interval[driving], fleet.phase[driving]
    since = start - trips.start
    first = np.maximum(np.ceil(since / interval - phase), 0)
    counts = (np.ceil((since + BATCH) / interval - phase) - first).astype(np.int64)
    which = np.repeat(np.arange(len(driving)), counts)
    number = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
    at = (first[which] + number + phase[which]) * interval[which] - since
    at += rng.uniform(-JITTER, JITTER, len(at)) * interval[which]
    inside = BATCH - np.abs(BATCH - np.abs(at))  # what leaves the ten minutes comes back into them
    second = start + np.minimum(inside.astype(np.int64), BATCH - 1)
    order = np.argsort(second, kind="stable")
    return driving[which[order]], second[order]


def _measured(
    world: _World, bus: Ints, second: Ints, start: int, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """Latitude, longitude and speed as reported."""
    fleet, lines = world.fleet, world.lines
    driven = np.interp(second, world.hours, world.driven) + fleet.ahead[bus]
    row = lines.rows(fleet.line[bus], driven)
    noise = rng.standard_normal((3, len(bus)))
    means = world.traffic.means(start)[lines.cell[row]] + fleet.effects(bus, start // SHIFT)
    speed = np.clip(means + SPREAD * noise[2], 0, MOST)
    lon = (lines.lon[row] + WANDER * noise[1] + 180) % 360 - 180
    return np.round(lines.lat[row] + WANDER * noise[0], 6), np.round(lon, 6), np.round(speed, 1)
