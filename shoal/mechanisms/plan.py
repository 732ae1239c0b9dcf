"""A plan as data: what `shoal plan` prints and gives to programs, for whatever statistic.

Each statistic makes its plans in its own folder, in a module `plan`; here is what such a plan consists of. Nothing
knows the width of a terminal: `shoal/agents/plan/render.py` prints a plan.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from shoal.mechanisms import life
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.of import Distribution
from shoal.mechanisms.parts.per import Field, Hexagons
from shoal.mechanisms.parts.variants import with_life
from shoal.mechanisms.words import exact_text

NOT_PRIVATE = "NOT PRIVATE: made from real values; treat it like the events themselves"


class Column(NamedTuple):
    """A column of a table."""

    head: str
    rank: int = 0  # 0: it is always shown; of others those of high rank go first where there is no room
    is_text: bool = False  # on the left; numbers are on the right
    wraps: bool = False


class Line(NamedTuple):
    """A row of a table."""

    cells: Sequence[str]
    is_bold: bool = False


@dataclass(frozen=True)
class Table:
    """A table, and the remarks below it."""

    title: str
    columns: Sequence[Column]
    lines: Sequence[Line]
    remarks: Sequence[str] = ()


class Noise(NamedTuple):
    """The noise of the last release, and a quantity of the same unit that it is compared with."""

    noise_sd: float | None  # None: there is no release, or the mechanism has no noise that could be told
    beside: float
    what: str = "range"  # that quantity


@dataclass(frozen=True)
class Plan:
    """The plan of one metric, or of one coordinate of it."""

    metric: Metric
    title: str
    workload: str
    users: int
    tables: Sequence[Table]  # the first one compares the algorithms, the others settings of the best one
    recommended: str
    advice: Sequence[str]
    fields: Mapping[str, Any]  # for programs
    noise: Noise  # as it is configured
    private: bool = True
    late: int = 0  # events of a file that came too late to count
    events: int = 0  # of the file that the metric could read, those among them


def head(metric: Metric, coordinate: int, *, private: bool) -> dict[str, Any]:
    """The first fields of every plan."""
    return {
        "metric": metric.name,
        "field": metric.names[coordinate] if metric.names else None,
        "statistic": metric.statistic,
        "private": private,
        **({} if private else {"warning": NOT_PRIVATE}),
        "range": [float(end) for end in metric.ranges[coordinate]] if metric.ranges else None,
        "epsilon": float(metric.budget.epsilon),
    }


def quotient_noise(metric: Metric, noise_sd: float | None, width: float) -> Noise:
    """Noise of a quotient beside what it lies in: the range, or of a distribution the total share of 1."""
    return Noise(noise_sd, width, "total share" if isinstance(metric.of, Distribution) else "range")


def budget_words(metric: Metric) -> str:
    """Epsilon and delta of a unit, in words."""
    budget = metric.budget
    delta = f", delta {exact_text(budget.delta)}" if budget.delta else ""
    return f"epsilon {exact_text(budget.epsilon)}{delta} of each {metric.unit.words()}"


def where_of(metric: Metric) -> str:
    """Noun for the place of a release per slot: cell (of the H3 grid), group, or place where the metric has neither."""
    return {Hexagons: "cell", Field: "group"}.get(type(metric.place), "place")


def with_time_as_life(metric: Metric, over: int | None) -> Metric:
    """The metric with the time of the plan as its life, if counters are made for a life, and its own is a default."""
    if life.stated_life(metric) is not None or over == life.life_of(metric) or not life.uses_life(metric):
        return metric
    return with_life(metric, over)


def marks(*conditions: tuple[bool, str]) -> str:
    """The texts whose conditions hold.

    >>> marks((True, "configured"), (False, "recommended"))
    'configured'
    """
    return ", ".join(text for holds, text in conditions if holds)
