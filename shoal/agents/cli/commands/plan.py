"""`shoal plan`: predicts the errors of metrics, and which settings would reduce them; nothing is spent."""

import sys
from dataclasses import replace
from fractions import Fraction
from typing import Annotated, Literal

import typer
from rich.console import Console

from shoal.agents.cli.output import AsJson, ConfigPath, progress, result, say
from shoal.agents.input.event_file import size_of
from shoal.agents.plan.caveats import of_plan
from shoal.agents.plan.planners import PLANNERS
from shoal.agents.plan.render import rendered
from shoal.mechanisms.forecast.observed import Observed, TooMuch
from shoal.mechanisms.forecast.plan import NOT_PRIVATE, Plan
from shoal.mechanisms.forecast.presence import NO_EVENTS
from shoal.mechanisms.kinds import kind_of
from shoal.mechanisms.parts.metric import Metric as Parts
from shoal.mechanisms.parts.per import Field
from shoal.mechanisms.workload import Stated
from shoal.models.config.durations import parse_duration
from shoal.models.config.file import Config, load
from shoal.models.errors import ConfigError, InputError

MOST_USERS = 2**40
UNSTATED = 0  # users: each metric has its own number of them

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
    typer.Option(
        metavar="DURATION",
        help="Time to plan for, such as 90d; default: until end, else life, and by default 4 windows at least.",
    ),
]
Shape = Annotated[Literal["even", "skewed"], typer.Option(help="skewed: a few users have most of the samples.")]
Spread = Annotated[
    float, typer.Option(min=1e-6, max=1.0, help="Part of the range in which the values lie; sharp finds it.")
]
Events = Annotated[
    str | None, typer.Option(metavar="FILE", help="Run on these events (.jsonl, .csv, .pb, or -) instead. NOT PRIVATE.")
]
Cells = Annotated[
    int | None,
    typer.Option(min=1, max=2**20, help="For statistics per slot: cells that the users are in; default: max_groups."),
]
Groups = Annotated[
    int | None,
    typer.Option(min=1, max=2**20, help="For metrics with a group: groups over which the users are spread evenly."),
]


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
    loaded = load(config)
    if values is not None and loaded.protects_presence:
        raise ConfigError(f"{config}: {NO_EVENTS}")
    if values is not None:  # read as what is registered would read them
        from shoal.agents.audit.session import registered_epochs  # SQL, of which a stated workload needs none

        loaded = loaded.in_epochs(registered_epochs(loaded))
    chosen = _metrics(loaded, metric)
    part = Fraction(spread).limit_denominator(10**6)
    stated = Stated(users or UNSTATED, samples, _time(over), pattern == "skewed", part, groups, cells)
    _check_groups(chosen, groups, cells)
    if values is not None:
        if stated != Stated(UNSTATED, None, None):
            message = "the file says who contributes what; leave out the workload"
            raise typer.BadParameter(message, param_hint="--values")
        _check_topic(chosen, values)
        say(f"shoal: {NOT_PRIVATE}")
    plans = [plan for parts in chosen for plan in _plans(loaded, parts, stated, values)]
    warnings = list(dict.fromkeys(text for plan in plans for text in of_plan(plan)))
    if as_json:
        fields = {
            "private": values is None,
            **({} if values is None else {"warning": NOT_PRIVATE}),
            "metrics": [plan.fields for plan in plans],
            "warnings": warnings,
        }
        result(fields, as_json=True, text=str)
    else:
        _show(plans, warnings, Console(file=sys.stdout, highlight=False, markup=False, emoji=False))


def _show(plans: list[Plan], warnings: list[str], console: Console) -> None:
    for index, plan in enumerate(plans):
        if index:
            console.print()
        console.print(rendered(plan, console.width))
    for text in warnings:
        console.print(f"\nwarning: {text}")


def _metrics(config: Config, name: str | None) -> list[Parts]:
    chosen = [parts for parts in config.metrics if name in (None, parts.name)]
    if not chosen:
        names = ", ".join(parts.name for parts in config.metrics)
        raise typer.BadParameter(f"there is no metric {name!r}; name one of: {names}", param_hint="--metric")
    return chosen


def _time(over: str | None) -> int | None:
    if over is None:
        return None
    try:
        time = parse_duration(over)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--over") from None
    if not time:
        raise typer.BadParameter("must be longer than 0s", param_hint="--over")
    return time


def _check_groups(chosen: list[Parts], groups: int | None, cells: int | None) -> None:
    if groups is None:
        return
    if cells is not None:
        raise typer.BadParameter("a slot's groups are its cells; give one of the two", param_hint="--groups")
    if not any(isinstance(parts.place, Field) for parts in chosen):
        names = ", ".join(parts.name for parts in chosen)
        raise typer.BadParameter(f"no metric has a group: {names}; leave it out", param_hint="--groups")


def _check_topic(chosen: list[Parts], path: str) -> None:
    """Refuse metrics of several topics: a file has the events of one."""
    topics = {parts.source.topic for parts in chosen}
    if len(topics) > 1:
        raise ConfigError(f"the metrics read {len(topics)} topics; say for which of them the events are: --metric NAME")
    if path == "-" and len(chosen) > 1:
        raise ConfigError("standard input is read once, and there are several metrics; name one: --metric NAME")


def _plans(config: Config, parts: Parts, stated: Stated, path: str | None) -> list[Plan]:
    """The plans of one metric, one for each coordinate."""
    if path is None:
        return _planned(parts, _with_users(stated, parts))
    from shoal.agents.plan.observed import observed

    with progress(f"reading {path}", size_of(path)) as advance:
        file = observed(config, parts, path, advance)
    try:
        plans = _planned(parts, file)
    except TooMuch as error:
        raise InputError(f"{path}: {error}") from None
    return [replace(plan, late=file.late, events=file.late + len(file.samples)) for plan in plans]


def _planned(parts: Parts, workload: Stated | Observed) -> list[Plan]:
    with progress(f"planning {parts.name}", 100) as advance:
        try:
            return PLANNERS[kind_of(parts)].plans(parts, workload, lambda part: advance(round(100 * part)))
        except TooMuch:
            raise
        except ValueError as error:
            raise ConfigError(f'metric "{parts.name}": {error}') from None


def _with_users(stated: Stated, parts: Parts) -> Stated:
    """The workload with the metric's own number of users where none was stated."""
    users = stated.users or parts.by.users
    if users is None:
        there = "" if parts.protects_presence else " here, or users = N there"
        raise typer.BadParameter(
            f'how many users contribute to metric "{parts.name}"? Its configuration does not say: write --users '
            f"N{there}",
            param_hint="--users",
        )
    return replace(stated, users=users)
