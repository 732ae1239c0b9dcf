"""`shoal plan`: what the metrics would be like, and with what settings they would be better; nothing is spent."""

import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import orjson
import typer
from rich.console import Console, Group

from shoal.agents.audit.session import registered_readings
from shoal.agents.cli.output import AsJson, ConfigPath, progress, say
from shoal.agents.input.event_file import size_of
from shoal.agents.plan import mean_view, slot_view, sums_json, sums_view
from shoal.agents.plan.caveats import of_plan
from shoal.agents.plan.mean import MetricPlan, Workload, plan_metric, steps
from shoal.agents.plan.observed import NOT_PRIVATE, read_values
from shoal.agents.plan.slot import SlotPlan, plan_slots, stages
from shoal.agents.plan.slot_workload import read_slots, stated_slot
from shoal.agents.plan.sums import STAGES, StepPlan, plan_steps
from shoal.agents.plan.sums_workload import Source, Steady, read_file
from shoal.agents.plan.workload import Stated
from shoal.models.config.durations import parse_duration
from shoal.models.config.file import Config, load
from shoal.models.config.metric import MetricSection
from shoal.models.errors import ConfigError, InputError

MOST_USERS = 2**40
AnyPlan = MetricPlan | StepPlan | SlotPlan
Read = TypeVar("Read")

Metric = Annotated[str | None, typer.Option("--metric", metavar="NAME", help="Plan this metric alone.")]
Users = Annotated[
    int | None, typer.Option(min=1, max=MOST_USERS, help="Users who contribute; default: the metric's users.")
]
Samples = Annotated[
    float | None,
    typer.Option(min=1e-6, max=1e9, help="Samples per user, on average; default: max_contributions, of each period."),
]
Over = Annotated[
    str | None,
    typer.Option(metavar="DURATION", help="For how long, as in 90d; default: horizon, or 365 releases and 4 windows."),
]
Shape = Annotated[Literal["even", "skewed"], typer.Option(help="skewed: a few users have most of the samples.")]
Spread = Annotated[float, typer.Option(min=1e-6, max=1.0, help="Part of the range that values lie in; sharp finds it.")]
Events = Annotated[
    str | None, typer.Option(metavar="FILE", help="Run on these events (.jsonl, .csv, or -) instead. NOT PRIVATE.")
]
Cells = Annotated[
    int | None,
    typer.Option(min=1, max=2**20, help="Of statistics per slot: cells that the users are in; default: max_cells."),
]
Groups = Annotated[
    int | None,
    typer.Option(min=1, max=2**20, help="Of metrics with a group: how many groups the users spread over, evenly."),
]
Plot = Annotated[Path | None, typer.Option(metavar="FILE.png", help="Draw the plan, too.")]


def plan(
    config: ConfigPath,
    metric: Metric = None,
    users: Users = None,
    samples: Samples = None,
    over: Over = None,
    pattern: Shape = "even",
    spread: Spread = 1.0,
    cells: Cells = None,
    groups: Groups = None,
    values: Events = None,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Predict the error of every algorithm over time, before a cent of budget is spent.

    For a stated number of users and samples: noise, what is left out, when the first useful release comes; which
    algorithm, max_contributions and cadence would be best, or what other windows would do; what half the error would
    cost; per slot, in how many cells a user should count. No key is needed, nothing is registered, charged or written.
    With --groups the users are spread over groups, each with its own noise. With --values the same for real events,
    which tells which group a figure is of, and makes the result as secret as they are.

    Example: shoal plan examples/shoal.toml --users 25000 --samples 3 --over 540d
    """
    said = load(config)
    if values is not None:  # read as what is registered would read them
        said = said.read_as(registered_readings(said))
    chosen = _metrics(said, metric)
    stated = None if values is not None else _stated(users, samples, over, pattern, spread)
    _check_groups(chosen, groups, cells)
    if values is not None:
        _refuse_stated(users, samples, over, pattern, spread, cells, groups)
        chosen = _of_one_topic(chosen, values)
        say(f"shoal: {NOT_PRIVATE}")
    plans = [one for section in chosen for one in _plans(said, section, stated, values, cells, groups)]
    warnings = list(dict.fromkeys(text for one in plans for text in of_plan(one)))
    if plot is not None:
        _draw(plans, plot)
    if as_json:
        fields = {
            "private": stated is not None,
            **({} if stated is not None else {"warning": NOT_PRIVATE}),
            "metrics": [_as_json(one) for one in plans],
            "warnings": warnings,
        }
        print(orjson.dumps(fields).decode(), flush=True)
    else:
        _show(plans, warnings, Console(file=sys.stdout, highlight=False, markup=False, emoji=False))


def _as_json(one: AnyPlan) -> dict[str, Any]:
    if isinstance(one, SlotPlan):
        return slot_view.as_json(one)
    return sums_json.as_json(one) if isinstance(one, StepPlan) else mean_view.as_json(one)


def _show(plans: list[AnyPlan], warnings: list[str], console: Console) -> None:
    for index, one in enumerate(plans):
        if index:
            console.print()
        console.print(_tables(one, console.width))
    for text in warnings:
        console.print(f"\nwarning: {text}")


def _tables(one: AnyPlan, width: int) -> Group:
    if isinstance(one, SlotPlan):
        return slot_view.tables(one, width)
    return sums_view.tables(one, width) if isinstance(one, StepPlan) else mean_view.tables(one, width)


def _metrics(config: Config, name: str | None) -> list[MetricSection]:
    chosen = [section for section in config.metric if name in (None, section.name)]
    if not chosen:
        names = ", ".join(section.name for section in config.metric)
        raise typer.BadParameter(f"there is no metric {name!r}; name one of: {names}", param_hint="--metric")
    return chosen


def _stated(users: int | None, samples: float | None, over: str | None, pattern: str, spread: float) -> Stated:
    time = None
    if over is not None:
        try:
            time = parse_duration(over)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--over") from None
        if not time:
            raise typer.BadParameter("must be longer than 0s", param_hint="--over")
    return Stated(users or 0, samples, time, pattern == "skewed", Fraction(spread).limit_denominator(10**6))


def _refuse_stated(*stated: object) -> None:
    if stated != (None, None, None, "even", 1.0, None, None):
        raise typer.BadParameter("the file says who contributes what; leave out the workload", param_hint="--values")


def _check_groups(chosen: list[MetricSection], groups: int | None, cells: int | None) -> None:
    if groups is None:
        return
    if cells is not None:
        raise typer.BadParameter("a slot's groups are its cells; give one of the two", param_hint="--groups")
    if all(section.group is None for section in chosen):
        names = ", ".join(section.name for section in chosen)
        raise typer.BadParameter(f"no metric has a group: {names}; leave it out", param_hint="--groups")


def _of_one_topic(chosen: list[MetricSection], path: str) -> list[MetricSection]:
    """The metrics that the file is for."""
    topics = {section.topic for section in chosen}
    if len(topics) > 1:
        raise ConfigError(f"the metrics read {len(topics)} topics; say for which of them the events are: --metric NAME")
    if path == "-" and len(chosen) > 1:
        raise ConfigError("standard input is read once, and there are several metrics; name one: --metric NAME")
    return chosen


def _plans(
    config: Config,
    section: MetricSection,
    stated: Stated | None,
    values: str | None,
    cells: int | None,
    groups: int | None,
) -> list[AnyPlan]:
    """One for each coordinate."""
    count = 1 if groups is None or section.group is None else groups
    if stated is not None:
        stated = replace(_with_users(stated, section), count=count)
    if section.is_slotted:
        slots = (
            _read(read_slots, config, section, values)
            if stated is None
            else stated_slot(section, stated, cells if section.group is None else groups or cells)
        )
        return [_advancing(section, stages(slots), partial(plan_slots, section, slots))]
    if section.is_stepped:
        source: Source = _read(read_file, config, section, values) if stated is None else Steady(stated)
        return [_advancing(section, STAGES, partial(plan_steps, section, source))]
    workload: Workload = _read(read_values, config, section, values) if stated is None else stated
    count = steps(section, workload)
    makes = [partial(plan_metric, section, coordinate, workload) for coordinate in range(len(section.values))]
    return [_advancing(section, count, make) for make in makes]


def _read(
    reader: Callable[[Config, MetricSection, str, Callable[[int], None]], Read],
    config: Config,
    section: MetricSection,
    path: str | None,
) -> Read:
    """The workload of a file."""
    with progress(f"reading {path}", size_of(str(path))) as advance:
        return reader(config, section, str(path), advance)


def _advancing(section: MetricSection, count: int, make: Callable[[Callable[[], None]], AnyPlan]) -> AnyPlan:
    """The plan that is made, with a progress bar."""
    done = 0
    with progress(f"planning {section.name}", count) as advance:

        def step() -> None:
            nonlocal done
            done += 1
            advance(done)

        try:
            return make(step)
        except ValueError as error:
            raise ConfigError(f'metric "{section.name}": {error}') from None


def _with_users(stated: Stated, section: MetricSection) -> Stated:
    """With the metric's own number of users where none was stated."""
    users = stated.users or section.users
    if users is None:
        raise typer.BadParameter(
            f'how many users contribute to metric "{section.name}"? Its configuration does not say: write --users N '
            "here, or users = N there",
            param_hint="--users",
        )
    return Stated(users, stated.samples, stated.over, stated.skewed, stated.spread)


def _draw(plans: list[AnyPlan], path: Path) -> None:
    from shoal.agents.plan import (
        mean_picture,
        sums_picture,  # half a second of matplotlib
    )

    rows = [
        sums_picture.row(one) if isinstance(one, StepPlan) else mean_picture.row(one)
        for one in plans
        if not isinstance(one, SlotPlan)
    ]
    if not rows:
        raise ConfigError("statistics per slot have no picture; leave out --plot")
    try:
        mean_picture.draw(rows, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}); choose another place") from None
    say(f"shoal: the picture is in {path}")
