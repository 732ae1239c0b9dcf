"""What a statistic per slot would be like under each algorithm and number of cells, before budget is spent.

Everything is foretold from numbers of samples: by the algorithms' own predictions, and by the very loop that leaves
users out of cells. Who is where is stated, or counted in a file (slot_workload.py).
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, NamedTuple

from shoal.agents.plan.groups import GroupOutlook, GroupsOutlook, outlook_of
from shoal.agents.plan.mean import CLOSE
from shoal.agents.plan.slot_workload import Slot, SlotWorkload
from shoal.mechanisms.kinds import statistic_of
from shoal.mechanisms.slot import algorithms as registry
from shoal.mechanisms.slot import best
from shoal.mechanisms.slot.allotment import Allotment, Cells, result_of, split, sweep
from shoal.mechanisms.slot.cell import Cap, CellParameters, Counts, Draws
from shoal.mechanisms.slot.statistic import Slotted
from shoal.mechanisms.statistic import Estimate
from shoal.models.config.metric import MetricSection

NEEDING_DELTA = ("few-users", registry.WITH_PRIOR)
MOST_CELLS = 40  # of a slot for which errors of algorithms are foretold


class Place(NamedTuple):
    """A cell of a slot, as its mechanism sees it."""

    counts: Counts
    of: CellParameters
    name: str | None = None


@dataclass(frozen=True, slots=True)
class AlgorithmOutlook:
    """An algorithm, with the number of cells that is configured."""

    name: str
    error: float  # median over the cells; infinite where most have no release
    mechanism: str  # what it does in a cell of middle size
    noise_sd: Any  # that it states there


@dataclass(frozen=True, slots=True)
class CellsOutlook:
    """A number of cells that a user may be in, with the algorithm that is configured."""

    max_cells: int
    degradation: float  # of the worst error, median over the slots
    worst: float  # error of a cell in parts of the range, over all values; median over the slots
    error: float  # of the algorithm, median over the cells
    left_out: float  # part of the samples
    empty: float  # part of the cells that have no release


@dataclass(frozen=True, slots=True)
class SlotPlan:
    """All that was found out about a metric."""

    section: MetricSection
    workload: SlotWorkload
    algorithms: tuple[AlgorithmOutlook, ...]
    by_cells: tuple[CellsOutlook, ...]
    stops: int  # the number of cells at which leaving users out begins to make some slot's worst error worse
    least: CellsOutlook
    groups: GroupsOutlook | None  # cells, where a metric has any

    @property
    def private(self) -> bool:
        """Whether it is made from what is stated."""
        return self.workload.private

    @property
    def configured(self) -> CellsOutlook:
        """With the metric's own number of cells, or as many as anybody is in."""
        return next(one for one in reversed(self.by_cells) if one.max_cells <= self.section.cell_limit)

    @property
    def advised(self) -> str:
        """The algorithm with the least error; the configured one if no other has less."""
        ordered = sorted(self.algorithms, key=lambda one: (one.error, one.name != configured(self.section)))
        return ordered[0].name if ordered else configured(self.section)


def plan_slots(section: MetricSection, workload: SlotWorkload, advance: Callable[[], None] = lambda: None) -> SlotPlan:
    """Compare algorithms and numbers of cells.

    Raises:
        ValueError: the mechanism refuses the settings, or no cell has enough users.
    """
    mechanism, name = slot_mechanism(section), configured(section)
    numbers = _numbers(workload.most_cells, section.cell_limit)
    slots = []
    for slot in workload.slots:
        slots.append(Allotted.of(mechanism, slot, numbers))
        advance()
    slots = [slot for slot in slots if slot.by_cells]
    if not slots:
        raise ValueError(f"no cell has {mechanism.min_users} users; lower min_users, or give more events")
    by_cells = tuple(_by_cells(mechanism, name, most, slots, workload) for most in numbers)
    advance()
    places = _places(mechanism, min(section.cell_limit, workload.most_cells), slots)
    tried = [foretold(mechanism, place) for place in places]
    algorithms = tuple(_algorithms(places, tried)) if places else ()
    advance()
    stops = max(slot.stops for slot in slots)
    groups = _groups(section, places, tried, workload)
    return SlotPlan(section, workload, algorithms, by_cells, stops, _least(by_cells), groups)


def _groups(
    section: MetricSection, places: Sequence[Place], tried: Sequence[dict[str, "Foretold"]], workload: SlotWorkload
) -> GroupsOutlook | None:
    """Cells of slots that are looked at, as it is configured."""
    if not places or (section.group is None and section.cell is None):
        return None
    name = configured(section)
    found = [_group(place, one[name].error, private=workload.private) for place, one in zip(places, tried, strict=True)]
    return outlook_of(found, workload.all_cells, workload.users, None)


def _group(place: Place, error: float, *, private: bool) -> GroupOutlook:
    users, samples, dropped = len(place.counts), sum(place.counts), place.of.dropped
    left_out = dropped / (samples + dropped) if dropped else 0.0
    return GroupOutlook(None if private else place.name, users, samples / users if users else 0.0, left_out, error)


def stages(workload: SlotWorkload) -> int:
    """How often `plan_slots` advances."""
    return len(workload.slots) + 2


def slot_mechanism(section: MetricSection) -> Slotted:
    """The mechanism of a statistic per slot."""
    found = statistic_of(section)
    assert isinstance(found, Slotted)  # noqa: S101 - the metric has slots
    return found


def _numbers(most: int, configured: int) -> list[int]:
    """Powers of two up to the most cells of a user, that number, and the configured one."""
    return sorted({1 << level for level in range(most.bit_length())} | {most, min(most, configured)})


def _least(tried: Sequence[CellsOutlook]) -> CellsOutlook:
    """The least worst error; of those next to it the one with most cells."""
    least = min(one.worst for one in tried)
    return next(one for one in reversed(tried) if one.worst <= CLOSE * least)


# -------------------------------------------------------------------- cells


@dataclass(frozen=True, slots=True)
class Allotted:
    """A slot, and who counts where for several numbers of cells."""

    cells: dict[int, Cells]  # by number, with those who are let in
    by_cells: dict[int, Allotment]
    threshold: float  # the worst error with everybody everywhere
    stops: int  # the number of cells at which the loop would end

    @classmethod
    def of(cls, mechanism: Slotted, slot: Slot, numbers: Sequence[int]) -> "Allotted":
        """As release does it, or with `splits` bound and release; nothing if no cell has enough users."""
        error, epsilon, least = registry.worst_error(mechanism.statistic), mechanism.slot_epsilon, mechanism.min_users
        cells = _cells(slot, None, least)
        if not cells:
            return cls({}, {}, 0.0, 0)
        found = dict(zip(reversed(numbers), result_of(sweep(cells, numbers, epsilon, error)), strict=True))
        ends = found[1].threshold, found[1].stopped or 1
        if not mechanism.splits:
            return cls(dict.fromkeys(numbers, cells), found, *ends)
        let_in = {most: _cells(slot, most, least) for most in numbers}
        shared = {most: result_of(split(few, most, epsilon, error)) for most, few in let_in.items() if few}
        return cls(let_in, shared, *ends)

    def released(self, most: int, min_users: int) -> list[str]:
        """Cells with enough users, by their numbers of users."""
        cells, found = self.cells[most], self.by_cells[most]
        users = {cell: len(cells[cell]) - len(found.left_out.get(cell, ())) for cell in found.divisors}
        return sorted(
            (cell for cell, count in users.items() if count >= min_users), key=lambda cell: (users[cell], cell)
        )

    def kept(self, most: int) -> int:
        """Samples that count."""
        there = sum(sum(users.values()) for users in self.cells[most].values())
        return there - sum(self.by_cells[most].dropped.values())


def _cells(slot: Slot, first: int | None, min_users: int) -> Cells:
    """By cell; of each user all cells, or the first ones; without cells that have too few users."""
    cells: dict[str, dict[str, int]] = defaultdict(dict)
    seen: Counter[str] = Counter()
    for (user, cell), samples in slot.items():
        seen[user] += 1
        if first is None or seen[user] <= first:
            cells[cell][user] = samples
    return {cell: users for cell, users in cells.items() if len(users) >= min_users}


def _by_cells(
    mechanism: Slotted, name: str, most: int, slots: Sequence[Allotted], workload: SlotWorkload
) -> CellsOutlook:
    least = mechanism.min_users
    possible = [slot for slot in slots if most in slot.by_cells]
    if not possible:
        return CellsOutlook(most, math.inf, math.inf, math.inf, 1.0, 1.0)
    released = sum(len(slot.released(most, least)) for slot in possible)
    errors = [foretold(mechanism, place)[name].error for place in _places(mechanism, most, possible)]
    return CellsOutlook(
        most,
        median(slot.by_cells[most].worst / slot.threshold for slot in possible),
        median(slot.by_cells[most].worst for slot in possible),
        median(errors) if errors else math.inf,
        1 - sum(slot.kept(most) for slot in possible) / sum(sum(slot.values()) for slot in workload.slots),
        1 - released / sum(len({cell for _, cell in slot}) for slot in workload.slots),
    )


def _places(mechanism: Slotted, most: int, slots: Sequence[Allotted]) -> list[Place]:
    """Cells that errors are foretold for: of each slot some, evenly spread over their sizes."""
    found = []
    for slot in slots:
        cells, allotment = slot.cells[most], slot.by_cells.get(most)
        if allotment is None:
            continue
        ordered = slot.released(most, mechanism.min_users)
        count = min(len(ordered), MOST_CELLS)
        for index in range(count):
            cell = ordered[(2 * index + 1) * len(ordered) // (2 * count)]
            out, of = allotment.left_out.get(cell, frozenset()), mechanism.parameters
            counts = [cells[cell][user] for user in sorted(cells[cell].keys() - out)]
            epsilon, delta = allotment.share(cell, of.epsilon), allotment.share(cell, of.delta)
            dropped = allotment.dropped.get(cell, 0)
            found.append(Place(counts, replace(of, epsilon=epsilon, delta=delta, dropped=dropped), cell))
    return found


# -------------------------------------------------------------------- algorithms


class Foretold(NamedTuple):
    """An algorithm in one cell."""

    error: float
    release: registry.Release
    cap: Cap


def foretold(mechanism: Slotted, place: Place) -> dict[str, Foretold]:
    """Of all algorithms that could be configured and have what they need, by name."""
    counts, of = place.counts, replace(place.of, cap=mechanism.cap)
    if mechanism.statistic != "slot-mean":
        release, predict = registry.algorithm_of(mechanism.statistic, "best")
        every = replace(of, cap=of.cap if isinstance(of.cap, int) else max(counts))
        ways = {"best": of, "baseline": every}
        return {name: Foretold(predict(counts, way), release, way.cap) for name, way in ways.items()}
    width = float(of.grid.high - of.grid.low)
    tried = [(one.name, Foretold(one.error * width, one.release, one.cap)) for one in best.candidates(counts, of)]
    found = {"best": min((one for _, one in tried), key=lambda one: one.error)}
    for name, one in tried:
        found[name] = min(found.get(name, one), one, key=lambda one: one.error)
    for name in NEEDING_DELTA if mechanism.delta else ():
        release, predict = registry.algorithm_of(mechanism.statistic, name)
        found[name] = Foretold(predict(counts, of), release, of.cap)
    return found


def configured(section: MetricSection) -> str:
    """The name of the algorithm that is configured."""
    return registry.WITH_PRIOR if section.prior else section.algorithm


def made_of(place: Place, one: Foretold) -> Estimate:
    """What an algorithm would state of a cell, were all its values at the low end of the range."""
    nothing = [[0] * count for count in place.counts]
    return one.release(nothing, replace(place.of, cap=one.cap), Draws(bytes(32), b"", 0))


def _algorithms(places: Sequence[Place], found: Sequence[dict[str, Foretold]]) -> Iterator[AlgorithmOutlook]:
    middle = sorted(range(len(places)), key=lambda index: len(places[index].counts))[len(places) // 2]
    for name, one in found[middle].items():
        made = made_of(places[middle], one)
        error, mechanism = median(cell[name].error for cell in found), made.details["mechanism"]
        yield AlgorithmOutlook(name, error, mechanism, made.noise_sd)
