"""What a metric's keys say under relation add-remove, and what is refused."""

from fractions import Fraction

from shoal.mechanisms import rules
from shoal.mechanisms.selection.first_crossing import FirstCrossing, falling
from shoal.mechanisms.spec import ADD_REMOVE, Spec
from shoal.mechanisms.two_sided.accounts import Once, Rule

TWO_SIDED = "two-sided"
STATISTICS = ("mean", "sum", "count")
SHARE = Fraction(1, 5)  # of epsilon, for finding keys, where nothing else is said
HAS_NO_USE = "is not for relation add-remove"
NO_USE = ("users", "prior", "sigma", "simultaneous", "max_events_per_user")  # keys


def takes(spec: Spec) -> bool:
    """Always: what it is not for, `check` refuses."""
    return True


def check(spec: Spec) -> None:
    """Refuse keys that are missing, not for what protects presence, or contradict one another."""
    if spec.statistic not in STATISTICS:
        raise ValueError(f"relation {ADD_REMOVE} has no statistic {spec.statistic}; it has: {', '.join(STATISTICS)}")
    if spec.algorithm != TWO_SIDED:
        raise ValueError(f"algorithm {spec.algorithm} is for relation values; remove it")
    rules.refuse_slot_keys(spec)
    rules.check_limits(spec)
    rules.check_values(spec)
    rules.refuse_given(spec, NO_USE, HAS_NO_USE)
    if len(spec.values) > 1:
        raise ValueError("several values are for relation values; use a metric for each")
    _check_ticks(spec)
    _check_groups(spec)


def _check_ticks(spec: Spec) -> None:
    if spec.step is not None and spec.every is not None:
        raise ValueError("step and every say the same under relation add-remove; keep step")
    step = spec.cadence
    if step is None:
        raise ValueError("step is missing; add it: under relation add-remove all is released at the end of every step")
    if spec.start is None:
        raise ValueError("start is missing; add it: the time at which the first step begins, such as 2026-01-01")
    for key in ("start", "end"):
        if (getattr(spec, key) or 0) % step:
            raise ValueError(f"{key} is no multiple of step, counted from 1970-01-01; choose one that is")
    if spec.end is not None and spec.end <= spec.start:
        raise ValueError("end is not after start; choose a later one")


def _check_groups(spec: Spec) -> None:
    if spec.group is None:
        rules.refuse_given(spec, ("groups", "selection"), "needs a group")
    elif spec.groups is not None:
        rules.refuse_given(spec, ("selection",), "is for keys that nobody declared, and groups declares them")
    elif spec.delta == 0:
        raise ValueError(
            "delta must be above 0, for keys that nobody declared are shown once enough units have them; or declare "
            "them: groups = [...]"
        )
    elif selection_epsilon(spec) >= spec.epsilon:
        raise ValueError(
            "selection takes all of epsilon, and leaves nothing for what is released; give it a smaller one"
        )
    elif spec.expected_releases is None:
        raise ValueError("horizon is missing; add it, or end: keys that nobody declared need it")


def selection_epsilon(spec: Spec) -> Fraction:
    """The part of epsilon that finds keys: 0 where all are declared, or there are none."""
    if spec.group is None or spec.groups is not None:
        return Fraction(0)
    given = None if spec.selection is None else spec.selection.epsilon
    return spec.epsilon * SHARE if given is None else given


def selection_of(spec: Spec) -> FirstCrossing | None:
    """How keys are found; None where all are declared, or there are none."""
    epsilon = selection_epsilon(spec)
    if not epsilon:
        return None
    weights, unit = falling(1 if spec.selection is None else spec.selection.keys)
    return FirstCrossing(epsilon, spec.delta, spec.expected_releases or 1, weights, unit)


def rule_of(spec: Spec) -> Rule:
    """Whose samples count."""
    selection = selection_of(spec)
    once: Once | None = None
    most = spec.contribution_limit
    if spec.statistic == "users":
        once = "key" if spec.decay is None else "step"
        most = spec.max_groups_per_user if once == "key" else most
    return Rule(
        max_contributions=most,
        start=spec.start or 0,
        end=spec.end,
        step=spec.cadence or 1,
        period=spec.privacy_unit.period,
        declared=None if spec.groups is None else frozenset(spec.groups),
        weights=() if selection is None else selection.weights,
        once=once,
    )
