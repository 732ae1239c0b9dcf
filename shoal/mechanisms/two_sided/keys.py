"""What a metric's keys say under relation add-remove, and what is refused."""

from fractions import Fraction

from shoal.mechanisms import rules
from shoal.mechanisms.bins.shares import BINS
from shoal.mechanisms.moments import check_grid
from shoal.mechanisms.selection.first_crossing import FirstCrossing, falling
from shoal.mechanisms.selection.upper_end import ENOUGH, Ladder, UpperEnd
from shoal.mechanisms.spec import ADD_REMOVE, DISTRIBUTION, PER_SLOT, Spec
from shoal.mechanisms.stepped import keys as stepped
from shoal.mechanisms.two_sided.accounts import Once, Rule

TWO_SIDED = "two-sided"
STATISTICS = ("mean", "sum", "count", "users", "mean-variance", DISTRIBUTION)
OF_VALUES = ("mean", "sum", "mean-variance", DISTRIBUTION)
MEANS = ("mean", "mean-variance")
MOST_BINS = 1 << 10  # of a distribution
SHARE = Fraction(1, 5)  # of epsilon, for finding keys, where nothing else is said
CLIPPED = ("mean", "sum")  # statistics whose range may be chosen
CLIP_SHARE = Fraction(1, 5)  # of epsilon, for choosing the range
CROSSING_SHARE = Fraction(1, 50)  # and for telling when
ABOVE = Fraction(1, 100)  # of the units' numbers, above the chosen end, where nobody says how many units there are
LEAST_ABOVE, MOST_ABOVE = Fraction(1, 1000), Fraction(1, 20)
WAITED_FOR = Fraction(1, 3)  # of the declared users, before the range is chosen
HAS_NO_USE = "is not for relation add-remove"
NO_USE = ("prior", "sigma", "simultaneous", "max_events_per_user", "withheld")  # keys


def takes(spec: Spec) -> bool:
    """Whether it is none per slot: what else it is not for, `check` refuses."""
    return spec.statistic not in PER_SLOT


def check(spec: Spec) -> None:
    """Refuse keys that are missing, not for what protects presence, or contradict one another."""
    if spec.statistic not in STATISTICS:
        raise ValueError(
            f"relation {ADD_REMOVE} has no statistic {spec.statistic}; it has: {', '.join((*STATISTICS, *PER_SLOT))}"
        )
    if spec.algorithm != TWO_SIDED:
        raise ValueError(f"algorithm {spec.algorithm} is for relation values; remove it")
    rules.refuse_slot_keys(spec)
    rules.check_limits(spec)
    _check_values(spec)
    rules.refuse_given(spec, NO_USE, HAS_NO_USE)
    _check_ticks(spec)
    _check_decay(spec)
    _check_groups(spec)
    _check_clip(spec)


def _check_values(spec: Spec) -> None:
    if spec.statistic in OF_VALUES:
        rules.check_values(spec)
    else:
        why = f"is for values, and {spec.statistic} has none: for how many records a predicate holds, take its sum"
        rules.refuse_given(spec, ("range",), why)
    if len(spec.values) > 1:
        raise ValueError("several values are for relation values; use a metric for each")
    if spec.clamp is not None and spec.statistic not in MEANS:
        raise ValueError(f"clamp is for means; {spec.statistic} is never clamped; remove it")
    if spec.statistic == "mean-variance":
        check_grid(spec.grid, spec.statistic)
    if spec.statistic == DISTRIBUTION:
        _check_bins(spec, spec.bins or BINS)


def _check_bins(spec: Spec, bins: int) -> None:
    if spec.values[0] not in spec.numeric_fields:
        raise ValueError("value is a predicate, which is true or false: take its mean in place of a distribution")
    if bins > MOST_BINS:
        raise ValueError(f"bins are at most {MOST_BINS}, as each has a counter of its own in every key; use fewer")
    if bins > spec.grid:
        raise ValueError("bins are more than the grid has steps; use fewer, or a finer grid")


def is_clamped(spec: Spec) -> bool:
    """Whether what is published is clamped to its known ends: of means, by default."""
    return spec.statistic in MEANS and spec.clamp is not False


def _check_ticks(spec: Spec) -> None:
    if spec.step is not None and spec.every is not None:
        raise ValueError("step and every say the same under relation add-remove; keep step")
    step = spec.cadence
    if step is None:
        raise ValueError("step is missing; add it: under relation add-remove all is released at the end of every step")
    rules.check_times(spec, "step", step)


def _check_decay(spec: Spec) -> None:
    decay, step = spec.decay_or_none, spec.cadence or 1
    if decay.kind == "all-windows":
        raise ValueError("decay all-windows is for relation values; use a window, or a metric for each")
    if decay.updates is not None:
        raise ValueError("decay updates tells in which steps anything came; give the window a length")
    stepped.check_decay(spec, step)
    if spec.statistic == "users" and decay.kind != "none" and (decay.kind, decay.length) != ("window", step):
        raise ValueError("decay of users is none, for all so far, or a window as long as step, for those of each step")
    if _once(spec) == "step" and (spec.privacy_unit.period or 0) % step:
        raise ValueError(
            f"unit {spec.unit} begins or ends within a step, and whether a user counts there once more would depend on "
            "another unit of theirs; choose a unit whose period is a multiple of step, or a shorter step"
        )


def _check_groups(spec: Spec) -> None:
    if spec.group is None or spec.groups is not None:
        needs = "needs a group" if spec.group is None else "is for keys that nobody declared, and groups declares them"
        rules.refuse_given(spec, ("groups", "selection") if spec.group is None else ("selection",), needs)
        if spec.delta and spec.decay_or_none.kind != "window":
            raise ValueError("delta must be 0: only windows have Gaussian noise, and all keys are declared")
    elif spec.delta == 0:
        raise ValueError(
            "delta must be above 0, for keys that nobody declared are shown once enough units have them; or declare "
            "them: groups = [...]"
        )
    elif selection_epsilon(spec) >= spec.epsilon:
        raise ValueError(
            "selection takes all of epsilon, and leaves nothing for what is released; give it a smaller one"
        )
    elif spec.life is None and spec.end is None:
        raise ValueError("life is missing; add it, or end: keys that nobody declared need it")


def _check_clip(spec: Spec) -> None:
    if spec.clip is None:
        rules.refuse_given(spec, ("users",), f"is not for relation {ADD_REMOVE} without a clip")
        return
    if spec.statistic not in CLIPPED or spec.values[0] not in spec.numeric_fields:
        raise ValueError("clip chooses the range of a mean or sum of numbers, and this metric has none; remove it")
    if spec.statistic == "sum" and spec.ranges[0][0]:
        raise ValueError(
            "clip of a sum needs a range that begins at 0, for its upper end is chosen; let range begin at 0"
        )
    if spec.delta and (spec.group is None or spec.groups is not None):
        raise ValueError("delta must be 0 with a clip, whose windows have Laplace noise; remove it")
    if selection_epsilon(spec) + clip_epsilon(spec) >= spec.epsilon:
        raise ValueError(
            "clip takes all of epsilon that is left, and leaves nothing for what is released; give it less"
        )


def clip_epsilon(spec: Spec) -> Fraction:
    """The part of epsilon that chooses keys' clip ranges."""
    clip = clip_of(spec)
    return Fraction(0) if clip is None else clip.cost


def clip_of(spec: Spec) -> UpperEnd | None:
    """How keys' clip ranges are chosen; None where the range is given."""
    clip = spec.clip
    if clip is None:
        return None
    epsilon = spec.epsilon * CLIP_SHARE if clip.epsilon is None else clip.epsilon
    crossing = spec.epsilon * CROSSING_SHARE if clip.crossing is None else clip.crossing
    share = _above(spec.users, epsilon) if clip.share is None else clip.share
    return UpperEnd(Ladder(spec.grid), epsilon, crossing, share)


def _above(users: int | None, epsilon: Fraction) -> Fraction:
    """The part of units that may lie above: so much that a third of those that are declared suffice for it.

    >>> [str(_above(users, Fraction(1, 5))) for users in (None, 100, 20000, 10**6)]
    ['1/100', '1/20', '3/200', '1/1000']
    """
    wanted = ABOVE if users is None else ENOUGH / (epsilon * users * WAITED_FOR)
    return min(MOST_ABOVE, max(LEAST_ABOVE, wanted))


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
    if spec.end is None:
        return FirstCrossing(epsilon, spec.delta, spec.expected_releases, weights, unit)
    steps = (spec.end - (spec.start or 0)) // (spec.cadence or 1)
    return FirstCrossing(epsilon, spec.delta, steps, weights, unit, ends=True)


def _once(spec: Spec) -> Once | None:
    """Whether units are counted in place of samples: once per key, or once per step and key."""
    if spec.statistic != "users":
        return None
    return "key" if spec.decay_or_none.kind == "none" else "step"


def unit_samples(spec: Spec) -> int:
    """The most samples of a unit that count, over all keys together."""
    return spec.max_groups_per_user if _once(spec) == "key" else spec.contribution_limit


def rule_of(spec: Spec) -> Rule:
    """The rule by which accounts decide which samples of a unit count, from the metric's keys."""
    selection = selection_of(spec)
    return Rule(
        max_contributions=unit_samples(spec),
        start=spec.start or 0,
        end=spec.end,
        step=spec.cadence or 1,
        period=spec.privacy_unit.period,
        declared=None if spec.groups is None else frozenset(spec.groups),
        weights=() if selection is None else selection.weights,
        once=_once(spec),
        ladder=None if spec.clip is None else Ladder(spec.grid),
    )


def noise_delta(spec: Spec) -> Fraction:
    """The delta of the counters' noise; where keys are found, that of the metric is spent on finding them."""
    return spec.delta if spec.group is None or spec.groups is not None else Fraction(0)
