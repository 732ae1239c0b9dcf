"""Cells of a slot under each number of cells and each algorithm: who counts, and the error to expect.

Everything is predicted from numbers of samples: by the algorithms' own predictions, and by the same loop that leaves
users out of cells when a slot is released.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median
from typing import Any, NamedTuple

from shoal.mechanisms.forecast.comparison import CLOSE
from shoal.mechanisms.forecast.groups import GroupAhead, GroupsAhead
from shoal.mechanisms.forecast.observed import Observed
from shoal.mechanisms.forecast.plan import Report
from shoal.mechanisms.forecast.slot_workload import Places, slot_workload
from shoal.mechanisms.parts.by import Best
from shoal.mechanisms.parts.expect import expect
from shoal.mechanisms.parts.hides import PerCell
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.of import Mean
from shoal.mechanisms.slot import algorithms as registry
from shoal.mechanisms.slot.allotment import Allotment, Cells, result_of, split, sweep
from shoal.mechanisms.slot.cell import Cap, CellParameters, Counts, Draws, Release
from shoal.mechanisms.slot.means import best, several
from shoal.mechanisms.slot.rules import RULES
from shoal.mechanisms.slot.statistic import Slotted
from shoal.mechanisms.spec import FEW_USERS
from shoal.mechanisms.statistic import Estimate
from shoal.mechanisms.workload import Stated

NEEDING_DELTA = (FEW_USERS, registry.WITH_PRIOR)
MOST_CELLS = 40  # of a slot for which errors of algorithms are predicted


class Cell(NamedTuple):
    """A cell of a slot, as its mechanism sees it."""

    counts: Counts
    parameters: CellParameters
    name: str | None = None


class AlgorithmAhead(NamedTuple):
    """An algorithm at the configured number of cells; the names are those of JSON."""

    algorithm: str
    error: float  # median over the cells; infinite where most have no release
    mechanism: str  # what it does in a cell of middle size
    noise_sd: Any  # that it states there


class CellsAhead(NamedTuple):
    """A number of cells that a user may be in, under the configured algorithm; the names are those of JSON."""

    max_groups: int
    error: float  # of the algorithm, median over the cells
    worst_error: float  # of a cell in parts of the range, over all values; median over the slots
    degradation: float  # of the worst error, median over the slots
    left_out: float  # part of the samples
    no_release: float  # part of the cells


def first_noise(noise_sd: object) -> float | None:
    """One number for a slot's noise: the first of several, as of mean and variance; the largest of a list."""
    if isinstance(noise_sd, dict):
        return first_noise(next(iter(noise_sd.values()), None))
    if isinstance(noise_sd, list | tuple):
        return max((float(each) for each in noise_sd), default=None)
    return float(noise_sd) if isinstance(noise_sd, int | float) and math.isfinite(noise_sd) else None


def configured(metric: Metric) -> str:
    """The name of the configured algorithm."""
    return registry.WITH_PRIOR if isinstance(metric.by, Best) and metric.by.prior else metric.by.name


# -------------------------------------------------------------------- cells


@dataclass(frozen=True, slots=True)
class Allotted:
    """A slot, and who counts where for several numbers of cells."""

    cells: dict[int, Cells]  # by number, with those who are let in
    by_cells: dict[int, Allotment]
    threshold: float  # the worst error with everybody everywhere
    stops: int  # the number of cells at which the loop would end

    @classmethod
    def of(cls, mechanism: Slotted, slot: Places, let_in: dict[int, Places], numbers: Sequence[int]) -> "Allotted":
        """Allot as release does, or for `splits` as bound and release do; nothing if no cell has enough users."""
        error, epsilon, least = registry.worst_error(mechanism.statistic), mechanism.error_epsilon, mechanism.min_users
        cells = _by_cell(slot, least)
        if not cells:
            return cls({}, {}, 0.0, 0)
        allotments = dict(zip(reversed(numbers), result_of(sweep(cells, numbers, epsilon, error)), strict=True))
        ends = allotments[1].threshold, allotments[1].stopped or 1
        if not mechanism.splits:
            return cls(dict.fromkeys(numbers, cells), allotments, *ends)
        few = {most: _by_cell(places, least) for most, places in let_in.items()}
        shared = {most: result_of(split(here, most, epsilon, error)) for most, here in few.items() if here}
        return cls(few, shared, *ends)

    def released(self, most: int, min_users: int) -> list[str]:
        """The cells with enough users, in the order of their numbers of users."""
        cells, allotment = self.cells[most], self.by_cells[most]
        users = {cell: len(cells[cell]) - len(allotment.left_out.get(cell, ())) for cell in allotment.divisors}
        return sorted(
            (cell for cell, count in users.items() if count >= min_users), key=lambda cell: (users[cell], cell)
        )

    def kept(self, most: int) -> int:
        there = sum(sum(users.values()) for users in self.cells[most].values())
        return there - sum(self.by_cells[most].dropped.values())


def _by_cell(slot: Places, min_users: int) -> Cells:
    """The counts of each cell, without cells that have too few users."""
    cells: dict[str, dict[str, int]] = defaultdict(dict)
    for (user, cell), samples in slot.items():
        cells[cell][user] = samples
    return {cell: users for cell, users in cells.items() if len(users) >= min_users}


# -------------------------------------------------------------------- algorithms


class Predicted(NamedTuple):
    """The prediction for an algorithm in one cell."""

    error: float
    release: Release
    cap: Cap


def predicted(mechanism: Slotted, cell: Cell) -> dict[str, Predicted]:
    """The prediction for every algorithm that could be configured and has what it needs, by name."""
    counts, capped = cell.counts, replace(cell.parameters, cap=mechanism.cap)
    if mechanism.statistic is not Mean:
        release, predict = registry.algorithm_of(mechanism.statistic, "best")
        every = replace(capped, cap=capped.cap if isinstance(capped.cap, int) else max(counts))
        ways = {"best": capped, "baseline": every}
        return {name: Predicted(predict(counts, way), release, way.cap) for name, way in ways.items()}
    tried = list(_candidates(counts, capped))
    by_name = {"best": min((way for _, way in tried), key=lambda way: way.error)} if tried else {}
    for name, way in tried:
        by_name[name] = min(by_name.get(name, way), way, key=lambda way: way.error)
    for name in NEEDING_DELTA if mechanism.delta else ():
        if mechanism.axes and name not in registry.MEANS_OF_VALUES:
            continue
        release, predict = registry.MEANS_OF_VALUES[name] if mechanism.axes else registry.MEANS[name]
        by_name[name] = Predicted(predict(counts, capped), release, capped.cap)
    return by_name


def _candidates(counts: Counts, cell: CellParameters) -> Iterator[tuple[str, Predicted]]:
    """What `best` chooses from, for one coordinate or for all; nothing for more than it takes."""
    if len(cell.axes) > several.MOST:
        return
    width = float(cell.grid.high - cell.grid.low)
    for way in best.candidates(counts, several.of_one(cell) if cell.axes else cell):
        release = several.jointly(several.always(way.release)) if cell.axes else way.release
        yield way.name, Predicted(way.error * width, release, way.cap)


def made_of(cell: Cell, way: Predicted) -> Estimate:
    """The estimate that an algorithm would state for a cell with all values at the low end of the range."""
    lowest: Any = [0] * len(cell.parameters.axes) or 0
    nothing = [[lowest] * count for count in cell.counts]
    return way.release(nothing, replace(cell.parameters, cap=way.cap), Draws(bytes(32), b"", 0))


# -------------------------------------------------------------------- what is compared


class SlotComparison(Report):
    """One coordinate of a statistic per slot, with every algorithm and number of cells."""

    rules = RULES
    stages = "allotted", "by_cells", "algorithms"

    def __init__(self, metric: Metric, workload: Stated | Observed, coordinate: int = 0) -> None:
        self.work = slot_workload(metric, workload)
        self.metric, self.coordinate, self.users, self.private = metric, coordinate, self.work.users, self.work.private
        mechanism = Slotted.of(metric)
        self.mechanism = replace(mechanism, grid=mechanism.grids[coordinate]) if mechanism.axes else mechanism
        self.limits, self.name = expect(metric.hides.limits, PerCell), configured(metric)

    @property
    def _limit(self) -> int:
        """The metric's own number of cells, or as many as anybody is in."""
        return min(self.work.most_cells, self.limits.cells)

    @cached_property
    def _numbers(self) -> list[int]:
        """The numbers of cells that are tried."""
        most = self.work.most_cells
        return sorted({1 << level for level in range(most.bit_length())} | {most, self._limit})

    @cached_property
    def allotted(self) -> list[Allotted]:
        """The slots that are looked at, each for all numbers of cells.

        Raises:
            ValueError: no cell has enough users.
        """
        work, mechanism, numbers = self.work, self.mechanism, self._numbers
        let_in = {number: work.let_in(number) for number in numbers} if mechanism.splits else {}
        slots = []
        for index, slot in enumerate(work.slots):
            few = {number: places[index] for number, places in let_in.items()}
            slots.append(Allotted.of(mechanism, slot, few, numbers))
        slots = [slot for slot in slots if slot.by_cells]
        if not slots:
            raise ValueError(f"no cell has {mechanism.min_users} users; lower min_users, or give more events")
        return slots

    @cached_property
    def by_cells(self) -> list[CellsAhead]:
        """What becomes of each number of cells."""
        return [self._by_number(number) for number in self._numbers]

    def _by_number(self, most: int) -> CellsAhead:
        slots = [slot for slot in self.allotted if most in slot.by_cells]
        if not slots:
            return CellsAhead(most, math.inf, math.inf, math.inf, 1.0, 1.0)
        there = self.work.slots
        released = sum(len(slot.released(most, self.mechanism.min_users)) for slot in slots)
        errors = [predicted(self.mechanism, cell)[self.name].error for cell in self._cells(most)]
        return CellsAhead(
            most,
            median(errors) if errors else math.inf,
            median(slot.by_cells[most].worst for slot in slots),
            median(slot.by_cells[most].worst / slot.threshold for slot in slots),
            1 - sum(slot.kept(most) for slot in slots) / sum(sum(slot.values()) for slot in there),
            1 - released / sum(len({cell for _, cell in slot}) for slot in there),
        )

    def _cells(self, most: int) -> list[Cell]:
        """The cells that errors are predicted for: some of each slot, evenly spread over their sizes."""
        whole, shown = self.mechanism.parameters, []
        for slot in self.allotted:
            allotment = slot.by_cells.get(most)
            if allotment is None:
                continue
            cells, ordered = slot.cells[most], slot.released(most, self.mechanism.min_users)
            count = min(len(ordered), MOST_CELLS)
            for index in range(count):
                cell = ordered[(2 * index + 1) * len(ordered) // (2 * count)]
                out = allotment.left_out.get(cell, frozenset())
                counts = [cells[cell][user] for user in sorted(cells[cell].keys() - out)]
                epsilon, delta = allotment.share(cell, whole.epsilon), allotment.share(cell, whole.delta)
                dropped = allotment.dropped.get(cell, 0)
                shown.append(Cell(counts, replace(whole, epsilon=epsilon, delta=delta, dropped=dropped), cell))
        return shown

    @property
    def now(self) -> CellsAhead:
        """What becomes of the configured number of cells."""
        return next(tried for tried in self.by_cells if tried.max_groups == self._limit)

    @property
    def least(self) -> CellsAhead:
        """The number of cells of least worst error; of nearly equal ones the largest."""
        least = min(tried.worst_error for tried in self.by_cells)
        return next(tried for tried in reversed(self.by_cells) if tried.worst_error <= CLOSE * least)

    @cached_property
    def ways(self) -> list[tuple[Cell, dict[str, Predicted]]]:
        """Some cells, with what is predicted of every algorithm in each."""
        return [(cell, predicted(self.mechanism, cell)) for cell in self._cells(self._limit)]

    @cached_property
    def algorithms(self) -> list[AlgorithmAhead]:
        """Each algorithm with its median error, and what it does in a cell of middle size."""
        if not self.ways:
            return []
        middle, named = sorted(self.ways, key=lambda way: len(way[0].counts))[len(self.ways) // 2]
        made = {name: made_of(middle, way) for name, way in named.items()}
        return [
            AlgorithmAhead(
                name, median(of_cell[name].error for _, of_cell in self.ways), one.details["mechanism"], one.noise_sd
            )
            for name, one in made.items()
        ]

    @property
    def advised(self) -> str:
        """The algorithm of least error; the configured one if no other has less."""
        ordered = sorted(self.algorithms, key=lambda tried: (tried.error, tried.algorithm != self.name))
        return ordered[0].algorithm if ordered else self.name

    @cached_property
    def groups(self) -> GroupsAhead | None:
        """Cells, where a metric has any."""
        if not self.ways or self.metric.place is None:
            return None
        groups = [self._group(cell, way[self.name].error) for cell, way in self.ways]
        return GroupsAhead.of(groups, self.work.all_cells, self.users, None)

    def _group(self, cell: Cell, error: float) -> GroupAhead:
        users, samples, dropped = len(cell.counts), sum(cell.counts), cell.parameters.dropped
        left_out = dropped / (samples + dropped) if dropped else 0.0
        return GroupAhead(
            None if self.private else cell.name, users, samples / users if users else 0.0, left_out, error
        )
