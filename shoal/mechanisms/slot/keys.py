"""Reads a metric's keys for a statistic of places and slots, and refuses what does not fit."""

from collections.abc import Iterator
from fractions import Fraction

from shoal.mechanisms import rules
from shoal.mechanisms.bins.shares import BINS
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.slot.cell import Axis
from shoal.mechanisms.slot.means.several import MOST
from shoal.mechanisms.spec import FEW_USERS, PATTERN, Spec
from shoal.mechanisms.words import many

FOR_MEANS = ("best", "baseline", "array-averaging", "levy", "fixed-quantile", "epsilon-quantile", FEW_USERS)
FOR_OTHERS = ("best", "baseline")  # of mean and variance, and of distributions
CLAMPING = ("best", FEW_USERS)
PLACES = "what a person did in a place is protected; that they were there, and when, is not"


def check(spec: Spec) -> None:
    """Refuse keys that are missing, not for a slot, or contradict one another."""
    rules.refuse_presence_keys(spec)
    if spec.slot is None:
        raise ValueError("slot is missing; add it")
    unused = ("every", "step", "decay", "life")
    rules.refuse_given(spec, unused, "is not for statistics per slot, which are released at its end")
    rules.refuse_given(spec, ("withheld",), "is for means without a decay; a slot says what is dropped")
    if spec.max_groups_per_user != 1:
        raise ValueError("max_groups_per_user is for means and sums; a slot has max_cells; use that")
    _check_algorithm(spec)
    if len(spec.values) > 1:
        _check_several(spec)
    _check_cells(spec)
    _check_unit(spec, spec.slot)
    rules.check_limits(spec)
    rules.check_values(spec)
    axes(spec)  # what it refuses, it refuses now


def _check_algorithm(spec: Spec) -> None:
    allowed = FOR_MEANS if spec.statistic == "slot-mean" else FOR_OTHERS
    if spec.algorithm not in allowed:
        raise ValueError(f"{spec.algorithm} is not for a {spec.statistic}; use one of: {', '.join(allowed)}")
    uses_few = FEW_USERS in (spec.algorithm, spec.prior)
    if spec.prior is not None and spec.prior != FEW_USERS:
        raise ValueError(f'prior of a statistic per slot is "{FEW_USERS}", or none')
    if spec.prior is not None and (spec.statistic != "slot-mean" or spec.algorithm != "best"):
        raise ValueError(f'prior = "{FEW_USERS}" is for a slot-mean with algorithm best; remove it')
    if uses_few != (spec.delta != 0):
        raise ValueError(
            "delta must be above 0: few-users is approximate differential privacy"
            if uses_few
            else f"delta must be 0: {spec.algorithm} is pure differential privacy"
        )
    if spec.sigma is not None and not uses_few:
        raise ValueError("sigma of a statistic per slot is for few-users; remove it")
    if spec.spread_share is not None:
        _check_share(spec)
    if spec.statistic != "slot-distribution":
        rules.refuse_given(spec, ("bins", "quantiles"), "is for a slot-distribution")
    elif spec.grid < (spec.bins or BINS):
        raise ValueError("bins are more than the grid has steps; use fewer, or a finer grid")


def _check_share(spec: Spec) -> None:
    if (spec.statistic, spec.algorithm) != ("slot-mean", "best"):
        raise ValueError("spread_share is for a slot-mean with algorithm best, which has a choice; remove it")
    if spec.prior is not None:
        raise ValueError("spread_share and prior both find where values lie; keep one")


def _check_several(spec: Spec) -> None:
    if spec.statistic != "slot-mean":
        raise ValueError(
            f"several values are for a slot-mean and for means, not for a {spec.statistic}; use a metric for each"
        )
    if spec.prior is not None:
        raise ValueError(
            f'several values have no prior = "{FEW_USERS}"; use algorithm = "{FEW_USERS}", or a metric for each'
        )
    if spec.algorithm != FEW_USERS and len(spec.values) > MOST:
        raise ValueError(
            f"value has {len(spec.values)} coordinates, and a slot-mean {MOST} at most, or 32 with {FEW_USERS}; use "
            "several metrics"
        )


def axes(spec: Spec) -> tuple[Axis, ...]:
    """The coordinates of a value that has several."""
    if len(spec.values) == 1:
        return ()
    return tuple((Grid(*ends, spec.grid), sigma) for ends, sigma in zip(spec.ranges, spec.sigmas, strict=True))


def numbers(spec: Spec) -> int:
    """The numbers of a release that have an interval by noise: of a distribution those of cdf and histogram."""
    if spec.statistic == "slot-mean":
        return len(spec.values)
    return 2 if spec.statistic == "slot-mean-variance" else 2 * (spec.bins or BINS) - 1


def failure(spec: Spec) -> Fraction:
    """The probability that a bound fails, less where those of few users are to hold for several releases together."""
    if spec.algorithm != FEW_USERS or spec.simultaneous is None:
        return spec.failure
    return min(spec.failure, Fraction(1, 20) / spec.simultaneous)


def _check_cells(spec: Spec) -> None:
    if spec.cell is not None and spec.group is not None:
        raise ValueError("cell and group both say where an event belongs; keep one")
    if spec.cell is None and spec.group is None:
        for key in ("max_cells", "across_cells"):
            if getattr(spec, key) is not None:
                raise ValueError(f"{key} needs cells: add cell or group, or remove it")


def _check_unit(spec: Spec, slot: int) -> None:
    """Refuse a unit that is not a number of whole slots, or whose share of a slot is not known beforehand."""
    rules.check_unit_of_slots(spec, slot)
    unit = spec.privacy_unit
    if unit.period == slot:
        if spec.max_slots not in (None, 1):
            raise ValueError("max_slots is for units longer than a slot; remove it")
    elif spec.max_slots is None:
        raise ValueError(
            f"max_slots is missing: unit {unit.name} has many slots, and each has a share of epsilon; add it"
        )
    elif unit.period is not None and spec.max_slots > unit.period // slot:
        raise ValueError(f"max_slots: a {unit.name} has {unit.period // slot} slots; use so many at most")


def is_clamped(spec: Spec) -> bool:
    """Whether the estimate is clamped; `best` and `few-users` are unless told otherwise."""
    return spec.algorithm in CLAMPING if spec.clamp is None else spec.clamp


def clauses(spec: Spec, loss: str) -> Iterator[str]:
    """The guarantee in words: what is protected, and how slots and cells share a unit's epsilon."""
    yield PLACES if spec.cell is not None else f"what a person did is protected; {PATTERN}"
    yield loss
    unit, slots, cells = spec.privacy_unit, spec.slot_limit, spec.cell_limit
    where = "cell" if spec.group is None else "group"
    if unit.period != spec.slot:
        yield f"a {unit.words()} counts in at most {many(slots, 'slot')}, each with epsilon / {slots}"
    if spec.cell is not None or spec.group is not None:
        share = "" if cells == 1 else ", which share what the slot has"
        yield f"in a slot they count in at most {many(cells, where)}{share}"
    yield f"with at most {many(spec.contribution_limit, 'sample')} in each"
    if len(spec.values) > 1 and spec.algorithm != FEW_USERS:
        yield f"all {len(spec.values)} coordinates of a value together"
    if spec.min_users is not None:
        few = f"{where}s with fewer than {many(spec.min_users, 'user')}"
        yield f"{few} are not released, which is a courtesy"
