"""A plan as data, and the report that makes one: what `shoal plan` prints and gives to programs, for any statistic."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from shoal.mechanisms.forecast.axis import Axis
from shoal.mechanisms.forecast.observed import Observed
from shoal.mechanisms.forecast.table import Section, Table
from shoal.mechanisms.linear.decay_words import forgetting
from shoal.mechanisms.parts.at import Slots, Steps
from shoal.mechanisms.parts.hides import Events
from shoal.mechanisms.parts.lengths import Even
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.of import Distribution
from shoal.mechanisms.parts.per import Field, Hexagons
from shoal.mechanisms.parts.rules import Rule
from shoal.mechanisms.parts.variants import with_samples
from shoal.mechanisms.words import cadence, duration, exact_text, samples
from shoal.mechanisms.workload import Stated

NOT_PRIVATE = "NOT PRIVATE: made from real values; treat it like the events themselves"
PATTERNS = {"even": "at constant rates", "skewed": "on average, a few users with most"}
SECTION: Sequence[Any] = ()  # the place of a section among the fields for programs
OF_FILE = "that of the file"  # the pattern of a workload of real events


class Noise(NamedTuple):
    """The noise of the last release, and a quantity of the same unit that it is compared with."""

    noise_sd: float | None  # standard deviation; None: nothing is released, or it is not known
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


class Report(ABC):
    """The plan of one coordinate of a metric over a workload: what a statistic has to say."""

    metric: Metric
    rules: Sequence[Rule]  # between the parts of such a metric
    coordinate: int = 0
    private: bool = True
    users: int
    stages: tuple[str, ...] = ()  # cached properties, in the order in which progress counts them

    @abstractmethod
    def __init__(self, metric: Metric, workload: Stated | Observed, coordinate: int = 0) -> None: ...

    @classmethod
    def plans(
        cls, metric: Metric, workload: Stated | Observed, advance: Callable[[float], None] = lambda part: None
    ) -> list[Plan]:
        """The plan of each coordinate; `advance` is told what part of the work is done.

        Raises:
            ValueError: the mechanism refuses the settings.
            TooMuch: a file has more than can be planned.
        """
        plans: list[Plan] = []
        count = max(1, len(metric.names))
        for coordinate in range(count):
            report = cls(metric, workload, coordinate)
            for done, stage in enumerate(cls.stages, 1):
                getattr(report, stage)
                advance((coordinate + done / len(cls.stages)) / count)
            plans.append(report.plan())
        return plans

    @classmethod
    @abstractmethod
    def final_noise(cls, metric: Metric, users: int) -> Noise:
        """The noise of a late release, if this many users contribute.

        Raises:
            ValueError: the mechanism refuses the settings.
        """

    def plan(self) -> Plan:
        """The plan of this coordinate: tables, advice and the fields of `--json`."""
        sections = list(self.sections())
        lists = {section.key: list(section.fields) for section in sections}
        return Plan(
            self.metric, self.title(), self.workload(), self.users,
            [section.table for section in sections if section.table.lines],
            self.recommended(), list(self.advice()), {**self._head(), **self.fields(), **lists}, self.noise(),
            self.private,
        )  # fmt: skip

    def title(self) -> str:
        """The metric in words: statistic, range, cadence, budget and cap."""
        return title(self.metric, self.coordinate)

    @abstractmethod
    def workload(self) -> str:
        """Who contributes how much, in words."""

    @abstractmethod
    def sections(self) -> Iterator[Section]:
        """A table for each setting whose values were compared."""

    @abstractmethod
    def recommended(self) -> str:
        """Recommended settings in words, such as `max_contributions 4`."""

    @abstractmethod
    def advice(self) -> Iterator[str]:
        """Sentences on what to expect and what to change."""

    @abstractmethod
    def fields(self) -> dict[str, Any]:
        """The fields for programs, in their order; `SECTION` stands where those of a section will."""

    @abstractmethod
    def noise(self) -> Noise:
        """The noise of the last release as configured."""

    def caps_of(self, values: Sequence[int]) -> Axis:
        """The axis of max_contributions."""
        return Axis(self.metric.cap_key, values, with_samples, self.rules)

    def _head(self) -> dict[str, Any]:
        """The first fields of every plan."""
        metric = self.metric
        return {
            "metric": metric.name,
            "field": metric.names[self.coordinate] if metric.names else None,
            "statistic": metric.statistic,
            "private": self.private,
            **({} if self.private else {"warning": NOT_PRIVATE}),
            "range": [float(end) for end in metric.ranges[self.coordinate]] if metric.ranges else None,
            "epsilon": float(metric.budget.epsilon),
        }


# -------------------------------------------------------------------- words


def title(metric: Metric, coordinate: int = 0) -> str:
    """A metric in words: statistic, range, cadence, budget and cap."""
    what = f"{metric.name}: {metric.statistic}{' per slot' if isinstance(metric.at, Slots) else ''}"
    if metric.names:
        what += f" of {metric.names[coordinate]}"
    if metric.ranges:
        what += " in {:g} .. {:g}".format(*map(float, metric.ranges[coordinate]))
    if isinstance(metric.at, Steps) and not metric.protects_presence:
        what += f" {forgetting(metric.at.decay)}"
    every = f", every {every_of(metric.length)}"
    if isinstance(metric.at, Slots):
        every = f" for every {where_of(metric)} and {duration(metric.every.microseconds)}"
    relation = f", relation {metric.hides.relation}" if metric.protects_presence else ""
    return f"{what}{every}{relation}, {budget_words(metric)}{cap_words(metric)}"


def budget_words(metric: Metric) -> str:
    """Epsilon and delta of a unit, in words."""
    budget = metric.budget
    delta = f", delta {exact_text(budget.delta)}" if budget.delta else ""
    return f"epsilon {exact_text(budget.epsilon)}{delta} of each {metric.unit.words()}"


def cap_words(metric: Metric) -> str:
    """The cap of a unit's samples after a comma; nothing for unit event, whose units are single samples."""
    return "" if isinstance(metric.hides.limits, Events) else f", {metric.cap_key} {metric.samples}"


def cap_of(metric: Metric) -> int | None:
    """The samples of a unit that count; None for unit event, whose units are single samples."""
    return None if isinstance(metric.hides.limits, Events) else metric.samples


def workload_words(who: str, each: float | None, over: int | None, pattern: str) -> str:
    """Users or events, the samples of each, the time, and how samples are shared."""
    given = "" if each is None else f" with {samples(each)} each"  # None: who gives are events
    time = "" if over is None else f" over {duration(over)}"
    how = "from the file" if pattern == OF_FILE else PATTERNS[pattern]
    return f"{who}{given}{time}, {how}"


def every_of(length: Even | None) -> str:
    """The length of a tick or step as configurations have it."""
    return cadence(None if length is None else length.microseconds)


def where_of(metric: Metric) -> str:
    """Noun for the place of a release per slot: cell (of the H3 grid), group, or place where the metric has neither."""
    return {Hexagons: "cell", Field: "group"}.get(type(metric.place), "place")


def quotient_noise(metric: Metric, noise_sd: float | None, width: float) -> Noise:
    """Noise of a quotient beside what it lies in: the range, or of a distribution the total share of 1."""
    return Noise(noise_sd, width, "total share" if isinstance(metric.of, Distribution) else "range")


def extent(metric: Metric, coordinate: int = 0) -> float:
    """The width of what a mean or a share may be: of the range, or 1."""
    low, high = metric.ranges[coordinate]
    return 1.0 if isinstance(metric.of, Distribution) else float(high - low)
