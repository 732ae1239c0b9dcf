"""The plan of a mean: algorithms, caps and cadences compared, and what half the error would cost."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from shoal.mechanisms.continual_mean import MEANS, OF_EVENTS, ON_BLOCKS, WITH_DELTA, WITH_PRIOR, WITH_SIGMA
from shoal.mechanisms.continual_mean.planning.observed import ObservedMean
from shoal.mechanisms.continual_mean.planning.stated import StatedMean
from shoal.mechanisms.group_outlook import GroupsOutlook
from shoal.mechanisms.life import stated_life
from shoal.mechanisms.outlook import Cost, Look, Outlook, caps, halved, of_algorithm, smallest
from shoal.mechanisms.parts.at import EachContribution, Ticks
from shoal.mechanisms.parts.by import Algorithm, AroundPrior, FewUsersPrior, Sharp
from shoal.mechanisms.parts.lengths import Even
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.variants import with_algorithm, with_samples, with_users
from shoal.mechanisms.plan import with_time_as_life

Source = StatedMean | ObservedMean
CADENCES = tuple(Even(60_000_000 * minutes) for minutes in (1, 10, 60, 360, 1440, 10_080, 43_200))
FEWEST, MANY = 4, 30  # releases of a cadence that is considered; of one that is recommended
FREQUENT = 1.25  # what a finer cadence may cost in error


# -------------------------------------------------------------------- settings


def algorithms(metric: Metric, users: int) -> Iterator[Metric]:
    """The metric under every algorithm that its values and delta allow, with the users or prior that it needs."""
    with_delta = WITH_PRIOR if chosen_by_few(metric) else WITH_DELTA
    with_sigma = WITH_SIGMA if len(metric.names) == 1 else ON_BLOCKS
    has_sigma = any(metric.by.sigma(coordinate) is not None for coordinate in range(len(metric.names)))
    for algorithm in OF_EVENTS if metric.unit.is_event else MEANS:
        if (not has_sigma or algorithm in with_sigma) and (not metric.budget.delta or algorithm in with_delta):
            yield with_algorithm(metric, algorithm, **_needs(metric, algorithm, users))


def _needs(metric: Metric, algorithm: type[Algorithm], users: int) -> dict[str, Any]:
    """Users, or prior, that the algorithm needs beside the fields of the configured one."""
    given: dict[str, Any] = {} if algorithm is Sharp else {"users": metric.by.users or users}
    if algorithm in WITH_PRIOR and not has_prior(metric):
        given["priors"] = tuple((low + high) / 2 for low, high in metric.ranges)
    return given


def has_prior(metric: Metric) -> bool:
    """Whether the metric's algorithm clips around a prior, given or chosen by few users."""
    return isinstance(metric.by, AroundPrior)


def chosen_by_few(metric: Metric) -> bool:
    """Whether few users choose the prior."""
    return isinstance(metric.by, AroundPrior) and isinstance(metric.by.priors, FewUsersPrior)


def with_cadence(metric: Metric, length: Even | None, over: int | None) -> Metric:
    """The metric with another cadence, and then with the time of the plan as its life, unless a life is stated."""
    if length == metric.length:
        return metric
    at = EachContribution() if length is None else Ticks(length, stated_life(metric))
    return with_time_as_life(replace(metric, at=at), over)


def cadences(metric: Metric, over: int | None) -> list[Even | None]:
    """The configured cadence and usual ones with at least a few releases, the finest first."""
    usual = {length for length in CADENCES if over is not None and length.span(FEWEST) <= over}
    lengths = sorted(usual | ({metric.length} if metric.length else set()))
    return [*lengths] if metric.length else [None, *lengths]


def finest(tried: Sequence[tuple[Even | None, Look]], over: int | None) -> Even | None:
    """The finest of the cadences with many releases that costs no more than a quarter in error."""
    often = [
        (length, look) for length, look in tried if length is None or (over is not None and length.span(MANY) <= over)
    ] or tried
    least = min(look.error for _, look in often)
    return next(length for length, look in often if look.error <= FREQUENT * least)


# -------------------------------------------------------------------- what is compared


def _best(metric: Metric, outlooks: Sequence[Outlook]) -> Outlook:
    """The outlook of least error at the end; those that need a prior only if the configuration has one."""
    possible = [
        outlook
        for outlook in outlooks
        if outlook.refused is None and (has_prior(metric) or not has_prior(outlook.metric))
    ]
    if not possible:
        raise ValueError(outlooks[-1].refused)
    return min(possible, key=lambda outlook: outlook.error)


def _completed(metric: Metric, source: Source) -> Metric:
    """The settings with expected users, and with the time of the plan as life where a default was taken."""
    about = source.about(metric)
    return with_users(with_time_as_life(metric, about.over), metric.by.users or about.users)


def _halved(best: Outlook, source: Source, what: str) -> Cost | None:
    def of_factor(factor: float) -> Iterator[tuple[Look, float | None, int]]:
        for scaled, metric in source.scaled(best.metric, what, factor):
            about = scaled.about(metric)
            amounts = {
                "epsilon": float(metric.budget.epsilon),
                "users": about.users,
                "time": about.over and about.over / 1e6,
            }
            yield scaled.final(metric), amounts[what], metric.samples

    return halved(best.error, of_factor)


@dataclass(frozen=True)
class MeanComparison:
    """The outcome of every setting that was tried for one coordinate of a mean."""

    metric: Metric
    coordinate: int
    source: Source
    outlooks: tuple[Outlook, ...]  # an algorithm each
    best: Outlook
    caps: tuple[tuple[int, Look], ...]
    cadences: tuple[tuple[Even | None, Look], ...]
    advised: Metric  # with all recommended settings
    outcome: Look  # what comes of it at the end
    halving: dict[str, Cost | None]
    groups: GroupsOutlook | None

    @classmethod
    def of(
        cls, metric: Metric, coordinate: int, source: Source, advance: Callable[[float], None] = lambda part: None
    ) -> Self:
        """Compare algorithms, caps and cadences, and find what half the error would cost.

        Raises:
            ValueError: no algorithm can do with these settings.
        """
        about = source.about(metric)
        candidates = list(algorithms(metric, about.users))
        tried_caps = [] if metric.unit.is_event else caps(metric, about.samples)
        stages = len(candidates) + len(tried_caps) + 2
        outlooks = []
        for candidate in candidates:
            outlooks.append(source.outlook(candidate))
            advance(len(outlooks) / stages)
        best = _best(metric, outlooks)
        tried = []
        for cap in tried_caps:
            tried.append((cap, source.final(with_samples(best.metric, cap))))
            advance((len(outlooks) + len(tried)) / stages)
        tuned = with_samples(best.metric, smallest(tried)) if tried else best.metric
        often = [
            (length, source.final(with_cadence(tuned, length, about.over))) for length in cadences(metric, about.over)
        ]
        advised = _completed(with_cadence(tuned, finest(often, about.over), about.over), source)
        advance(1 - 1 / stages)
        halving = {what: _halved(best, source, what) for what in ("epsilon", "users", "time")}
        configured = of_algorithm(outlooks, metric.by.name)
        groups = None if configured.refused is not None else source.groups(configured.metric)
        return cls(
            metric, coordinate, source, tuple(outlooks), best, tuple(tried), tuple(often), advised,
            source.final(advised), halving, groups,
        )  # fmt: skip
