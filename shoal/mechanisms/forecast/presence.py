"""Plans under relation add-remove, for stated workloads alone: caps, users of a cell and shares of selection compared.

Nothing is planned from real records: what a plan shows of them would tell who is there.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from shoal.mechanisms import life
from shoal.mechanisms.forecast.axis import Trial
from shoal.mechanisms.forecast.observed import Observed
from shoal.mechanisms.forecast.plan import (
    SECTION,
    Noise,
    Report,
    cap_of,
    extent,
    quotient_noise,
    workload_words,
)
from shoal.mechanisms.forecast.point import Forecast, Point, as_json
from shoal.mechanisms.forecast.sides import MEANS, QUOTIENTS, PlaceForecast, PlaceWorkload, SidesForecast, size_of
from shoal.mechanisms.forecast.step_workload import Steady
from shoal.mechanisms.forecast.table import Column, Row, Section
from shoal.mechanisms.linear import bounding
from shoal.mechanisms.linear.estimates import LEAST_COUNT
from shoal.mechanisms.linear.rules import OF_PRESENCE, OF_SLOTS
from shoal.mechanisms.linear.slots import bounding as of_cells
from shoal.mechanisms.linear.slots.statistic import LinearSlots
from shoal.mechanisms.linear.statistic import LinearStatistic
from shoal.mechanisms.linear.words import people, releases
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.of import Count, Distribution, Sum, Users
from shoal.mechanisms.words import duration, exact_duration, number, percent, samples
from shoal.mechanisms.workload import Stated

PARTS = (1 / 16, 1 / 4, 1)  # of the time
FACTORS = (1 / 4, 1 / 2, 1, 2, 4)  # of max_contributions, and of users
SHARES = tuple(Fraction(percent, 100) for percent in (10, 20, 35, 50, 65, 80))  # of epsilon, for finding cells
NO_EVENTS = (
    "a plan from events would tell who is there, which relation add-remove hides; state the workload instead: --users, "
    "--samples, --over"
)
DECLARE = "declared, groups = [...], which needs neither delta nor any share of epsilon"
RELEASED = f"is released from where the count is {LEAST_COUNT} times its noise; - stands for none."


def _stated(workload: Stated | Observed) -> Stated:
    if isinstance(workload, Observed):
        raise ValueError(NO_EVENTS)
    return workload


class PresenceReport(Report):
    """The plan of a metric that hides who is there."""

    amounts: Sequence[Column]  # of a release
    numbers: tuple[str, ...]  # of a release, for programs
    end: int = 1  # number of the last release of the workload; slots are all alike
    life: int = 1  # number of the last release of the metric's life

    @classmethod
    def final_noise(cls, metric: Metric, users: int) -> Noise:
        """The noise of the last release, if this many users contribute.

        Raises:
            ValueError: the mechanism refuses the settings.
        """
        report = cls(metric, Stated(users, None, None))
        last = report.forecast(metric).point(report.life)
        if isinstance(metric.of, QUOTIENTS):
            return quotient_noise(metric, math.inf if last.noise_sd is None else last.noise_sd, extent(metric))
        return Noise(last.noise_sd, max(1.0, last.samples * size_of(metric)), f"{metric.statistic} itself")

    def noise(self) -> Noise:
        return self.final_noise(self.metric, self.users)

    @abstractmethod
    def forecast(self, metric: Metric) -> Forecast:
        """The releases of the workload under these settings."""

    def last(self, metric: Metric) -> Point:
        """The last release of the workload under these settings."""
        return self.forecast(metric).point(self.end)

    @cached_property
    def by_cap(self) -> list[Trial]:
        """The caps that are tried; a unit of unit event is one sample."""
        caps = sorted({max(1, round(self.metric.samples * factor)) for factor in FACTORS})
        values = [1] if self.metric.unit.is_event else caps
        return list(self.caps_of(values).tried(self.metric, self.last))

    @property
    def best(self) -> int:
        """The cap of the least error; of equal ones the largest, which leaves out least."""
        return int(min(reversed(self.by_cap), key=lambda trial: trial.point.error).value)

    def recommended(self) -> str:
        return f"max_contributions {self.best}"

    def caps(self, title: str, more: Sequence[str], remarks: Sequence[str] = (), **fields: Any) -> Section:
        """The section of caps; `more` are heads beside the amounts of a release, `fields` come before its numbers."""
        rows = [
            Row(str(cap), {"max_contributions": cap, **fields}, point, cap == self.metric.samples)
            for cap, _, point in self.by_cap
        ]
        columns = [Column("cap"), *self.amounts, *map(Column, more)]
        return Section.of("by_max_contributions", title, columns, rows, self.numbers, remarks)

    def fields(self) -> dict[str, Any]:
        metric = self.metric
        return {
            "delta": float(metric.budget.delta),
            "unit": metric.unit.name,
            "relation": metric.hides.relation,
            "max_contributions": cap_of(metric),
        }

    def tuned(self) -> dict[str, Any]:
        """The recommended cap and those that were tried, for programs."""
        return {"recommended": {"max_contributions": self.best}, "by_max_contributions": SECTION}


class SidesReport(PresenceReport):
    """The plan of what is released at every step."""

    rules = OF_PRESENCE
    numbers = "seconds", "samples", "left_out", "count_sd", "noise_sd", "error"

    def __init__(self, metric: Metric, workload: Stated | Observed, coordinate: int = 0) -> None:
        stated = _stated(workload)
        self.metric, self.steady = metric, Steady.of(metric, stated)
        is_count = isinstance(metric.of, Count | Users)  # whose value is the count: one column says its noise
        more = [] if is_count else [Column("noise of count")]
        self.amounts = [Column("samples"), *more, Column("noise of value")]
        self.users, self.end, self.life = self.steady.work.users, self.steady.work.steps, releases(metric)
        self.clip, self.selection = bounding.clip_of(metric), bounding.selection_of(metric)

    def forecast(self, metric: Metric) -> SidesForecast:
        return SidesForecast(metric, self.steady)

    def workload(self) -> str:
        work, key = self.steady.work, " in one key" if self.metric.place is not None else ""
        over = self.metric.every.span(work.steps)
        return workload_words(f"{work.users:,} users{key}", work.samples_per_user, over, work.pattern)

    @cached_property
    def over_time(self) -> list[Point]:
        forecast = self.forecast(self.metric)
        return [forecast.point(max(1, round(part * self.end))) for part in PARTS]

    def sections(self) -> Iterator[Section]:
        rows = [Row(duration(point.at or 0), {}, point) for point in self.over_time]
        columns = [Column("after", is_text=True), *self.amounts]
        yield Section.of("over_time", "releases", columns, rows, self.numbers, list(self._remarks()))
        remarks = ["Error: noise of the value, and what may be expected of the samples that are left out."]
        yield self.caps("max_contributions, at the end; bold: as configured", ["left out", "error"], remarks)

    def _remarks(self) -> Iterator[str]:
        metric = self.metric
        yield "Noise is its standard deviation. The number of samples is not public: the count is released with noise."
        yield from life.remarks(metric)
        if isinstance(metric.of, MEANS):
            ends = "A mean in the middle of its range has this noise, one at an end of it 1.41 times as much."
            yield f"{ends} It {RELEASED}"
        if isinstance(metric.of, Distribution):
            what = "that of the distribution function, in parts of one, of values spread evenly"
            yield f"The noise of the value is {what}. It {RELEASED}"
        if self.clip is not None:
            yield (
                f"Noise of the value is that of all of range. From about {self.clip.needed:,} users on a key has a "
                "clip range, and so much less noise as that is narrower; before, nothing is released of it."
            )

    def advice(self) -> Iterator[str]:
        metric, clip = self.metric, self.clip
        if self.selection is not None:
            come = f"about {people(self.selection, 1)} units have come to it"
            yield f"a key is shown once {come}: keys that are known should be {DECLARE}"
        if clip is not None and clip.needed > self.users:
            yield (
                f"a clip range is chosen once about {clip.needed:,} users have come to a key, more than there are; "
                "declare users, raise clip.share or clip.epsilon, or give the range that values have"
            )
        if self.over_time[-1].noise_sd is None:
            what = "mean" if isinstance(metric.of, MEANS) else metric.statistic
            yield f"at the end there are too few samples to release a {what}: it needs more users, or more epsilon"
        has_one_side = isinstance(metric.of, Sum) and len(LinearStatistic.of(metric).decayed) == 1
        if has_one_side and float(metric.ranges[0][0]) > 0:
            yield (
                "let the range of a sum begin at 0: that somebody comes moves it by all of the range's larger end "
                "anyway"
            )

    def fields(self) -> dict[str, Any]:
        work, every = self.steady.work, self.metric.every
        return {
            **super().fields(),
            "step": exact_duration(every.microseconds),
            "workload": {
                **as_json(work, ("users", "samples_per_user")),
                "over": every.span(work.steps) / 1e6,
                "steps": work.steps,
            },
            "over_time": SECTION,
            **self.tuned(),
            "units_to_show_a_key": None if self.selection is None else people(self.selection, 1),
            **({} if self.clip is None else {"units_to_clip": self.clip.needed}),
        }


class PlaceReport(PresenceReport):
    """The plan of what is released for every slot."""

    amounts = (Column("samples"), Column("noise of count"), Column("noise of value"))
    rules = OF_SLOTS
    numbers = "samples", "count_sd", "noise_sd"

    def __init__(self, metric: Metric, workload: Stated | Observed, coordinate: int = 0) -> None:
        stated = _stated(workload)
        self.metric, self.users, self.work = metric, stated.users, PlaceWorkload.of(metric, stated)
        self.selection = of_cells.selection_of(metric)

    def forecast(self, metric: Metric) -> PlaceForecast:
        return PlaceForecast(metric, self.work, LinearSlots.of(metric))

    def workload(self) -> str:
        work = self.work
        where = "" if work.cells == 1 else f", over {work.cells:,} cells alike"
        pattern = " on average, a few users with most" if len(work.classes) > 1 else ""
        return f"{work.users:,} users with {samples(work.samples)} each in a slot{pattern}{where}"

    def sections(self) -> Iterator[Section]:
        forecast, remark = self.forecast(self.metric), "that of a mean in the middle of its range: at an end it is "
        remark += "1.41 times that"
        if isinstance(self.metric.of, Distribution):
            remark = "that of the cumulative shares, on average over the bins"
        rows = [
            Row(number(users), {"users": users}, forecast.release(users), users == self.users)
            for users in (self.users * factor for factor in FACTORS)
        ]
        title, columns = "a cell, by users in a slot; bold: as stated", [Column("users"), *self.amounts]
        remarks = [f"Noise is its standard deviation, and {remark}. A value {RELEASED}"]
        yield Section.of("by_users", title, columns, rows, self.numbers, remarks)
        yield self.caps("max_contributions; bold: as configured", ["left out"], users=self.users)
        yield self._shares()

    def _shares(self) -> Section:
        """Parts of epsilon that find cells, with whom they need, and the release of a cell that has just so many."""
        metric, rows = self.metric, []
        configured = Fraction(metric.budget.select, metric.budget.epsilon)
        for share in [] if self.selection is None else sorted({*SHARES, configured}):
            epsilon = metric.budget.epsilon * share
            needed = people(of_cells.finding(metric, epsilon), 1)
            made = replace(LinearSlots.of(metric), epsilon=metric.budget.epsilon - epsilon)
            point = PlaceForecast(metric, self.work, made).release(needed * self.work.cells)
            cells = {"users needed": number(needed), "noise of value there": number(point.noise_sd)}
            fields = {"share": float(share), "users_to_show_a_cell": needed}
            rows.append(Row(percent(float(share)), fields, point, share == configured, cells))
        title = "selection.epsilon, in parts of epsilon; bold: as configured"
        columns = Column("share"), Column("users needed"), Column("noise of value there")
        remarks = ["Users needed: about so many have to come to a cell in a slot, as their first one, for it to show."]
        return Section.of("by_selection_share", title, columns, rows, ("noise_sd",), remarks)

    def advice(self) -> Iterator[str]:
        if self.selection is not None:
            come = f"about {people(self.selection, 1)} users come first"
            yield f"a cell shows in a slot to which {come}: cells that are known should be {DECLARE}"
        if self.last(self.metric).noise_sd is None:
            yield "there are too few samples to release a mean: it needs more users in a cell, or more epsilon"

    def fields(self) -> dict[str, Any]:
        work = self.work
        return {
            **super().fields(),
            "slot": exact_duration(self.metric.every.microseconds),
            "workload": {"users": work.users, "samples_per_user": work.samples, "cells": work.cells},
            "by_users": SECTION,
            **self.tuned(),
            "by_selection_share": SECTION,
            "users_to_show_a_cell": None if self.selection is None else people(self.selection, 1),
        }
