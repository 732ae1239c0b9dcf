"""The result of the shop's demo: estimate against truth, what activated, what was left out."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from shoal.agents.demo.progress import DemoProgress, ends, interval
from shoal.agents.demo.shop.purchases import Purchases
from shoal.mechanisms.continual_mean.full import Full
from shoal.mechanisms.continual_mean.statistic import ContinualMean
from shoal.mechanisms.parts.by import Full as ByFull
from shoal.mechanisms.parts.by import Sharp
from shoal.mechanisms.parts.metric import Metric
from shoal.models.exact import exact_text
from shoal.models.releases.record import Activation, Release
from shoal.models.times import iso

# What gauges and pictures show of a metric, in dollars: estimates beyond it are off the scale, and said to be.
SCALES = {"basket": (0.0, 80.0), "basket-full": (-1000.0, 1000.0), "presence": (0.0, 80.0)}


@dataclass(frozen=True)
class MetricOutcome:
    """The releases of one metric beside the true means."""

    metric: Metric
    releases: list[Release]
    truths: list[float]  # the true mean at each release
    activations: list[Activation]  # in order of level
    purchases: Purchases

    @property
    def last(self) -> Release:
        return self.releases[-1]

    @property
    def late_error(self) -> float:
        """Mean distance from the true mean over the second half of the releases, in dollars."""
        pairs = list(zip(self.releases, self.truths, strict=True))[len(self.releases) // 2 :]
        return math.fsum(abs(interval(release)[0] - truth) for release, truth in pairs) / len(pairs)

    @property
    def inside(self) -> int:
        """Number of releases whose noise interval holds the true mean."""
        pairs = ((ends(release), truth) for release, truth in zip(self.releases, self.truths, strict=True))
        return sum(low <= truth <= high for (low, high), truth in pairs)

    @property
    def waiting(self) -> dict[int, int]:
        """Levels that did not activate, and the samples below them that each would have taken."""
        mechanism = ContinualMean.mean(self.metric)
        active = {each.level for each in self.activations}
        levels = mechanism.levels if isinstance(mechanism, Full) else ()
        return {
            level.index: level.arrays * level.array_size
            for level in levels
            if level.arrays and level.index not in active
        }


def outcomes(progress: DemoProgress, purchases: Purchases) -> list[MetricOutcome]:
    """Compare each metric with the truth, in the configuration's order."""
    return [
        MetricOutcome(
            metric,
            releases := progress.releases[metric.name],
            [purchases.true_mean(release.time) for release in releases],
            progress.activated(metric.name),
            purchases,
        )
        for metric in progress.config.metrics
    ]


def final(metrics: list[MetricOutcome], hidden: MetricOutcome | None) -> dict[str, Any]:
    """`final` of `--json`: the last release of each metric, and the true mean at that instant."""
    names = ("value", "low", "high", "noise_sd", "samples")
    of_presence = ("value", "low", "high", "noise_sd", "count", "count_sd")
    beside = {} if hidden is None else {"add_remove": {name: getattr(hidden.last, name) for name in of_presence}}
    return {
        "at": iso(metrics[0].last.time),
        "true_mean": metrics[0].truths[-1],
        "estimates": {metric.metric.name: {name: getattr(metric.last, name) for name in names} for metric in metrics},
        **beside,
    }


def summary(metrics: list[MetricOutcome]) -> Iterator[str]:
    """The comparison for people, line by line."""
    yield f"true mean after the last purchase: {metrics[0].truths[-1]:.2f} dollars"
    for metric in metrics:
        value, low, high = interval(metric.last)
        yield ""
        yield f"{metric.metric.name}: {value:.2f} dollars, noise interval {low:.2f} to {high:.2f}"
        yield (
            f"  {metric.late_error:.2f} from the true mean on average over the second half of its releases; "
            f"{metric.inside} of {len(metric.releases)} noise intervals hold it"
        )
        for sentence in (heading(metric), *sentences(metric)):
            yield f"  {sentence}"


def sentences(metric: MetricOutcome) -> Iterator[str]:
    """Say what was left out, what activated and what did not."""
    m = metric.metric.samples
    if isinstance(metric.metric.by, Sharp):
        yield from _sharp_sentences(metric)
        return
    yield f"{metric.purchases.over_cap(m):,} purchases beyond a customer's first {m} are left out"
    if metric.metric.protects_presence:
        kept, last = len(metric.purchases.times) - metric.purchases.over_cap(m), metric.last
        yield f"that they bought anything is hidden: it counts {last.count:,.0f} purchases, where {kept:,} are left"
        yield "it has a log of its own, for the other metrics publish exactly how many purchases there are"
    if not isinstance(metric.metric.by, ByFull):
        return
    since = [f"{each.level} on {_written(each)}" for each in metric.activations]
    yield f"levels 0 and 1 count from the start; activated: {', '.join(since) or 'none'}"
    for level, samples in metric.waiting.items():
        yield f"level {level} never: it takes {samples:,} purchases in the blocks below it"
    once, customers = metric.purchases.customers_with(1), len(metric.purchases.per_customer)
    yield f"blocks pay where people have many samples, and {once:,} of these {customers:,} customers bought once"


def _sharp_sentences(metric: MetricOutcome) -> Iterator[str]:
    """Say when the clip range was chosen, and what was left out."""
    ready = [each for each in metric.activations if each.level == 0]
    for each in ready:
        yield (
            f"{each.samples:,} customers had come on {_written(each)}: from then on, amounts are clipped to "
            f"a private range around a private centre of {each.prior:.2f} dollars"
        )
    if not ready:
        yield "too few customers came: the middle of the range is all it says"
    out = len(metric.purchases.times) - (metric.last.samples or 0)
    yield f"{out:,} purchases are left out, beyond those of a customer that it found worth their noise"


def heading(metric: MetricOutcome) -> str:
    """Say which algorithm ran, with which parameters."""
    what = metric.metric
    kinds = {"sharp": "the default", "full": "blocks, a counter per level", "two-sided": "relation add-remove"}
    kind = kinds.get(what.by.name, "")
    return (
        f"{what.by.name} ({kind}), at most {what.samples} purchases per customer, "
        f"epsilon {exact_text(what.budget.epsilon)} per customer"
    )


def _written(record: Activation) -> str:
    return f"{record.at.day} {record.at:%b %Y}"
