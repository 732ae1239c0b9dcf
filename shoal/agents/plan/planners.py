"""The planner of each kind of statistic: the only place of `shoal plan` that asks for the kind."""

from collections.abc import Callable, Mapping
from typing import Protocol

from shoal.mechanisms.continual_mean import plan as means
from shoal.mechanisms.continual_mean.statistic import ContinualMean
from shoal.mechanisms.kinds import Kind
from shoal.mechanisms.linear.plan import planner as sums
from shoal.mechanisms.linear.plan import slots as places
from shoal.mechanisms.linear.slots.statistic import LinearSlots
from shoal.mechanisms.linear.statistic import LinearStatistic
from shoal.mechanisms.observed import Observed
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.plan import Noise, Plan
from shoal.mechanisms.slot import plan as slots
from shoal.mechanisms.slot.statistic import Slotted
from shoal.mechanisms.workload import Stated


class Planner(Protocol):
    """A statistic's module `plan`; both functions raise ValueError where the mechanism refuses the settings."""

    def plans(self, metric: Metric, workload: Stated | Observed, advance: Callable[[float], None]) -> list[Plan]:
        """The plans of a metric, one for each coordinate; `advance` is told what part of the work is done."""
        ...

    def final_noise(self, metric: Metric, users: int) -> Noise:
        """The noise of a late release, if this many users contribute."""
        ...


PLANNERS: Mapping[Kind, Planner] = {
    ContinualMean: means, LinearStatistic: sums, Slotted: slots, LinearSlots: places,
}  # fmt: skip
