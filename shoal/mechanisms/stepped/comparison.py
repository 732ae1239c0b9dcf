"""The plan of a sum, count or decayed mean: algorithms, caps and lengths compared, and what half the error would cost.

Noise is that of the very mechanism, to the digits that a release states; what is left out follows from the workload.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from shoal.mechanisms.group_outlook import GroupOutlook, GroupsOutlook
from shoal.mechanisms.outlook import (
    Cost,
    Look,
    Outlook,
    capped,
    caps,
    halved,
    more_epsilon,
    of_algorithm,
    smallest,
    spaced,
)
from shoal.mechanisms.plan import Spec, varied, with_life
from shoal.mechanisms.privacy import lower_bounds
from shoal.mechanisms.stepped import ALGORITHMS
from shoal.mechanisms.stepped.forecast import Expected, StepProspect, by_hand, least_weights, prospect, weights
from shoal.mechanisms.stepped.keys import NOT_OF_PATENT
from shoal.mechanisms.stepped.statistic import PlannedStatistic
from shoal.mechanisms.stepped.workload import Source, Steady
from shoal.mechanisms.workload import bias

LENGTHS = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))  # times the configured one
MOST_WINDOWS = 9  # lengths of any window that are shown


# -------------------------------------------------------------------- settings


def candidates(spec: Spec) -> Iterator[Spec]:
    """The metric under every algorithm that could be configured for it; a count has none."""
    exponent = spec.decay_or_none.exponent
    for name in ALGORITHMS:
        if spec.statistic == "count":
            if name == spec.algorithm:
                yield spec
        elif name == "sharp" or (spec.decay_or_none.kind not in NOT_OF_PATENT and (exponent is None or exponent > 1)):
            pure = {} if name == "sharp" else {"life": None, "delta": Fraction(0)}
            yield varied(spec, algorithm=name, **pure)


def lengths(spec: Spec) -> Iterator[tuple[Fraction, Spec]]:
    """The metric with shorter and longer windows or half-lives, each with the factor."""
    decay, step, seen = spec.decay_or_none, spec.cadence, set()
    for times_as_long in LENGTHS if spec.statistic != "count" else ():
        factor = times_as_long
        change: dict[str, int | Fraction] = {}
        if decay.length is not None:
            change["length"] = max(1, round(decay.length // step * factor)) * step
            factor = Fraction(change["length"], decay.length)
        elif decay.half_life is not None:
            change["half_life"] = max(1, round(decay.half_life * factor))
        elif decay.alpha is not None:
            change["alpha"] = decay.alpha if factor == 1 else _root(decay.alpha, factor)
        if change and factor not in seen:
            seen.add(factor)
            yield factor, varied(spec, decay=varied(decay, **change))


def _root(alpha: Fraction, factor: Fraction) -> Fraction:
    """The alpha of a half-life that is `factor` times as long."""
    exact = Fraction(float(alpha) ** float(1 / factor)).limit_denominator(10**9)
    return exact if 0 < exact < 1 else alpha


def typical(spec: Spec, spread: Fraction) -> float:
    """The mean size of values spread over the middle `spread` of the range; a count's are 1."""
    if spec.statistic == "count":
        return 1.0
    low, high = map(float, spec.ranges[0])
    middle, half = (low + high) / 2, (high - low) / 2 * float(spread)
    low, high = middle - half, middle + half
    return abs(middle) if low * high >= 0 else (low**2 + high**2) / (2 * (high - low))


# -------------------------------------------------------------------- what is compared


@dataclass(frozen=True)
class Forecasts:
    """The outlooks of a metric under any settings, over one workload."""

    source: Source
    of: Callable[[Spec], PlannedStatistic]  # the statistic that a metric's keys ask for

    def prospect(self, spec: Spec) -> StepProspect:
        return prospect(self.of(spec), self.source.flow(spec))

    def by_hand(self, spec: Spec) -> StepProspect:
        return by_hand(self.of(spec), self.source.flow(spec))

    def outlook(self, spec: Spec) -> Outlook:
        try:
            return self.over_time(spec, self.prospect(spec))
        except ValueError as refused:
            if spec.algorithm == "sharp":
                raise
            return Outlook(spec, (), "-", refused=str(refused))

    def over_time(self, spec: Spec, ahead: StepProspect) -> Outlook:
        looks = tuple(self._look(spec, t, ahead.at(t)) for t in spaced(self.source.work.steps))
        far = ahead.long_run()
        return Outlook(spec, looks, ahead.mechanism, long_run=far and self._look(spec, None, far))

    def final(self, spec: Spec) -> Look:
        steps = self.source.work.steps
        return self._look(spec, steps, self.prospect(spec).at(steps))

    def long_run(self, spec: Spec) -> tuple[str, Look]:
        """The mechanism, and the mean over all releases long after the beginning, of a decay that forgets."""
        ahead = self.prospect(spec)
        far = ahead.long_run()
        assert far is not None  # noqa: S101 - what has a length forgets
        return ahead.mechanism, self._look(spec, None, far)

    def _look(self, spec: Spec, t: int | None, expected: Expected) -> Look:
        part = math.inf if t is None else t / self.source.work.steps
        at = None if t is None else t * spec.cadence
        left_out, moved = expected.left_out, self._bias(spec, expected)
        return Look(part, at, expected.samples, expected.noise_sd, expected.half_interval, left_out, moved)

    def _bias(self, spec: Spec, expected: Expected) -> float:
        """The bias of what is left out: a sum lacks it, others move as users who differ have shown."""
        spread = self.source.work.spread
        breadth = self.of(spec).breadth(spread)
        if breadth is None:
            return -expected.left_out * expected.total * typical(spec, spread)
        return bias(expected.left_out, breadth)


def _noise_of(outlook: Outlook) -> float:
    """The noise that algorithms are compared by: in the long run if there is one, else at the end."""
    noise = (outlook.long_run or outlook.looks[-1]).noise_sd
    return math.inf if noise is None else noise


def _windows(outlooks: tuple[Outlook, ...], forecasts: Forecasts) -> Iterator[tuple[int, dict[str, float | None]]]:
    spec, steps = outlooks[0].spec, forecasts.source.work.steps
    if spec.decay_or_none.kind != "all-windows" or spec.statistic == "count":
        return
    ahead = {outlook.spec.algorithm: forecasts.prospect(outlook.spec) for outlook in outlooks if not outlook.refused}
    ahead["per-step"] = forecasts.by_hand(spec)
    powers = [1 << k for k in range(steps.bit_length()) if 1 << k < steps]
    for length in [*powers[:: max(1, math.ceil(len(powers) / (MOST_WINDOWS - 1)))], steps]:
        yield length, {name: prospect.window(length) for name, prospect in ahead.items()}


def _halved(advised: Spec, outcome: Look, tried: list[int], forecasts: Forecasts) -> Cost | None:
    """The least factor of epsilon that halves the error, with the advised cap or a larger one."""
    larger: list[int | None] = [cap for cap in tried if cap >= advised.contribution_limit]

    def of_factor(factor: float) -> Iterator[tuple[Look, float | None, int]]:
        for cap in larger or [advised.max_contributions]:
            spec = more_epsilon(capped(advised, cap), factor)
            yield forecasts.final(spec), float(spec.epsilon), spec.contribution_limit

    return halved(outcome.error, of_factor) if outcome.noise_sd else None


def _groups(spec: Spec, outlooks: tuple[Outlook, ...], forecasts: Forecasts) -> GroupsOutlook | None:
    source, work = forecasts.source, forecasts.source.work
    configured = of_algorithm(outlooks, spec.algorithm)
    if work.of_groups is None or configured.refused is not None:
        return None
    if isinstance(source, Steady):
        last = configured.looks[-1]
        return GroupsOutlook.alike(
            *work.of_groups, GroupOutlook(None, work.users, work.samples, last.left_out, last.error)
        )
    looked_at = []
    for name, group in source.others.items():
        last = Forecasts(group, forecasts.of).final(spec)
        looked_at.append(GroupOutlook(name, group.work.users, group.work.samples, last.left_out, last.error))
    if forecasts.of(spec).breadth() is not None:
        return GroupsOutlook.of(looked_at, *work.of_groups, work.group)
    # A sum's error is as large as it is beside the sum.
    return GroupsOutlook.of(
        looked_at, *work.of_groups, work.group, lambda group: group.error / (group.users * group.samples)
    )


@dataclass(frozen=True)
class Comparison:
    """The outcome of every setting that was tried for a metric."""

    spec: Spec
    statistic: PlannedStatistic  # with the best algorithm
    source: Source
    outlooks: tuple[Outlook, ...]  # an algorithm each
    by_hand: Outlook | None  # a draw of noise for each step; None: there is no noise
    best: Outlook
    caps: tuple[tuple[int, Look], ...]
    lengths: tuple[tuple[Fraction, Spec, str, Look], ...]  # factor, settings, mechanism and the long run
    windows: tuple[tuple[int, dict[str, float | None]], ...]  # of all-windows: length in steps, noise by algorithm
    advised: Spec
    outcome: Look
    halving: Cost | None  # epsilon
    groups: GroupsOutlook | None

    @classmethod
    def of(cls, spec: Spec, forecasts: Forecasts, advance: Callable[[float], None]) -> Self:
        """Compare algorithms, caps and lengths, and find what half the error would cost.

        Raises:
            ValueError: the mechanism refuses the settings.
        """
        work = forecasts.source.work
        outlooks = tuple(map(forecasts.outlook, candidates(spec)))
        advance(1 / 4)
        best = min((outlook for outlook in outlooks if outlook.refused is None), key=_noise_of)
        tried_caps = [] if spec.privacy_unit.is_event else caps(spec, work.of_a_unit)
        tried = tuple((cap, forecasts.final(capped(best.spec, cap))) for cap in tried_caps)
        advance(2 / 4)
        cap = smallest(tried) if tried else spec.max_contributions
        advised = with_life(capped(best.spec, cap), work.steps * spec.cadence)
        other_lengths = tuple((factor, other, *forecasts.long_run(other)) for factor, other in lengths(best.spec))
        advance(3 / 4)
        outcome = forecasts.final(advised)
        halving = _halved(advised, outcome, [cap for cap, _ in tried], forecasts)
        statistic = forecasts.of(best.spec)
        by_hand = None if statistic.is_exact else forecasts.over_time(spec, forecasts.by_hand(spec))
        return cls(
            spec, statistic, forecasts.source, outlooks, by_hand, best, tried, other_lengths,
            tuple(_windows(outlooks, forecasts)), advised, outcome, halving, _groups(spec, outlooks, forecasts),
        )  # fmt: skip

    @property
    def limit(self) -> lower_bounds.Limit | None:
        """The error that no pure epsilon-DP method stays below if these units come evenly, in units of the values.

        None for what no theorem here is about, and where there are too few units.
        """
        spec, work = self.spec, self.source.work
        if spec.statistic not in ("sum", "mean") or spec.delta:
            return None
        each, units = self._counted()
        sums, decay = self.statistic.decayed[0], self.statistic.decay
        limit = lower_bounds.decayed(
            least_weights(sums, decay), epsilon=float(spec.epsilon), units=units, steps=work.steps
        )
        if limit is None:
            return None
        moved = each * float(self.statistic.grid.high - self.statistic.grid.low)
        if spec.statistic == "mean":
            a_step = max(each * math.ceil(units / work.steps), math.ceil(self.source.flow(spec).rates()[0]))
            moved /= a_step * weights(sums, decay, work.steps, work.steps)
        return limit._replace(error=limit.error * moved)

    def _counted(self) -> tuple[int, int]:
        """The samples of a unit that count, at least, and the number of units."""
        work = self.source.work
        each = max(1, min(self.spec.contribution_limit, math.floor(work.of_a_unit)))
        return each, max(1, math.floor(work.users * work.samples / max(each, work.of_a_unit)))
