"""What a metric would be like under each algorithm, cap and cadence, before a cent of budget is spent.

A `Workload` says what comes of a metric's settings: `Stated` by closed forms from a stated pattern, `Values`
(observed.py) from a file of events. `plan_metric` compares settings and asks what half the error would cost.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from shoal.agents.plan.groups import GroupsOutlook
from shoal.mechanisms.continual_mean import MEANS, ON_BLOCKS, WITH_PRIOR
from shoal.mechanisms.continual_mean.coordinates import Coordinates
from shoal.mechanisms.continual_mean.mean import MeanParameters
from shoal.mechanisms.continual_mean.statistic import ContinualMean
from shoal.models.config.metric import MetricSection
from shoal.models.errors import ConfigError

LOOKS = 40  # at most
USEFUL = Fraction(1, 4)  # of the range: a release is useful if its noise interval is narrower
HALVING = tuple(2 ** (k / 4) for k in range(1, 33))  # factors that are tried
CADENCES = tuple(60_000_000 * minutes for minutes in (1, 10, 60, 360, 1440, 10_080, 43_200))
FEWEST, MANY = 4, 30  # releases of a cadence that is considered; of one that is recommended
CLOSE = 1.02  # errors that differ by less are the same
FREQUENT = 1.25  # what a finer cadence may cost in error


@dataclass(frozen=True, slots=True)
class Look:
    """A release to come; numbers in units of the range, None where nothing is released."""

    part: float  # of the time, or of the events of a file
    at: int | None  # microseconds since the start, where that is known
    samples: float  # that count; decayed ones are parts of one
    noise_sd: float | None
    half_interval: float | None
    left_out: float  # part of the samples
    bias: float  # expected from what is left out; of values, measured

    @property
    def error(self) -> float:
        """Noise and bias together; infinite where nothing is released."""
        return math.inf if self.noise_sd is None else math.hypot(self.noise_sd, self.bias)


@dataclass(frozen=True, slots=True)
class Outlook:
    """A metric under some settings, over time."""

    section: MetricSection
    looks: tuple[Look, ...]
    useful: Look | None  # the first useful release
    refused: str | None = None  # why these settings cannot be
    likely: tuple[float, float] | None = None  # what the last noise_sd lies between in four of five cases, if drawn

    @property
    def error(self) -> float:
        """At the end."""
        return self.looks[-1].error if self.looks else math.inf

    @property
    def needs_prior(self) -> bool:
        """It clips around a prior that the configuration would have to give."""
        return self.section.algorithm in WITH_PRIOR


@dataclass(frozen=True, slots=True)
class About:
    """A workload in numbers."""

    users: int
    samples: float  # of a user, on average
    over: int | None  # microseconds
    pattern: str
    spread: float | None  # part of the range that values are assumed to lie in
    sampling_error: float  # how far the mean of all samples is from that of the law, if samples are independent
    group: str | None = None  # which one it is about, of a file


class Workload(Protocol):
    """Who contributes when."""

    @property
    def private(self) -> bool:
        """Whether nothing in it depends on values."""
        ...

    def settled(self, section: MetricSection) -> "Workload":
        """With what a metric's own settings say in place of what was left open; other settings do not move it then."""
        ...

    def outlook(self, section: MetricSection, coordinate: int) -> Outlook:
        """What comes of a metric's settings, over time."""
        ...

    def final(self, section: MetricSection, coordinate: int) -> Look:
        """The last of its looks."""
        ...

    def about(self, section: MetricSection, coordinate: int) -> "About":
        """What is known or assumed."""
        ...

    def scaled(self, section: MetricSection, what: str, factor: float) -> Sequence[tuple["Workload", MetricSection]]:
        """The same with more epsilon, users or time; none where that cannot be told."""
        ...

    def groups(self, section: MetricSection, coordinate: int) -> GroupsOutlook | None:
        """What becomes of the other groups; None where there are none."""
        ...


def is_useful(one: Look, width: float) -> bool:
    """Whether the noise interval is narrower than a quarter of the range, and something counts."""
    return bool(one.samples) and one.half_interval is not None and 2 * one.half_interval < USEFUL * width


def one_mean(section: MetricSection, coordinate: int) -> MeanParameters:
    """The mechanism of one coordinate.

    Raises:
        ValueError: the mechanism refuses the settings.
    """
    mean = ContinualMean.of(section)
    return mean.parts[coordinate] if isinstance(mean, Coordinates) else mean


# -------------------------------------------------------------------- settings


def algorithms(section: MetricSection, users: int | None) -> Iterator[MetricSection]:
    """The metric under every algorithm that its values allow, the most accurate one first."""
    for name in MEANS:
        if section.sigma is None or name in ON_BLOCKS:
            yield with_algorithm(section, name, users)


def with_algorithm(section: MetricSection, name: str, users: int | None) -> MetricSection:
    """The metric under another algorithm, completed by what that needs: expected users, a prior."""
    prior = section.prior
    if name in WITH_PRIOR and prior is None:
        middles = tuple((low + high) / 2 for low, high in section.ranges)
        prior = middles if len(middles) > 1 else middles[0]
    changes = {
        "algorithm": name,
        "prior": prior if name in WITH_PRIOR else None,
        "horizon": section.horizon if name == "sharp" else None,
        "users": section.users if name == "sharp" else section.users or users,
    }
    return section.model_copy(update=changes)


def with_cadence(section: MetricSection, every: int | str, over: int | None) -> MetricSection:
    """The metric with another cadence; sharp is told for how long, as its default is a year of days."""
    tuned = section.algorithm == "sharp" and every != "contribution" and every != section.every
    return section.model_copy(update={"every": every, "horizon": over if tuned else section.horizon})


def caps(section: MetricSection, samples: float) -> list[int]:
    """Powers of two around the samples of a user, and the configured cap."""
    most = max(section.cap, min(1 << 20, math.ceil(4 * samples)))
    return sorted({*(1 << level for level in range(most.bit_length())), section.cap})


def cadences(section: MetricSection, over: int | None) -> list[int | str]:
    """The configured cadence and usual ones with at least a few releases, the finest first."""
    found: set[int] = {section.every} if isinstance(section.every, int) else set()
    if over is not None:
        found |= {every for every in CADENCES if FEWEST * every <= over}
    per_contribution: list[int | str] = ["contribution"] if section.every == "contribution" else []
    return [*per_contribution, *sorted(found)]


# -------------------------------------------------------------------- a plan


@dataclass(frozen=True)
class Cost:
    """What halves the error."""

    factor: float
    amount: float | None  # epsilon, users, or seconds if they are known
    max_contributions: int


@dataclass(frozen=True)
class MetricPlan:
    """All that was found out about one coordinate of a metric."""

    section: MetricSection
    coordinate: int
    workload: About
    private: bool
    outlooks: tuple[Outlook, ...]  # an algorithm each
    best: Outlook
    caps: tuple[tuple[int, Look], ...]
    cadences: tuple[tuple[int | str, Look], ...]
    advised: MetricSection  # with all recommended settings
    outcome: Look  # what comes of it at the end
    halving: dict[str, Cost | None]
    groups: GroupsOutlook | None = None

    @property
    def width(self) -> float:
        """Of the range."""
        low, high = self.section.ranges[self.coordinate]
        return float(high - low)


def smallest(tried: Sequence[tuple[int, Look]]) -> int:
    """The smallest cap whose error is next to the least."""
    least = min(look.error for _, look in tried)
    return next(cap for cap, look in tried if look.error <= CLOSE * least)


def finest(tried: Sequence[tuple[int | str, Look]], over: int | None) -> int | str:
    """Of the cadences with many releases, the finest that costs no more than a quarter in error."""
    often = [
        (every, look) for every, look in tried if isinstance(every, str) or (over is not None and MANY * every <= over)
    ] or tried
    least = min(look.error for _, look in often)
    return next(every for every, look in often if look.error <= FREQUENT * least)


def completed(section: MetricSection, about: About) -> MetricSection:
    """With expected users, and for sharp how long it will last."""
    timed = section.algorithm == "sharp" and section.every != "contribution"
    horizon = section.horizon or (about.over if timed else None)
    return section.model_copy(update={"users": section.users or about.users, "horizon": horizon})


def plan_metric(
    section: MetricSection, coordinate: int, workload: Workload, advance: Callable[[], None] = lambda: None
) -> MetricPlan:
    """Compare algorithms, caps and cadences; what half the error would cost.

    Raises:
        ConfigError: no algorithm can do with these settings.
    """
    workload = workload.settled(section)
    about = workload.about(section, coordinate)
    outlooks = []
    for candidate in algorithms(section, about.users):
        outlooks.append(workload.outlook(candidate, coordinate))
        advance()
    best = _best(section, outlooks)
    tried = []
    for cap in caps(section, about.samples):
        tried.append((cap, workload.final(best.section.model_copy(update={"max_contributions": cap}), coordinate)))
        advance()
    capped = best.section.model_copy(update={"max_contributions": smallest(tried)})
    often = [
        (every, workload.final(with_cadence(capped, every, about.over), coordinate))
        for every in cadences(section, about.over)
    ]
    advised = completed(with_cadence(capped, finest(often, about.over), about.over), about)
    advance()
    halving = {what: _halved(best, coordinate, workload, what) for what in ("epsilon", "users", "time")}
    advance()
    return MetricPlan(
        section, coordinate, about, workload.private, tuple(outlooks), best, tuple(tried), tuple(often),
        advised, workload.final(advised, coordinate), halving, _groups(section, outlooks, coordinate, workload),
    )  # fmt: skip


def steps(section: MetricSection, workload: Workload) -> int:
    """How often `plan_metric` advances."""
    about = workload.settled(section).about(section, 0)
    return len(list(algorithms(section, 1))) + len(caps(section, about.samples)) + 2


def _groups(
    section: MetricSection, outlooks: Sequence[Outlook], coordinate: int, workload: Workload
) -> GroupsOutlook | None:
    """With the configured algorithm, unless it is refused."""
    configured = next(one for one in outlooks if one.section.algorithm == section.algorithm)
    return None if configured.refused is not None else workload.groups(configured.section, coordinate)


def _best(section: MetricSection, outlooks: Sequence[Outlook]) -> Outlook:
    """The least error at the end; those that need a prior only if the configuration has one."""
    possible = [one for one in outlooks if one.refused is None and (not one.needs_prior or section.prior is not None)]
    if not possible:
        raise ConfigError(f'metric "{section.name}": {outlooks[-1].refused}')
    return min(possible, key=lambda one: one.error)


def _halved(best: Outlook, coordinate: int, workload: Workload, what: str) -> Cost | None:
    """The least of the factors that are tried at which the error is half of what it is; None if none will do."""
    if math.isinf(best.error):
        return None
    for factor in HALVING:
        for scaled, section in workload.scaled(best.section, what, factor):
            if scaled.final(section, coordinate).error <= best.error / 2 * CLOSE:
                return Cost(factor, _amount(scaled, section, coordinate, what), section.cap)
    return None


def _amount(workload: Workload, section: MetricSection, coordinate: int, what: str) -> float | None:
    about = workload.about(section, coordinate)
    over = None if about.over is None else about.over / 1e6
    return {"epsilon": float(section.epsilon), "users": about.users, "time": over}[what]
