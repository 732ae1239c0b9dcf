"""The statistic's side of the sharp mean (sharp.py): what waits, what is clipped to what, and the counter.

Everything that decides happens when a tick is complete, so nothing depends on the order or the grouping of what came in
it. A decision is a function of the configuration, of the pattern, and of numbers that were charged: centre, scale, the
octaves' scales, and the last release.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from shoal.mechanisms import scale
from shoal.mechanisms.buckets import outside
from shoal.mechanisms.interval import estimate
from shoal.mechanisms.keyed import Bits, derive
from shoal.mechanisms.sharp_bounder import EVENT_LEVELS, EVENTS, weight
from shoal.mechanisms.statistic import Activation, Contribution, Estimate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shoal.mechanisms.sharp import Sharp

NARROWER = 8  # candidates of an octave's scale: the one before, times 2**(-j / 2)
BLOCK_NOISE = Fraction(1, 180)  # takes block means to two and a half standard deviations


class SharpReleaser:
    """Waits, then clips and counts."""

    __slots__ = (
        "_blocks", "_budget", "_cap", "_clips", "_coordinate", "_counter", "_dropped", "_group", "_high", "_key",
        "_low", "_mean", "_previous", "_ranged", "_samples", "_ticks", "_total", "_units", "_waited", "_waiting",
        "_written",
    )  # fmt: skip

    def __init__(self, mean: "Sharp", key: bytes, group: bytes, coordinate: int) -> None:
        self._mean, self._key, self._group, self._coordinate = mean, key, group, coordinate
        self._waiting: dict[tuple[int, int], list[int]] = {}  # (level, bucket) -> [samples, total], until activation
        self._cap = 0  # samples of a unit that count; 0 while all wait
        self._low, self._high = 0, mean.buckets.count  # boundaries that single samples are clipped to
        self._budget = 0  # grid steps that blocks of octaves yet to be opened may move; it only shrinks
        self._clips: list[tuple[int, int]] = []  # of the block levels that are open
        self._units = 0  # that have come
        self._waited = 0  # ticks until activation, its own included
        self._ranged = 0  # 1: the clip range was chosen, 0: it is the whole range
        self._ticks = self._samples = self._total = 0  # of what counts
        self._previous = 0, 0  # samples and exact total when the tick before was complete
        self._blocks: dict[int, dict[str, tuple[int, int]]] = {}  # level -> pseudonym -> (effective, total), waiting
        self._written: list[Contribution] = []
        self._dropped: list[tuple[int, str]] = []
        self._count()

    def _count(self) -> None:
        """Make the counter for the clip ranges; it is the same whenever it is made again."""
        mean = self._mean
        ends = mean.buckets.boundaries
        width, blocks = ends[self._high] - ends[self._low], self._counts_blocks
        most = width * min(self._cap or 1, mean.singles) + (mean.block_budget(width) if blocks else 0)
        share = mean.shares.counter(ranged=bool(self._ranged), blocks=blocks)
        self._counter = mean.counter(most, share).counter(
            lambda epoch: derive(self._key, self._group, "tree", "mean", self._coordinate, 0, epoch)
        )

    # ---------------------------------------------------------------- in

    def add(self, contribution: Contribution) -> Sequence[Activation]:
        """Take it in; nothing activates before the tick is complete."""
        _, pseudonym, number, level, samples, total = contribution
        if level >= EVENT_LEVELS and self._mean.blocks:
            self._add_block(contribution)
            return ()
        self._units += 0 if level else samples
        bucket = self._mean.buckets.of(total) if pseudonym else number  # one sample by itself, or a partial
        if not self._cap:
            held = self._waiting.setdefault((level, bucket), [0, 0])
            held[0] += samples
            held[1] += total
        elif level <= (self._cap - 1).bit_length():
            self._add_events(bucket, samples, total)
        return ()

    def _add_events(self, bucket: int, samples: int, total: int) -> None:
        self._samples += samples
        self._total += self._mean.buckets.clipped(bucket, samples, total, self._low, self._high)

    def _add_block(self, contribution: Contribution) -> None:
        level, pseudonym = contribution.level, contribution.pseudonym
        if level - EVENT_LEVELS < len(self._clips):
            self._add_clipped(level, contribution.total)
        elif self._awaits_blocks:
            waiting = self._blocks.setdefault(level, {})
            if pseudonym in waiting:
                raise ValueError(f"a unit's block of level {level} arrived twice")
            waiting[pseudonym] = contribution.effective, contribution.total
            self._written.append(contribution)

    def _add_clipped(self, level: int, total: int) -> None:
        low, high = self._clips[level - EVENT_LEVELS]
        self._samples += weight(level)
        self._total += min(max(total, low), high)

    @property
    def _awaits_blocks(self) -> bool:
        """Whether blocks of levels that are not open may still count."""
        return not self._cap or (self._counts_blocks and self._budget > 0)

    @property
    def _counts_blocks(self) -> bool:
        return bool(self._mean.blocks) and self._cap > EVENTS

    # ---------------------------------------------------------------- a tick is complete

    def close(self) -> Sequence[Activation]:
        """Activate if enough is there; open octaves."""
        if self._cap:
            activations = self._open_octaves()
        else:
            self._waited += 1
            if not self._mean.is_ready(self._units, self._samples_waiting, self._waited):
                return ()
            activations = [self._activate()]
        self._ticks += 1
        self._previous = self._samples, self._total
        return activations

    @property
    def _first(self) -> list[int]:
        """Units' first samples per bucket: of each unit one."""
        return [self._waiting.get((0, bucket), (0, 0))[0] for bucket in range(self._mean.buckets.count)]

    def _activate(self) -> Activation:
        """Choose the clip range and the cap, and count what waited."""
        mean, first, units = self._mean, self._first, self._units
        centre = mean.buckets.boundaries[mean.buckets.count // 2]
        spent = Fraction(0)
        forecast = mean.forecast(units, self._samples_waiting, self._waited)
        cap = mean.choose_cap(forecast)
        self._ranged = int(units >= mean.least_units)
        if self._ranged:
            few = 1 if cap > mean.singles else forecast.noise_sd(cap, mean.relative_width(cap), mean.group_epsilon)
            centre = self._choose_range(first, Fraction(few))
            spent = mean.group_epsilon * (mean.shares.centre + mean.shares.scale)
        self._cap = cap
        self._open_counter()
        waiting, self._waiting = self._waiting, {}
        top = (self._cap - 1).bit_length()
        for (level, bucket), (samples, total) in waiting.items():
            if level <= top:
                self._add_events(bucket, samples, total)
        if not self._awaits_blocks:
            self._drop(list(self._blocks))
        return Activation(0, mean.grid.mean_value(centre, 1), units, units, spent)

    def _open_counter(self) -> None:
        ends = self._mean.buckets.boundaries
        width = ends[self._high] - ends[self._low]
        self._budget = self._mean.block_budget(width) if self._counts_blocks else 0
        self._count()

    def _choose_range(self, first: list[int], noise: Fraction) -> int:
        """Centre and half width of units' first samples; sets the boundaries to clip to. The centre, in grid steps."""
        mean, buckets = self._mean, self._mean.buckets
        epsilon = mean.group_epsilon
        centre = buckets.boundaries[scale.centre(first, epsilon * mean.shares.centre, self._words("centre", 0))]
        candidates = mean.half_widths
        target = scale.left_outside(sum(first), len(candidates), epsilon * mean.shares.scale)
        if target is not None:
            left = [outside(first, *buckets.around(centre, half)) for half in candidates]
            chosen = candidates[scale.scale(left, target, epsilon * mean.shares.scale, self._words("scale", 0))]
            skewed = (centre < 2 * chosen) != (mean.grid.steps - centre < 2 * chosen)
            widening = scale.widening(Fraction(target, sum(first)), noise, skewed=skewed)
            self._low, self._high = buckets.around(centre, int(chosen * widening))
        return centre

    def _words(self, purpose: str, level: int) -> "Iterator[int]":
        return Bits(derive(self._key, self._group, purpose, "mean", self._coordinate, level, 0)).draw(0)

    @property
    def _samples_waiting(self) -> int:
        single = sum(held[0] for held in self._waiting.values())
        return single + sum(weight(level) * len(waiting) for level, waiting in self._blocks.items())

    # ---------------------------------------------------------------- octaves

    def _open_octaves(self) -> list[Activation]:
        activations = []
        while self._budget > 0 and len(self._clips) < self._mean.blocks:
            level = EVENT_LEVELS + len(self._clips)
            if len(self._blocks.get(level, ())) < self._mean.octave_units(self._units):
                break
            activations.append(self._open_octave(level))
        return activations

    def _open_octave(self, level: int) -> Activation:
        """Choose the scale of the block means of an octave, and count the blocks that waited; or end the budget."""
        mean = self._mean
        size = weight(level)
        centre = self._last_release()
        units = len(self._blocks[level])
        half = self._choose_half_width(level, centre)
        pair = range(level, min(level + 2, EVENT_LEVELS + mean.blocks))
        both = 2 * size * len(pair)
        affordable = next((steps // both for steps in self._allowances(len(pair)) if 2 * steps >= half * both), None)
        if affordable is not None:  # else it would cut off most of what units differ in
            half = min(half, affordable)
            self._budget -= both * half
            middle = int(size * centre)
            self._clips += [(middle - size * half, middle + size * half)] * len(pair)
        else:
            self._budget = 0
        self._count_blocks(pair)
        return Activation(level, mean.grid.mean_value(centre, 1), units, units * size, mean.octave_epsilon)

    def _allowances(self, blocks: int) -> tuple[int, int]:
        """What the next blocks may move: with later ones keeping their share, if units are alike; or all there is."""
        ends = self._mean.buckets.boundaries
        width = ends[self._high] - ends[self._low]
        spent = self._mean.block_budget(width) - self._budget
        return self._mean.block_budget(width, len(self._clips) + blocks) - spent, self._budget

    def _count_blocks(self, levels: Sequence[int]) -> None:
        """Those that waited for their level, if it is open now; the rest wait on while there is a budget."""
        for level in levels:
            if level - EVENT_LEVELS < len(self._clips):
                for _, total in self._blocks.get(level, {}).values():
                    self._add_clipped(level, total)
        self._drop([level for level in self._blocks if level in levels or not self._awaits_blocks])

    def _last_release(self) -> Fraction:
        """The mean that the last release gave, in grid steps: charged already, and free to use."""
        samples, total = self._previous
        mean = Fraction(total + self._counter.noise(self._ticks), samples)
        return min(max(mean, Fraction(0)), Fraction(self._mean.grid.steps))

    def _choose_half_width(self, level: int, centre: Fraction) -> int:
        """Half width of block means around the centre, from the first block of each unit in the octave."""
        mean, size = self._mean, weight(level)
        widest = self._widest()
        candidates = [widest, *(half for half in mean.half_widths if half < widest)][:NARROWER]
        units = len(self._blocks[level])
        target = scale.left_outside(units, len(candidates), mean.octave_epsilon)
        if target is None:
            return widest
        widening = scale.widening(Fraction(target, units), BLOCK_NOISE)
        far = [abs(total - size * centre) for _, total in self._blocks[level].values()]
        left = [sum(one > size * half for one in far) for half in candidates]
        chosen = candidates[scale.scale(left, target, mean.octave_epsilon, self._words("scale", level))]
        return min(widest, int(chosen * widening))

    def _widest(self) -> int:
        """The half width of what came before: of the samples, or of the octave below."""
        if self._clips:
            low, high = self._clips[-1]
            return (high - low) // (2 * weight(EVENT_LEVELS + len(self._clips) - 1))
        ends = self._mean.buckets.boundaries
        return -(-(ends[self._high] - ends[self._low]) // 2)

    # ---------------------------------------------------------------- out

    def estimate(self) -> Estimate | None:
        """(clipped sum + noise) / samples; before activation the middle of the range, which says nothing."""
        grid = self._mean.grid
        if not self._cap:
            return self._ignorance() if self._waiting else None
        t = self._ticks
        noisy = self._total + self._counter.noise(t)
        ends = self._mean.buckets.boundaries
        bounds = grid.mean_value(ends[self._low], 1), grid.mean_value(ends[self._high], 1)
        return replace(estimate(grid, noisy, self._samples, self._counter.tree.scales(t)), bounds=bounds)

    def _ignorance(self) -> Estimate:
        grid = self._mean.grid
        low, high = grid.mean_value(0, 1), grid.mean_value(grid.steps, 1)
        half = grid.width_value(Fraction(grid.steps, 2))
        return Estimate(grid.mean_value(Fraction(grid.steps, 2), 1), half, low, high, 0)

    # ---------------------------------------------------------------- state

    def _drop(self, levels: list[int]) -> None:
        unseen = {(row.level, row.pseudonym) for row in self._written if row.level in levels}
        self._dropped += [
            (level, name) for level in levels for name in self._blocks[level] if (level, name) not in unseen
        ]
        self._written = [row for row in self._written if row.level not in levels]
        for level in levels:
            del self._blocks[level]

    @property
    def kept(self) -> Mapping[tuple[int, str], Contribution]:
        """Blocks of levels that are not open."""
        return {
            (level, name): Contribution(effective, name, EVENTS + 1 + level - EVENT_LEVELS, level, weight(level), total)
            for level, waiting in self._blocks.items()
            for name, (effective, total) in waiting.items()
        }

    def take_changes(self) -> tuple[list[Contribution], list[tuple[int, str]]]:
        """Blocks that wait, and those that no longer do, since the last call."""
        changes = self._written, self._dropped
        self._written, self._dropped = [], []
        return changes

    def head(self) -> list[Any]:
        """[cap, clip range, block budget, block clips, units, ticks, samples and total, those before, what waits]."""
        waiting = [[*place, *held] for place, held in sorted(self._waiting.items())]
        return [
            self._cap, [self._ranged, self._low, self._high], self._budget, [list(clip) for clip in self._clips],
            [self._units, self._waited, self._ticks], [self._samples, self._total], list(self._previous), waiting,
        ]  # fmt: skip

    def restore(self, head: list[Any], kept: Iterable[Contribution]) -> None:
        """Take the state over."""
        cap, clip, budget, clips, ticks, sums, previous, waiting = head
        self._cap, self._budget = int(cap), int(budget)
        self._ranged, self._low, self._high = map(int, clip)
        self._clips = [(int(low), int(high)) for low, high in clips]
        self._units, self._waited, self._ticks = map(int, ticks)
        self._samples, self._total = map(int, sums)
        self._previous = int(previous[0]), int(previous[1])
        self._waiting = {(int(level), int(bucket)): [int(n), int(sum_)] for level, bucket, n, sum_ in waiting}
        self._blocks = {}
        for row in kept:
            self._blocks.setdefault(row.level, {})[row.pseudonym] = row.effective, row.total
        self._count()
