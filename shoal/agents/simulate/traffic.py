"""How fast buses drive: a mean for each cell and hour of the day, around which speeds are normal, then clipped.

The centre is slow, the ring road fast, mornings and evenings of working days slow, in the centre most of all; a few
buses drive at night. Hours are the city's own.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import h3
import numpy as np

from shoal.agents.simulate.city import City, Floats
from shoal.agents.simulate.routes import RING

MOST = 65.0  # km/h
SPREAD = 7.5  # standard deviation of one reported speed around its cell's mean
HOUR = 3600
# Of 24 hours: how bad the traffic is, and which share of the buses drives.
MORNING, EVENING = (0.1, 0.35, 0.8, 1.0, 0.7, 0.35), (0.4, 0.7, 1.0, 0.9, 0.5, 0.25, 0.1)
RUSH = np.array([*[0.0] * 5, *MORNING, 0.3, 0.35, 0.3, 0.3, *EVENING, 0.0, 0.0])
SERVICE = np.array([0.15, 0.1, 0.1, 0.1, 0.3, 0.7, *[1.0] * 14, 0.8, 0.7, 0.5, 0.3])
WEEKEND = 0.35  # of the rush
SATURDAY = 5
SLOWER = (0.2, 0.3)  # by the rush: everywhere, and in the centre on top


@dataclass(frozen=True)
class Traffic:
    """Mean speeds of a city's cells."""

    base: Floats  # km/h at night, by cell
    slower: Floats  # the share of it that the worst rush takes, by cell
    hours_ahead: int

    def means(self, at: int) -> Floats:
        """Mean speed of each cell in the hour of a time, in seconds since the epoch."""
        return self.base * (1 - self.slower * self.rush(at))

    def rush(self, at: int) -> float:
        """How bad the traffic is: 0 to 1."""
        local = self._local(at)
        return float(RUSH[local.hour]) * (WEEKEND if local.weekday() >= SATURDAY else 1.0)

    def service(self, at: int) -> float:
        """The share of the buses that drives."""
        return float(SERVICE[self._local(at).hour])

    def driven(self, start: int, end: int) -> tuple[Floats, Floats]:
        """For each full hour from start on: how long a bus would have driven at night to get as far."""
        hours = np.arange(start - start % HOUR, end + 2 * HOUR, HOUR)
        pace = [1 - float(self.slower.mean()) * self.rush(int(hour)) for hour in hours[:-1]]
        return hours.astype(np.float64), np.concatenate(([0.0], np.cumsum(pace))) * HOUR

    def _local(self, at: int) -> datetime:
        return datetime.fromtimestamp(at, UTC) + timedelta(hours=self.hours_ahead)


def build_traffic(city: City, cells: tuple[str, ...], rng: np.random.Generator) -> Traffic:
    """Draw a field of means: by distance from the centre, and a little of each cell's own."""
    lat, lon = np.array([h3.cell_to_latlng(cell) for cell in cells]).T
    out = np.hypot(*city.offset(lat, lon)) / city.radius
    base = 15 + 22 * (1 - np.exp(-((out / 0.55) ** 2))) + 15 * np.exp(-(((out - RING) / 0.08) ** 2))
    base += rng.normal(0, 2.5, len(cells))
    return Traffic(np.clip(base, 8, 58), SLOWER[0] + SLOWER[1] * np.exp(-((out / 0.45) ** 2)), city.hours_ahead)
