"""The plan of a statistic per slot: algorithms and numbers of cells compared.

Everything is predicted from numbers of samples: by the algorithms' own predictions, and by the same loop that leaves
users out of cells when a slot is released.
"""

import math
from collections.abc import Iterator
from typing import Any

from shoal.mechanisms.forecast.plan import SECTION, Noise, extent, quotient_noise, where_of
from shoal.mechanisms.forecast.point import as_json
from shoal.mechanisms.forecast.slot_comparison import (
    NEEDING_DELTA,
    Cell,
    CellsAhead,
    SlotComparison,
    configured,
    first_noise,
    made_of,
    predicted,
)
from shoal.mechanisms.forecast.table import MARK, Column, Line, Section, Table, marks
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.of import Distribution, Mean, Variance
from shoal.mechanisms.slot.statistic import Slotted
from shoal.mechanisms.words import duration, exact_duration, number, percent

MANY_USERS = 10_000
UNITS: dict[type, str] = {
    Mean: "in units of the range",
    Variance: "of mean and variance together, in units of the range and in their squares",
    Distribution: "of the distribution function, in parts of one",
}
EXPLAINED = (
    "worst: error of a slot's worst cell, over all values; vs. no limit: how many times what it is with every user in "
    "every cell"
)


class SlotReport(SlotComparison):
    """The plan of one coordinate of a statistic per slot."""

    @classmethod
    def final_noise(cls, metric: Metric, users: int) -> Noise:
        """The noise of a cell that all users are in, each with all samples that count; scaled from fewer for very many.

        Raises:
            ValueError: the mechanism refuses the settings.
        """
        mechanism, tried, name = Slotted.of(metric), min(users, MANY_USERS), configured(metric)
        if name in NEEDING_DELTA:  # these state a bound, which may be wide where their noise is not
            return quotient_noise(metric, None, extent(metric))
        cell = Cell([metric.samples] * tried, mechanism.parameters)
        noise_sd = first_noise(made_of(cell, predicted(mechanism, cell)[name]).noise_sd)
        return quotient_noise(metric, None if noise_sd is None else noise_sd * tried / users, extent(metric))

    def noise(self) -> Noise:
        states = (tried.noise_sd for tried in self.algorithms if tried.algorithm == self.name not in NEEDING_DELTA)
        return quotient_noise(self.metric, first_noise(next(states, None)), extent(self.metric, self.coordinate))

    # ---------------------------------------------------------------- words

    def title(self) -> str:
        limits, metric = self.limits, self.metric
        slots = f", max_slots {limits.slots}" if metric.unit.period != metric.every.microseconds else ""
        return f"{super().title()}, max_groups {limits.cells} ({limits.across}){slots}"

    def workload(self) -> str:
        work = self.work
        users, cells = f"{work.users:,} {'user' if work.users == 1 else 'users'}", number(work.cells)
        counted = f"{number(work.samples)} samples of a user in a cell"
        if self.private:
            pattern = "on average, a few users with most" if work.pattern == "skewed" else "all alike"
            return f"{users} in a slot, each in {work.most_cells} of {cells} cells, {counted}, {pattern}"
        count = work.slot_count
        looked = "" if len(work.slots) == count else f", of which {len(work.slots)} are looked at"
        return (
            f"{users} in {count:,} {'slot' if count == 1 else 'slots'} over {duration(work.over)}{looked}; in a "
            f"slot {cells} cells, up to {work.most_cells} of one user, {counted}, from the file"
        )

    def recommended(self) -> str:
        return f"max_groups {self.least.max_groups}, {self.advised}"

    def advice(self) -> Iterator[str]:
        now = self.now
        worst = f"error of the worst cell: {_of_range(self.least)} of the range; as configured, {_of_range(now)}"
        yield f"{worst}, with {percent(now.left_out)} of the samples left out"
        if self.work.most_cells == 1:
            yield "nobody is in several cells of a slot: max_groups 1 gives each cell all of the slot's epsilon"
        elif self.limits.across != "split":
            yield (
                f"left alone, chop-user stops at max_groups {self._stops}: the next to leave would make a cell worse "
                "than the worst was"
            )
        if self.groups is not None:
            yield from self.groups.words(where_of(self.metric))
        if now.no_release:
            yield f"as configured, {percent(now.no_release)} of the cells have no release: too few users count in them"

    @property
    def _stops(self) -> int:
        """The number of cells at which leaving users out begins to make some slot's worst error worse."""
        return max(slot.stops for slot in self.allotted)

    # ---------------------------------------------------------------- tables

    def sections(self) -> Iterator[Section]:
        yield self._algorithms()
        yield self._by_cells()

    def _algorithms(self) -> Section:
        """Each algorithm: what it does in a cell of middle size, and its error in the median cell."""
        likely = "expected if users are alike, as best assumes" if isinstance(self.metric.of, Mean) else "the worst"
        remarks = [
            f"Error: of the median cell, {UNITS[type(self.metric.of)]}; {likely}, predicted from public numbers of "
            "samples.",
            "That somebody was in a cell, and when, is not protected: only what they did there.",
        ]
        columns = [Column("algorithm", is_text=True), Column("error"), Column("how, typically", 0, True, wraps=True)]
        lines, fields = [], []
        for tried in self.algorithms:
            is_configured = tried.algorithm == self.name
            lines.append(Line([tried.algorithm, number(tried.error), tried.mechanism], is_configured))
            name = {"algorithm": tried.algorithm, "configured": is_configured}
            fields.append(name | as_json(tried, ("error", "mechanism")))
        title = f"algorithms, with max_groups {self.now.max_groups}"
        return Section("algorithms", Table(title, columns, lines, remarks), fields)

    def _by_cells(self) -> Section:
        columns = [
            Column("K"), Column("left out"), Column("no release", 3), Column("error", 2), Column("worst"),
            Column("vs. no limit", 1), MARK,
        ]  # fmt: skip
        lines = []
        for tried in self.by_cells:
            is_least = tried is self.least
            mark = marks((tried is self.now, "configured"), (is_least, "recommended"))
            amounts = percent(tried.left_out), percent(tried.no_release), number(tried.error), _of_range(tried)
            lines.append(Line([str(tried.max_groups), *amounts, number(tried.degradation), mark], is_least))
        return Section(
            "by_max_groups", Table("max_groups", columns, lines, [EXPLAINED]), [*map(as_json, self.by_cells)]
        )

    # ---------------------------------------------------------------- for programs

    def fields(self) -> dict[str, Any]:
        metric, work, limits = self.metric, self.work, self.limits
        return {
            "delta": float(metric.budget.delta),
            "unit": metric.unit.name,
            "slot": exact_duration(metric.every.microseconds),
            "across_cells": limits.across,
            "max_groups": limits.cells,
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
            "algorithms": SECTION,
            "by_max_groups": SECTION,
            "stops_at": self._stops,
            "recommended": {"algorithm": self.advised, "max_groups": self.least.max_groups},
            "groups": self.groups and self.groups.fields(),
        }


def _of_range(tried: CellsAhead) -> str:
    return "-" if math.isinf(tried.worst_error) else percent(tried.worst_error)
