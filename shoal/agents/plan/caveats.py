"""Warns of settings that are allowed and hardly ever meant: a very high epsilon, a large delta, too much noise.

Neither is refused. The noise is that of a plan for the metric's number of users; where it names none, for a number that
few deployments exceed.
"""

from collections.abc import Iterable, Iterator

from shoal.agents.plan.planners import PLANNERS
from shoal.mechanisms.forecast.plan import Noise, Plan
from shoal.mechanisms.kinds import kind_of
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.words import exact_text, number

HIGH_EPSILON = 20  # from 10 % to all but certain: odds grow by e^20, 485 million
MANY_USERS = 10_000


def caveats(metrics: Iterable[Metric]) -> list[str]:
    """Warn about a configuration, before there are any events."""
    return [text for metric in metrics for text in (*_of_privacy(metric), *_of_expected_noise(metric))]


def of_plan(plan: Plan) -> Iterator[str]:
    """Warn about a metric as it is configured, for its plan's users, and about late events of a file."""
    yield from _of_privacy(plan.metric)
    yield from _of_noise(plan.metric, plan.noise, f"with {plan.users:,} users")
    if plan.late:
        yield (
            f'metric "{plan.metric.name}": {plan.late:,} of {plan.events:,} events are too late to count, and no '
            "part of the plan; more lateness would let them in"
        )


def _of_privacy(metric: Metric) -> Iterator[str]:
    if metric.budget.epsilon > HIGH_EPSILON:
        high = f"epsilon {exact_text(metric.budget.epsilon)} is above {HIGH_EPSILON}"
        yield f'metric "{metric.name}": {high}; this budget protects little: lower it'
    if metric.by.users is not None and metric.budget.delta * metric.by.users >= 1:
        large = (
            f"delta {exact_text(metric.budget.delta)} is not below one in the {metric.by.users:,} users that it expects"
        )
        yield f'metric "{metric.name}": {large}: so large a delta allows to publish all values of one of them; lower it'


def _of_noise(metric: Metric, noise: Noise, users: str) -> Iterator[str]:
    noise_sd, beside, what = noise
    if noise_sd is not None and noise_sd > beside > 0:
        yield (
            f'metric "{metric.name}": {users} the noise (noise_sd {number(noise_sd)}) is wider than the {what} '
            f"({number(beside)}), so that its releases say nothing; it needs more users, or more epsilon"
        )


def _of_expected_noise(metric: Metric) -> Iterator[str]:
    users = metric.by.users or MANY_USERS
    whom = f"with the {users:,} users that it expects" if metric.by.users else f"even with {MANY_USERS:,} users"
    try:
        noise = PLANNERS[kind_of(metric)].final_noise(metric, users)
    except ValueError:  # the mechanism refuses these settings
        return
    yield from _of_noise(metric, noise, whom)
