"""The plan of a statistic per slot: algorithms and numbers of cells compared.

Everything is predicted from numbers of samples: by the algorithms' own predictions, and by the same loop that leaves
users out of cells when a slot is released.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from shoal.mechanisms.observed import Observed
from shoal.mechanisms.outlook import finite
from shoal.mechanisms.parts.expect import expect
from shoal.mechanisms.parts.hides import PerCell
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.of import Distribution, Mean, MeanVariance
from shoal.mechanisms.plan import Column, Line, Noise, Plan, Table, budget_words, head, marks, quotient_noise, where_of
from shoal.mechanisms.slot.comparison import (
    NEEDING_DELTA,
    Cell,
    CellsOutlook,
    SlotComparison,
    configured,
    first_noise,
    made_of,
    predicted,
)
from shoal.mechanisms.slot.statistic import Slotted
from shoal.mechanisms.slot.workload import observed_slots, stated_slot
from shoal.mechanisms.words import duration, exact_duration, number, percent
from shoal.mechanisms.workload import Stated

MANY_USERS = 10_000
UNITS: dict[type, str] = {
    Mean: "in units of the range",
    MeanVariance: "of mean and variance together, in units of the range and in their squares",
    Distribution: "of the distribution function, in parts of one",
}
EXPLAINED = (
    "worst: error of a slot's worst cell, over all values; vs. no limit: how many times what it is with every user in "
    "every cell"
)


def plans(
    metric: Metric, workload: Stated | Observed, advance: Callable[[float], None] = lambda part: None
) -> list[Plan]:
    """The plan of the metric, for each coordinate; `advance` is told what part of the work is done.

    Raises:
        ValueError: the mechanism refuses the settings, or no cell has enough users.
    """
    work = observed_slots(metric, workload) if isinstance(workload, Observed) else stated_slot(metric, workload)
    mechanism = Slotted.of(metric)
    if not mechanism.axes:
        return [SlotReport.of(metric, work, mechanism, advance).plan()]
    grids = enumerate(mechanism.grids)
    return [SlotReport.of(metric, work, replace(mechanism, grid=grid), advance).plan(axis) for axis, grid in grids]


def final_noise(metric: Metric, users: int) -> Noise:
    """The noise of a cell that all users are in, each with all samples that count; scaled from fewer for very many.

    Raises:
        ValueError: the mechanism refuses the settings.
    """
    mechanism, tried, name = Slotted.of(metric), min(users, MANY_USERS), configured(metric)
    if name in NEEDING_DELTA:  # these state a bound, which may be wide where their noise is not
        return quotient_noise(metric, None, _beside(metric))
    cell = Cell([metric.samples] * tried, mechanism.parameters)
    noise_sd = first_noise(made_of(cell, predicted(mechanism, cell)[name]).noise_sd)
    return quotient_noise(metric, None if noise_sd is None else noise_sd * tried / users, _beside(metric))


def _beside(metric: Metric, coordinate: int = 0) -> float:
    low, high = map(float, metric.ranges[coordinate])
    return 1.0 if isinstance(metric.of, Distribution) else high - low


class SlotReport(SlotComparison):
    """The words and tables of a comparison."""

    def plan(self, coordinate: int = 0) -> Plan:
        name = configured(self.metric)
        shown = next((tried for tried in self.algorithms if tried.name == name not in NEEDING_DELTA), None)
        return Plan(
            self.metric, self._title(coordinate), self._workload(), self.workload.users,
            [self._algorithms(), self._numbers()], f"max_cells {self.least.max_cells}, {self.advised}",
            list(self._advice()), self._fields(coordinate),
            quotient_noise(
                self.metric, first_noise(shown.noise_sd) if shown else None, _beside(self.metric, coordinate)
            ),
            self.workload.private,
        )  # fmt: skip

    # ---------------------------------------------------------------- words

    def _title(self, coordinate: int) -> str:
        metric = self.metric
        low, high = map(float, metric.ranges[coordinate])
        limits = expect(metric.hides.limits, PerCell)
        slots = f", max_slots {limits.slots}" if metric.unit.period != metric.every.microseconds else ""
        return (
            f"{metric.name}: {metric.statistic} of {metric.names[coordinate]} in {low:g} .. {high:g} for every "
            f"{where_of(metric)} and {duration(metric.every.microseconds)}, {budget_words(metric)}{slots}, max_cells "
            f"{limits.cells} ({limits.across}), max_contributions {metric.samples}"
        )

    def _workload(self) -> str:
        work = self.workload
        users, cells = f"{work.users:,} {'user' if work.users == 1 else 'users'}", number(work.cells)
        counted = f"{number(work.samples)} samples of a user in a cell"
        if work.private:
            pattern = "on average, a few users with most" if work.pattern == "skewed" else "all alike"
            return f"{users} in a slot, each in {work.most_cells} of {cells} cells, {counted}, {pattern}"
        count = work.slot_count
        looked = "" if len(work.slots) == count else f", of which {len(work.slots)} are looked at"
        return (
            f"{users} in {count:,} {'slot' if count == 1 else 'slots'} over {duration(work.over)}{looked}; in a "
            f"slot {cells} cells, up to {work.most_cells} of one user, {counted}, from the file"
        )

    def _remarks(self) -> Iterator[str]:
        likely = "expected if users are alike, as best assumes" if isinstance(self.metric.of, Mean) else "the worst"
        yield (
            f"Error: of the median cell, {UNITS[type(self.metric.of)]}; {likely}, predicted from public numbers of "
            "samples."
        )
        yield "That somebody was in a cell, and when, is not protected: only what they did there."

    def _advice(self) -> Iterator[str]:
        now = self.configured
        worst = f"error of the worst cell: {_of_range(self.least)} of the range; as configured, {_of_range(now)}"
        yield f"{worst}, with {percent(now.left_out)} of the samples left out"
        if self.workload.most_cells == 1:
            yield "nobody is in several cells of a slot: max_cells 1 gives each cell all of the slot's epsilon"
        elif expect(self.metric.hides.limits, PerCell).across != "split":
            yield (
                f"left alone, chop-user stops at max_cells {self.stops}: the next to leave would make a cell worse "
                "than the worst was"
            )
        if self.groups is not None:
            yield from self.groups.words(where_of(self.metric))
        if now.empty:
            yield f"as configured, {percent(now.empty)} of the cells have no release: too few users count in them"

    # ---------------------------------------------------------------- tables

    def _algorithms(self) -> Table:
        """Each algorithm: what it does in a cell of middle size, and its error in the median cell."""
        columns = [Column("algorithm", is_text=True), Column("error"), Column("how, typically", 0, True, wraps=True)]
        name = configured(self.metric)
        lines = [
            Line([tried.name, number(tried.error), tried.mechanism], tried.name == name) for tried in self.algorithms
        ]
        return Table(f"algorithms, with max_cells {self.configured.max_cells}", columns, lines, list(self._remarks()))

    def _numbers(self) -> Table:
        columns = [
            Column("K"), Column("left out"), Column("no release", 3), Column("error", 2), Column("worst"),
            Column("vs. no limit", 1), Column("", is_text=True),
        ]  # fmt: skip
        lines = []
        for tried in self.by_cells:
            is_least = tried is self.least
            mark = marks((tried is self.configured, "configured"), (is_least, "recommended"))
            amounts = percent(tried.left_out), percent(tried.empty), number(tried.error), _of_range(tried)
            lines.append(Line([str(tried.max_cells), *amounts, number(tried.degradation), mark], is_least))
        return Table("max_cells", columns, lines, [EXPLAINED])

    # ---------------------------------------------------------------- for programs

    def _fields(self, coordinate: int) -> dict[str, Any]:
        metric, work, limits = self.metric, self.workload, expect(self.metric.hides.limits, PerCell)
        return {
            **head(metric, coordinate, private=work.private),
            "delta": float(metric.budget.delta),
            "unit": metric.unit.name,
            "slot": exact_duration(metric.every.microseconds),
            "across_cells": limits.across,
            "max_cells": limits.cells,
            "max_slots": limits.slots,
            "max_contributions": metric.samples,
            "min_users": metric.per.min_units,
            "workload": {
                "users": work.users,
                "slots": work.slot_count,
                "slots_looked_at": len(work.slots),
                "cells": work.cells,
                "most_cells": work.most_cells,
                "samples": work.samples,
                "over": work.over / 1e6,
                "pattern": work.pattern,
            },
            "algorithms": [
                {
                    "algorithm": tried.name,
                    "configured": tried.name == configured(metric),
                    "error": finite(tried.error),
                    "mechanism": tried.mechanism,
                }
                for tried in self.algorithms
            ],
            "by_max_cells": [
                {
                    "max_cells": tried.max_cells,
                    "error": finite(tried.error),
                    "worst_error": finite(tried.worst),
                    "degradation": finite(tried.degradation),
                    "left_out": tried.left_out,
                    "no_release": tried.empty,
                }
                for tried in self.by_cells
            ],
            "stops_at": self.stops,
            "recommended": {"algorithm": self.advised, "max_cells": self.least.max_cells},
            "groups": self.groups and self.groups.fields(),
        }


def _of_range(tried: CellsOutlook) -> str:
    return "-" if math.isinf(tried.worst) else percent(tried.worst)
