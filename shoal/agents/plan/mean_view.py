"""A plan for the eye and for programs: JSON, and tables for a terminal of any width."""

import math
from collections.abc import Iterator
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from shoal.agents.plan.groups import GroupsOutlook
from shoal.agents.plan.mean import USEFUL, Look, MetricPlan, Outlook
from shoal.agents.plan.observed import NOT_PRIVATE
from shoal.models.config.metric import MetricSection
from shoal.models.exact import exact_text

TIMES = (1.0, 1 / 12, 1 / 3, 1 / 50, 2 / 3)  # parts of the time that get a column, the most welcome first
FIXED, COLUMN = 52, 9  # characters of the other columns, and of one of these
SAME = 1.02  # likely noises whose ratio is less are one
SPREAD = "All users are in one group here: --groups says over how many they spread, and noise is that of each."
UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"))


def as_json(plan: MetricPlan) -> dict[str, Any]:
    """All of a plan."""
    section, about = plan.section, plan.workload
    fields: dict[str, Any] = {
        "metric": section.name,
        "field": section.values[plan.coordinate],
        "statistic": section.statistic,
        "private": plan.private,
        **({} if plan.private else {"warning": NOT_PRIVATE}),
        "range": [float(end) for end in section.ranges[plan.coordinate]],
        "epsilon": float(section.epsilon),
        "max_contributions": section.cap,
        "every": cadence(section.every),
        "workload": {
            "users": about.users,
            "samples_per_user": about.samples,
            "over": about.over and about.over / 1e6,
            "pattern": about.pattern,
            "spread": about.spread,
            "sampling_error": about.sampling_error,
        },
        "algorithms": [_outlook(one, section.algorithm) for one in plan.outlooks],
        "recommended": {
            "algorithm": plan.advised.algorithm,
            "max_contributions": plan.advised.cap,
            "every": cadence(plan.advised.every),
            **dict(missing(plan)),
            "outcome": look_as_json(plan.outcome),
        },
        "by_max_contributions": [{"max_contributions": cap, **look_as_json(look)} for cap, look in plan.caps],
        "by_cadence": [{"every": cadence(every), **look_as_json(look)} for every, look in plan.cadences],
        "half_the_error": {
            what: cost and {"factor": cost.factor, what: cost.amount, "max_contributions": cost.max_contributions}
            for what, cost in plan.halving.items()
        },
        "groups": groups_as_json(plan.groups),
    }
    return fields


def groups_as_json(groups: GroupsOutlook | None) -> dict[str, Any] | None:
    """The plan's outlook on groups, for the JSON; None where the metric has none."""
    if groups is None:
        return None
    shown = {"typical": groups.typical, "worst": groups.worst}
    return {
        "count": groups.count,
        "looked_at": groups.looked_at,
        "users": groups.users,
        "planned": groups.planned,
        **{
            what: {
                "group": one.name,
                "users": one.users,
                "samples_per_user": one.samples,
                "left_out": one.left_out,
                "error": None if math.isinf(one.error) else one.error,
            }
            for what, one in shown.items()
        },
    }


def _outlook(one: Outlook, configured: str) -> dict[str, Any]:
    return {
        "algorithm": one.section.algorithm,
        "configured": one.section.algorithm == configured,
        "needs_prior": one.needs_prior,
        "refused": one.refused,
        "first_useful": one.useful and look_as_json(one.useful),
        "last_noise_sd_likely": one.likely and list(one.likely),
        "over_time": [look_as_json(look) for look in one.looks],
    }


def look_as_json(look: Look) -> dict[str, Any]:
    """A release to come."""
    return {
        "part": look.part,
        "seconds": look.at if look.at is None else look.at / 1e6,
        "samples": look.samples,
        "noise_sd": look.noise_sd,
        "half_interval": look.half_interval,
        "left_out": look.left_out,
        "bias": look.bias,
        "error": None if math.isinf(look.error) else look.error,
    }


# -------------------------------------------------------------------- words


def number(value: float | None) -> str:
    """Three digits that count, or a dash.

    >>> number(0.91234), number(12345.6), number(None), number(3.2e9), number(1e-9), number(0)
    ('0.912', '12,346', '-', '3.2e9', '1e-9', '0')
    """
    if value is None or math.isinf(value):
        return "-"
    if 1000 <= abs(value) < 1e6:
        return f"{value:,.0f}"
    if value and not 1e-4 <= abs(value) < 1e6:
        digits, _, power = f"{value:.1e}".partition("e")
        return f"{digits.removesuffix('.0')}e{int(power)}"
    return f"{value:.3g}"


def duration(microseconds: int) -> str:
    """Rounded to a unit that suits it.

    >>> [duration(seconds * 1_000_000) for seconds in (45, 5400, 86400, 129600, 31536000)]
    ['45s', '90m', '1d', '36h', '365d']
    """
    seconds = microseconds / 1e6
    for unit, name in UNITS:
        if seconds >= unit and seconds % unit == 0 or seconds >= 20 * unit:
            return f"{seconds / unit:,.0f}{name}"
    return f"{seconds:.3g}s"


def cadence(every: int | str | None) -> str:
    """As the configuration has it.

    >>> cadence(3_600_000_000), cadence("contribution")
    ('1h', 'contribution')
    """
    return duration(every) if isinstance(every, int) else "contribution"


def when(look: Look) -> str:
    """The time since the start, or the part of the whole."""
    return f"{100 * look.part:.3g} %" if look.at is None else duration(look.at)


def percent(part: float) -> str:
    """Without digits that say nothing.

    >>> percent(0.0), percent(0.004), percent(0.256), percent(0.99999), percent(1.0)
    ('0 %', '<1 %', '26 %', '>99 %', '100 %')
    """
    if 0 < part < 0.01:
        return "<1 %"
    if 0.99 < part < 1:
        return ">99 %"
    return f"{part:.0%}".replace("%", " %")


def missing(plan: MetricPlan) -> Iterator[tuple[str, Any]]:
    """Recommended settings that the configuration lacks."""
    if plan.section.users is None and plan.advised.users is not None:
        yield "users", plan.advised.users
    if plan.section.horizon is None and plan.advised.horizon is not None:
        yield "horizon", duration(plan.advised.horizon)


def title(plan: MetricPlan) -> str:
    """What is planned."""
    section = plan.section
    low, high = section.ranges[plan.coordinate]
    often = "contribution" if section.every == "contribution" else cadence(section.every)
    groups = f", {section.max_groups_per_user} groups of a user share it" if section.max_groups_per_user > 1 else ""
    fields = f" for {len(section.values)} values together" if len(section.values) > 1 else ""
    return (
        f"{section.name}: mean of {section.values[plan.coordinate]} in {float(low):g} .. {float(high):g}, "
        f"epsilon {exact_text(section.epsilon)}{fields}{groups}, max_contributions {section.cap}, "
        f"a release every {often}"
    )


def in_group(section: MetricSection, groups: GroupsOutlook | None) -> str:
    """Which group a figure is of."""
    if section.group is None:
        return ""
    if groups is None:
        return " in one group"
    if groups.planned is None:
        return f" in each of {groups.count:,} groups ({groups.users:,} in all)"
    return f' in group "{groups.planned}"' + (f", the largest of {groups.count:,}," if groups.count > 1 else "")


def about_groups(groups: GroupsOutlook | None, what: str = "group") -> Iterator[str]:
    """What becomes of the others."""
    if groups is None or groups.are_alike or groups.count == 1:
        return
    typical, worst = (
        f'error {number(one.error)} in the {which}, "{one.name}" ({one.users:,} users, {_samples(one.samples)} each, '
        f"{percent(one.left_out)} left out)"
        for which, one in ((f"typical {what}", groups.typical), ("worst", groups.worst))
    )
    looked = "" if groups.looked_at == groups.count else f"; {groups.looked_at} were looked at"
    yield f"as configured, {typical}; {worst}{looked}"


def _samples(count: float) -> str:
    return "1 sample" if count == 1 else f"{number(count)} samples"


def workload(plan: MetricPlan) -> str:
    """What it is planned for."""
    about = plan.workload
    over = "" if about.over is None else f" over {duration(about.over)}"
    group = in_group(plan.section, plan.groups)
    users = f"{about.users:,} users{group} with {_samples(about.samples)} each{over}"
    if not plan.private:
        return f"{users}, from the file"
    law = "anywhere in the range" if about.spread == 1 else f"in the middle {percent(about.spread or 0)} of the range"
    sigma = plan.section.sigmas[plan.coordinate]
    law = law if sigma is None else f"with a sigma of {float(sigma):g}"
    pattern = "on average, a few users with most" if about.pattern == "skewed" else "at constant rates"
    return f"{users}, {pattern}; values {law}"


# -------------------------------------------------------------------- tables


def tables(plan: MetricPlan, width: int) -> Group:
    """A plan for a terminal."""
    parts: list[RenderableType] = []
    if not plan.private:
        parts.append(Text(NOT_PRIVATE, style="bold red"))
    parts += [Text(title(plan), style="bold"), Text(f"for {workload(plan)}"), Text()]
    parts += [_algorithms(plan, width), Padding(Text("\n".join(_remarks(plan)), style="dim"), (0, 0, 1, 1))]
    parts.append(Text(f"recommended: {recommended(plan)}", style="bold"))
    parts += [Padding(Text(line), (0, 0, 0, 1)) for line in _advice(plan)]
    parts += [Text(), _caps(plan), _cadences(plan)]
    remark = "recommended: of those with 30 releases or more, the finest that costs at most a quarter more error"
    parts.append(Padding(Text(remark, style="dim"), (0, 0, 0, 1)))
    return Group(*parts)


def plain_table(title: str, *columns: str) -> Table:
    """A table whose first column is text, the others numbers."""
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="", pad_edge=True, padding=(0, 1))
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index == 0 else "right", no_wrap=True)
    return table


def columns(plan: MetricPlan, width: int) -> list[float]:
    """Parts of the time that there is room for, ascending."""
    room = max(1, (width - FIXED) // COLUMN)
    return sorted(TIMES[:room])


def nearest(outlook: Outlook, part: float) -> Look:
    """The look that comes closest, in ratio."""
    return min(outlook.looks, key=lambda look: abs(math.log(look.part / part)))


def _algorithms(plan: MetricPlan, width: int) -> Table:
    shown = next(one for one in plan.outlooks if one.looks)
    looks = [nearest(shown, part) for part in columns(plan, width)]
    looks = [look for index, look in enumerate(looks) if look not in looks[:index]]
    parts = [look.part for look in looks]
    end = "" if len(parts) > 1 else f" after {when(looks[-1])}"
    table = plain_table(
        f"noise (standard deviation){end}", "algorithm",
        *(when(look) for look in looks) if len(parts) > 1 else ("noise",), "left out", "error", "useful from",
    )  # fmt: skip
    for one in plan.outlooks:
        name = one.section.algorithm + ("*" if one.needs_prior else "")
        style = "bold" if one is plan.best else ""
        if one.refused is not None:
            table.add_row(name, *["-"] * (len(parts) + 2), "refused")
            continue
        last = one.looks[-1]
        noise = [number(_known(nearest(one, part))) for part in parts]
        useful = "never" if one.useful is None else when(one.useful)
        table.add_row(name, *noise, percent(last.left_out), number(last.error), useful, style=style)
    return table


def _known(look: Look) -> float | None:
    """Noise of a release that says something."""
    return look.noise_sd if look.samples else None


def _remarks(plan: MetricPlan) -> Iterator[str]:
    interval = float(USEFUL) * plan.width
    kind = "measured" if not plan.private else "expected of what is left out"
    yield (
        f"error: at the end, noise and the bias {kind}; useful: a noise interval narrower than {number(interval)}, "
        f"a quarter of the range. The mean of all samples itself is good to {number(plan.workload.sampling_error)}, "
        "if they are independent."
    )
    yield "-: nothing is released, or the middle of the range, which says nothing."
    if plan.section.group is not None and plan.groups is None:
        yield SPREAD
    if any(one.needs_prior for one in plan.outlooks):
        yield "* needs a prior" + ("." if plan.section.prior is not None else ", which this configuration lacks.")
    for one in plan.outlooks:
        if one.likely is not None and one.likely[1] > SAME * one.likely[0]:
            low, high = map(number, one.likely)
            yield (
                f"{one.section.algorithm} chooses what to clip to privately, once: shown is the median. At the end its "
                f"noise is between {low} and {high} in four of five cases."
            )
    for one in plan.outlooks:
        if one.refused is not None:
            yield f"{one.section.algorithm} is refused: {one.refused}"


def recommended(plan: MetricPlan) -> str:
    """Algorithm, cap and cadence."""
    advised = plan.advised
    text = f"{advised.algorithm}, max_contributions {advised.cap}, every {cadence(advised.every or 'contribution')}"
    return text + "".join(f", {name} {value}" for name, value in missing(plan))


def _advice(plan: MetricPlan) -> Iterator[str]:
    configured = next(one for one in plan.outlooks if one.section.algorithm == plan.section.algorithm)
    yield f"error at the end: {number(plan.outcome.error)}; as configured, {number(configured.error)}"
    yield from about_groups(plan.groups)
    if plan.best.useful is None:
        yield "nothing useful comes of it in this time: more users, more epsilon or a narrower range are needed"
    units = {"epsilon": "epsilon {}", "users": "{} users", "time": "{}"}
    said = []
    for what, cost in plan.halving.items():
        if cost is None or cost.amount is None:
            continue
        amount = duration(round(cost.amount * 1e6)) if what == "time" else number(cost.amount)
        cap = f" and max_contributions {cost.max_contributions}" if (
            cost.max_contributions != plan.best.section.cap
        ) else ""  # fmt: skip
        said.append(f"{units[what].format(amount)}{cap} (x {cost.factor:.3g})")
    yield f"half the error would take: {', or '.join(said)}" if said else "half the error cannot be had this way"
    if plan.private and plan.halving["time"] is None and said:
        yield "more time alone would not do it: who has given max_contributions samples adds nothing more"


def marks(*said: tuple[bool, str]) -> str:
    """Those that hold."""
    return ", ".join(text for holds, text in said if holds)


def _caps(plan: MetricPlan) -> Table:
    table = plain_table(
        f"max_contributions, with {plan.best.section.algorithm}", "m", "left out", "noise", "bias", "error", ""
    )
    for cap, look in plan.caps:
        mark = marks(
            (cap == plan.section.cap, "configured"),
            (cap == plan.advised.cap, "recommended"),
        )
        table.add_row(
            str(cap), percent(look.left_out), number(look.noise_sd), number(look.bias), number(look.error), mark,
            style="bold" if cap == plan.advised.cap else "",
        )  # fmt: skip
    table.columns[-1].justify = "left"
    return table


def _cadences(plan: MetricPlan) -> Table:
    settings = f"{plan.best.section.algorithm} and max_contributions {plan.advised.cap}"
    table = plain_table(f"cadence, with {settings}", "every", "left out", "noise", "error", "")
    for every, look in plan.cadences:
        mark = marks((every == plan.section.every, "configured"), (every == plan.advised.every, "recommended"))
        table.add_row(
            cadence(every), percent(look.left_out), number(look.noise_sd), number(look.error), mark,
            style="bold" if every == plan.advised.every else "",
        )  # fmt: skip
    table.columns[-1].justify = "left"
    return table
