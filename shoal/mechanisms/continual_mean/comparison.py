"""The plan of a mean: algorithms, caps and cadences compared, and what half the error would cost."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from shoal.mechanisms.continual_mean import MEANS, OF_EVENTS, ON_BLOCKS, WITH_DELTA, WITH_PRIOR, WITH_SIGMA
from shoal.mechanisms.continual_mean.observed import ObservedMean
from shoal.mechanisms.continual_mean.stated import StatedMean
from shoal.mechanisms.group_outlook import GroupsOutlook
from shoal.mechanisms.outlook import Cost, Look, Outlook, capped, caps, halved, of_algorithm, smallest
from shoal.mechanisms.plan import Spec, varied, with_life
from shoal.mechanisms.spec import FEW_USERS

Source = StatedMean | ObservedMean
CADENCES = tuple(60_000_000 * minutes for minutes in (1, 10, 60, 360, 1440, 10_080, 43_200))
FEWEST, MANY = 4, 30  # releases of a cadence that is considered; of one that is recommended
FREQUENT = 1.25  # what a finer cadence may cost in error


# -------------------------------------------------------------------- settings


def algorithms(spec: Spec, users: int) -> Iterator[Spec]:
    """The metric under every algorithm that its values and delta allow, with the users or prior that it needs."""
    middles = tuple((low + high) / 2 for low, high in spec.ranges)
    prior = (middles if len(middles) > 1 else middles[0]) if spec.prior is None else spec.prior
    with_delta = WITH_PRIOR if spec.prior == FEW_USERS else WITH_DELTA
    with_sigma = WITH_SIGMA if len(spec.values) == 1 else ON_BLOCKS
    for name in OF_EVENTS if spec.privacy_unit.is_event else MEANS:
        if (spec.sigma is None or name in with_sigma) and (not spec.delta or name in with_delta):
            yield varied(
                spec,
                algorithm=name,
                prior=prior if name in WITH_PRIOR else None,
                life=spec.life if name == "sharp" else None,
                users=spec.users if name == "sharp" else spec.users or users,
            )


def with_cadence(spec: Spec, every: int | str, over: int | None) -> Spec:
    """The metric with another cadence, and then with the time of the plan as its life, unless a life is stated."""
    return spec if every == spec.every else with_life(varied(spec, every=every), over)


def cadences(spec: Spec, over: int | None) -> list[int | str]:
    """The configured cadence and usual ones with at least a few releases, the finest first."""
    usual = {every for every in CADENCES if over is not None and FEWEST * every <= over}
    return sorted({*usual, spec.every}) if isinstance(spec.every, int) else [spec.every, *sorted(usual)]


def finest(tried: Sequence[tuple[int | str, Look]], over: int | None) -> int | str:
    """The finest of the cadences with many releases that costs no more than a quarter in error."""
    often = [
        (every, look) for every, look in tried if isinstance(every, str) or (over is not None and MANY * every <= over)
    ] or tried
    least = min(look.error for _, look in often)
    return next(every for every, look in often if look.error <= FREQUENT * least)


# -------------------------------------------------------------------- what is compared


def _best(spec: Spec, outlooks: Sequence[Outlook]) -> Outlook:
    """The outlook of least error at the end; those that need a prior only if the configuration has one."""
    possible = [
        outlook
        for outlook in outlooks
        if outlook.refused is None and (outlook.spec.algorithm not in WITH_PRIOR or spec.prior is not None)
    ]
    if not possible:
        raise ValueError(outlooks[-1].refused)
    return min(possible, key=lambda outlook: outlook.error)


def _completed(spec: Spec, source: Source) -> Spec:
    """The settings with expected users, and with the time of the plan as life where a default was taken."""
    about = source.about(spec)
    return varied(with_life(spec, about.over), users=spec.users or about.users)


def _halved(best: Outlook, source: Source, what: str) -> Cost | None:
    def of_factor(factor: float) -> Iterator[tuple[Look, float | None, int]]:
        for scaled, spec in source.scaled(best.spec, what, factor):
            about = scaled.about(spec)
            amounts = {"epsilon": float(spec.epsilon), "users": about.users, "time": about.over and about.over / 1e6}
            yield scaled.final(spec), amounts[what], spec.contribution_limit

    return halved(best.error, of_factor)


@dataclass(frozen=True)
class MeanComparison:
    """The outcome of every setting that was tried for one coordinate of a mean."""

    spec: Spec
    coordinate: int
    source: Source
    outlooks: tuple[Outlook, ...]  # an algorithm each
    best: Outlook
    caps: tuple[tuple[int, Look], ...]
    cadences: tuple[tuple[int | str, Look], ...]
    advised: Spec  # with all recommended settings
    outcome: Look  # what comes of it at the end
    halving: dict[str, Cost | None]
    groups: GroupsOutlook | None

    @classmethod
    def of(
        cls, spec: Spec, coordinate: int, source: Source, advance: Callable[[float], None] = lambda part: None
    ) -> Self:
        """Compare algorithms, caps and cadences, and find what half the error would cost.

        Raises:
            ValueError: no algorithm can do with these settings.
        """
        about = source.about(spec)
        candidates = list(algorithms(spec, about.users))
        tried_caps = [] if spec.privacy_unit.is_event else caps(spec, about.samples)
        stages = len(candidates) + len(tried_caps) + 2
        outlooks = []
        for candidate in candidates:
            outlooks.append(source.outlook(candidate))
            advance(len(outlooks) / stages)
        best = _best(spec, outlooks)
        tried = []
        for cap in tried_caps:
            tried.append((cap, source.final(capped(best.spec, cap))))
            advance((len(outlooks) + len(tried)) / stages)
        cap = smallest(tried) if tried else spec.max_contributions
        often = [
            (every, source.final(with_cadence(capped(best.spec, cap), every, about.over)))
            for every in cadences(spec, about.over)
        ]
        advised = _completed(with_cadence(capped(best.spec, cap), finest(often, about.over), about.over), source)
        advance(1 - 1 / stages)
        halving = {what: _halved(best, source, what) for what in ("epsilon", "users", "time")}
        configured = of_algorithm(outlooks, spec.algorithm)
        groups = None if configured.refused is not None else source.groups(configured.spec)
        return cls(
            spec, coordinate, source, tuple(outlooks), best, tuple(tried), tuple(often), advised, source.final(advised),
            halving, groups,
        )  # fmt: skip
