"""A plan of a sum, count or decayed mean for the eye: tables for a terminal of any width."""

import math
from collections.abc import Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from shoal.agents.plan.mean import Look
from shoal.agents.plan.mean_view import (
    SPREAD,
    TIMES,
    about_groups,
    duration,
    in_group,
    marks,
    number,
    percent,
    plain_table,
    when,
)
from shoal.agents.plan.observed import NOT_PRIVATE
from shoal.agents.plan.sums import StepOutlook, StepPlan
from shoal.models.config.metric import MetricSection
from shoal.models.exact import exact_text

COLUMN = 10  # characters of a column with a number
FIXED, INTERVAL = 36, 12  # of the columns besides names and times; of the one that only wide terminals have
WIDE = 80
BY_HAND = "by hand*"
MUCH = 0.05  # of the samples: leaving out more is worth a word


# -------------------------------------------------------------------- words


def length(section: MetricSection) -> str:
    """Of the window, or what stands for it."""
    said = section.forgets
    span = said.length or said.half_life
    return f"alpha {float(said.alpha or 0):.4g}" if span is None else duration(span)


def forgetting(section: MetricSection) -> str:
    """How it forgets."""
    said = section.forgets
    return {
        "none": "since the beginning",
        "window": f"over the last {duration(said.length or 0)}",
        "all-windows": "over any last steps",
        "exponential": f"with a half-life of {length(section)}" if said.half_life else f"with {length(section)}",
        "polynomial": f"with weights (age + 1)^-{float(said.exponent or 0):g}",
    }[said.kind]


def title(plan: StepPlan) -> str:
    """What is planned."""
    section = plan.section
    what = f" of {section.values[0]}" if section.values else ""
    within = " in {:g} .. {:g}".format(*map(float, section.ranges[0])) if section.ranges and plan.by_hand else ""
    delta = f", delta {exact_text(section.delta)}" if section.delta else ""
    cost = f"epsilon {exact_text(section.epsilon)}{delta} of each {section.of.words()}"
    cap = "" if section.max_contributions is None else f", max_contributions {section.max_contributions}"
    return (
        f"{section.name}: {section.statistic}{what}{within} {forgetting(section)}, every "
        f"{duration(section.cadence or 0)}, {cost}{cap}"
    )


def workload(plan: StepPlan) -> str:
    """What it is planned for."""
    work, section = plan.workload, plan.section
    group = in_group(section, plan.groups)
    text = f"{work.users:,} users{group} with {_samples(work.samples)} each over {duration(work.over)}"
    if section.of.period is not None:
        text += f", {number(work.of_a_unit)} of a {section.of.words()}"
    if not plan.private:
        return f"{text}, from the file"
    return f"{text}, {'on average, a few users with most' if work.pattern == 'skewed' else 'at constant rates'}"


def _samples(count: float) -> str:
    return "1 sample" if count == 1 else f"{number(count)} samples"


def missing(plan: StepPlan) -> Iterator[tuple[str, Any]]:
    """Recommended settings that the configuration lacks."""
    if plan.section.horizon is None and plan.advised.horizon is not None:
        yield "horizon", duration(plan.advised.horizon)


def recommended(plan: StepPlan) -> str:
    """Algorithm and cap."""
    how = "" if plan.by_hand is None else f"{plan.advised.algorithm} ({plan.best.mechanism})"
    cap = "" if plan.advised.max_contributions is None else f"max_contributions {plan.advised.max_contributions}"
    more = [f"{name} {value}" for name, value in missing(plan)]
    return ", ".join(part for part in (how, cap, *more) if part)


# -------------------------------------------------------------------- tables


def tables(plan: StepPlan, width: int) -> Group:
    """A plan for a terminal."""
    parts: list[RenderableType] = [] if plan.private else [Text(NOT_PRIVATE, style="bold red")]
    parts += [Text(title(plan), style="bold"), Text(f"for {workload(plan)}"), Text()]
    parts += [_over_time(plan, width), Padding(Text("\n".join(_remarks(plan)), style="dim"), (0, 0, 1, 1))]
    parts.append(Text(f"recommended: {recommended(plan)}", style="bold"))
    parts += [Padding(Text(line), (0, 0, 0, 1)) for line in _advice(plan)]
    parts.append(Text())
    parts += [_caps(plan, width)] if plan.caps else []
    parts += [_lengths(plan, width)] if plan.lengths else []
    if plan.windows:
        remark = "a window that is asked for often is better released by a metric of its own"
        parts += [_windows(plan), Padding(Text(remark, style="dim"), (0, 0, 0, 1))]
    return Group(*parts)


def rows(plan: StepPlan) -> list[tuple[str, StepOutlook]]:
    """What is compared, by name."""
    hand = [] if plan.by_hand is None else [(BY_HAND, plan.by_hand)]
    return [*((one.section.algorithm, one) for one in plan.outlooks), *hand]


def _over_time(plan: StepPlan, width: int) -> Table:
    counts = plan.by_hand is None
    interval = width >= WIDE and not counts
    names = [name(called, one) if width >= WIDE else called for called, one in rows(plan)]
    room = max(1, (width - FIXED - INTERVAL * interval - max(map(len, names))) // COLUMN)
    looks = _columns(plan.best, room)
    table = plain_table(
        "samples that count" if counts else "noise (standard deviation)", "algorithm", *(when(look) for look in looks),
        "long run", *(["95 %"] if interval else []), "left out", "error",
    )  # fmt: skip
    for called, (_, one) in zip(names, rows(plan), strict=True):
        if one.refused is not None:
            table.add_row(called, *["-"] * (len(looks) + 2 + interval), "refused")
            continue
        by_part = {look.part: look for look in one.looks}
        cells = [number(_shown(by_part[look.part], counts=counts)) for look in looks]
        far = "grows" if one.long_run is None else number(_shown(one.long_run, counts=counts))
        half, last = one.final.half_interval, one.final
        within = [] if not interval else ["-" if half is None else f"± {number(half)}"]
        table.add_row(
            called, *cells, far, *within, percent(last.left_out), number(last.error),
            style="bold" if one is plan.best else "",
        )  # fmt: skip
    return table


def name(called: str, one: StepOutlook) -> str:
    """The algorithm with what it is made by, where that says more."""
    return f"{called} ({one.mechanism})" if one.section.algorithm == called == "sharp" else called


def _columns(best: StepOutlook, room: int) -> list[Look]:
    """The first release and some parts of the time that there is room for, ascending."""
    first = best.looks[:1] if room > 1 else ()
    parts = TIMES[: max(1, room - 1)]
    nearest = [min(best.looks, key=lambda look: abs(math.log(look.part / part))) for part in parts]
    return sorted({*first, *nearest}, key=lambda look: look.part)


def _shown(look: Look, *, counts: bool) -> float | None:
    return look.samples if counts else look.noise_sd


def _remarks(plan: StepPlan) -> Iterator[str]:
    last, section = plan.best.final, plan.section
    if plan.by_hand is None:
        yield "A count is exact and costs no epsilon: who contributes when is public under relation values."
    else:
        decayed = ", decayed" if section.forgets.kind in ("exponential", "polynomial") else ""
        yield (
            f"Noise is in units of {section.values[0]}; the last release is a {section.statistic} of "
            f"{_samples(last.samples)}{decayed}. 95 %: what its noise stays within. Error: its noise, and the bias "
            "expected of what is left out."
        )
        if plan.best.long_run is not None:
            yield "Long run: all releases long after the beginning, if users always are as many."
        yield "* a Laplace draw for each step: a yardstick, no algorithm."
    if section.group is not None and not section.of.is_event and plan.private:
        yield (
            f"All groups share the samples that count of a {section.of.words()}; here all are in one."
            if (plan.groups is None)
            else f"All groups share the samples that count of a {section.of.words()}; here they come evenly."
        )
    if section.group is not None and plan.groups is None:
        yield SPREAD
    for one in plan.outlooks:
        if one.refused is not None:
            yield f"{one.section.algorithm} is refused: {one.refused}"


def _advice(plan: StepPlan) -> Iterator[str]:
    configured = next(one for one in plan.outlooks if one.section.algorithm == plan.section.algorithm)
    before = "refused" if not configured.looks else number(configured.final.error)
    yield f"error at the end: {number(plan.outcome.error)}{_of_the_sum(plan)}; as configured, {before}"
    yield from about_groups(plan.groups)
    cost = plan.halving
    if plan.by_hand is None:
        yield "its cap costs nothing: choose one that nobody reaches"
    elif cost is None:
        yield "more epsilon cannot halve it: what is left out stays left out"
    else:
        cap = "" if cost.max_contributions == plan.advised.cap else f" and max_contributions {cost.max_contributions}"
        yield f"half of it would take: epsilon {number(cost.amount)}{cap} (x {cost.factor:.3g})"
    last = plan.best.final
    if last.left_out <= MUCH:
        return
    of_a_sum = f", {number(abs(last.bias))} of the sum" if plan.section.statistic == "sum" else ""
    yield f"as configured, {percent(last.left_out)} of the samples in the last release are left out{of_a_sum}"
    if plan.section.unit == "user":
        yield "who gave max_contributions samples never counts again; unit user-week renews it, but guarantees less"


def _of_the_sum(plan: StepPlan) -> str:
    """The error beside what the sum may be."""
    look = plan.outcome
    there = look.samples / (1 - look.left_out) * plan.size if look.left_out < 1 else 0.0
    if plan.section.statistic != "sum" or not there or math.isinf(look.error):
        return ""
    return f", {percent(look.error / there)} of a sum of {number(there)}"


def _caps(plan: StepPlan, width: int) -> Table:
    of, wide = plan.section.of, width >= WIDE
    whose = "" if of.period is None else f" of a {of.words()}"
    table = plain_table(
        f"max_contributions{whose}, at the end", "m", "left out", *(["noise", "bias"] if wide else []), "error", ""
    )
    for cap, look in plan.caps:
        mark = marks((cap == plan.section.cap, "configured"), (cap == plan.advised.cap, "recommended"))
        cells = [number(look.noise_sd), number(abs(look.bias))] if wide else []
        table.add_row(
            str(cap), percent(look.left_out), *cells, number(look.error), mark,
            style="bold" if cap == plan.advised.cap else "",
        )  # fmt: skip
    table.columns[-1].justify = "left"
    return table


def _lengths(plan: StepPlan, width: int) -> Table:
    what, many = ("window", "windows") if plan.section.forgets.kind == "window" else ("half-life", "half-lives")
    wide, sums = width >= WIDE, plan.section.statistic == "sum"
    table = plain_table(
        f"other {many}, with {plan.best.section.algorithm} in the long run", what, *(["mechanism"] if wide else []),
        "samples", "noise", *(["of sum"] if sums else []), "",
    )  # fmt: skip
    for one in plan.lengths:
        there = one.look.samples * plan.size
        cells = [one.mechanism] if wide else []
        cells += [number(one.look.samples), number(one.look.noise_sd)]
        cells += [percent((one.look.noise_sd or 0) / there)] if sums and there else ["-"] * sums
        table.add_row(length(one.section), *cells, "configured" if one.factor == 1 else "")
    table.columns[1].justify = "left" if wide else "right"
    table.columns[-1].justify = "left"
    return table


def _windows(plan: StepPlan) -> Table:
    names = list(plan.windows[0][1])
    table = plain_table("noise of windows told afterwards", "window", *names)
    for steps, noise in plan.windows:
        table.add_row(duration(steps * (plan.section.cadence or 0)), *(number(noise[name]) for name in names))
    return table
