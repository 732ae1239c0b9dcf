"""Which intake a metric needs."""

from collections import Counter

from shoal.stream.contributions import Outlet
from shoal.stream.event_time import Progress
from shoal.stream.intake import Intake
from shoal.stream.slot_intake import SlotIntake
from shoal.stream.step_intake import EventIntake, StepIntake
from shoal.stream.topic import Metric, TopicPlan


def intake_of(
    plan: TopicPlan, metric: Metric, partition: int, outlet: Outlet, counters: Counter[str], progress: Progress,
    *, checks: bool,
) -> Intake:  # fmt: skip
    """The intake that a metric needs; `progress` is that of its clock."""
    if metric.section.is_slotted:
        return SlotIntake(plan, metric, partition, outlet, counters, progress, checks=checks)
    if not metric.section.is_stepped:
        return Intake(plan, metric, partition, outlet, counters, checks=checks)
    if metric.section.of.is_event:
        return EventIntake(plan, metric, partition, outlet, counters, checks=checks)
    return StepIntake(plan, metric, partition, outlet, counters, progress, checks=checks)
