"""Users in many cells of a slot: CHOP-USER's K against plain composition, where every cell has epsilon / G.

Three things are called plain: what G cells cost in all (the paper's benchmark), G the number of cells that somebody is
in; and within G, `split` with the most cells that a single user is in.
"""

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from benchmarks.places.inputs import HIGH, SPEEDS, STEPS, Slot, grid_steps, trips
from shoal.mechanisms.parts.of import Mean
from shoal.mechanisms.slot import allotment
from shoal.mechanisms.slot.allotment import Allotment, result_of
from shoal.mechanisms.slot.statistic import Slotted
from shoal.mechanisms.statistic import Contribution

EPSILON = Fraction(1)
KEY = bytes(range(1, 33))
MOST = 1 << 20  # samples of a user in a cell: no cap


@dataclass(frozen=True)
class Way:
    """One way to share epsilon among the cells of a user. Errors in km/h."""

    name: str
    cells: int  # of one user, at most: K
    released: int
    left_out: float  # part of the samples
    worst: float  # worst expected error, of all cells the largest
    middle: float  # and the median cell's
    degradation: float  # the worst error, over what it is with everybody in all cells
    measured: dict[str, float]  # by algorithm: mean absolute error over cells and draws
    middle_measured: dict[str, float]  # median cell's


@dataclass(frozen=True)
class Scenario:
    """A slot."""

    name: str
    cells: int
    users: int
    samples: int
    before: int  # cells of one user, at most
    middle: int  # and in the middle
    stops: int  # the K at which the paper's rule stops
    plain: float  # the worst error if each of all cells had epsilon / cells
    ways: list[Way]


def measure(name: str, slot: Slot, algorithms: Sequence[str], draws: int) -> Scenario:
    """All ways, on one slot."""
    counts = {cell: {user: len(samples) for user, samples in users.items()} for cell, users in slot.items()}
    per_user = Counter(user for users in counts.values() for user in users)
    before, stops = max(per_user.values()), result_of(allotment.recommended(counts, EPSILON))
    ways = [_way(f"split, ε / {before}", slot, counts, before, True, algorithms, draws)]
    for most in sorted({1, 2, 4, 8, stops, before}):
        if most <= before:
            said = f"chop, K = {most}" + (" (stops here)" if most == stops else "")
            ways.append(_way(said, slot, counts, most, False, algorithms, draws))
    totals = {cell: sum(users.values()) for cell, users in counts.items()}
    worst = max(max(users.values()) / totals[cell] for cell, users in counts.items())
    return Scenario(
        name, len(slot), len(per_user), sum(totals.values()), before, sorted(per_user.values())[len(per_user) // 2],
        stops, HIGH * worst * len(slot) / float(EPSILON), ways,
    )  # fmt: skip


def _way(
    name: str, slot: Slot, counts: allotment.Cells, most: int, splits: bool, algorithms: Sequence[str], draws: int
) -> Way:
    share = allotment.split if splits else allotment.chop
    found: Allotment = result_of(share(counts, most, EPSILON))
    errors = sorted(found.errors.values())
    samples = sum(sum(users.values()) for users in counts.values())
    measured = {one: _measured(slot, most, splits, one, draws) for one in algorithms}
    return Way(
        name, most, len(errors), sum(found.dropped.values()) / samples, HIGH * errors[-1],
        HIGH * statistics.median(errors), found.degradation,
        {one: statistics.fmean(of) for one, of in measured.items()},
        {one: statistics.median(of) for one, of in measured.items()},
    )  # fmt: skip


def _measured(slot: Slot, most: int, splits: bool, algorithm: str, draws: int) -> list[float]:
    """Of each cell that is released, by the whole statistic: the mean absolute error against all of its samples."""
    slotted = Slotted(
        statistic=Mean, algorithm=algorithm, grid=SPEEDS, epsilon=EPSILON, max_contributions=MOST,
        max_groups=most, splits=splits,
    )  # fmt: skip
    truths = {cell: _mean(users.values()) for cell, users in slot.items()}
    rows = list(contributions(slot))
    errors: dict[str, list[float]] = {cell: [] for cell in slot}
    for number in range(draws):
        for found in slotted.cells(KEY, number, rows):
            if found is not None and found.estimate.value is not None:
                errors[found.cell].append(abs(float(found.estimate.value) - truths[found.cell]))
    return [statistics.fmean(of) for of in errors.values() if of]


def contributions(slot: Slot) -> Iterator[Contribution]:
    """What bound sends: one of each user, in canonical order."""
    users: dict[str, dict[str, list[int]]] = {}
    for cell, members in slot.items():
        for user, samples in members.items():
            users.setdefault(user, {})[cell] = samples
    for user in sorted(users):
        yield Contribution(0, user, 1, 0, sum(map(len, users[user].values())), users[user])


def _mean(users: Iterable[Sequence[int]]) -> float:
    total = count = 0
    for samples in users:
        total, count = total + sum(samples), count + len(samples)
    return HIGH * total / (count * STEPS)


def busy(slot: Slot, users: int) -> Slot:
    """The cells with so many users at least."""
    return {cell: members for cell, members in slot.items() if len(members) >= users}


def heavy_hitters(cells: int, users: int, often: int, share: float) -> Slot:
    """Synthetic: users in one to four neighbouring cells, but a few of them in `often` cells; independent samples."""
    rng = np.random.default_rng(17)
    found: Slot = {}
    for user in range(users):
        first = int(rng.integers(cells))
        width = often if rng.random() < share else int(rng.integers(1, 5))
        for place in range(first, first + width):
            values = grid_steps(rng.normal(30.0, 10.0, int(rng.integers(1, 12))))
            found.setdefault(f"{place % cells:04d}", {})[f"{user:05d}"] = values
    return {cell: found[cell] for cell in sorted(found)}


def scenarios(*, quick: bool) -> Iterator[Scenario]:
    """Trips with many cells per user, and the heavy hitters of the paper's example: at least 100 cells each."""
    if quick:
        yield measure("600 buses, an hour", busy(trips(600, 7, 1), 20), ("best",), 1)
        return
    arms = ("baseline", "best")
    yield measure("4,000 buses, an hour", busy(trips(4000, 7, 1), 50), arms, 2)
    yield measure("1,500 buses, four hours", busy(trips(1500, 7, 4), 50), arms, 2)
    yield measure("4,000 buses, half as large a cell's edge", busy(trips(4000, 7, 1, 9), 40), arms, 1)
    yield measure("120 cells, few users in 12 of them", heavy_hitters(120, 6000, 12, 0.02), arms, 2)
