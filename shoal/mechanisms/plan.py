"""A plan as data: what `shoal plan` prints, draws and gives to programs, for whatever statistic.

Each statistic makes its plans in its own folder, in a module `plan`; here is what such a plan consists of. Nothing
knows the width of a terminal or the colour of a line: `shoal/agents/plan/render.py` prints a plan, `picture.py` draws
it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from shoal.mechanisms import life
from shoal.mechanisms.workload import Spec as Spec

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


class Curve(NamedTuple):
    """A line of a picture."""

    name: str
    points: Sequence[tuple[float, float]]
    colour: str | None = None  # the algorithm whose colour it has; None: that of its own name
    is_best: bool = False
    is_dashed: bool = False
    ring: tuple[float, float] | None = None  # a point that is marked


class Marks(NamedTuple):
    """The marks of an axis that is not one of time."""

    at: Sequence[float]
    texts: Sequence[str]


@dataclass(frozen=True)
class Panel:
    """One of the pictures of a plan."""

    title: str
    below: str
    curves: Sequence[Curve]
    marks: Marks | None = None  # None: the axis is one of time
    is_timed: bool = True  # in microseconds; else in parts of the whole time
    most: float = float("inf")  # errors above it are all the same
    names_ends: bool = True  # curves are named beside their ends; else in a legend
    is_linear: bool = False  # both axes; else logarithmic
    remark: str = ""


class Noise(NamedTuple):
    """The noise of the last release, and a quantity of the same unit that it is compared with."""

    noise_sd: float | None  # None: there is no release, or the mechanism has no noise that could be told
    beside: float
    what: str = "range"  # that quantity


@dataclass(frozen=True)
class Plan:
    """The plan of one metric, or of one coordinate of it."""

    spec: Spec
    title: str
    workload: str
    users: int
    tables: Sequence[Table]  # the first one compares the algorithms, the others settings of the best one
    recommended: str
    advice: Sequence[str]
    fields: Mapping[str, Any]  # for programs
    noise: Noise  # as it is configured
    private: bool = True
    panels: Sequence[Panel] = ()
    late: int = 0  # events of a file that came too late to count
    events: int = 0  # of the file that the metric could read, those among them


def head(spec: Spec, coordinate: int, *, private: bool) -> dict[str, Any]:
    """The first fields of every plan."""
    return {
        "metric": spec.name,
        "field": spec.values[coordinate] if spec.values else None,
        "statistic": spec.statistic,
        "private": private,
        **({} if private else {"warning": NOT_PRIVATE}),
        "range": [float(end) for end in spec.ranges[coordinate]] if spec.ranges else None,
        "epsilon": float(spec.epsilon),
    }


def varied(spec: Spec, **changes: Any) -> Spec:
    """The metric with other settings, which are not checked."""
    return spec.model_copy(update=changes)


def with_life(spec: Spec, over: int | None) -> Spec:
    """The metric with the time of the plan as its life, if counters are made for a life, and its own is a default."""
    if spec.life is not None or over == life.life_of(spec) or not life.uses_life(spec):
        return spec
    return varied(spec, life=over)


def marks(*conditions: tuple[bool, str]) -> str:
    """The texts whose conditions hold.

    >>> marks((True, "configured"), (False, "recommended"))
    'configured'
    """
    return ", ".join(text for holds, text in conditions if holds)
