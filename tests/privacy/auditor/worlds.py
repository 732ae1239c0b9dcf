"""One world through the code that publishes: what must not depend on values, and what may, through noise."""

import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np
import orjson
from structlog.testing import capture_logs

from shoal.mechanisms.linear.sides import Products
from shoal.mechanisms.linear.statistic import LinearReleaser
from shoal.mechanisms.statistic import Estimate
from shoal.models.times import iso
from shoal.stream.topic import TopicPlan
from tests.privacy.auditor.choices import Choice, Choices
from tests.privacy.auditor.program import Numbers
from tests.privacy.auditor.streams import Event
from tests.privacy.auditor.unknowns import Unknowns
from tests.privacy.hosted import Hosted
from tests.privacy.observing import CHARGED, watch_run, without_record

EXACT = "exact"  # mechanism of a count, which has no noise: all of it is pattern
ACTIONS = ["bound"] * 6 + ["release"] * 3 + ["crash_bound", "crash_release"]


@dataclass(frozen=True)
class Seen:
    """One run of one world."""

    pattern: Any
    numbers: Numbers  # of all releases: sums, where a mean is given with the number of its samples
    choices: list[Choice]
    releases: int
    woke_late: int = 0
    labels: Sequence[str] = ()  # of each number the metric version that released it


@dataclass
class Run:
    """A hosted worker under way."""

    worker: Hosted
    whole: bool  # whether the `whole` pattern is asked for
    choices: Choices
    said: list[Any]  # what it logged

    def seen(self) -> Seen:
        """What was seen of it until now."""
        worker = self.worker
        if self.whole:
            worker.seen.append(worker.texts())  # which replays contributions: other choices than those published
        pattern, numbers, labels = _split(worker.releases)
        rest = [len(worker.activations), [without_record(one) for one in worker.dead_letters], worker.seen, self.said]
        found = (pattern, rest if self.whole else None)
        return Seen(found, numbers, self.choices.made, len(worker.releases), worker.woke_late, labels)


@contextmanager
def sums_of_variances() -> Iterator[None]:
    """A variance is no linear function of its noise; so both sums that it is made of are published in its place."""
    estimate = LinearReleaser.estimate

    def told(releaser: LinearReleaser) -> Estimate:
        made = estimate(releaser)
        if made.value is None or not isinstance(releaser._of.sides, Products):
            return made
        return replace(made, value=[noisy / releaser.released[0] for noisy in releaser.released[1:]], noise_sd=0.0)

    with patch.object(LinearReleaser, "estimate", told):
        yield


@contextmanager
def noisy_sides() -> Iterator[None]:
    """Of what protects presence the noisy sums are published, of which all releases are functions."""
    estimate = LinearReleaser.estimate

    def told(releaser: LinearReleaser) -> Estimate:
        if releaser._of.sides.public:
            return estimate(releaser)
        sums = [noisy / releaser._of.sums.denominator for noisy in releaser.released]
        return Estimate(sums, None, None, None, {"samples": 1})

    with patch.object(LinearReleaser, "estimate", told):
        yield


def file_run(plan: TopicPlan, events: Sequence[Event], unknowns: Unknowns, seed: int, *, whole: bool) -> Seen:
    """A run over a file; the `whole` pattern, or that of the releases."""
    choices = Choices(seed)
    with unknowns.installed(), choices.installed(), sums_of_variances():
        seen = watch_run(plan, [event.raw() for event in events])
    pattern, numbers, _ = _split(seen.releases)
    return Seen((pattern, seen.pattern() if whole else None), numbers, choices.made, len(seen.releases))


@contextmanager
def hosted_run(plan: TopicPlan, unknowns: Unknowns, seed: int, *, whole: bool) -> Iterator[Run]:
    """A worker without noise of its own; ask what was seen of it afterwards."""
    choices = Choices(seed)
    with unknowns.installed(), choices.installed(), sums_of_variances(), noisy_sides(), capture_logs() as said:
        yield Run(Hosted(plan, looks=whole), whole, choices, said)


def worker_run(plan: TopicPlan, events: Sequence[Event], unknowns: Unknowns, seed: int, *, whole: bool) -> Seen:
    """A worker with partitions that come late, fall idle, are lost and taken over, in an order that the seed gives."""
    drawn = random.Random(f"worker/{seed}")
    with hosted_run(plan, unknowns, seed, whole=whole) as run:
        for user, raw in _arrivals(plan, events, drawn):
            run.worker.produce(user, raw)
            for _ in range(drawn.randrange(5)):
                run.worker.act(drawn.choice(ACTIONS), drawn.randrange(8), drawn.randrange(1, 6))
        run.worker.end(iso((max(event.time for event in events) + 36_000) * 10**6).encode())
        run.worker.drain()
    return run.seen()


def _arrivals(plan: TopicPlan, events: Sequence[Event], drawn: random.Random) -> Iterator[tuple[str, bytes]]:
    """Users and records as they arrive: each partition in order, some long after others."""
    waiting: dict[int, list[tuple[str, bytes]]] = {}
    for event in events:
        partition = plan.partition_of(event.user.encode(), plan.source_partitions)
        waiting.setdefault(partition, []).append((event.user, event.raw()))
        if drawn.random() < 0.25:
            yield from waiting.pop(drawn.choice(sorted(waiting)))
    for partition in sorted(waiting):
        yield from waiting[partition]


def _split(releases: Iterable[bytes]) -> tuple[list[Any], Numbers, list[str]]:
    """What of releases is pattern or was chosen, the numbers that have noise, and of each its metric version."""
    pattern: list[Any] = []
    numbers: list[float] = []
    labels: list[str] = []
    for raw in releases:
        release = orjson.loads(raw)
        if release.get("mechanism") == EXACT:
            pattern.append(release)
            continue
        pattern.append({name: value for name, value in release.items() if name not in CHARGED})
        values = list(_flat(release["value"]))
        pattern.append([value is None for value in values])
        numbers += [value * (release["samples"] or 1) for value in values if value is not None]
        numbers += [float(int(node)) for node in release.get("nodes", ())]
        labels += [f"{release['metric']}/{release['version']}"] * (len(numbers) - len(labels))
    return pattern, np.array(numbers, dtype=float), labels


def _flat(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        value = [value[name] for name in sorted(value)]
    if not isinstance(value, list):
        yield value
        return
    for one in value:
        yield from _flat(one)
