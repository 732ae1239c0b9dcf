"""What a metric's keys say of a statistic per slot under relation add-remove, and what is refused."""

from fractions import Fraction

from shoal.mechanisms import rules
from shoal.mechanisms.bins.shares import BINS
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.moments import check_grid
from shoal.mechanisms.selection.first_crossing import FirstCrossing, falling
from shoal.mechanisms.spec import ADD_REMOVE, PER_SLOT, Spec
from shoal.mechanisms.two_sided.accounts import Rule
from shoal.mechanisms.two_sided.keys import HAS_NO_USE, NO_USE, TWO_SIDED

STATISTICS = PER_SLOT
DISTRIBUTION = "slot-distribution"
SHARE = Fraction(1, 2)  # of epsilon, for finding cells, where nothing else is said
NO_PART = ("every", "step", "decay", "life", "withheld")  # keys
EXACT = ("min_users", "contribution_cap", "spread_share")  # keys that go by exact numbers of samples or users
IN_ALL = ("max_cells", "max_slots", "across_cells")  # keys


def takes(spec: Spec) -> bool:
    """Whether it is a statistic per slot."""
    return spec.statistic in PER_SLOT


def check(spec: Spec) -> None:
    """Refuse keys that are missing, not for a slot that protects presence, or contradict one another."""
    if spec.algorithm != TWO_SIDED:
        raise ValueError(f"algorithm {spec.algorithm} is for relation values; remove it")
    if spec.slot is None:
        raise ValueError("slot is missing; add it")
    _refuse(spec)
    rules.check_limits(spec)
    rules.check_values(spec)
    if len(spec.values) > 1:
        raise ValueError("several values are for relation values; use a metric for each")
    if spec.statistic == "slot-mean-variance":
        check_grid(spec.grid, spec.statistic)
    rules.check_unit_of_slots(spec, spec.slot)
    rules.check_times(spec, "slot", spec.slot)
    _check_cells(spec)


def _refuse(spec: Spec) -> None:
    rules.refuse_given(spec, NO_PART, "is not for statistics per slot, which are released at its end")
    rules.refuse_given(spec, ("users", *NO_USE), HAS_NO_USE)
    rules.refuse_given(
        spec, ("clip",), "is for means and sums of every step: a slot has no earlier values to choose by"
    )
    rules.refuse_given(spec, EXACT, f"goes by how many there are, which relation {ADD_REMOVE} protects")
    why = f"is for relation values: under {ADD_REMOVE} max_contributions limits a unit in all cells and slots together"
    rules.refuse_given(spec, IN_ALL, why)
    if spec.statistic != DISTRIBUTION:
        rules.refuse_given(spec, ("bins", "quantiles"), "is for a slot-distribution")
    elif spec.clamp is not None:
        raise ValueError("clamp is for means: shares lie within 0 and 1 anyway; remove it")
    elif spec.grid < bins_of(spec):
        raise ValueError("bins are more than the grid has steps; use fewer, or a finer grid")
    if spec.max_groups_per_user != 1:
        raise ValueError(f"max_groups_per_user {why}; remove it")


def _check_cells(spec: Spec) -> None:
    if spec.cell is not None and spec.group is not None:
        raise ValueError("cell and group both say where an event belongs; keep one")
    if not has_cells(spec):
        rules.refuse_given(spec, ("groups", "selection"), "needs cells: add cell or group")
    elif not finds(spec):
        rules.refuse_given(spec, ("selection",), "is for cells that nobody declared, and groups declares them")
    if not finds(spec) and spec.delta:
        raise ValueError("delta must be 0: it is for cells that nobody declared; remove it")
    if finds(spec) and not spec.delta:
        raise ValueError(
            "delta must be above 0, for cells that nobody declared are shown once enough units are there; or declare "
            "them: groups = [...]"
        )
    if finds(spec) and selection_epsilon(spec) >= spec.epsilon:
        raise ValueError(
            "selection takes all of epsilon, and leaves nothing for what is released; give it a smaller one"
        )


def has_cells(spec: Spec) -> bool:
    """Whether events are in places; else there is one for all."""
    return spec.cell is not None or spec.group is not None


def finds(spec: Spec) -> bool:
    """Whether cells are found that nobody declared."""
    return has_cells(spec) and spec.groups is None


def bins_of(spec: Spec) -> int:
    """The number of bins of a distribution."""
    return BINS if spec.bins is None else spec.bins


def is_clamped(spec: Spec) -> bool:
    """Whether what is published is clamped to its known ends, as by default."""
    return spec.clamp is not False


def selection_epsilon(spec: Spec) -> Fraction:
    """The part of epsilon that finds cells: 0 where all are declared, or there is one."""
    if not finds(spec):
        return Fraction(0)
    given = None if spec.selection is None else spec.selection.epsilon
    return spec.epsilon * SHARE if given is None else given


def selection_of(spec: Spec) -> FirstCrossing | None:
    """How a slot finds its cells; None where all are declared, or there is one."""
    return finding(spec, selection_epsilon(spec)) if finds(spec) else None


def finding(spec: Spec, epsilon: Fraction) -> FirstCrossing:
    """How a slot would find its cells with so much of epsilon, at one look.

    A unit of one slot is more likely to be in its first cell than in a later one, and weighs most there. Of a longer
    unit all count alike: what is later in its day is not less worth finding.
    """
    count = 1 if spec.selection is None else spec.selection.keys
    weights, unit = falling(count) if spec.privacy_unit.period == spec.slot else ((1,) * count, count)
    return FirstCrossing(epsilon, spec.delta, 1, weights, unit, ends=True)


def rule_of(spec: Spec) -> Rule:
    """The rule by which accounts decide which samples of a unit count, from the metric's keys."""
    selection = selection_of(spec)
    return Rule(
        max_contributions=spec.contribution_limit,
        start=spec.start or 0,
        end=spec.end,
        step=spec.slot or 1,
        period=spec.privacy_unit.period,
        declared=None if spec.groups is None else frozenset(spec.groups),
        weights=() if selection is None else selection.weights,
        anew=selection is not None,
        bins=(bins_of(spec), Grid(*spec.ranges[0], spec.grid)) if spec.statistic == DISTRIBUTION else None,
    )
