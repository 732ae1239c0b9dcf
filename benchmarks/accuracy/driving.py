"""An algorithm over an input: the releaser as the agents drive it, looked at from time to time.

Every algorithm is looked at at the same instants, and what counts is its latest release. The looks are all releases of
a tick cadence; where each contribution has a release, a sample of them, as a release needs none of those before it.
"""

import dataclasses
import time as clock
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice, pairwise
from typing import Any

import numpy as np

from benchmarks.accuracy.bounding import Contributions, bound, ticks
from benchmarks.accuracy.inputs import Cadence, Floats, Input, Ints
from shoal.mechanisms.continual_mean.mean import MeanParameters
from shoal.mechanisms.continual_mean.statistic import ALGORITHMS
from shoal.mechanisms.noise.keyed import derive
from shoal.mechanisms.statistic import Contribution, Estimate, Releaser

EPSILON = Fraction(1)
EARLY, LATE = 150, 250  # looks in the first quarter of the stream and after it, at a release per contribution
WORK = 20_000  # contributions times keys that an algorithm is given at one cadence, per key that is asked for
MORE = {"sharp": 4}  # times the keys and the work, for the one whose ratios are wanted to a few per cent


@dataclass(frozen=True)
class Runs:
    """What an algorithm released: one row per key, one column per look; nan where nothing was released yet."""

    algorithm: str
    value: Floats  # clamped to what the algorithm itself says that the mean lies between, if it says so
    raw: Floats  # before
    sd: Floats
    half: Floats  # half the noise interval
    seconds: float


def looks(data: Input, cadence: Cadence) -> Ints:
    """After how many events to look: the ends of ticks, or a sample that no power of two has a say in."""
    if cadence.every is not None:
        return data.ends(cadence.every)
    draw = np.random.default_rng(7)
    quarter = data.count // 4
    early = np.unique(np.exp(np.linspace(0, np.log(quarter), EARLY)).astype(np.int64))
    edges = np.linspace(quarter, data.count, LATE + 1).astype(np.int64)
    late = [int(draw.integers(low, high)) + 1 for low, high in pairwise(edges.tolist())]
    return np.unique([*early.tolist(), *late, data.count])


def parameters(name: str, data: Input, releases: int, *, each: bool = False) -> MeanParameters:
    """The algorithm as one would configure it; a prior, where one must be given, is the true mean, free of charge."""
    cls = ALGORITHMS[name]
    fields = {field.name for field in dataclasses.fields(cls)}
    more: dict[str, Any] = {}
    if "prior" in fields:
        total = int(np.sum(data.value, dtype=np.int64))
        more["prior"] = Fraction(data.grid.mean_value(total, data.count))
    if "horizon" in fields:
        more |= {"horizon": releases, "each": each}
    return cls(grid=data.grid, epsilon=EPSILON, max_contributions=data.cap, users=data.users, **more)


def key(data: Input, number: int) -> bytes:
    """Of the benchmark, and of nothing else."""
    return derive(bytes(32), "benchmark", data.name, number)


class Bounded:
    """The contributions of one input, per algorithm: all keys and cadences share them."""

    def __init__(self, data: Input, names: Sequence[str] = ()) -> None:
        self.data = data
        self.names = names or [f"{user:032x}" for user in range(int(data.user.max()) + 1)]  # instead of pseudonyms
        self._found: tuple[str, Contributions] | None = None

    def of(self, mean: MeanParameters) -> Contributions:
        """Of this algorithm."""
        bounder = mean.bounder()
        shape = f"{type(bounder).__name__} {bounder!r}"
        if self._found is None or self._found[0] != shape:
            self._found = None  # before the next one is made: they are large
            self._found = shape, bound(bounder, self.data)
        return self._found[1]

    def run(self, name: str, cadence: Cadence, keys: int) -> Runs:
        """All keys, or as many as the work allows for."""
        began = clock.perf_counter()
        at = looks(self.data, cadence)
        found = self.of(parameters(name, self.data, 1))
        releases = self.data.users * self.data.cap if cadence.every is None else len(at)  # as a configuration says
        mean = parameters(name, self.data, releases, each=cadence.every is None)
        feed = self.feed(name, found, cadence, at)
        more = MORE.get(name, 1)
        affordable = max(2, min(keys * more, keys * WORK * more // feed.size))
        rows = [feed.run(mean.releaser(key(self.data, number), b"")) for number in range(affordable)]
        value, raw, sd, half = (np.array([row[column] for row in rows]) for column in range(4))
        return Runs(name, value, raw, sd, half, clock.perf_counter() - began)

    def feed(self, name: str, found: Contributions, cadence: Cadence, at: Ints) -> "Feed":
        """What a releaser is given, and when it is looked at."""
        if cadence.every is not None:
            closed = list(ticks(found, self.data.time, cadence.every, self.names))
            return Ticks(len(at), closed)
        stops = np.searchsorted(found.at, at)  # contributions that have closed before the look
        if name == "naive":
            return Sums(found, stops)
        return Rows(stops, list(found.rows(slice(None), self.data.time, self.names)))


def ticked(releaser: Releaser, contributions: Iterable[Contribution], tick: int | None = None) -> Estimate | None:
    """One tick, as the agents do it: its contributions, then `close`, then the release."""
    for contribution in contributions:
        releaser.add(contribution)
    releaser.close(tick)
    return releaser.estimate()


def _numbers(estimate: Estimate | None, releaser: Releaser) -> tuple[float, float, float, float]:
    if estimate is None or estimate.value is None:
        return np.nan, np.nan, np.nan, np.nan
    low, high = getattr(releaser, "bounds", None) or (-np.inf, np.inf)
    half = (estimate.high - estimate.low) / 2
    return min(max(estimate.value, low), high), estimate.value, estimate.noise_sd, half


class Feed(ABC):
    """A releaser's food: the same for every key."""

    size: int  # contributions

    def run(self, releaser: Releaser) -> list[list[float]]:
        """Value, value before clamping, noise sd and half the interval, each at each look."""
        seen = [_numbers(estimate, releaser) for estimate in self.estimates(releaser)]
        return [list(column) for column in zip(*seen, strict=True)]

    @abstractmethod
    def estimates(self, releaser: Releaser) -> Iterator[Estimate | None]:
        """The latest release at each look."""


class Ticks(Feed):
    """A release at the end of each tick that has contributions."""

    def __init__(self, looks: int, closed: Sequence[tuple[int, list[Contribution]]]) -> None:
        self._looks, self._closed = looks, dict(closed)
        self.size = sum(len(rows) for _, rows in closed)

    def estimates(self, releaser: Releaser) -> Iterator[Estimate | None]:
        """The latest release at each look."""
        latest: Estimate | None = None
        for tick in range(self._looks):
            if tick in self._closed:
                latest = ticked(releaser, self._closed[tick], tick)
            yield latest


class Rows(Feed):
    """A release after each contribution; only those that are looked at are made."""

    def __init__(self, stops: Ints, rows: list[Contribution]) -> None:
        self._stops, self._rows = stops.tolist(), rows
        self.size = len(rows)

    def estimates(self, releaser: Releaser) -> Iterator[Estimate | None]:
        """The latest release at each look."""
        add, close, rows = releaser.add, releaser.close, iter(self._rows)
        for begin, end in pairwise([0, *self._stops]):
            for contribution in islice(rows, end - begin):
                add(contribution)
                close()
            yield releaser.estimate() if end else None


class Sums(Feed):
    """The same for the naive mean, which only adds up: what lies between two looks is handed over as one sum."""

    def __init__(self, found: Contributions, stops: Ints) -> None:
        running = np.concatenate(([0], np.cumsum(found.total)))[stops].tolist()
        self._sums = [(end - begin, after - before) for (begin, before), (end, after) in
                      pairwise([(0, 0), *zip(stops.tolist(), running, strict=True)])]  # fmt: skip
        self.size = len(self._sums)

    def estimates(self, releaser: Releaser) -> Iterator[Estimate | None]:
        """The latest release at each look."""
        for samples, total in self._sums:
            yield ticked(releaser, [Contribution(0, "", 0, 0, samples, total)] if samples else [])
