"""Velocity as a vector: one metric of two coordinates, against two metrics with half of epsilon each."""

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import h3
import orjson

from benchmarks.places.inputs import HOUR, MONDAY, STEPS
from shoal.agents.simulate.events import Trips, batches
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.slot.algorithms import MEANS, MEANS_OF_VALUES
from shoal.mechanisms.slot.cell import CellParameters, Draws

EPSILON = Fraction(1)
KEY = bytes(range(5, 37))
GRID = Grid(Fraction(-65), Fraction(65), STEPS)  # to the east, and to the north
ALGORITHMS = ("best", "baseline", "array-averaging", "levy", "fixed-quantile", "epsilon-quantile")
EAST, NORTH = 0, 1

Velocities = list[list[list[int]]]  # of each user its samples: grid indices to the east and to the north


@dataclass(frozen=True)
class Row:
    """An algorithm: mean absolute errors of a coordinate in km/h, over cells and draws."""

    algorithm: str
    cells: int
    draws: int
    together: float
    apart: float
    ratio: float  # geometric mean over the cells of one error over the other
    most: float  # the largest of these
    foretold: float  # the same mean of the errors that `shoal plan` states


def measure(*, quick: bool) -> list[Row]:
    """All algorithms, on cells of trips from the busiest on."""
    cells, draws = (2, 10) if quick else (12, 100)
    found = velocities(600 if quick else 4000, cells)
    return [_row(name, found, draws) for name in ALGORITHMS[: 2 if quick else None]]


def velocities(buses: int, cells: int) -> list[Velocities]:
    """What so many simulated buses do from 7 to 8 on a Monday; the way is that from the last position to the next."""
    start = MONDAY + 7 * HOUR
    before: dict[str, tuple[float, float]] = {}
    found: dict[str, dict[str, list[list[int]]]] = {}
    for _, _, lines in batches(Trips(buses, start, start + HOUR, 0)):
        for line in lines.splitlines():
            event = orjson.loads(line)
            at = event["lat"], event["lon"]
            last = before.get(event["bus"])
            before[event["bus"]] = at
            if last is not None:
                vector = [GRID.clip(part) for part in _parts(event["speed"], last, at)]
                found.setdefault(h3.latlng_to_cell(*at, 8), {}).setdefault(event["bus"], []).append(vector)
    ranked = sorted(found, key=lambda cell: (-len(found[cell]), cell))
    ranked = [cell for cell in ranked if len(found[cell]) >= 5]
    return [
        [found[cell][bus] for bus in sorted(found[cell])] for cell in ranked[:: max(1, len(ranked) // cells)][:cells]
    ]


def _parts(speed: float, last: tuple[float, float], at: tuple[float, float]) -> tuple[float, float]:
    """The parts of a speed to the east and to the north."""
    north, east = at[0] - last[0], (at[1] - last[1]) * math.cos(math.radians(at[0]))
    way = math.hypot(north, east)
    return (speed * east / way, speed * north / way) if way else (0.0, 0.0)


def _row(name: str, cells: Sequence[Velocities], draws: int) -> Row:
    pairs = [_errors(name, users, draws) for users in cells]
    ratios = [math.log(one / other) for one, other in pairs]
    return Row(
        name, len(cells), draws, statistics.fmean(one for one, _ in pairs), statistics.fmean(two for _, two in pairs),
        math.exp(statistics.fmean(ratios)), math.exp(max(ratios)),
        math.exp(statistics.fmean(_foretold(name, users) for users in cells)),
    )  # fmt: skip


def _of() -> CellParameters:
    return CellParameters(grid=GRID, epsilon=EPSILON, axes=((GRID, None),) * 2)


def _alone() -> CellParameters:
    return CellParameters(grid=GRID, epsilon=EPSILON / 2)


def _foretold(name: str, users: Velocities) -> float:
    counts = [len(samples) for samples in users]
    joint, alone = MEANS_OF_VALUES[name].predicted_error(counts, _of()), MEANS[name].predicted_error(counts, _alone())
    return math.log(joint / alone)


def _errors(name: str, users: Velocities, draws: int) -> tuple[float, float]:
    """The mean absolute error of a coordinate: together, and apart."""
    numbers = [[[sample[axis] for sample in samples] for samples in users] for axis in (EAST, NORTH)]
    truths = [statistics.fmean(GRID.mean_value(one, 1) for samples in of for one in samples) for of in numbers]

    def errors() -> Iterator[tuple[float, float]]:
        for number in range(draws):
            joint = MEANS_OF_VALUES[name].release(users, _of(), Draws(KEY, b"", number)).value
            for axis, of in enumerate(numbers):
                apart = MEANS[name].release(of, _alone(), Draws(KEY, b"apart", 2 * number + axis)).value
                yield abs(joint[axis] - truths[axis]), abs(apart - truths[axis])

    together, apart = zip(*errors(), strict=True)
    return statistics.fmean(together), statistics.fmean(apart)
