"""The statistic's side of the sharp mean of subgaussian samples: what waits, where it is clipped, and the counter.

Everything that decides happens when a tick is complete, and is a function of the configuration and of the pattern; the
one number that values decide is the centre, once, privately.
"""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from shoal.mechanisms.continual_mean.looks import Wait, unknown
from shoal.mechanisms.continual_mean.subgaussian.parameters import Start, SubgaussianParameters
from shoal.mechanisms.error_bars import estimate_within
from shoal.mechanisms.noise.keyed import Bits, derive
from shoal.mechanisms.selection import clip_range
from shoal.mechanisms.statistic import Activation, Contribution, Estimate


class SubgaussianReleaser:
    """The releases of one group: it waits, chooses a centre, then clips and counts."""

    __slots__ = (
        "_centre", "_counter", "_counts", "_dropped", "_intervals", "_mean", "_rows", "_start", "_ticks", "_total",
        "_tree_key", "_wait", "_words_key", "_written",
    )  # fmt: skip

    def __init__(self, mean: SubgaussianParameters, key: bytes, group: bytes, coordinate: int) -> None:
        self._mean = mean
        self._tree_key = partial(derive, key, group, "tree", "mean", coordinate, 0)  # of an epoch
        self._words_key = derive(key, group, "centre", "mean", coordinate, 0, 0)
        blocks = len(mean.doubling.ends)
        self._rows: list[dict[str, tuple[int, int]]] = [{} for _ in range(blocks)]  # pseudonym -> (effective, total)
        self._start: Start | None = None  # None while all wait
        self._centre = Fraction(0)  # in steps of the samples' grid
        self._intervals: tuple[tuple[int, int], ...] = ()  # of the blocks that count
        self._counts = [0] * blocks  # of those, how many count
        self._total = 0  # their clipped sum
        self._wait = Wait()  # until it begins, that tick included
        self._ticks = 0  # of the counter
        self._written: list[Contribution] = []
        self._dropped: list[tuple[int, str]] = []

    # ---------------------------------------------------------------- in

    def add(self, contribution: Contribution) -> Sequence[Activation]:
        level, total = contribution.level, contribution.total
        if self._start is not None:
            self._count(level, total)
            return ()
        waiting = self._rows[level]
        if contribution.pseudonym in waiting:
            raise ValueError(f"a unit's block number {level} arrived twice")
        waiting[contribution.pseudonym] = contribution.effective, total
        self._written.append(contribution)
        return ()

    def _count(self, level: int, total: int) -> None:
        if level < len(self._intervals):
            low, high = self._intervals[level]
            self._counts[level] += 1
            self._total += min(max(total, low), high)

    # ---------------------------------------------------------------- a tick is complete

    def close(self, tick: int | None = None) -> Sequence[Activation]:
        """Begin if enough has come."""
        activations: tuple[Activation, ...] = ()
        if self._start is None:
            look = self._wait.look(None if self._mean.each else tick)
            start = None if look is None else self._mean.begin([len(rows) for rows in self._rows], look)
            if start is None:
                return ()
            activations = (self._begin(start),)
        self._ticks += 1
        return activations

    def _begin(self, start: Start) -> Activation:
        """Choose the centre, if one is to be chosen, and count what waited."""
        mean = self._mean
        # One number of each unit: the mean of all its blocks.
        held = {name: [0, 0] for name in self._rows[0]}
        for weight, rows in zip(mean.doubling.weights, self._rows, strict=True):
            for name in rows.keys() & held.keys():
                held[name][0] += rows[name][1]
                held[name][1] += weight
        spent, centre = Fraction(0), mean.margin + Fraction(mean.grid.steps, 2)
        if start.units:
            spent = mean.group_epsilon * mean.share(start)
            counts = [0] * mean.candidates[2]
            for total, samples in held.values():
                counts[mean.bucket(total, samples)] += 1
            centre = mean.middle(clip_range.bucket(counts, spent, Bits(self._words_key).draw(0)))
        self._open(start, centre)
        for level, rows in enumerate(self._rows):
            for _, total in rows.values():
                self._count(level, total)
        self._drop()
        samples = sum(samples for _, samples in held.values())
        return Activation(0, mean.sample_grid.mean_value(centre, 1), samples, spent)

    def _open(self, start: Start, centre: Fraction) -> None:
        """Fix the intervals and make the counter for them, always the same."""
        self._start, self._centre = start, centre
        self._wait.first = None  # the state keeps it no longer
        self._intervals = self._mean.intervals(start, centre)
        self._counter = self._mean.counter(start).counter(self._tree_key)

    # ---------------------------------------------------------------- out

    def ahead(self, contributions: Sequence[Contribution]) -> tuple[()]:
        """Always empty: a tree of this counter draws all of its nodes at once, and then seldom."""
        return ()

    def estimate(self) -> Estimate | None:
        """The clipped sum and noise over the samples; before it begins the middle of the range, which says nothing."""
        mean = self._mean
        if self._start is None:
            return unknown(mean, self._wait) if any(self._rows) else None
        noisy = self._total + self._counter.noise(self._ticks)
        noise = self._counter.tree.widths(self._ticks, mean.sample_grid.step, mean.coverage)
        return estimate_within(mean.sample_grid, noisy, self.samples, noise, self.bounds if mean.clamps else None)

    @property
    def samples(self) -> int:
        """The number of samples that count."""
        return sum(weight * count for weight, count in zip(self._mean.doubling.weights, self._counts, strict=True))

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The bounds of the mean of what counts, in units of the range, and at most the range itself.

        They are functions of the centre and of the pattern; None before it begins.
        """
        if self._start is None:
            return None
        mean, samples = self._mean, self.samples
        counted = list(zip(self._intervals, self._counts, strict=False))
        low, high = (sum(ends[side] * count for ends, count in counted) for side in (0, 1))
        lowest, highest = mean.sample_grid.mean_value(low, samples), mean.sample_grid.mean_value(high, samples)
        return max(lowest, float(mean.grid.low)), min(highest, float(mean.grid.high))

    # ---------------------------------------------------------------- state

    def _drop(self) -> None:
        """Forget all that waited, and note what was written before."""
        unseen = {(row.level, row.pseudonym) for row in self._written}
        self._dropped += [place for place in self.kept if place not in unseen]
        self._written = []
        self._rows = [{} for _ in self._rows]

    @property
    def kept(self) -> Mapping[tuple[int, str], Contribution]:
        weights = self._mean.doubling.weights
        return {
            (level, name): Contribution(effective, name, level + 1, level, weights[level], total)
            for level, rows in enumerate(self._rows)
            for name, (effective, total) in rows.items()
        }

    def take_changes(self) -> tuple[list[Contribution], list[tuple[int, str]]]:
        changes = self._written, self._dropped
        self._written, self._dropped = [], []
        return changes

    def head(self) -> list[Any]:
        """[start, centre, counts of blocks, clipped sum, ticks waited and counted]."""
        start = [] if self._start is None else [*map(int, self._start)]
        centre = list(self._centre.as_integer_ratio())
        return [start, centre, list(self._counts), self._total, [*self._wait.head(), self._ticks]]

    def restore(self, head: list[Any], kept: Iterable[Contribution]) -> None:
        start, centre, counts, total, ticks = head
        self._counts, self._total = [int(count) for count in counts], int(total)
        *wait, self._ticks = map(int, ticks)
        self._wait.restore(wait)
        self._rows = [{} for _ in self._rows]
        for row in kept:
            self._rows[row.level][row.pseudonym] = row.effective, row.total
        if start:
            self._open(Start(*map(int, start)), Fraction(*map(int, centre)))
