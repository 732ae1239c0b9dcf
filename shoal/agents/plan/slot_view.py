"""A plan of a statistic per slot for the eye and for programs: tables for a terminal of any width, and JSON."""

import math
import textwrap
from collections.abc import Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from shoal.agents.plan.mean_view import about_groups, duration, groups_as_json, marks, number, percent, plain_table
from shoal.agents.plan.observed import NOT_PRIVATE
from shoal.agents.plan.slot import CellsOutlook, SlotPlan, configured
from shoal.models.config.durations import format_duration
from shoal.models.exact import exact_text

FIXED = 22  # characters of the table of algorithms besides their names and what they do
WIDE = 80
UNITS = {
    "slot-mean": "in units of the range",
    "slot-mean-variance": "of mean and variance together, in units of the range and in their squares",
    "slot-distribution": "of the distribution function, in parts of one",
}


def title(plan: SlotPlan) -> str:
    """What is planned."""
    section = plan.section
    low, high = map(float, section.ranges[0])
    delta = f", delta {exact_text(section.delta)}" if section.delta else ""
    where = "cell" if section.cell else "group" if section.group else "place"
    slots = f", max_slots {section.slot_limit}" if section.max_slots else ""
    return (
        f"{section.name}: {section.statistic} of {section.values[0]} in {low:g} .. {high:g} for every {where} "
        f"and {duration(section.slot or 0)}, epsilon {exact_text(section.epsilon)}{delta} of each {section.of.words()}"
        f"{slots}, max_cells {section.cell_limit} ({section.across_cells or 'chop-user'}), "
        f"max_contributions {section.cap}"
    )


def workload(plan: SlotPlan) -> str:
    """What it is planned for."""
    work = plan.workload
    users, cells = f"{work.users:,} {'user' if work.users == 1 else 'users'}", number(work.cells)
    counted = f"{number(work.samples)} samples of a user in a cell"
    if plan.private:
        pattern = "on average, a few users with most" if work.pattern == "skewed" else "all alike"
        return f"{users} in a slot, each in {work.most_cells} of {cells} cells, {counted}, {pattern}"
    looked = "" if len(work.slots) == work.of else f", of which {len(work.slots)} are looked at"
    return (
        f"{users} in {work.of:,} {'slot' if work.of == 1 else 'slots'} over {duration(work.over)}{looked}; "
        f"in a slot {cells} cells, up to {work.most_cells} of one user, {counted}, from the file"
    )


def recommended(plan: SlotPlan) -> str:
    """The number of cells, and what gives least error."""
    return f"max_cells {plan.least.max_cells}, {plan.advised}"


# -------------------------------------------------------------------- tables


def tables(plan: SlotPlan, width: int) -> Group:
    """A plan for a terminal."""
    parts: list[RenderableType] = [] if plan.private else [Text(NOT_PRIVATE, style="bold red")]
    parts += [Text(title(plan), style="bold"), Text(f"for {workload(plan)}"), Text(), _algorithms(plan, width)]
    parts += [Padding(Text("\n".join(_remarks(plan)), style="dim"), (0, 0, 1, 1))]
    parts.append(Text(f"recommended: {recommended(plan)}", style="bold"))
    parts += [Padding(Text(line), (0, 0, 0, 1)) for line in _advice(plan)]
    remark = "worst: error of a slot's worst cell, over all values; x: in what it is with everybody everywhere"
    return Group(*parts, Text(), _numbers(plan, width), Padding(Text(remark, style="dim"), (0, 0, 0, 1)))


def _algorithms(plan: SlotPlan, width: int) -> Table:
    """What each does in a cell of middle size, and its error in the median cell."""
    table = plain_table(
        f"algorithms, with max_cells {plan.configured.max_cells}", "algorithm", "error", "how, typically"
    )
    room = max(16, width - FIXED - max((len(one.name) for one in plan.algorithms), default=0))
    for one in plan.algorithms:
        does = textwrap.fill(one.mechanism, room)
        table.add_row(one.name, number(one.error), does, style="bold" if one.name == configured(plan.section) else "")
    table.columns[-1].justify = "left"
    return table


def _remarks(plan: SlotPlan) -> Iterator[str]:
    likely = (
        "what is likely if users are alike, as best goes by" if plan.section.statistic == "slot-mean" else "the worst"
    )
    yield (
        f"Error: of the median cell, {UNITS[plan.section.statistic]}; {likely}, foretold from public numbers of "
        "samples."
    )
    yield "That somebody was in a cell, and when, is not protected: only what they did there."


def _advice(plan: SlotPlan) -> Iterator[str]:
    best, now = plan.least, plan.configured
    worst = f"error of the worst cell: {_of_range(best)} of the range; as configured, {_of_range(now)}"
    yield f"{worst}, with {percent(now.left_out)} of the samples left out"
    if plan.workload.most_cells == 1:
        yield "nobody is in several cells of a slot: max_cells 1 gives each cell all of the slot's epsilon"
    elif (plan.section.across_cells or "chop-user") != "split":
        yield (
            f"left alone, chop-user stops at max_cells {plan.stops}: the next to leave would make a cell worse than "
            "the worst was"
        )
    yield from about_groups(plan.groups, "group" if plan.section.group else "cell")
    if now.empty:
        yield f"as configured, {percent(now.empty)} of the cells have no release: too few users count in them"


def _of_range(one: CellsOutlook) -> str:
    return "-" if math.isinf(one.worst) else percent(one.worst)


def _numbers(plan: SlotPlan, width: int) -> Table:
    wide = width >= WIDE
    table = plain_table(
        "max_cells", "K", "left out", *(["no release", "error"] if wide else []), "worst", *(["x"] if wide else []), ""
    )
    for one in plan.by_cells:
        mark = marks((one is plan.configured, "configured"), (one is plan.least, "recommended"))
        cells = [percent(one.left_out), *([percent(one.empty), number(one.error)] if wide else []), _of_range(one)]
        cells += [number(one.degradation)] if wide else []
        table.add_row(str(one.max_cells), *cells, mark, style="bold" if one is plan.least else "")
    table.columns[-1].justify = "left"
    return table


# -------------------------------------------------------------------- JSON


def as_json(plan: SlotPlan) -> dict[str, Any]:
    """All of a plan."""
    section, work = plan.section, plan.workload
    return {
        "metric": section.name,
        "field": section.values[0],
        "statistic": section.statistic,
        "private": plan.private,
        **({} if plan.private else {"warning": NOT_PRIVATE}),
        "range": [float(end) for end in section.ranges[0]],
        "epsilon": float(section.epsilon),
        "delta": float(section.delta),
        "unit": section.unit,
        "slot": format_duration(section.slot or 0),
        "across_cells": section.across_cells or "chop-user",
        "max_cells": section.cell_limit,
        "max_slots": section.slot_limit,
        "max_contributions": section.cap,
        "min_users": section.min_users or 1,
        "workload": {
            "users": work.users,
            "slots": work.of,
            "slots_looked_at": len(work.slots),
            "cells": work.cells,
            "most_cells": work.most_cells,
            "samples": work.samples,
            "over": work.over / 1e6,
            "pattern": work.pattern,
        },
        "algorithms": [
            {
                "algorithm": one.name,
                "configured": one.name == configured(plan.section),
                "error": _finite(one.error),
                "mechanism": one.mechanism,
            }
            for one in plan.algorithms
        ],
        "by_max_cells": [_cells(one) for one in plan.by_cells],
        "stops_at": plan.stops,
        "recommended": {"algorithm": plan.advised, "max_cells": plan.least.max_cells},
        "groups": groups_as_json(plan.groups),
    }


def _cells(one: CellsOutlook) -> dict[str, Any]:
    return {
        "max_cells": one.max_cells,
        "error": _finite(one.error),
        "worst_error": _finite(one.worst),
        "degradation": _finite(one.degradation),
        "left_out": one.left_out,
        "no_release": one.empty,
    }


def _finite(number: float) -> float | None:
    return None if math.isinf(number) else number
