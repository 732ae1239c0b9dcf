"""Warns of what is allowed and hardly ever meant: an epsilon that protects little, noise that is wider than the range.

Neither is refused. The noise is that of a plan (planning.py), for the users that the metric expects; where it names
none, for so many that more would be a surprise.
"""

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction

from shoal.agents.plan.mean import Look, MetricPlan
from shoal.agents.plan.mean_view import number
from shoal.agents.plan.slot import NEEDING_DELTA, Place, SlotPlan, foretold, made_of, slot_mechanism
from shoal.agents.plan.slot import configured as configured_algorithm
from shoal.agents.plan.sums import StepPlan, final_look, typical
from shoal.agents.plan.sums_workload import Steady
from shoal.agents.plan.workload import Stated
from shoal.models.config.metric import MetricSection
from shoal.models.exact import exact_text

HIGH_EPSILON = 20  # from 10 % to all but certain: odds grow by e^20, 485 million
MANY_USERS = 10_000


def caveats(metrics: Iterable[MetricSection]) -> list[str]:
    """Of a configuration, before anything came."""
    said = []
    for metric in metrics:
        said += [*of_epsilon(metric), *_of_expected_noise(metric)]
    return said


def of_epsilon(metric: MetricSection) -> Iterator[str]:
    """An epsilon that is a guarantee in name only."""
    if metric.epsilon > HIGH_EPSILON:
        high = f"epsilon {exact_text(metric.epsilon)} is above {HIGH_EPSILON}"
        yield f'metric "{metric.name}": {high}; this budget protects little: lower it'


def of_noise(metric: MetricSection, noise_sd: float | None, width: float, users: str) -> Iterator[str]:
    """Noise that is wider than what it hides."""
    if noise_sd is not None and noise_sd > width > 0:
        what = f"sum itself ({number(width)})" if metric.statistic == "sum" else f"range ({number(width)})"
        yield (
            f'metric "{metric.name}": {users} the noise (noise_sd {number(noise_sd)}) is wider than the {what}, so '
            "that its releases say nothing; it needs more users, or more epsilon"
        )


def of_plan(plan: MetricPlan | StepPlan | SlotPlan) -> list[str]:
    """Of a metric as it is configured, for the users of its plan."""
    metric, users = plan.section, f"with {plan.workload.users:,} users"
    if isinstance(plan, SlotPlan):
        name = configured_algorithm(metric)
        shown = next((one for one in plan.algorithms if one.name == name not in NEEDING_DELTA), None)
        noise_sd, width = slot_noise(shown.noise_sd) if shown else None, _slot_width(metric)
    elif isinstance(plan, StepPlan):
        last = _last(plan)
        noise_sd = None if last is None or metric.statistic == "count" else last.noise_sd
        width = 0.0 if last is None or noise_sd is None else sum_width(metric, last.samples * plan.size)
    else:
        last = _last(plan)
        noise_sd, width = None if last is None else last.noise_sd, plan.width
    return [*of_epsilon(metric), *of_noise(metric, noise_sd, width, users)]


def _last(plan: MetricPlan | StepPlan) -> Look | None:
    """The last release with the algorithm that is configured."""
    of_each = ((one.section.algorithm, one.looks) for one in plan.outlooks)
    return next((looks[-1] for name, looks in of_each if looks and name == plan.section.algorithm), None)


def _of_expected_noise(metric: MetricSection) -> Iterator[str]:
    if metric.statistic == "count":
        return
    users = metric.users or MANY_USERS
    whom = f"with the {users:,} users that it expects" if metric.users else f"even with {MANY_USERS:,} users"
    try:
        noise_sd, width = _expected(metric, users)
    except ValueError:  # the mechanism refuses these settings
        return
    yield from of_noise(metric, noise_sd, width, whom)


def _expected(metric: MetricSection, users: int) -> tuple[float | None, float]:
    """The noise of a late release, and what it is seen against."""
    low, high = map(float, metric.ranges[0])
    stated = Stated(users, None, None, skewed=False, spread=Fraction(1))
    if metric.is_slotted:
        return _of_a_slot(metric, users), _slot_width(metric)
    if metric.is_stepped:
        look = final_look(metric, Steady(stated))
        return look.noise_sd, sum_width(metric, look.samples * typical(metric, Fraction(1)))
    worst = 0.0
    for coordinate in range(len(metric.values)):
        width = float(metric.ranges[coordinate][1] - metric.ranges[coordinate][0])
        worst = max(worst, (stated.settled(metric).final(metric, coordinate).noise_sd or 0.0) / width)
    return worst * (high - low), high - low


def sum_width(metric: MetricSection, expected: float) -> float:
    """Of a mean its range; of a sum its expected size, but no less than one value."""
    low, high = map(float, metric.ranges[0])
    return max(high - low, expected) if metric.statistic == "sum" else high - low


def _slot_width(metric: MetricSection) -> float:
    low, high = map(float, metric.ranges[0])
    return 1.0 if metric.statistic == "slot-distribution" else high - low


def _of_a_slot(metric: MetricSection, users: int) -> float | None:
    """In a cell in which all of them are, each with as many samples as count; of very many in proportion."""
    mechanism, tried = slot_mechanism(metric), min(users, MANY_USERS)
    name, place = configured_algorithm(metric), Place([metric.cap] * tried, mechanism.parameters)
    if name in NEEDING_DELTA:  # these state a bound, which may be wide where their noise is not
        return None
    found = slot_noise(made_of(place, foretold(mechanism, place)[name]).noise_sd)
    return None if found is None else found * tried / users


def slot_noise(noise_sd: object) -> float | None:
    """One number of what a slot states: of several, as of mean and variance, the first; the largest of a list."""
    if isinstance(noise_sd, dict):
        return slot_noise(next(iter(noise_sd.values()), None))
    if isinstance(noise_sd, list | tuple):
        return max((float(one) for one in noise_sd), default=None)
    return float(noise_sd) if isinstance(noise_sd, int | float) and math.isfinite(noise_sd) else None
