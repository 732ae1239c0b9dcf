"""Rules between the parts of a mean without a decay: each raises ValueError with the key, the fault and the remedy."""

from shoal.mechanisms.continual_mean import OF_EVENTS, WITH_DELTA
from shoal.mechanisms.continual_mean.coordinates import MOST, MOST_WITH_DELTA
from shoal.mechanisms.parts.at import EachContribution, Ticks
from shoal.mechanisms.parts.by import AroundPrior, FewUsersPrior, OfMeans, Sharp
from shoal.mechanisms.parts.hides import ValuesOf
from shoal.mechanisms.parts.metric import Budget
from shoal.mechanisms.parts.of import Mean
from shoal.mechanisms.parts.rules import Rule, life, names_of

At = EachContribution | Ticks


def coordinates(of: Mean, by: OfMeans, budget: Budget) -> None:
    """Refuse more coordinates than the algorithm supports."""
    may_be_gaussian = not isinstance(by, AroundPrior)
    if of.values.count > MOST and not (budget.delta and may_be_gaussian):
        more = f", or {MOST_WITH_DELTA} with a delta" if may_be_gaussian else ""
        given = f"value has {of.values.count} coordinates"
        raise ValueError(f"{given}, and a mean without a decay {MOST} at most{more}; use several metrics")


def events(hides: ValuesOf, by: OfMeans, at: At, of: Mean) -> None:
    """Refuse unit event with algorithms on blocks, a release per contribution, or sharp with several coordinates."""
    # One by one, two events of a user at one time would have no order but that of their values.
    if not hides.unit.is_event:
        return
    if not isinstance(by, OF_EVENTS):
        raise ValueError(f"{by.name} is not for unit event, which has no blocks; use one of: {names_of(OF_EVENTS)}")
    if isinstance(at, EachContribution):
        raise ValueError("every must be a duration with unit event, whose samples are summed over a tick")
    if isinstance(by, Sharp) and of.values.count > 1:
        raise ValueError("sharp has no sums of several values over a tick, as unit event needs; use naive")


def priors(of: Mean, by: OfMeans) -> None:
    """Refuse a prior outside its range."""
    if isinstance(by, AroundPrior) and not isinstance(by.priors, FewUsersPrior):
        for prior, (low, high) in zip(by.priors, of.values.ranges, strict=True):
            if not low <= prior <= high:
                raise ValueError("prior lies outside the range; choose a number inside it")


def sigma_of_sharp(of: Mean, hides: ValuesOf, by: OfMeans, budget: Budget) -> None:
    """Refuse `sigma` of sharp with unit event, several coordinates or a delta."""
    if not isinstance(by, Sharp) or by.sigma(0) is None:
        return
    if hides.unit.is_event:
        raise ValueError("sigma is not for unit event, which has no blocks; remove it")
    if of.values.count > 1:
        raise ValueError("sharp takes a sigma for one value; use several metrics, or an algorithm on blocks")
    if budget.delta:
        raise ValueError("sharp takes sigma without a delta; remove one of the two")


def delta(by: OfMeans, budget: Budget) -> None:
    """Refuse a delta where nothing uses it, and its absence where few users choose a prior."""
    if isinstance(by, AroundPrior) and isinstance(by.priors, FewUsersPrior):
        if not budget.delta:
            raise ValueError("delta must be above 0: few-users is approximate differential privacy")
    elif budget.delta and not isinstance(by, WITH_DELTA):
        raise ValueError(
            f"delta must be 0: {by.name} divides epsilon over levels and priors, and has no Gaussian noise; "
            f"remove it, or use one of: {names_of(WITH_DELTA)}"
        )


def users(by: OfMeans) -> None:
    """Require a number of users for algorithms on trees."""
    if not isinstance(by, Sharp) and by.users is None:
        raise ValueError(f"users is missing: the trees of {by.name} are made for so many; add it")


def withheld(at: At, by: OfMeans) -> None:
    """Refuse `withheld` with a release per contribution."""
    if by.withheld and isinstance(at, EachContribution):
        raise ValueError(
            "withheld counts what came in a tick, and a release per contribution has none; remove it, or let every "
            "be a duration"
        )


RULES: tuple[Rule, ...] = (coordinates, events, priors, sigma_of_sharp, delta, users, life, withheld)
