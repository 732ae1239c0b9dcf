"""The plan of a statistic per slot under relation add-remove: the noise of a cell, and who has to come for it to show.

Noise is that of the very mechanism. Nothing is planned from real records: what a plan shows of them would tell who is
there. A unit is taken to give equally many samples in each slot that it may be in, and cells to have equally many; what
units give in all is alike, or skewed.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from shoal.mechanisms.linear.estimates import LEAST_COUNT
from shoal.mechanisms.linear.plan.presence import MIDDLE, NO_EVENTS
from shoal.mechanisms.linear.slots import bounding
from shoal.mechanisms.linear.slots.statistic import LinearSlots
from shoal.mechanisms.linear.words import people
from shoal.mechanisms.observed import Observed
from shoal.mechanisms.outlook import cap_of
from shoal.mechanisms.parts.hides import AddRemove
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.of import Distribution
from shoal.mechanisms.parts.per import Keys
from shoal.mechanisms.parts.variants import with_samples
from shoal.mechanisms.plan import Column, Line, Noise, Plan, Table, budget_words, head, quotient_noise, where_of
from shoal.mechanisms.words import duration, exact_duration, number, percent, samples
from shoal.mechanisms.workload import YEAR, Stated, bias

FACTORS = (1 / 4, 1 / 2, 1, 2, 4)  # of users, and of max_contributions
SHARES = tuple(Fraction(percent, 100) for percent in (10, 20, 35, 50, 65, 80))  # of epsilon, for finding cells


@dataclass(frozen=True, slots=True)
class Work:
    """What happens in a slot."""

    users: int  # in all cells
    samples: float  # of a user in a slot, in all cells, on average
    cells: int
    classes: tuple[tuple[float, float], ...] = ((1.0, 1.0),)  # part of the users, samples of each beside the average

    @classmethod
    def of(cls, metric: Metric, stated: Stated) -> "Work":
        cells = (stated.cells or stated.groups or 1) if isinstance(metric.per, Keys) else 1
        each = metric.samples / slots_of(metric) if stated.samples is None else stated.samples
        mean = float(each * slots_of(metric))  # which a user gives at once, or slot by slot: the cap is one over all
        classes = stated.pattern(stated.users, mean).classes
        return cls(stated.users, float(each), cells, tuple((share, size / mean) for share, size in classes))

    def counted(self, metric: Metric) -> float:
        """The samples of a user in a slot that count, on average."""
        most = float(metric.samples / slots_of(metric))
        return sum(share * min(self.samples * size, most) for share, size in self.classes)

    @property
    def is_skewed(self) -> bool:
        return len(self.classes) > 1


@dataclass(frozen=True, slots=True)
class Look:
    """A cell's release, with so many users in its slot."""

    users: float
    samples: float  # of the cell that count
    count_sd: float
    noise_sd: float | None  # None: too few samples to tell a mean
    bias: float  # that what is left out may be expected to cause

    def fields(self) -> dict[str, Any]:
        return {
            "users": self.users, "samples": self.samples, "count_sd": self.count_sd, "noise_sd": self.noise_sd,
        }  # fmt: skip

    @property
    def error(self) -> float:
        """Noise and bias together; infinite where nothing is released."""
        return math.inf if self.noise_sd is None else math.hypot(self.noise_sd, self.bias)

    @property
    def cells(self) -> list[str]:
        return [number(self.samples), number(self.count_sd), number(self.noise_sd)]


def slots_of(metric: Metric) -> int:
    """The slots that a unit may be in; of one without end those until the metric's, or a year of them."""
    period = metric.unit.period
    if period is None and isinstance(metric.hides, AddRemove) and metric.hides.end is not None:
        period = metric.hides.end - metric.hides.start
    return YEAR if period is None else metric.every.fits(period)


def look(metric: Metric, work: Work, users: float, made: LinearSlots | None = None) -> Look:
    """A cell's release under these settings, with so many of the workload's users in its slot."""
    made = made or LinearSlots.of(metric)
    low, high = map(float, metric.ranges[0])
    each = work.counted(metric)
    counted = users * each / work.cells
    is_enough = counted >= LEAST_COUNT * made.count_sd
    width = high - low if made.of_levels is None else 1.0
    noise_sd = _noise_sd(made, counted, width) if is_enough else None
    return Look(users, counted, made.count_sd, noise_sd, bias(1 - each / work.samples, width))


def _noise_sd(made: LinearSlots, counted: float, width: float) -> float:
    """Of a mean in the middle of the range, or of shares on average."""
    if made.of_levels is not None:
        return made.of_levels.typical_sd(counted)
    return width * MIDDLE * made.count_sd / math.sqrt(len(made.sides.noised)) / counted


def final_noise(metric: Metric, users: int) -> Noise:
    """The noise of a cell that all users are in, each with all samples that count.

    Raises:
        ValueError: the mechanism refuses the settings.
    """
    found = look(metric, Work.of(metric, Stated(users, None, None)), users)
    low, high = map(float, metric.ranges[0])
    width = 1.0 if isinstance(metric.of, Distribution) else high - low
    return quotient_noise(metric, math.inf if found.noise_sd is None else found.noise_sd, width)


def plans(
    metric: Metric, workload: Stated | Observed, advance: Callable[[float], None] = lambda part: None
) -> list[Plan]:
    """The plan of a metric.

    Raises:
        ValueError: the mechanism refuses the settings, or the workload is a file.
    """
    if isinstance(workload, Observed):
        raise ValueError(NO_EVENTS)
    work = Work.of(metric, workload)
    report = _Report(metric, work)
    return [
        Plan(
            metric, report.title(), report.workload(), work.users, [*report.tables()], report.recommended(),
            [*report.advice()], report.fields(), final_noise(metric, work.users),
        )
    ]  # fmt: skip


class _Report:
    """The words and tables of a plan."""

    def __init__(self, metric: Metric, work: Work) -> None:
        self._metric, self._work = metric, work
        self._selection = bounding.selection_of(metric)
        self._configured = look(metric, work, work.users)
        self._by_users = [look(metric, work, work.users * factor) for factor in FACTORS]
        caps = sorted({max(1, round(metric.samples * factor)) for factor in FACTORS})
        self._by_cap: list[tuple[int, Look]] = [
            (cap, look(with_samples(metric, cap), work, work.users)) for cap in caps
        ]
        self._by_share = [] if self._selection is None else [*self._shares()]

    def _shares(self) -> Iterator[tuple[Fraction, int, Look]]:
        """Parts of epsilon that find cells, with whom they need, and the release of a cell that has just so many."""
        for share in sorted({*SHARES, self._share()}):
            epsilon = self._metric.budget.epsilon * share
            needed = people(bounding.finding(self._metric, epsilon), 1)
            made = replace(LinearSlots.of(self._metric), epsilon=self._metric.budget.epsilon - epsilon)
            yield share, needed, look(self._metric, self._work, needed * self._work.cells, made)

    def _best_cap(self) -> int:
        """The cap of the least error; of equal ones the largest, which leaves out least."""
        return min(reversed(self._by_cap), key=lambda pair: pair[1].error)[0]

    def recommended(self) -> str:
        return f"max_contributions {self._best_cap()}"

    def title(self) -> str:
        metric = self._metric
        return (
            f"{metric.name}: {metric.statistic} of {metric.names[0]} for every {where_of(metric)} and "
            f"{duration(metric.every.microseconds)}, relation "
            f"add-remove, {budget_words(metric)}, max_contributions {metric.samples}"
        )

    def workload(self) -> str:
        work = self._work
        where = "" if work.cells == 1 else f", over {work.cells:,} cells alike"
        pattern = " on average, a few users with most" if work.is_skewed else ""
        return f"{work.users:,} users with {samples(work.samples)} each in a slot{pattern}{where}"

    def tables(self) -> Iterator[Table]:
        what = [Column("samples"), Column("noise of count"), Column("noise of value")]
        lines = [Line([number(at.users), *at.cells], at.users == self._work.users) for at in self._by_users]
        what_of = (
            "that of the cumulative shares, on average over the bins"
            if isinstance(self._metric.of, Distribution)
            else "that of a mean in the middle of its range: at an end it is 1.41 times that"
        )
        remarks = [
            f"Noise is its standard deviation, and {what_of}. A value is released from where the count is "
            f"{LEAST_COUNT} times its noise; - stands for none."
        ]
        yield Table("a cell, by users in a slot; bold: as stated", [Column("users"), *what], lines, remarks)
        rows = [
            Line([str(cap), *at.cells, percent(1 - self._kept(cap))], cap == self._metric.samples)
            for cap, at in self._by_cap
        ]
        columns = [Column("cap"), *what, Column("left out")]
        yield Table("max_contributions; bold: as configured", columns, rows)
        if self._by_share:
            yield self._of_shares()

    def _kept(self, cap: int) -> float:
        return self._work.counted(with_samples(self._metric, cap)) / self._work.samples

    def _of_shares(self) -> Table:
        columns = [Column("share"), Column("users needed"), Column("noise of value there")]
        rows = [
            Line([percent(float(share)), number(needed), number(at.noise_sd)], share == self._share())
            for share, needed, at in self._by_share
        ]
        remarks = ["Users needed: about so many have to come to a cell in a slot, as their first one, for it to show."]
        return Table("selection.epsilon, in parts of epsilon; bold: as configured", columns, rows, remarks)

    def _share(self) -> Fraction:
        budget = self._metric.budget
        return Fraction(budget.select, budget.epsilon)

    def advice(self) -> Iterator[str]:
        if self._selection is not None:
            yield (
                f"a cell shows in a slot to which about {people(self._selection, 1)} users come first: cells that are "
                "known should be declared, groups = [...], which needs neither delta nor any share of epsilon"
            )
        if self._configured.noise_sd is None:
            yield "there are too few samples to release a mean: it needs more users in a cell, or more epsilon"

    def fields(self) -> dict[str, Any]:
        metric, work = self._metric, self._work
        return {
            **head(metric, 0, private=True),
            "delta": float(metric.budget.delta),
            "unit": metric.unit.name,
            "relation": metric.hides.relation,
            "max_contributions": cap_of(metric),
            "slot": exact_duration(metric.every.microseconds),
            "workload": {"users": work.users, "samples_per_user": work.samples, "cells": work.cells},
            "by_users": [at.fields() for at in self._by_users],
            "recommended": {"max_contributions": self._best_cap()},
            "by_max_contributions": [{"max_contributions": cap, **at.fields()} for cap, at in self._by_cap],
            "by_selection_share": [
                {"share": float(share), "users_to_show_a_cell": needed, "noise_sd": at.noise_sd}
                for share, needed, at in self._by_share
            ],
            "users_to_show_a_cell": None if self._selection is None else people(self._selection, 1),
        }
