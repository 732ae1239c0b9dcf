"""The buses: how often each reports, which line it drives, and how it differs from the others.

A few buses report every ten seconds, most of them every five or ten minutes, so the number of samples per bus has a
heavy tail. Differences between buses, and between drivers (who change every eight hours), are small.
"""

from dataclasses import dataclass

import numpy as np

from shoal.agents.simulate.city import Floats, Ints

LONGEST, SHORTEST = 600.0, 10.0  # seconds between two reports of a bus
TAIL = 1.1  # of the Pareto law of reports per hour
BUS_SPREAD, DRIVER_SPREAD = 1.5, 1.0  # km/h
SHIFT = 8 * 3600
DRIVERS = 37  # effects that are handed round; no bus meets the same one twice in 12 days
POPULAR = 0.35  # how unevenly buses are spread over lines: 0 is evenly


@dataclass(frozen=True)
class Fleet:
    """An array for each property of the buses."""

    names: list[str]
    line: Ints
    interval: Floats  # seconds between two reports
    phase: Floats  # of the first report, as a share of it
    ahead: Floats  # seconds of driving before the start
    bus_effect: Floats
    first_driver: Ints
    rank: Floats  # drives when a share of the buses beyond this is in service
    drivers: Floats  # effects of all drivers

    def effects(self, bus: Ints, shift: int) -> Floats:
        """How much faster than the mean these buses are, with their drivers of this shift."""
        return self.bus_effect[bus] + self.drivers[(self.first_driver[bus] + shift) % DRIVERS]


def build_fleet(users: int, lines: int, rng: np.random.Generator) -> Fleet:
    """Draw this many buses on this many lines."""
    reports = np.minimum((1 - rng.random(users)) ** (-1 / TAIL), LONGEST / SHORTEST)
    weights = (1 + np.arange(lines)) ** -POPULAR
    return Fleet(
        names=[f"bus-{number:05d}" for number in range(users)],
        line=rng.choice(lines, users, p=weights / weights.sum()),
        interval=LONGEST / reports,
        phase=rng.random(users),
        ahead=rng.uniform(0, 7200, users),
        bus_effect=rng.normal(0, BUS_SPREAD, users),
        first_driver=rng.integers(0, DRIVERS, users),
        rank=rng.random(users),
        drivers=rng.normal(0, DRIVER_SPREAD, DRIVERS),
    )
