"""A mean over the events of a file, under any of its settings: its real accounts and releasers run on them.

NOT PRIVATE: it compares with the true mean. One coordinate and one group runs at a time, with noise from a key that is
thrown away; the bias is the exact sum in the releaser's state without noise, less the truth. No release leaves it.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from shoal.mechanisms.continual_mean import blocks
from shoal.mechanisms.continual_mean.full import Full
from shoal.mechanisms.continual_mean.mean import MeanParameters
from shoal.mechanisms.continual_mean.naive import Naive
from shoal.mechanisms.continual_mean.sharp import Sharp
from shoal.mechanisms.continual_mean.subgaussian import Subgaussian
from shoal.mechanisms.forecast.comparison import Outlook, more_epsilon
from shoal.mechanisms.forecast.groups import GroupAhead, GroupsAhead, by_size, some
from shoal.mechanisms.forecast.mean_source import About, is_useful, one_mean, width_of
from shoal.mechanisms.forecast.observed import Observed, Sample, Sent
from shoal.mechanisms.forecast.plan import OF_FILE
from shoal.mechanisms.forecast.point import POINTS, Point
from shoal.mechanisms.parts import by
from shoal.mechanisms.parts.lengths import INSTANT, Even
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.variants import with_algorithm
from shoal.mechanisms.statistic import Contribution, Releaser

FACTORS = (2.0, 4.0, 8.0)  # of epsilon that are tried for half the error: each is a run over all events


class ClosedTick(NamedTuple):
    """The samples that had come when a tick was complete."""

    events: int
    at: int
    truth: float


@dataclass(frozen=True, eq=False)
class ObservedMean:
    """One group of a file."""

    observed: Observed
    coordinate: int
    name: str | None  # of the group
    by_group: Mapping[str | None, Sequence[Sample]]
    _outlooks: dict[Metric, Outlook] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, metric: Metric, coordinate: int, observed: Observed) -> "ObservedMean":
        """The largest group of the file."""
        # Who is let into which group depends on no algorithm, and the configured one may refuse its settings.
        groups = observed.by_group(with_algorithm(metric, by.Naive))
        return cls(observed, coordinate, by_size(groups)[-1], groups)

    @cached_property
    def samples(self) -> Sequence[Sample]:
        """The samples of this group, in the order of reading."""
        return self.by_group[self.name]

    def about(self, metric: Metric) -> About:
        values = np.array([self._value(sample, metric) for sample in self.samples])
        is_event = metric.unit.is_event
        by_user = Counter(index if is_event else sample.user for index, sample in enumerate(self.samples))
        users, sizes = len(by_user), Counter(by_user.values())
        sampling = float(values.std()) / math.sqrt(len(values))
        length = metric.length or INSTANT
        ticks = [length.index(sample.effective) for sample in self.samples]
        over = length.span(max(ticks) - min(ticks) + 1)
        return About(
            users, len(values) / users, over, OF_FILE, None, sampling,
            tuple((float(count), size) for size, count in sorted(sizes.items())),
        )  # fmt: skip

    def groups(self, metric: Metric) -> GroupsAhead | None:
        """Some of the groups, each of which runs with the same settings, in its own time."""
        if metric.place is None:
            return None
        names = by_size(self.by_group)
        users = len({sample.user for samples in self.by_group.values() for sample in samples})
        return GroupsAhead.of([self._group(metric, name) for name in some(names)], len(names), users, self.name)

    def _group(self, metric: Metric, name: str | None) -> GroupAhead:
        group = self
        if name != self.name:
            group = ObservedMean(self.observed, self.coordinate, name, self.by_group)
        about = group.about(metric)
        return GroupAhead.of(name, about.users, about.samples_per_user, group.final(metric))

    def outlook(self, metric: Metric) -> Outlook:
        if metric not in self._outlooks:
            self._outlooks[metric] = self._run(metric)
        return self._outlooks[metric]

    def final(self, metric: Metric) -> Point:
        return self.outlook(metric).points[-1]

    def scaled(self, metric: Metric, what: str, factor: float) -> Sequence[tuple["ObservedMean", Metric]]:
        """The same source with more epsilon; more users or time are not in the file."""
        return [(self, more_epsilon(metric, factor))] if what == "epsilon" and factor in FACTORS else []

    # ---------------------------------------------------------------- a run

    def _run(self, metric: Metric) -> Outlook:
        mean = one_mean(metric, self.coordinate)
        releaser = mean.releaser(self.observed.key, b"", self.coordinate)
        width = width_of(metric, self.coordinate)
        points = tuple(self._point(metric, mean, releaser, seen) for seen in self._closed(metric, mean, releaser))
        return Outlook(metric, points, useful=next((point for point in points if is_useful(point, width)), None))

    def _closed(self, metric: Metric, mean: MeanParameters, releaser: Releaser) -> Iterator[ClosedTick]:
        """Feed the releaser tick by tick, and yield what has come when a tick that is looked at is complete."""
        is_timed, length = metric.length is not None, metric.length or INSTANT
        there = sorted(self.samples, key=lambda sample: sample.effective)
        ticks = [
            (tick, list(samples)) for tick, samples in groupby(there, lambda sample: length.index(sample.effective))
        ]
        chosen = {round(i * (len(ticks) - 1) / (POINTS - 1)) for i in range(POINTS)}
        sent = self._contributions(metric, length, merges=is_timed and mean.bounder().merges)
        begin = length.start(ticks[0][0])
        count, total = 0, 0.0
        for index, (tick, samples) in enumerate(ticks):
            for contribution in sent.get(tick, ()):
                releaser.add(contribution)
                if not is_timed:
                    releaser.close()
            if is_timed:
                releaser.close(tick)
            count += len(samples)
            total += math.fsum(self._value(sample, metric) for sample in samples)
            if index in chosen:
                yield ClosedTick(count, length.start(tick + is_timed) - begin, total / count)

    def _contributions(self, metric: Metric, length: Even, *, merges: bool) -> dict[int, list[Contribution]]:
        """The blocks that the accounts send, by tick, as release takes them: merged, and in canonical order."""
        ticks: dict[int, list[Sent]] = defaultdict(list)
        for sent in self.observed.account(metric, self.samples).sent:
            ticks[length.index(sent.effective)].append(sent)
        return {tick: self._canonical(sent, length.start(tick), merges=merges) for tick, sent in ticks.items()}

    def _canonical(self, tick: Sequence[Sent], start: int, *, merges: bool) -> list[Contribution]:
        merged: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
        alone = []
        for sent in tick:
            number, level, samples, total, part = sent.block
            if isinstance(total, list):
                total = total[self.coordinate]
            if part is not None and merges:
                held = merged[level, part]
                held[0] += samples
                held[1] += total
            else:
                alone.append(Contribution(sent.effective, sent.user.hex(), number, level, samples, total))
        rows = [Contribution(start, "", part, level, *held) for (level, part), held in sorted(merged.items())]
        return rows + sorted(alone, key=lambda row: row[:4])

    def _point(self, metric: Metric, mean: MeanParameters, releaser: Releaser, seen: ClosedTick) -> Point:
        estimate = releaser.estimate()
        samples, total = exact(mean, releaser.head())
        sd = half = None
        if estimate is not None:
            sd, half = estimate.noise_sd, (estimate.high - estimate.low) / 2
        low, high = map(float, metric.ranges[self.coordinate])
        # Before a release there is the middle of the range, if anything.
        mean_so_far = mean.sample_grid.mean_value(total, samples) if samples else (low + high) / 2
        left_out = 1 - samples / seen.events
        part = seen.events / len(self.samples)
        return Point(seen.at, samples, left_out, sd, half, mean_so_far - seen.truth, part=part)

    def _value(self, sample: Sample, metric: Metric) -> float:
        """The value as a float; the end of the range if it is beyond all floats."""
        number = float(sample.values[self.coordinate])  # an integer has 64 bits at most
        low, high = map(float, metric.ranges[self.coordinate])
        return min(max(number, low), high) if math.isinf(number) else number


def exact(mean: MeanParameters, head: list[Any]) -> tuple[int, int]:
    """The samples, and their sum without noise, that a releaser's next release rests on, from its state."""
    if isinstance(mean, Naive):
        return head[0], head[1]
    if isinstance(mean, Sharp):
        return head[5][0], head[5][1]
    if isinstance(mean, Subgaussian):
        return sum(map(int.__mul__, mean.doubling.weights, head[2])), head[3]
    if isinstance(mean, Full):
        return sum(blocks.weight(level) * count for level, count in enumerate(head[1])), sum(head[2])
    return head[0], sum(head[2])
