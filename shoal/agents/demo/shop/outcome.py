"""What a demo found out, in numbers and in words: estimate against truth, what activated, what was left out."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

from shoal.agents.demo.progress import Progress, Seen
from shoal.agents.demo.shop.purchases import Purchases
from shoal.mechanisms.continual_mean.full import Full
from shoal.mechanisms.continual_mean.statistic import ContinualMean
from shoal.models.config.metric import MetricSection
from shoal.models.exact import exact_text
from shoal.models.times import iso


@dataclass(frozen=True)
class Outcome:
    """One metric's."""

    section: MetricSection
    releases: list[Seen]
    truths: list[float]  # the true mean at each release
    activations: list[dict[str, Any]]  # in order of level
    purchases: Purchases

    @property
    def last(self) -> Seen:
        """The last release."""
        return self.releases[-1]

    @property
    def late_error(self) -> float:
        """Mean distance from the true mean over the second half of the releases, in dollars."""
        pairs = list(zip(self.releases, self.truths, strict=True))[len(self.releases) // 2 :]
        return math.fsum(abs(seen.fields["value"] - truth) for seen, truth in pairs) / len(pairs)

    @property
    def inside(self) -> int:
        """Releases whose noise interval holds the true mean."""
        pairs = zip(self.releases, self.truths, strict=True)
        return sum(seen.fields["low"] <= truth <= seen.fields["high"] for seen, truth in pairs)

    @property
    def waiting(self) -> dict[int, int]:
        """Levels that did not activate, and the samples below them that each would have taken."""
        mechanism = ContinualMean.of(self.section)
        active = {one["level"] for one in self.activations}
        levels = mechanism.levels if isinstance(mechanism, Full) else ()
        return {one.index: one.arrays * one.array_size for one in levels if one.arrays and one.index not in active}


def outcomes(progress: Progress, purchases: Purchases) -> list[Outcome]:
    """Of each metric, in the configuration's order."""
    return [_outcome(progress, section, purchases) for section in progress.config.metric]


def _outcome(progress: Progress, section: MetricSection, purchases: Purchases) -> Outcome:
    releases = progress.releases[section.name]
    activations = [one for one in progress.activations if one["metric"] == section.name]
    return Outcome(
        section,
        releases,
        [purchases.true_mean(seen.at) for seen in releases],
        sorted(activations, key=lambda one: int(one["level"])),
        purchases,
    )


def final(found: list[Outcome]) -> dict[str, Any]:
    """`final` of `--json`: the last release of each metric, and the true mean at that instant."""
    names = ("value", "low", "high", "noise_sd", "samples")
    return {
        "at": iso(found[0].last.at),
        "true_mean": found[0].truths[-1],
        "estimates": {one.section.name: {name: one.last.fields[name] for name in names} for one in found},
    }


def summary(found: list[Outcome]) -> Iterator[str]:
    """For people, line by line."""
    yield f"true mean after the last purchase: {found[0].truths[-1]:.2f} dollars"
    for one in found:
        last = one.last.fields
        yield ""
        yield f"{one.section.name}: {last['value']:.2f} dollars, noise interval {last['low']:.2f} to {last['high']:.2f}"
        yield (
            f"  {one.late_error:.2f} from the true mean on average over the second half of its releases; "
            f"{one.inside} of {len(one.releases)} noise intervals hold it"
        )
        for sentence in (heading(one), *sentences(one)):
            yield f"  {sentence}"


def sentences(one: Outcome) -> Iterator[str]:
    """What was left out, what activated and what did not."""
    m = one.section.cap
    if one.section.algorithm == "sharp":
        yield from _sharp_sentences(one)
        return
    yield f"{one.purchases.over_cap(m):,} purchases beyond a customer's first {m} are left out"
    if one.section.algorithm != "full":
        return
    since = [f"{level['level']} on {_written(level['at'])}" for level in one.activations]
    yield f"levels 0 and 1 count from the start; activated: {', '.join(since) or 'none'}"
    for level, samples in one.waiting.items():
        yield f"level {level} never: it takes {samples:,} purchases in the blocks below it"
    once, customers = one.purchases.customers_with(1), len(one.purchases.per_customer)
    yield f"blocks pay where people have many samples, and {once:,} of these {customers:,} customers bought once"


def _sharp_sentences(one: Outcome) -> Iterator[str]:
    """What it waited for, and what it left out."""
    ready = [level for level in one.activations if level["level"] == 0]
    for found in ready:
        yield (
            f"{found['samples']:,} customers had come on {_written(found['at'])}: from then on, amounts are clipped to "
            f"a private range around a private centre of {found['prior']:.2f} dollars"
        )
    if not ready:
        yield "too few customers came: the middle of the range is all it says"
    out = one.purchases.count - one.last.fields["samples"]
    yield f"{out:,} purchases are left out, beyond those of a customer that it found worth their noise"


def heading(one: Outcome) -> str:
    """Algorithm and parameters."""
    section = one.section
    kind = {"sharp": "the default", "full": "blocks, a counter per level"}.get(section.algorithm, "")
    return (
        f"{section.algorithm} ({kind}), at most {section.cap} purchases per customer, "
        f"epsilon {exact_text(section.epsilon)} per customer"
    )


def _written(at: str) -> str:
    found = date.fromisoformat(at[:10])
    return f"{found.day} {found:%b %Y}"
