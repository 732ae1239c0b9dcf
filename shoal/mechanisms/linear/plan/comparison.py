"""The plan of a sum, count or decayed mean: algorithms, caps and lengths compared, and what half the error would cost.

Noise is that of the very mechanism, to the digits that a release states; what is left out follows from the workload.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self

from shoal.mechanisms.group_outlook import GroupOutlook, GroupsOutlook
from shoal.mechanisms.linear.plan.forecast import (
    Expected,
    StepProspect,
    breadth,
    by_hand,
    least_weights,
    prospect,
    weights,
)
from shoal.mechanisms.linear.plan.workload import Source, Steady
from shoal.mechanisms.linear.rules import patent_has
from shoal.mechanisms.linear.statistic import LinearStatistic
from shoal.mechanisms.outlook import (
    Cost,
    Look,
    Outlook,
    caps,
    halved,
    more_epsilon,
    of_algorithm,
    smallest,
    spaced,
)
from shoal.mechanisms.parts.at import AllWindows, Decay, Exponential, HalfLife, Steps, Window
from shoal.mechanisms.parts.by import Patent, Sharp
from shoal.mechanisms.parts.expect import expect
from shoal.mechanisms.parts.lengths import Even
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.of import Count, Mean, PublicCount, Sum
from shoal.mechanisms.parts.variants import with_algorithm, with_decay, with_life, with_samples
from shoal.mechanisms.plan import with_time_as_life
from shoal.mechanisms.privacy import lower_bounds
from shoal.mechanisms.workload import bias

LENGTHS = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))  # times the configured one
MOST_WINDOWS = 9  # lengths of any window that are shown


# -------------------------------------------------------------------- settings


def candidates(metric: Metric) -> Iterator[Metric]:
    """The metric under every algorithm that could be configured for it; a count has none."""
    if isinstance(metric.of, PublicCount):
        yield metric
        return
    yield with_algorithm(metric, Sharp)
    if patent_has(expect(metric.at, Steps).decay):
        pure = replace(metric, budget=replace(metric.budget, delta=Fraction(0)))
        yield with_life(with_algorithm(pure, Patent), None)


def lengths(metric: Metric) -> Iterator[tuple[Fraction, Metric]]:
    """The metric with shorter and longer windows or half-lives, each with the factor."""
    times, seen = expect(metric.at, Steps), set()
    for wanted in () if isinstance(metric.of, PublicCount) else LENGTHS:
        factor, decay = _as_long(times.decay, times.length, wanted)
        if decay is not None and factor not in seen:
            seen.add(factor)
            yield factor, with_decay(metric, decay)


def _as_long(decay: Decay, step: Even, factor: Fraction) -> tuple[Fraction, Decay | None]:
    """(factor, decay): the decay `factor` times as long, a window in whole steps; (factor, None) without a length."""
    match decay:
        case Window():
            length = step.span(max(1, round(step.fits(decay.length) * factor)))
            return Fraction(length, decay.length), Window(length)
        case HalfLife():
            return factor, HalfLife(max(1, round(decay.length * factor)))
        case Exponential():
            return factor, decay if factor == 1 else Exponential(_root(decay.alpha, factor))
        case _:
            return factor, None


def _root(alpha: Fraction, factor: Fraction) -> Fraction:
    """The alpha of a half-life that is `factor` times as long."""
    exact = Fraction(float(alpha) ** float(1 / factor)).limit_denominator(10**9)
    return exact if 0 < exact < 1 else alpha


def typical(metric: Metric, spread: Fraction) -> float:
    """The mean size of values spread over the middle `spread` of the range; a count's are 1."""
    if isinstance(metric.of, PublicCount | Count):
        return 1.0
    low, high = map(float, metric.ranges[0])
    middle, half = (low + high) / 2, (high - low) / 2 * float(spread)
    low, high = middle - half, middle + half
    return abs(middle) if low * high >= 0 else (low**2 + high**2) / (2 * (high - low))


# -------------------------------------------------------------------- what is compared


@dataclass(frozen=True)
class Forecasts:
    """The outlooks of a metric under any settings, over one workload."""

    source: Source

    def prospect(self, metric: Metric) -> StepProspect:
        return prospect(LinearStatistic.of(metric), self.source.flow(metric))

    def by_hand(self, metric: Metric) -> StepProspect:
        return by_hand(LinearStatistic.of(metric), self.source.flow(metric))

    def outlook(self, metric: Metric) -> Outlook:
        try:
            return self.over_time(metric, self.prospect(metric))
        except ValueError as refused:
            if isinstance(metric.by, Sharp):
                raise
            return Outlook(metric, (), "-", refused=str(refused))

    def over_time(self, metric: Metric, ahead: StepProspect) -> Outlook:
        looks = tuple(self._look(metric, t, ahead.at(t)) for t in spaced(self.source.work.steps))
        far = ahead.long_run()
        return Outlook(metric, looks, ahead.mechanism, long_run=far and self._look(metric, None, far))

    def final(self, metric: Metric) -> Look:
        steps = self.source.work.steps
        return self._look(metric, steps, self.prospect(metric).at(steps))

    def long_run(self, metric: Metric) -> tuple[str, Look]:
        """The mechanism, and the mean over all releases long after the beginning, of a decay that forgets."""
        ahead = self.prospect(metric)
        far = ahead.long_run()
        assert far is not None  # noqa: S101 - what has a length forgets
        return ahead.mechanism, self._look(metric, None, far)

    def _look(self, metric: Metric, t: int | None, expected: Expected) -> Look:
        part = math.inf if t is None else t / self.source.work.steps
        at = None if t is None else metric.every.span(t)
        left_out, moved = expected.left_out, self._bias(metric, expected)
        return Look(part, at, expected.samples, expected.noise_sd, expected.half_interval, left_out, moved)

    def _bias(self, metric: Metric, expected: Expected) -> float:
        """The bias of what is left out: a sum lacks it, others move as users who differ have shown."""
        spread = self.source.work.spread
        wide = breadth(LinearStatistic.of(metric), spread)
        if wide is None:
            return -expected.left_out * expected.total * typical(metric, spread)
        return bias(expected.left_out, wide)


def _noise_of(outlook: Outlook) -> float:
    """The noise that algorithms are compared by: in the long run if there is one, else at the end."""
    noise = (outlook.long_run or outlook.looks[-1]).noise_sd
    return math.inf if noise is None else noise


def _windows(outlooks: tuple[Outlook, ...], forecasts: Forecasts) -> Iterator[tuple[int, dict[str, float | None]]]:
    metric, steps = outlooks[0].metric, forecasts.source.work.steps
    if not isinstance(expect(metric.at, Steps).decay, AllWindows) or isinstance(metric.of, PublicCount):
        return
    ahead = {outlook.metric.by.name: forecasts.prospect(outlook.metric) for outlook in outlooks if not outlook.refused}
    ahead["per-step"] = forecasts.by_hand(metric)
    powers = [1 << k for k in range(steps.bit_length()) if 1 << k < steps]
    for length in [*powers[:: max(1, math.ceil(len(powers) / (MOST_WINDOWS - 1)))], steps]:
        yield length, {name: prospect.window(length) for name, prospect in ahead.items()}


def _halved(advised: Metric, outcome: Look, tried: list[int], forecasts: Forecasts) -> Cost | None:
    """The least factor of epsilon that halves the error, with the advised cap or a larger one."""
    larger = [cap for cap in tried if cap >= advised.samples]

    def of_factor(factor: float) -> Iterator[tuple[Look, float | None, int]]:
        for cap in larger or [advised.samples]:
            metric = more_epsilon(with_samples(advised, cap), factor)
            yield forecasts.final(metric), float(metric.budget.epsilon), metric.samples

    return halved(outcome.error, of_factor) if outcome.noise_sd else None


def _groups(metric: Metric, outlooks: tuple[Outlook, ...], forecasts: Forecasts) -> GroupsOutlook | None:
    source, work = forecasts.source, forecasts.source.work
    configured = of_algorithm(outlooks, metric.by.name)
    if work.of_groups is None or configured.refused is not None:
        return None
    if isinstance(source, Steady):
        last = configured.looks[-1]
        return GroupsOutlook.alike(
            *work.of_groups, GroupOutlook(None, work.users, work.samples, last.left_out, last.error)
        )
    looked_at = []
    for name, group in source.others.items():
        last = Forecasts(group).final(metric)
        looked_at.append(GroupOutlook(name, group.work.users, group.work.samples, last.left_out, last.error))
    if breadth(LinearStatistic.of(metric)) is not None:
        return GroupsOutlook.of(looked_at, *work.of_groups, work.group)
    # A sum's error is as large as it is beside the sum.
    return GroupsOutlook.of(
        looked_at, *work.of_groups, work.group, lambda group: group.error / (group.users * group.samples)
    )


@dataclass(frozen=True)
class Comparison:
    """The outcome of every setting that was tried for a metric."""

    metric: Metric
    statistic: LinearStatistic  # with the best algorithm
    source: Source
    outlooks: tuple[Outlook, ...]  # an algorithm each
    by_hand: Outlook | None  # a draw of noise for each step; None: there is no noise
    best: Outlook
    caps: tuple[tuple[int, Look], ...]
    lengths: tuple[tuple[Fraction, Metric, str, Look], ...]  # factor, settings, mechanism and the long run
    windows: tuple[tuple[int, dict[str, float | None]], ...]  # of all-windows: length in steps, noise by algorithm
    advised: Metric
    outcome: Look
    halving: Cost | None  # epsilon
    groups: GroupsOutlook | None

    @classmethod
    def of(cls, metric: Metric, forecasts: Forecasts, advance: Callable[[float], None]) -> Self:
        """Compare algorithms, caps and lengths, and find what half the error would cost.

        Raises:
            ValueError: the mechanism refuses the settings.
        """
        work = forecasts.source.work
        outlooks = tuple(map(forecasts.outlook, candidates(metric)))
        advance(1 / 4)
        best = min((outlook for outlook in outlooks if outlook.refused is None), key=_noise_of)
        tried_caps = [] if metric.unit.is_event else caps(metric, work.of_a_unit)
        tried = tuple((cap, forecasts.final(with_samples(best.metric, cap))) for cap in tried_caps)
        advance(2 / 4)
        tuned = with_samples(best.metric, smallest(tried)) if tried else best.metric
        advised = with_time_as_life(tuned, metric.every.span(work.steps))
        other_lengths = tuple((factor, other, *forecasts.long_run(other)) for factor, other in lengths(best.metric))
        advance(3 / 4)
        outcome = forecasts.final(advised)
        halving = _halved(advised, outcome, [cap for cap, _ in tried], forecasts)
        statistic = LinearStatistic.of(best.metric)
        by_hand = None if statistic.is_exact else forecasts.over_time(metric, forecasts.by_hand(metric))
        return cls(
            metric, statistic, forecasts.source, outlooks, by_hand, best, tried, other_lengths,
            tuple(_windows(outlooks, forecasts)), advised, outcome, halving, _groups(metric, outlooks, forecasts),
        )  # fmt: skip

    @property
    def limit(self) -> lower_bounds.Limit | None:
        """The error that no pure epsilon-DP method stays below if these units come evenly, in units of the values.

        None for what no theorem here is about, and where there are too few units.
        """
        metric, work = self.metric, self.source.work
        if not isinstance(metric.of, Sum | Mean) or metric.budget.delta:
            return None
        each, units = self._counted()
        sums, decay = self.statistic.decayed[0], self.statistic.decay
        limit = lower_bounds.decayed(
            least_weights(sums, decay), epsilon=float(metric.budget.epsilon), units=units, steps=work.steps
        )
        if limit is None:
            return None
        moved = each * float(self.statistic.grid.high - self.statistic.grid.low)
        if isinstance(metric.of, Mean):
            a_step = max(each * math.ceil(units / work.steps), math.ceil(self.source.flow(metric).rates()[0]))
            moved /= a_step * weights(sums, decay, work.steps, work.steps)
        return limit._replace(error=limit.error * moved)

    def _counted(self) -> tuple[int, int]:
        """The samples of a unit that count, at least, and the number of units."""
        work = self.source.work
        each = max(1, min(self.metric.samples, math.floor(work.of_a_unit)))
        return each, max(1, math.floor(work.users * work.samples / max(each, work.of_a_unit)))
