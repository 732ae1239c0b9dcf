"""The inputs: synthetic cells as in the paper, and cells of simulated trips. Numpy makes inputs and nothing else."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import h3
import numpy as np
import orjson
from numpy.typing import NDArray

from shoal.agents.simulate.events import Trips, batches
from shoal.mechanisms.grid import Grid

HIGH = 65.0  # km/h
STEPS = 1 << 20
SPEEDS = Grid(Fraction(0), Fraction(65), STEPS)
MONDAY = 1_767_571_200  # 2026-01-05, 00:00
HOUR = 3600
TAIL = 1.1  # of the Pareto law of samples per user

Users = list[list[int]]
Slot = dict[str, dict[str, list[int]]]  # of each cell: user -> grid indices, in order of time

# Users, mean of their samples, whether their numbers have a heavy tail; and the law of values, mean and deviation.
SHAPES = (
    (10, 10, True), (30, 4, True), (30, 40, True), (30, 1000, False), (100, 10, True), (100, 10, False),
    (100, 100, True), (300, 5, True), (300, 5, False), (300, 50, True),
)  # fmt: skip
LARGE = ((1000, 10, True), (1000, 10, False))  # with the first law only: they take long
LAWS = ((20.0, 8.0), (35.0, 20.0))
QUICK_SHAPES = ((10, 10, True), (100, 10, True))


@dataclass(frozen=True)
class Cell:
    """Counts, and values: of synthetic cells new ones for each draw, of trips always the same."""

    kind: str
    name: str
    counts: Sequence[int]
    values: Callable[[int], Users]

    @property
    def samples(self) -> int:
        """Of all users."""
        return sum(self.counts)


def heavy_counts(users: int, mean: float, rng: np.random.Generator) -> list[int]:
    """Numbers of samples with a heavy tail, cut at a hundred times the least."""
    drawn = np.minimum((1 - rng.random(users)) ** (-1 / TAIL), 100.0)
    return [int(one) for one in np.maximum(1, np.rint(drawn * mean / drawn.mean()))]


def grid_steps(values: NDArray[np.float64]) -> list[int]:
    """Values clipped to the range, as grid indices."""
    found: list[int] = np.rint(np.clip(values, 0.0, HIGH) * (STEPS / HIGH)).astype(np.int64).tolist()
    return found


def synthetic(shape: tuple[int, int, bool], law: tuple[float, float], number: int) -> Cell:
    """Independent samples of a normal law, cut to the range."""
    users, mean, heavy = shape
    counts = heavy_counts(users, mean, np.random.default_rng([7, number])) if heavy else [mean] * users
    ends = np.cumsum([0, *counts]).tolist()

    def values(draw: int) -> Users:
        rng = np.random.default_rng([8, number, draw])
        flat = grid_steps(rng.normal(*law, ends[-1]))
        return [flat[first:end] for first, end in zip(ends, ends[1:], strict=False)]

    said = f"{users} users, {mean} samples each{' on average, heavy tail' if heavy else ''}; N({law[0]:g}, {law[1]:g}²)"
    return Cell("synthetic", said, counts, values)


def synthetic_cells(*, quick: bool) -> list[Cell]:
    """All shapes and laws."""
    pairs = [(shape, law) for shape in (QUICK_SHAPES if quick else SHAPES) for law in LAWS[: 1 if quick else None]]
    pairs += [] if quick else [(shape, LAWS[0]) for shape in LARGE]
    return [synthetic(shape, law, number) for number, (shape, law) in enumerate(pairs)]


@lru_cache(maxsize=8)
def trips(users: int, first_hour: int, hours: int, resolution: int = 8, seed: int = 0) -> Slot:
    """What so many simulated buses report in a slot of a Monday, by H3 cell."""
    start = MONDAY + first_hour * HOUR
    found: Slot = {}
    for _, _, lines in batches(Trips(users, start, start + hours * HOUR, seed)):
        for line in lines.splitlines():
            event = orjson.loads(line)
            cell = h3.latlng_to_cell(event["lat"], event["lon"], resolution)
            step = round(event["speed"] * STEPS / HIGH)
            found.setdefault(cell, {}).setdefault(event["bus"], []).append(min(max(step, 0), STEPS))
    return {cell: dict(sorted(found[cell].items())) for cell in sorted(found)}


def trip_cells(slot: Slot, count: int, said: str) -> list[Cell]:
    """So many cells of a slot, from the one with most samples to one with five users, evenly by rank."""
    ranked = sorted(
        (cell for cell in slot if len(slot[cell]) >= 5), key=lambda cell: -sum(map(len, slot[cell].values()))
    )
    places = np.unique(np.linspace(0, len(ranked) - 1, count).round().astype(int)).tolist()
    return [_trip_cell(slot, ranked[place], f"{said}, cell {place + 1} of {len(ranked)}") for place in places]


def _trip_cell(slot: Slot, cell: str, name: str) -> Cell:
    users = list(slot[cell].values())
    return Cell("trips", name, [len(user) for user in users], lambda _draw: users)
