"""The picture of a plan of a sum, count or decayed mean: noise over time, and what else it depends on."""

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullFormatter

from shoal.agents.pictures import INK, QUIET
from shoal.agents.plan.mean_picture import COLORS, LABEL, TIMES, Row, by_cap, label_ends, limits, style_axes, time_axis
from shoal.agents.plan.mean_view import duration, number
from shoal.agents.plan.sums import StepPlan
from shoal.agents.plan.sums_view import BY_HAND, length, recommended, rows, title, workload

HAND = "#8a94a0"
DASHES = (0, (4, 2))
FEW_MARKS = 4


def row(plan: StepPlan) -> Row:
    """What is drawn of it."""
    left = _noise if plan.by_hand is not None else _counts
    right = _right(plan)
    return Row(
        plan.section.name, title(plan), workload(plan), recommended(plan), plan.private,
        lambda panel: left(panel, plan), right and (lambda panel: right(panel, plan)),
    )  # fmt: skip


def _right(plan: StepPlan) -> Callable[[Axes, StepPlan], None] | None:
    if plan.windows:
        return _windows
    if plan.by_hand is None:
        return None
    if plan.caps:
        return by_cap
    return _lengths if plan.lengths else None


def _noise(panel: Axes, plan: StepPlan) -> None:
    """A line for each algorithm, and one for a draw per step."""
    shown = [(called, one) for called, one in rows(plan) if one.refused is None]
    known = [(called, one, [look for look in one.looks if look.noise_sd]) for called, one in shown]
    low, high = limits(plan, [look.noise_sd or 0.0 for _, _, looks in known for look in looks])
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_ylim(low, high)
    panel.margins(x=0.01)
    ends = []
    for called, one, looks in known:
        color = HAND if called == BY_HAND else COLORS[called]
        panel.plot(
            [look.at or 0 for look in looks], [look.noise_sd or 0.0 for look in looks], color=color,
            linewidth=2.4 if one is plan.best else 1.4, linestyle=DASHES if called == BY_HAND else "-",
            zorder=3 if one is plan.best else 2, marker="o" if len(looks) == 1 else None, markersize=4,
        )  # fmt: skip
        ends += [(called.removesuffix("*"), looks[-1].noise_sd or 0.0, color)] if looks else []
    style_axes(panel, high / low)
    panel.set_title("noise of a release (standard deviation)", loc="left", size=10, pad=8)
    time_axis(panel)
    panel.set_xlabel("since the start; by hand: a Laplace draw for each step")
    label_ends(panel, ends, low, high)


def _counts(panel: Axes, plan: StepPlan) -> None:
    """What counts, and all there is."""
    looks = plan.best.looks
    at = [look.at or 0 for look in looks]
    counted = [look.samples for look in looks]
    there = [look.samples - look.bias for look in looks]
    top = 1.08 * max(there)
    panel.fill_between(at, counted, there, color="#f3e3df", linewidth=0)
    panel.plot(at, there, color=COLORS["patent"], linewidth=1.4)
    panel.plot(at, counted, color=COLORS["sharp"], linewidth=2.4)
    panel.set_ylim(0, top)
    panel.margins(x=0.01)
    panel.grid(axis="y", color="#eceff2", linewidth=0.8)
    panel.yaxis.set_major_formatter(FuncFormatter(lambda y, _: number(y)))
    apart = max([time for time in TIMES if at[-1] >= FEW_MARKS * time], default=at[-1])
    marks = range(apart, at[-1] + 1, apart)
    panel.set_xticks(marks, [duration(mark) for mark in marks])
    panel.set_title("samples in a release; it is exact", loc="left", size=10, pad=8)
    panel.set_xlabel("since the start; shaded: beyond max_contributions")
    low = counted[-1] / top
    _name(panel, low, f"counted  {number(counted[-1])}", COLORS["sharp"])
    _name(panel, max(there[-1] / top, low + 2 * LABEL), f"all  {number(there[-1])}", COLORS["patent"])


def _name(panel: Axes, height: float, text: str, color: str) -> None:
    panel.annotate(
        text, (1, height), (8, 0), "axes fraction", textcoords="offset points", va="center", color=color,
        weight="bold", annotation_clip=False,
    )  # fmt: skip


def _windows(panel: Axes, plan: StepPlan) -> None:
    """Noise of windows of all lengths, told afterwards."""
    every = plan.section.cadence or 1
    names = list(plan.windows[0][1])
    low, high = limits(plan, [noise for _, found in plan.windows for noise in found.values()])
    _log_axes(panel, low, high)
    for called in names:
        panel.plot(
            [steps * every for steps, _ in plan.windows], [found[called] for _, found in plan.windows],
            color=COLORS.get(called, HAND), linewidth=2.4 if called == plan.best.section.algorithm else 1.4,
            linestyle="-" if called in COLORS else DASHES, label=called.replace("per-step", "by hand"),
        )  # fmt: skip
    time_axis(panel)
    _finish(panel, "noise of a window told afterwards", "length of the window")


def _lengths(panel: Axes, plan: StepPlan) -> None:
    """Noise in the long run of other windows or half-lives."""
    noise = [one.look.noise_sd or 0.0 for one in plan.lengths]
    factors = [float(one.factor) for one in plan.lengths]
    low, high = limits(plan, noise)
    _log_axes(panel, low, high)
    color = COLORS[plan.best.section.algorithm]
    panel.plot(factors, noise, color=color, linewidth=2.2, marker="o", markersize=4)
    for one in plan.lengths:
        if one.factor == 1:
            panel.plot(
                1, one.look.noise_sd or 0.0, "o", markersize=9, color="white", markeredgecolor=color, markeredgewidth=2
            )
    panel.set_xticks(factors, [length(one.section) for one in plan.lengths], size=8)
    kind = "window" if plan.section.forgets.kind == "window" else "half-life"
    _finish(panel, f"noise in the long run by {kind}", "ring: configured")


def _log_axes(panel: Axes, low: float, high: float) -> None:
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_ylim(low, high)
    style_axes(panel, high / low)


def _finish(panel: Axes, heading: str, below: str) -> None:
    panel.set_title(heading, loc="left", size=10, pad=8)
    panel.set_xlabel(below)
    panel.xaxis.set_minor_formatter(NullFormatter())
    handles: Sequence[object] = panel.get_legend_handles_labels()[0]
    if handles:
        panel.legend(loc="best", frameon=False, fontsize=8, labelcolor=INK)
    panel.tick_params(colors=QUIET)
