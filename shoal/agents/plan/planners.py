"""The planner of each kind of statistic: the only place of `shoal plan` that asks for the kind."""

from collections.abc import Callable, Mapping
from typing import Protocol

from shoal.mechanisms.continual_mean.statistic import ContinualMean
from shoal.mechanisms.forecast.mean_report import MeanReport
from shoal.mechanisms.forecast.observed import Observed
from shoal.mechanisms.forecast.plan import Noise, Plan, Report
from shoal.mechanisms.forecast.presence import PlaceReport, SidesReport
from shoal.mechanisms.forecast.slot_report import SlotReport
from shoal.mechanisms.forecast.step_report import StepReport
from shoal.mechanisms.kinds import Kind
from shoal.mechanisms.linear.slots.statistic import LinearSlots
from shoal.mechanisms.linear.statistic import LinearStatistic
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.slot.statistic import Slotted
from shoal.mechanisms.workload import Stated


class Planner(Protocol):
    """The plans of a kind of statistic; both functions raise ValueError where the mechanism refuses the settings."""

    def plans(self, metric: Metric, workload: Stated | Observed, advance: Callable[[float], None]) -> list[Plan]:
        """The plans of a metric, one for each coordinate; `advance` is told what part of the work is done."""
        ...

    def final_noise(self, metric: Metric, users: int) -> Noise:
        """The noise of a late release, if this many users contribute."""
        ...


class Sums:
    """The planner of sums of samples, by their relation."""

    def plans(self, metric: Metric, workload: Stated | Observed, advance: Callable[[float], None]) -> list[Plan]:
        return self._report(metric).plans(metric, workload, advance)

    def final_noise(self, metric: Metric, users: int) -> Noise:
        return self._report(metric).final_noise(metric, users)

    @staticmethod
    def _report(metric: Metric) -> type[Report]:
        return SidesReport if metric.protects_presence else StepReport


PLANNERS: Mapping[Kind, Planner] = {
    ContinualMean: MeanReport, LinearStatistic: Sums(), Slotted: SlotReport, LinearSlots: PlaceReport,
}  # fmt: skip
