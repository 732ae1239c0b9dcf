"""What a sum, count or decayed mean would be like under each algorithm, cap and length, before budget is spent.

The counterpart of planning.py for what is released at every step. Noise is that of the very mechanism, to the digits
that a release states; what is left out follows from the workload (sums_workload.py).
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from shoal.agents.plan.groups import GroupOutlook, GroupsOutlook, alike, outlook_of
from shoal.agents.plan.mean import CLOSE, HALVING, Cost, Look, caps, smallest
from shoal.agents.plan.sums_workload import Source, StepWorkload
from shoal.agents.plan.workload import spaced
from shoal.mechanisms.decayed_sum import SUMS
from shoal.mechanisms.decayed_sum.forecast import Expected, StepProspect, by_hand, prospect
from shoal.mechanisms.decayed_sum.statistic import Stepped
from shoal.mechanisms.kinds import statistic_of
from shoal.mechanisms.workload import bias
from shoal.models.config.metric import MetricSection

LENGTHS = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))  # times the configured one
STAGES = 4  # how often `plan_steps` advances
MOST_WINDOWS = 9  # lengths of any window that are shown


@dataclass(frozen=True, slots=True)
class StepOutlook:
    """A metric under some settings, over time."""

    section: MetricSection
    mechanism: str
    looks: tuple[Look, ...]
    long_run: Look | None  # None: there is none, as noise grows
    refused: str | None = None

    @property
    def final(self) -> Look:
        """At the end."""
        return self.looks[-1]

    @property
    def noise(self) -> float:
        """What algorithms are compared by: in the long run if there is one, else at the end."""
        noise = (self.long_run or self.final).noise_sd
        return math.inf if noise is None else noise


@dataclass(frozen=True, slots=True)
class Length:
    """Another window or half-life."""

    factor: Fraction
    section: MetricSection
    mechanism: str
    look: Look  # in the long run


@dataclass(frozen=True)
class StepPlan:
    """All that was found out about a metric."""

    section: MetricSection
    workload: StepWorkload
    outlooks: tuple[StepOutlook, ...]  # an algorithm each
    by_hand: StepOutlook | None  # a draw of noise for each step; None: there is no noise
    best: StepOutlook
    caps: tuple[tuple[int, Look], ...]
    lengths: tuple[Length, ...]
    windows: tuple[tuple[int, dict[str, float]], ...]  # of all-windows: length in steps, noise by algorithm
    advised: MetricSection
    outcome: Look
    halving: Cost | None  # epsilon
    groups: GroupsOutlook | None

    @property
    def private(self) -> bool:
        """Whether it is made from what is stated."""
        return self.workload.private

    @property
    def width(self) -> float:
        """Of what errors are seen against; a sum has no range."""
        low, high = self.section.ranges[0] if self.section.statistic == "mean" else (0.0, math.inf)
        return float(high - low)

    @property
    def size(self) -> float:
        """What a value is expected to be, regardless of its sign."""
        return typical(self.section, self.workload.spread)


def plan_steps(section: MetricSection, source: Source, advance: Callable[[], None] = lambda: None) -> StepPlan:
    """Compare algorithms, caps and lengths; what half the error would cost.

    Raises:
        ValueError: the mechanism refuses the settings.
    """
    work = source.settled(section)
    outlooks = tuple(_outlook(one, source, work) for one in candidates(section))
    advance()
    best = min((one for one in outlooks if one.refused is None), key=lambda one: one.noise)
    tried = [(cap, _final(_capped(best.section, cap), source, work)) for cap in _caps(section, work)]
    advance()
    cap = smallest(tried) if tried else section.max_contributions
    advised = _tuned(_capped(best.section, cap), work)
    lengths = tuple(_length(factor, one, source, work) for factor, one in _lengths(best.section))
    advance()
    outcome = _final(advised, source, work)
    halving = _halved(advised, outcome, [cap for cap, _ in tried], source, work)
    advance()
    return StepPlan(
        section, work, outlooks, _by_hand(section, source, work), best, tuple(tried), lengths,
        tuple(_windows(outlooks, source, work)), advised, outcome, halving, _groups(section, outlooks, source, work),
    )  # fmt: skip


def _groups(
    section: MetricSection, outlooks: tuple[StepOutlook, ...], source: Source, work: StepWorkload
) -> GroupsOutlook | None:
    """What becomes of the groups as it is configured."""
    configured = next(one for one in outlooks if one.section.algorithm == section.algorithm)
    if work.of_groups is None or configured.refused is not None:
        return None
    if not source.others:
        last = configured.final
        return alike(*work.of_groups, GroupOutlook(None, work.users, work.samples, last.left_out, last.error))
    found = [_group(section, name, one) for name, one in source.others.items()]
    # A sum's error is as large as it is beside the sum.
    loss = _beside_the_sum if section.statistic != "mean" else _error
    return outlook_of(found, *work.of_groups, work.group, loss)


def _group(section: MetricSection, name: str, source: Source) -> GroupOutlook:
    work, last = source.settled(section), final_look(section, source)
    return GroupOutlook(name, work.users, work.samples, last.left_out, last.error)


def _error(group: GroupOutlook) -> float:
    return group.error


def _beside_the_sum(group: GroupOutlook) -> float:
    return group.error / (group.users * group.samples)


# -------------------------------------------------------------------- settings


def candidates(section: MetricSection) -> Iterator[MetricSection]:
    """The metric under every algorithm that could be configured for it; a count has none."""
    exponent = section.forgets.exponent
    for name in SUMS:
        if section.statistic == "count":
            if name == section.algorithm:
                yield section
        elif name == "sharp" or (section.forgets.kind != "none" and (exponent is None or exponent > 1)):
            pure = {} if name == "sharp" else {"horizon": None, "delta": Fraction(0)}
            yield section.model_copy(update={"algorithm": name, **pure})


def _capped(section: MetricSection, cap: int | None) -> MetricSection:
    return section.model_copy(update={"max_contributions": cap})


def _caps(section: MetricSection, work: StepWorkload) -> list[int]:
    return [] if section.of.is_event else caps(section, work.of_a_unit)


def _tuned(section: MetricSection, work: StepWorkload) -> MetricSection:
    """Growing counters of sharp are told for how long."""
    grows = section.forgets.kind in ("none", "all-windows") and section.statistic != "count"
    if section.algorithm != "sharp" or not grows or section.horizon is not None:
        return section
    return section.model_copy(update={"horizon": work.over})


def _lengths(section: MetricSection) -> Iterator[tuple[Fraction, MetricSection]]:
    """Shorter and longer windows or half-lives, and how many times as long they are."""
    said, step, seen = section.forgets, section.cadence or 1, set()
    for times in LENGTHS if section.statistic != "count" else ():
        factor = times
        change: dict[str, int | Fraction] = {}
        if said.length is not None:
            change["length"] = max(1, round(said.length // step * factor)) * step
            factor = Fraction(change["length"], said.length)
        elif said.half_life is not None:
            change["half_life"] = max(1, round(said.half_life * factor))
        elif said.alpha is not None:
            change["alpha"] = said.alpha if factor == 1 else _root(said.alpha, factor)
        if change and factor not in seen:
            seen.add(factor)
            yield factor, section.model_copy(update={"decay": said.model_copy(update=change)})


def _root(alpha: Fraction, factor: Fraction) -> Fraction:
    """Of a half-life that many times as long."""
    exact = Fraction(float(alpha) ** float(1 / factor)).limit_denominator(10**9)
    return exact if 0 < exact < 1 else alpha


# -------------------------------------------------------------------- looks


def _mechanism(section: MetricSection) -> Stepped:
    found = statistic_of(section)
    assert isinstance(found, Stepped)  # noqa: S101 - the metric has a step
    return found


def _prospect(section: MetricSection, source: Source, work: StepWorkload) -> StepProspect:
    return prospect(_mechanism(section), source.flow(section, work))


def _outlook(section: MetricSection, source: Source, work: StepWorkload) -> StepOutlook:
    try:
        ahead = _prospect(section, source, work)
    except ValueError as refused:
        if section.algorithm == "sharp":
            raise
        return StepOutlook(section, "-", (), None, str(refused))
    return _seen(section, ahead, work)


def _by_hand(section: MetricSection, source: Source, work: StepWorkload) -> StepOutlook | None:
    if section.statistic == "count":
        return None
    return _seen(section, by_hand(_mechanism(section), source.flow(section, work)), work)


def _seen(section: MetricSection, ahead: StepProspect, work: StepWorkload) -> StepOutlook:
    looks = tuple(_look(section, t, ahead.at(t), work) for t in spaced(work.steps))
    far = ahead.long_run()
    return StepOutlook(section, ahead.mechanism, looks, far and _look(section, None, far, work))


def _final(section: MetricSection, source: Source, work: StepWorkload) -> Look:
    return _look(section, work.steps, _prospect(section, source, work).at(work.steps), work)


def final_look(section: MetricSection, source: Source) -> Look:
    """The last release of a metric as it is configured.

    Raises:
        ValueError: the mechanism refuses the settings.
    """
    return _final(section, source, source.settled(section))


def _length(factor: Fraction, section: MetricSection, source: Source, work: StepWorkload) -> Length:
    ahead = _prospect(section, source, work)
    far = ahead.long_run()
    assert far is not None  # noqa: S101 - what has a length forgets
    return Length(factor, section, ahead.mechanism, _look(section, None, far, work))


def _look(section: MetricSection, t: int | None, found: Expected, work: StepWorkload) -> Look:
    part = math.inf if t is None else t / work.steps
    at = None if t is None else t * (section.cadence or 1)
    return Look(
        part, at, found.samples, found.noise_sd, found.half_interval, found.left_out, _bias(section, found, work)
    )


def _bias(section: MetricSection, found: Expected, work: StepWorkload) -> float:
    """Expected of what is left out: a sum lacks it, a mean moves by experience with users who differ."""
    if section.statistic != "mean":
        return -found.left_out * found.of * typical(section, work.spread)
    low, high = section.ranges[0]
    return bias(found.left_out, float((high - low) * work.spread))


def typical(section: MetricSection, spread: Fraction) -> float:
    """The mean size of values anywhere in that middle part of the range; a count's are 1."""
    if section.statistic == "count":
        return 1.0
    low, high = map(float, section.ranges[0])
    middle, half = (low + high) / 2, (high - low) / 2 * float(spread)
    low, high = middle - half, middle + half
    return abs(middle) if low * high >= 0 else (low**2 + high**2) / (2 * (high - low))


# -------------------------------------------------------------------- more


def _windows(
    outlooks: tuple[StepOutlook, ...], source: Source, work: StepWorkload
) -> Iterator[tuple[int, dict[str, float]]]:
    """Noise of windows of several lengths, by algorithm."""
    section = outlooks[0].section
    if section.forgets.kind != "all-windows" or section.statistic == "count":
        return
    ahead = {one.section.algorithm: _prospect(one.section, source, work) for one in outlooks if one.refused is None}
    ahead["per-step"] = by_hand(_mechanism(section), source.flow(section, work))
    powers = [1 << k for k in range(work.steps.bit_length()) if 1 << k < work.steps]
    shown = powers[:: max(1, math.ceil(len(powers) / (MOST_WINDOWS - 1)))]
    for length in [*shown, work.steps]:
        yield length, {name: one.window(length) for name, one in ahead.items()}


def _halved(advised: MetricSection, outcome: Look, tried: list[int], source: Source, work: StepWorkload) -> Cost | None:
    """The least of the factors of epsilon that are tried that is enough, with the advised cap or a larger one."""
    if math.isinf(outcome.error) or not outcome.noise_sd:
        return None
    larger: list[int | None] = [cap for cap in tried if cap >= advised.cap]
    for factor in HALVING:
        epsilon = advised.epsilon * Fraction(factor).limit_denominator(1 << 20)
        for cap in larger or [advised.max_contributions]:
            more = _capped(advised, cap).model_copy(update={"epsilon": epsilon})
            if _final(more, source, work).error <= outcome.error / 2 * CLOSE:
                return Cost(factor, float(epsilon), more.cap)
    return None
