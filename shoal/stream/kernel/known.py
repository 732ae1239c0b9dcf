"""Which configurations the kernel can process, and for each other one the keys that prevent it."""

from collections.abc import Sequence

from shoal.mechanisms.accounts import Accounts
from shoal.mechanisms.continual_mean.accounts import MeanAccounts
from shoal.mechanisms.continual_mean.blocks import BlockBounder
from shoal.mechanisms.continual_mean.sharp.bounder import SharpBounder
from shoal.mechanisms.statistic import OneByOne
from shoal.mechanisms.stepped import accounts as stepped
from shoal.mechanisms.two_sided import accounts as two_sided
from shoal.models.predicates import Predicate
from shoal.stream.topic import Metric, TopicPlan

PARTITIONER = "murmur2"  # that the kernel knows


def unknown(plan: TopicPlan, accounts: Sequence[Accounts], *, checks_partition: bool) -> dict[str, str]:
    """The keys of the configuration that keep a topic on the twin, by metric; by "" a key that concerns all metrics.

    Empty if the kernel can read the topic. One metric that it cannot process keeps the whole topic on the twin.
    """
    found = {}
    if checks_partition and plan.partitioner != PARTITIONER:
        found[""] = f'partitioner = "{plan.partitioner}"'
    for metric, one in zip(plan.metrics, accounts, strict=True):
        if (key := _unknown(metric, one)) is not None:
            found[metric.name] = key
    return found


def _unknown(metric: Metric, accounts: Accounts) -> str | None:
    """The key of a metric that asks for what the kernel cannot do; None if there is none."""
    section = metric.section
    if section.cell is not None:
        return "cell"
    if isinstance(section.value, Predicate):
        return "a condition as its value"
    if isinstance(section.value, tuple):
        return "several values"
    statistic = f'statistic = "{section.statistic}"'
    if section.slot is not None or metric.unpack is not None:
        return statistic
    match accounts:
        case two_sided.UnitAccounts(rule=rule) | two_sided.EventAccounts(rule=rule):
            if rule.ladder is not None:
                return "clip"
            return statistic if rule.bins is not None or rule.anew else None
        case MeanAccounts() | stepped.UnitAccounts() | stepped.EventAccounts():
            if type(metric.bounder) in (OneByOne, SharpBounder, BlockBounder):
                return None
            return "sigma" if section.sigma else f'algorithm = "{section.algorithm}"'
    return "withheld" if section.withheld else statistic
