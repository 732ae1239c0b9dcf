"""The statistic `mean` without a decay: its class, which reads a metric's keys and refuses what does not fit.

All algorithms are here by name; of several coordinates each has a mean of its own, with an equal part of epsilon. With
a delta noise may be Gaussian: then each has an equal part of the rho that epsilon and delta allow.
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, cast

from shoal.mechanisms import rules
from shoal.mechanisms.accounts import Accounts, Site
from shoal.mechanisms.continual_mean import MEANS, OF_EVENTS, WITH_DELTA, WITH_PRIOR, WITH_SIGMA
from shoal.mechanisms.continual_mean.accounts import MeanAccounts, Rule
from shoal.mechanisms.continual_mean.coordinates import MOST, MOST_WITH_DELTA, Coordinates
from shoal.mechanisms.continual_mean.few_users_prior import SHARE
from shoal.mechanisms.continual_mean.full import AS_PRINTED, Full
from shoal.mechanisms.continual_mean.given_prior import GivenPrior
from shoal.mechanisms.continual_mean.mean import MeanParameters
from shoal.mechanisms.continual_mean.multi_tree import MultiTree
from shoal.mechanisms.continual_mean.naive import Naive
from shoal.mechanisms.continual_mean.sharp import Sharp
from shoal.mechanisms.continual_mean.single_tree import SingleTree
from shoal.mechanisms.continual_mean.subgaussian import Subgaussian
from shoal.mechanisms.continual_mean.wishful import Wishful
from shoal.mechanisms.error_bars import coverage_of, six_digits
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.life import DAY
from shoal.mechanisms.privacy.zcdp import largest_rho
from shoal.mechanisms.spec import FEW_USERS, FIRST_MEDIAN, PATTERN, VALUES, Spec
from shoal.mechanisms.statistic import Bounder
from shoal.mechanisms.stepped.accounts import event_accounts
from shoal.mechanisms.withheld import CountingAccounts, CountingMean
from shoal.mechanisms.words import many

ALGORITHMS: dict[str, type[MeanParameters]] = {
    cls.name: cls for cls in (Sharp, Naive, Wishful, SingleTree, MultiTree, Full)
}


class ContinualMean:
    """A statistic: the mean of everything so far, without decay."""

    statistics: ClassVar[tuple[str, ...]] = ("mean",)
    algorithms: ClassVar[tuple[str, ...]] = MEANS
    relation: ClassVar[str] = VALUES
    apart: ClassVar[bool] = False
    shared: ClassVar[bool] = False

    @staticmethod
    def defaults(statistic: str) -> dict[str, Any]:
        return {}

    @staticmethod
    def takes(spec: Spec) -> bool:
        return spec.statistic == "mean" and spec.step is None and spec.decay is None

    @classmethod
    def check(cls, spec: Spec) -> None:
        rules.refuse_presence_keys(spec)
        rules.refuse_slot_keys(spec)
        if spec.privacy_unit.period is not None:
            raise ValueError(f"unit {spec.unit!r} is not built for means without a decay; they have: user, event")
        rules.check_limits(spec)
        if spec.every is None:
            raise ValueError("every is missing; add it")
        if spec.algorithm not in MEANS:
            raise ValueError(f"{spec.algorithm} is not for means without a decay; use one of: {', '.join(MEANS)}")
        rules.check_values(spec)
        _check_coordinates(spec)
        if spec.privacy_unit.is_event:
            _check_events(spec)
        _check_assumptions(spec)
        _check_delta(spec)
        _check_tuning(spec)
        if spec.withheld and spec.every == "contribution":
            raise ValueError(
                "withheld counts what came in a tick, and a release per contribution has none; remove it, or let every "
                "be a duration"
            )

    @classmethod
    def of(cls, spec: Spec) -> MeanParameters | Coordinates | CountingMean:
        mean = cls.mean(spec)
        return CountingMean(mean) if spec.withheld else mean

    @staticmethod
    def mean(spec: Spec) -> MeanParameters | Coordinates:
        """The mean alone, whether or not its releases say what they withhold."""
        noise = _noise_of(spec)
        parts = tuple(_mean_of(spec, coordinate, noise) for coordinate in range(len(spec.values)))
        return parts[0] if len(parts) == 1 else Coordinates(parts)

    @classmethod
    def accounts(cls, spec: Spec, bounder: Bounder, site: Site) -> Accounts:
        accounts = cls._accounts(spec, bounder, site)
        return CountingAccounts(accounts, site.send) if spec.withheld else accounts

    @staticmethod
    def _accounts(spec: Spec, bounder: Bounder, site: Site) -> Accounts:
        if spec.privacy_unit.is_event:
            return event_accounts(spec.max_events_per_user, bounder.add, site)
        rule = Rule(spec.contribution_limit, spec.max_groups_per_user, len(spec.values))
        return MeanAccounts(rule, bounder.add, site)

    @staticmethod
    def is_clamped(spec: Spec) -> bool:
        return spec.algorithm == "sharp" if spec.clamp is None else spec.clamp

    @staticmethod
    def clauses(spec: Spec, loss: str) -> Iterator[str]:
        yield loss
        if spec.delta and spec.prior != FEW_USERS:
            yield _used(spec)
        yield PATTERN
        yield from rules.event_limit(spec)
        if spec.group is not None and not spec.privacy_unit.is_event:
            groups = spec.max_groups_per_user
            part = "epsilon" if _noise_of(spec).rho is None else "rho"
            share = f", each with {part} / {groups}" if groups > 1 else ""
            whose = f"a {spec.privacy_unit.words()} counts in at most {many(groups, 'group')}"
            yield f"{whose}{share}, with at most {spec.contribution_limit} samples in each"
        if spec.algorithm == "sharp" and spec.sigma is not None:
            yield "it holds whatever values are like, also if they scatter more than sigma says"
        if spec.prior == FEW_USERS:
            yield from _few_users_clause(spec)
        elif spec.prior is not None:
            yield (
                "its prior is public, and private only if it was made without these values, or charged where it was "
                "made"
            )
        if spec.withheld:
            yield "each release says how many samples came and do not count, or not yet, and what share they are"


class _Noise(NamedTuple):
    """The noise of a mean: its kind, where delta leaves a choice, and the rho of all coordinates if it is Gaussian."""

    kind: str | None
    rho: Fraction | None


LAPLACE, GAUSSIAN = "laplace", "gaussian"


def _noise_of(spec: Spec) -> _Noise:
    """The noise of less variance at the last release expected; a function of public keys alone."""
    if not spec.delta or spec.prior == FEW_USERS:
        return _Noise(None, None)
    pure, gaussian = _Noise(LAPLACE, None), _Noise(GAUSSIAN, largest_rho(spec.epsilon, spec.delta))
    variances = [six_digits(_mean_of(spec, 0, noise).late_variance) for noise in (pure, gaussian)]
    return gaussian if variances[1] < variances[0] else pure


def _used(spec: Spec) -> str:
    """The clause on what delta is for."""
    if _noise_of(spec).rho is None:
        return "its noise is Laplace, which is less than Gaussian noise here, so that delta is not used: remove it"
    return "its noise is Gaussian, which is what delta is for"


def _check_delta(spec: Spec) -> None:
    """Refuse a delta where nothing has a use for it, and its absence where few users choose a prior."""
    if spec.prior == FEW_USERS:
        if not spec.delta:
            raise ValueError("delta must be above 0: few-users is approximate differential privacy")
    elif spec.delta and spec.algorithm not in WITH_DELTA:
        raise ValueError(
            f"delta must be 0: {spec.algorithm} divides epsilon over levels and priors, and has no Gaussian noise; "
            f"remove it, or use one of: {', '.join(WITH_DELTA)}"
        )


def _check_coordinates(spec: Spec) -> None:
    """Refuse more coordinates than noise allows, which grows with their number; with a delta with its root."""
    may_be_gaussian = spec.prior is None
    if len(spec.values) > MOST and not (spec.delta and may_be_gaussian):
        more = f", or {MOST_WITH_DELTA} with a delta" if may_be_gaussian else ""
        given = f"value has {len(spec.values)} coordinates"
        raise ValueError(f"{given}, and a mean without a decay {MOST} at most{more}; use several metrics")


def _check_events(spec: Spec) -> None:
    """Refuse what sends samples one by one: two events of a user at one time would have no order but their values'."""
    if spec.algorithm not in OF_EVENTS:
        raise ValueError(
            f"{spec.algorithm} is not for unit event, which has no blocks; use one of: {', '.join(OF_EVENTS)}"
        )
    if spec.every == "contribution":
        raise ValueError("every must be a duration with unit event, whose samples are summed over a tick")
    if spec.algorithm == "sharp" and len(spec.values) > 1:
        raise ValueError("sharp has no sums of several values over a tick, as unit event needs; use naive")


def _check_assumptions(spec: Spec) -> None:
    if spec.algorithm in WITH_PRIOR and spec.prior is None:
        raise ValueError(f"prior is missing: {spec.algorithm} clips around it; add it, or use full")
    if spec.algorithm not in WITH_PRIOR and spec.prior is not None:
        raise ValueError(f"prior is not for {spec.algorithm}; remove it, or use one of: {', '.join(WITH_PRIOR)}")
    for prior, (low, high), _ in zip(spec.priors, spec.ranges, spec.sigmas, strict=True):
        if prior is not None and not low <= prior <= high:
            raise ValueError("prior lies outside the range; choose a number inside it")
    if spec.sigma is not None:
        _check_sigma(spec)


def _check_sigma(spec: Spec) -> None:
    """Refuse a sigma where blocks are not what counts, and for sharp where its one centre would not do."""
    if spec.algorithm not in WITH_SIGMA:
        raise ValueError(f"sigma is for algorithms on blocks, and sharp; {spec.algorithm} needs a range of the values")
    if spec.algorithm == "sharp":
        if spec.privacy_unit.is_event:
            raise ValueError("sigma is not for unit event, which has no blocks; remove it")
        if len(spec.values) > 1:
            raise ValueError("sharp takes a sigma for one value; use several metrics, or an algorithm on blocks")
        if spec.delta:
            raise ValueError("sharp takes sigma without a delta; remove one of the two")


def _few_users_clause(spec: Spec) -> Iterator[str]:
    """How its prior is chosen, and what that takes of epsilon and delta."""
    few = cast(GivenPrior, _mean_of(spec, 0, _noise_of(spec))).few
    yield (
        f"its prior is chosen privately, once in each group, with {SHARE} of epsilon and all of delta, by the first "
        f"{few.users:,} users with {many(few.samples, 'sample')}; nothing is released before"
    )


def _check_tuning(spec: Spec) -> None:
    if spec.algorithm != "sharp" and spec.users is None:
        raise ValueError(f"users is missing: the trees of {spec.algorithm} are made for so many; add it")
    rules.check_life(spec)
    if spec.life is not None and spec.every == "contribution":
        raise ValueError("life needs a cadence in event time; a release per contribution uses users; remove it")


def _mean_of(spec: Spec, coordinate: int, noise: _Noise) -> MeanParameters:
    low, high = spec.ranges[coordinate]
    given: dict[str, Fraction | int | None]
    given = {"prior": spec.priors[coordinate], "sigma": spec.sigmas[coordinate]}
    if spec.algorithm == "full" and spec.median == FIRST_MEDIAN:
        given["sensitivity"] = AS_PRINTED
    if spec.algorithm == "sharp":
        day = -(-DAY // spec.every) if isinstance(spec.every, int) else None
        given |= {"horizon": spec.expected_releases, "each": day is None, "day": day}
    if spec.prior == FEW_USERS:
        given |= {"delta": spec.delta / len(spec.values)}
    assumptions: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    cls = Subgaussian if spec.algorithm == "sharp" and spec.sigma is not None else ALGORITHMS[spec.algorithm]
    return cls(
        grid=Grid(low, high, spec.grid),
        epsilon=spec.epsilon / len(spec.values),
        max_contributions=spec.contribution_limit,
        users=_users(spec),
        groups=spec.max_groups_per_user,
        failure=spec.failure,
        clamps=ContinualMean.is_clamped(spec),
        coverage=coverage_of(spec.simultaneous, len(spec.values)),
        noise_kind=noise.kind,
        rho=None if noise.rho is None else noise.rho / len(spec.values),
        **assumptions,
    )


def _users(spec: Spec) -> int:
    """The users expected in a group; 1 for sharp with groups, since nothing says how users spread over them."""
    return 1 if spec.users is None or (spec.group and spec.algorithm == "sharp") else spec.users
