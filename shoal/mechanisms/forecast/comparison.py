"""Comparisons: a metric under every algorithm and cap that it could have, and what half the error would cost."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple, Protocol

from shoal.mechanisms import life
from shoal.mechanisms.forecast.axis import Axis, Trial
from shoal.mechanisms.forecast.groups import SPREAD, GroupsAhead
from shoal.mechanisms.forecast.plan import Report
from shoal.mechanisms.forecast.point import Point
from shoal.mechanisms.forecast.table import MARK, Column, Line, Row, Section, Table, marks
from shoal.mechanisms.parts.by import Algorithm
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.variants import with_epsilon, with_life
from shoal.mechanisms.words import duration, number, percent

CLOSE = 1.02  # errors that differ by less are the same
HALVING = tuple(tuple(2 ** (i + k / 4) for k in range(1, 5)) for i in range(8))  # factors to try, by doubling
MOST_CAP = 1 << 20
TIMES = (1.0, 1 / 12, 1 / 3, 1 / 50, 2 / 3)  # parts of the time that get a column, the most welcome first


@dataclass(frozen=True, slots=True)
class Outlook:
    """A metric under some settings, over time."""

    metric: Metric
    points: tuple[Point, ...]
    mechanism: str = "-"
    useful: Point | None = None  # the first useful release
    long_run: Point | None = None  # None: there is none, as noise grows
    refused: str | None = None  # why these settings cannot be
    likely: tuple[float, float] | None = None  # what the last noise_sd lies between in four of five cases, if drawn

    @property
    def error(self) -> float:
        """The error of the last release; infinite if there is none."""
        return self.points[-1].error if self.points else math.inf


class Cost(NamedTuple):
    """The least change that halves the error."""

    factor: float
    amount: float | None  # epsilon, users, or seconds if they are known
    max_contributions: int

    def fields(self, what: str) -> dict[str, Any]:
        return {"factor": self.factor, what: self.amount, "max_contributions": self.max_contributions}

    def words(self, amount: str, usual: Metric) -> str:
        """The cost in words; the cap of the `usual` metric goes without saying."""
        more = "" if self.max_contributions == usual.samples else f" and {usual.cap_key} {self.max_contributions}"
        return f"{amount}{more} (x {self.factor:.3g})"


class Source(Protocol):
    """Who contributes when, and what becomes of it under any settings of a metric."""

    def outlook(self, metric: Metric) -> Outlook:
        """The metric over time.

        Raises:
            ValueError: the mechanism refuses the settings.
        """
        ...

    def final(self, metric: Metric) -> Point:
        """The last release.

        Raises:
            ValueError: the mechanism refuses the settings.
        """
        ...

    def groups(self, metric: Metric) -> GroupsAhead | None:
        """The groups, if a metric has several."""
        ...


# The column of an algorithm, and its text for an outlook that is not refused.
Shown = tuple[Column, Callable[[Outlook], str]]


class Comparison(Report):
    """The plan of a metric that has algorithms to choose from, or a cap of its own."""

    source: Source
    of_a_unit: float  # samples of a unit, on average

    stages = "outlooks", "caps", "others", "outcome", "halving", "groups"

    # ---------------------------------------------------------------- what is compared

    @abstractmethod
    def algorithms(self) -> Axis:
        """The algorithms that could be configured."""

    @cached_property
    def outlooks(self) -> tuple[Outlook, ...]:
        """An outlook for each algorithm."""
        axis = self.algorithms()
        return tuple(self._under(axis, algorithm) for algorithm in axis.values)

    def _under(self, axis: Axis, algorithm: type[Algorithm]) -> Outlook:
        try:
            return self.source.outlook(axis.changed(self.metric, algorithm))
        except ValueError as refused:
            return Outlook(axis.change(self.metric, algorithm), (), refused=str(refused))

    @cached_property
    def configured(self) -> Outlook:
        """The outlook under the configured algorithm."""
        return next(outlook for outlook in self.outlooks if outlook.metric.by.name == self.metric.by.name)

    @property
    @abstractmethod
    def best(self) -> Outlook:
        """The outlook under the best algorithm."""

    @cached_property
    def caps(self) -> list[Trial]:
        """Powers of two up to four times a unit's samples, and the configured cap; none for unit event."""
        if self.metric.unit.is_event:
            return []
        most = max(self.metric.samples, min(MOST_CAP, math.ceil(4 * self.of_a_unit)))
        values = sorted({*(1 << level for level in range(most.bit_length())), self.metric.samples})
        return list(self.caps_of(values).tried(self.best.metric, self.source.final))

    @cached_property
    def tuned(self) -> Metric:
        """The best algorithm, with the smallest cap whose error is next to the least."""
        if not self.caps:
            return self.best.metric
        least = min(trial.point.error for trial in self.caps)
        return next(trial.metric for trial in self.caps if trial.point.error <= CLOSE * least)

    @property
    @abstractmethod
    def others(self) -> Sequence[Trial]:
        """The values of the statistic's own setting, such as its cadence."""

    @property
    @abstractmethod
    def advised(self) -> Metric:
        """The metric with all recommended settings."""

    @cached_property
    def outcome(self) -> Point:
        """The last release under all recommended settings."""
        return self.source.final(self.advised)

    @property
    @abstractmethod
    def halving(self) -> Mapping[str, Cost | None]:
        """The cost of half the error, in each of the things that it could be paid in."""

    @cached_property
    def groups(self) -> GroupsAhead | None:
        """The groups under the configured settings."""
        return None if self.configured.refused is not None else self.source.groups(self.configured.metric)

    def missing(self) -> Iterator[tuple[str, Any]]:
        """The recommended settings that the configuration lacks."""
        if life.stated_life(self.metric) is None and (advised := life.stated_life(self.advised)) is not None:
            yield "life", duration(advised)

    @staticmethod
    def halved(error: float, of_factor: Callable[[float], Iterator[tuple[Point, float | None, int]]]) -> Cost | None:
        """The least factor tried at which the error is half of what it is; None if none will do.

        Of a doubling the last factor is tried first: if it will not do, neither will those before it.
        `of_factor` gives the releases at the end, with the amount and the cap that each would take.

        >>> Comparison.halved(math.inf, lambda factor: iter(())) is None
        True
        """
        if math.isinf(error):
            return None

        def cost(factor: float) -> Cost | None:
            costs = (
                Cost(factor, amount, cap)
                for point, amount, cap in of_factor(factor)
                if point.error <= error / 2 * CLOSE
            )
            return next(costs, None)

        for factors in HALVING:
            last = cost(factors[-1])
            if last is not None:
                return next(filter(None, map(cost, factors[:-1])), last)
        return None

    # ---------------------------------------------------------------- words and tables

    def recommended(self) -> str:
        return ", ".join([*filter(None, self._settings()), *(f"{name} {value}" for name, value in self.missing())])

    @abstractmethod
    def _settings(self) -> Iterator[str]:
        """The recommended settings that every configuration has, in words."""

    def refusals(self) -> Iterator[str]:
        """A sentence for each algorithm that refuses the settings, after one on groups."""
        if self.metric.place is not None and self.groups is None:
            yield SPREAD
        for outlook in self.outlooks:
            if outlook.refused is not None:
                yield f"{outlook.metric.by.name} is refused: {outlook.refused}"

    def errors(self, beside: str = "") -> Iterator[str]:
        """Sentences on the error at the end, and on groups; `beside` is what it is a part of."""
        before = number(self.configured.error) if self.configured.points else "refused"
        yield f"error at the end: {number(self.outcome.error)}{beside}; as configured, {before}"
        if self.groups is not None:
            yield from self.groups.words()

    def over_time(
        self, title: str, named: Sequence[tuple[str, Outlook]], amount: Callable[[Point], str],
        before: Sequence[Shown], points: Sequence[tuple[int, Point]], after: Sequence[Shown],
        remarks: Iterator[str],
    ) -> Section:  # fmt: skip
        """The algorithms: a column for each of the times of `points`, between two rows of others."""

        def at(part: float) -> Callable[[Outlook], str]:
            return lambda outlook: amount(min(outlook.points, key=lambda point: abs(math.log(point.part / part))))

        shown = [*before, *((Column(point.when(), rank), at(point.part)) for rank, point in points), *after]
        lines = []
        for name, outlook in named:
            cells = [text(outlook) for _, text in shown] if outlook.points else [*["-"] * (len(shown) - 1), "refused"]
            lines.append(Line([name, *cells], outlook is self.best))
        columns = [Column("algorithm", is_text=True), *(column for column, _ in shown)]
        fields = [self.fields_of(outlook) for outlook in self.outlooks]
        return Section("algorithms", Table(title, columns, lines, list(remarks)), fields)

    at_the_end: tuple[Shown, ...] = (
        (Column("left out"), lambda outlook: percent(outlook.points[-1].left_out)),
        (Column("error"), lambda outlook: number(outlook.error)),
    )

    @staticmethod
    def times(points: Sequence[Point]) -> list[tuple[int, Point]]:
        """The releases that get a column, ascending, each with its rank: the last one always stays."""
        ranks: dict[float, int] = {}
        for rank, part in enumerate(TIMES):
            nearest = min(points, key=lambda point: abs(math.log(point.part / part)))
            ranks.setdefault(nearest.part, rank)
        return [(ranks[point.part], point) for point in points if point.part in ranks]

    @abstractmethod
    def fields_of(self, outlook: Outlook) -> dict[str, Any]:
        """The outlook under one algorithm, as an object of JSON."""

    def by_cap(self, title: str) -> Section:
        """The table of caps: what each leaves out, and its noise, bias and error."""
        columns = [Column("m"), Column("left out"), Column("noise", 1), Column("bias", 1), Column("error"), MARK]
        rows = [
            Row(
                str(cap),
                {"max_contributions": cap},
                point,
                *self.marked(cap, self.metric.samples, self.advised.samples),
            )
            for cap, _, point in self.caps
        ]
        return Section.of("by_max_contributions", title, columns, rows)

    @staticmethod
    def marked(value: object, configured: object, advised: object) -> tuple[bool, dict[str, str]]:
        """Whether a value is recommended, and its mark."""
        is_advised = value == advised
        return is_advised, {MARK.head: marks((value == configured, "configured"), (is_advised, "recommended"))}

    def costs(self) -> dict[str, Any]:
        """The JSON fields `half_the_error` and `groups`."""
        return {
            "half_the_error": {what: cost and cost.fields(what) for what, cost in self.halving.items()},
            "groups": self.groups and self.groups.fields(),
        }


def more_epsilon(metric: Metric, factor: float) -> Metric:
    """The metric with `factor` times its epsilon."""
    return with_epsilon(metric, metric.budget.epsilon * Fraction(factor).limit_denominator(1 << 20))


def with_time_as_life(metric: Metric, over: int | None) -> Metric:
    """The metric with the time of the plan as its life, if counters are made for a life, and its own is a default."""
    if life.stated_life(metric) is not None or over == life.life_of(metric) or not life.uses_life(metric):
        return metric
    return with_life(metric, over)
