"""The planner of sums of samples, by their relation."""

from collections.abc import Callable

from shoal.mechanisms.linear.plan import presence, steps
from shoal.mechanisms.observed import Observed
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.plan import Noise, Plan
from shoal.mechanisms.workload import Stated


def plans(metric: Metric, workload: Stated | Observed, advance: Callable[[float], None]) -> list[Plan]:
    """The plan of a metric; `advance` is told what part of the work is done.

    Raises:
        ValueError: the mechanism refuses the settings, or the workload.
    """
    make = presence.plans if metric.protects_presence else steps.plans
    return make(metric, workload, advance)


def final_noise(metric: Metric, users: int) -> Noise:
    """The noise of a late release, if this many users contribute.

    Raises:
        ValueError: the mechanism refuses the settings.
    """
    return presence.final_noise(metric, users) if metric.protects_presence else steps.final_noise(metric, users)
