"""Which configurations the kernel can process, and for each other one the keys that prevent it."""

from shoal.mechanisms.continual_mean.blocks import BlockBounder
from shoal.mechanisms.continual_mean.sharp.bounder import SharpBounder
from shoal.mechanisms.parts.at import Slots
from shoal.mechanisms.parts.by import OfMeans
from shoal.mechanisms.parts.of import Mean, Sum
from shoal.mechanisms.parts.per import Hexagons
from shoal.mechanisms.statistic import OneByOne
from shoal.stream.topic import Metric, TopicPlan

PARTITIONER = "murmur2"  # that the kernel knows


def unknown(plan: TopicPlan, *, checks_partition: bool) -> dict[str, str]:
    """The keys of the configuration that keep a topic on the twin, by metric; by "" a key that concerns all metrics.

    Empty if the kernel can read the topic. One metric that it cannot process keeps the whole topic on the twin.
    """
    found = {}
    if checks_partition and plan.partitioner != PARTITIONER:
        found[""] = f'partitioner = "{plan.partitioner}"'
    for metric in plan.metrics:
        if (key := _unknown(metric)) is not None:
            found[metric.name] = key
    return found


def _unknown(metric: Metric) -> str | None:
    """The key of a metric that asks for what the kernel cannot do; None if there is none."""
    parts = metric.parts
    if isinstance(parts.place, Hexagons):
        return "cell"
    if parts.fields is not None and parts.fields.predicate is not None:
        return "a condition as its value"
    if parts.fields is not None and len(parts.fields.names) > 1:
        return "several values"
    if isinstance(parts.at, Slots):
        return "slot"
    if metric.unpack is not None:
        return f'statistic = "{parts.statistic}"'
    if isinstance(parts.of, Mean | Sum) and parts.of.clip is not None:
        return "clip"
    if isinstance(parts.by, OfMeans) and parts.by.withheld:
        return "withheld"
    if type(metric.bounder) in (OneByOne, SharpBounder, BlockBounder):
        return None
    return "sigma" if parts.by.sigma(0) is not None else f'algorithm = "{parts.by.name}"'
