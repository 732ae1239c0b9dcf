"""The statistic `mean` without a decay: its class, made of a metric's parts.

All algorithms are here by name; of several coordinates each has a mean of its own, with an equal part of epsilon. With
a delta noise may be Gaussian: then each has an equal part of the rho that epsilon and delta allow.
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, cast

from shoal.mechanisms.accounts import Accounts, Site
from shoal.mechanisms.continual_mean.accounts import MeanAccounts, Rule
from shoal.mechanisms.continual_mean.coordinates import Coordinates
from shoal.mechanisms.continual_mean.few_users_prior import SHARE
from shoal.mechanisms.continual_mean.full import Full
from shoal.mechanisms.continual_mean.given_prior import GivenPrior
from shoal.mechanisms.continual_mean.mean import MeanParameters
from shoal.mechanisms.continual_mean.multi_tree import MultiTree
from shoal.mechanisms.continual_mean.naive import Naive
from shoal.mechanisms.continual_mean.sharp import Sharp
from shoal.mechanisms.continual_mean.single_tree import SingleTree
from shoal.mechanisms.continual_mean.subgaussian import Subgaussian
from shoal.mechanisms.continual_mean.wishful import Wishful
from shoal.mechanisms.error_bars import coverage_of, six_digits
from shoal.mechanisms.grid import grids_of
from shoal.mechanisms.life import DAY, expected_releases
from shoal.mechanisms.overall_accounts import accounts_of_values
from shoal.mechanisms.parts import by
from shoal.mechanisms.parts.at import Ticks
from shoal.mechanisms.parts.expect import expect
from shoal.mechanisms.parts.hides import Events, PerKey
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.of import Mean
from shoal.mechanisms.parts.per import Keys
from shoal.mechanisms.privacy.zcdp import largest_rho
from shoal.mechanisms.spec import PATTERN
from shoal.mechanisms.statistic import Bounder
from shoal.mechanisms.withheld import CountingAccounts, CountingMean
from shoal.mechanisms.words import event_limit, many

ALGORITHMS: dict[str, type[MeanParameters]] = {
    cls.name: cls for cls in (Sharp, Naive, Wishful, SingleTree, MultiTree, Full)
}


class ContinualMean:
    """A statistic: the mean of everything so far, without decay."""

    apart: ClassVar[bool] = False
    shared: ClassVar[bool] = False

    @classmethod
    def of(cls, metric: Metric) -> MeanParameters | Coordinates | CountingMean:
        mean = cls.mean(metric)
        return CountingMean(mean) if _how(metric).withheld else mean

    @staticmethod
    def mean(metric: Metric) -> MeanParameters | Coordinates:
        """The mean alone, whether or not its releases say what they withhold."""
        noise, count = _noise_of(metric), expect(metric.of, Mean).values.count
        parts = tuple(_mean_of(metric, coordinate, noise) for coordinate in range(count))
        return parts[0] if len(parts) == 1 else Coordinates(parts)

    @classmethod
    def accounts(cls, metric: Metric, bounder: Bounder, site: Site) -> Accounts:
        accounts = cls._accounts(metric, bounder, site)
        return CountingAccounts(accounts, site.send) if _how(metric).withheld else accounts

    @staticmethod
    def _accounts(metric: Metric, bounder: Bounder, site: Site) -> Accounts:
        limits = expect(metric.hides.limits, PerKey, Events)
        if isinstance(limits, Events):
            return accounts_of_values(metric, bounder, site)
        rule = Rule(limits.samples, limits.keys, expect(metric.of, Mean).values.count)
        return MeanAccounts(rule, bounder.add, site)

    @staticmethod
    def clauses(metric: Metric, loss: str) -> Iterator[str]:
        limits, how = metric.hides.limits, _how(metric)
        yield loss
        if metric.budget.delta and not _has_few_users(how):
            yield _used(metric)
        yield PATTERN
        if isinstance(limits, Events):
            yield from event_limit(limits.of_a_user)
        elif isinstance(metric.per, Keys) and isinstance(limits, PerKey):
            part = "epsilon" if _noise_of(metric).rho is None else "rho"
            share = f", each with {part} / {limits.keys}" if limits.keys > 1 else ""
            whose = f"a {metric.unit.words()} counts in at most {many(limits.keys, 'group')}"
            yield f"{whose}{share}, with at most {limits.samples} samples in each"
        if isinstance(how, by.Sharp) and how.sigma(0) is not None:
            yield "it holds whatever values are like, also if they scatter more than sigma says"
        if _has_few_users(how):
            yield from _few_users_clause(metric)
        elif isinstance(how, by.AroundPrior):
            yield (
                "its prior is public, and private only if it was made without these values, or charged where it was "
                "made"
            )
        if how.withheld:
            yield "each release says how many samples came and do not count, or not yet, and what share they are"


def _how(metric: Metric) -> by.OfMeans:
    return expect(metric.by, by.OfMeans)


def _has_few_users(how: by.OfMeans) -> bool:
    """Whether few users choose a prior."""
    return isinstance(how, by.AroundPrior) and isinstance(how.priors, by.FewUsersPrior)


class _Noise(NamedTuple):
    """The noise of a mean: its kind, where delta leaves a choice, and the rho of all coordinates if it is Gaussian."""

    kind: str | None
    rho: Fraction | None


LAPLACE, GAUSSIAN = "laplace", "gaussian"


def _noise_of(metric: Metric) -> _Noise:
    """The noise of less variance at the last release expected; a function of public parameters alone."""
    budget = metric.budget
    if not budget.delta or _has_few_users(_how(metric)):
        return _Noise(None, None)
    pure, gaussian = _Noise(LAPLACE, None), _Noise(GAUSSIAN, largest_rho(budget.epsilon, budget.delta))
    variances = [six_digits(_mean_of(metric, 0, noise).late_variance) for noise in (pure, gaussian)]
    return gaussian if variances[1] < variances[0] else pure


def _used(metric: Metric) -> str:
    """The clause on what delta is for."""
    if _noise_of(metric).rho is None:
        return "its noise is Laplace, which is less than Gaussian noise here, so that delta is not used: remove it"
    return "its noise is Gaussian, which is what delta is for"


def _few_users_clause(metric: Metric) -> Iterator[str]:
    """How its prior is chosen, and what that takes of epsilon and delta."""
    few = cast(GivenPrior, _mean_of(metric, 0, _noise_of(metric))).few
    yield (
        f"its prior is chosen privately, once in each group, with {SHARE} of epsilon and all of delta, by the first "
        f"{few.users:,} users with {many(few.samples, 'sample')}; nothing is released before"
    )


def _mean_of(metric: Metric, coordinate: int, noise: _Noise) -> MeanParameters:
    what, how, budget = expect(metric.of, Mean), _how(metric), metric.budget
    count = what.values.count
    cls = ALGORITHMS[how.name]
    if isinstance(how, by.Sharp) and how.sigma(0) is not None:
        cls = Subgaussian
    return cls(
        grid=grids_of(what.values)[coordinate],
        epsilon=budget.epsilon / count,
        max_contributions=metric.samples,
        users=_users(metric),
        groups=expect(metric.hides.limits, PerKey, Events).keys,
        failure=how.bars.failure,
        clamps=what.clamp,
        coverage=coverage_of(how.bars.simultaneous, count),
        noise_kind=noise.kind,
        rho=None if noise.rho is None else noise.rho / count,
        **_assumptions(metric, coordinate),
    )


def _assumptions(metric: Metric, coordinate: int) -> dict[str, Any]:
    """Keyword arguments of a mean's class that depend on the algorithm."""
    how = _how(metric)
    given: dict[str, Any] = {"sigma": how.sigma(coordinate)}
    if isinstance(how, by.Sharp):
        day = metric.at.length.count(DAY) if isinstance(metric.at, Ticks) else None
        given |= {"horizon": expected_releases(metric), "each": day is None, "day": day}
    elif isinstance(how, by.AroundPrior):
        if isinstance(how.priors, by.FewUsersPrior):
            given["delta"] = metric.budget.delta / expect(metric.of, Mean).values.count
        else:
            given["prior"] = how.priors[coordinate]
    return {name: value for name, value in given.items() if value is not None}


def _users(metric: Metric) -> int:
    """The users expected in a group; 1 for sharp with groups, since nothing says how users spread over them."""
    if metric.by.users is None or (isinstance(metric.per, Keys) and isinstance(metric.by, by.Sharp)):
        return 1
    return metric.by.users
