"""The statistic's side of the sharp mean (parameters.py): what waits, what is clipped to what, and the counter.

Everything that decides happens when a tick is complete, so nothing depends on the order or the grouping of what came in
it. A decision is a function of the configuration, of the pattern, and of numbers that were charged: centre, scale, the
octaves' scales, and the last release.
"""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from shoal.mechanisms.continual_mean.blocks import Changes
from shoal.mechanisms.continual_mean.levels import LevelKeys
from shoal.mechanisms.continual_mean.looks import Wait, unknown
from shoal.mechanisms.continual_mean.sharp.cap import Beginning, Forecast
from shoal.mechanisms.continual_mean.sharp.choices import Choices
from shoal.mechanisms.continual_mean.sharp.parameters import NARROWER, SharpParameters
from shoal.mechanisms.error_bars import estimate_within, noise_sd
from shoal.mechanisms.statistic import Activation, Contribution, Estimate

SAMPLES_BITS = 64  # of a number of samples; totals have any size
SAMPLES = (1 << SAMPLES_BITS) - 1
WORTH = Fraction(11, 10)  # clips for blocks have to take a tenth off the noise


class SharpReleaser:
    """The releases of one group and coordinate: it waits, chooses clip ranges, then clips and counts."""

    __slots__ = (
        "_arrived", "_beginning", "_blocks", "_changes", "_clips", "_counter", "_half", "_high", "_keys", "_levels",
        "_low", "_mean", "_previous", "_samples", "_ticks", "_top", "_total", "_units", "_wait", "_waiting", "_width",
    )  # fmt: skip

    def __init__(self, mean: SharpParameters, key: bytes, group: bytes, coordinate: int) -> None:
        self._mean = mean
        self._levels = mean.shape.levels
        self._keys = LevelKeys(key, group, coordinate, 0)
        # (level, bucket) -> total and samples, until activation: many groups may wait, so two numbers are one
        self._waiting: dict[tuple[int, int], int] = {}
        self._beginning: Beginning | None = None  # None while all wait
        self._low, self._high = 0, mean.buckets.count  # boundaries that single samples are clipped to
        self._width = 0  # grid steps: what a first block's mean may move, times the root of its weight
        self._half = 0  # of the mean of a block of the last octave that is open
        self._clips: tuple[tuple[int, int] | None, ...] = ()  # of open blocks; None: their samples count one by one
        self._units = 0  # that have come
        self._arrived = 0  # samples that wait; those of open blocks have not arrived
        self._wait = Wait()  # until activation, its own tick included
        self._ticks = self._samples = self._total = 0  # of what counts
        self._previous = 0, 0  # samples and exact total when the tick before was complete
        self._blocks: dict[int, dict[str, tuple[int, int]]] = {}  # block -> pseudonym -> (effective, total), waiting
        self._changes = Changes()

    def _count(self, beginning: Beginning) -> None:
        """Make the counter for the clip ranges, always the same one, and fix which samples count one by one."""
        self._counter = self._mean.counter(self._most(beginning), beginning).counter(self._keys)
        self._top = ((self._mean.shape.alone if beginning.alike else beginning.cap) - 1).bit_length()

    def _most(self, beginning: Beginning) -> int:
        """The most that a unit can move in all, in grid steps."""
        return self._mean.most(beginning, self._single, self._width)

    # ---------------------------------------------------------------- in

    def add(self, contribution: Contribution) -> Sequence[Activation]:
        return tuple(self.add_all((contribution,)))

    def add_all(self, contributions: Iterable[Contribution]) -> list[Activation]:
        """Take in what came in a tick; it activates nothing, and what is open stays so until the tick is complete."""
        shape, buckets, levels = self._mean.shape, self._mean.buckets, self._levels
        closing, radix, is_open = shape.closing_levels, 1 << buckets.bits, len(self._clips)
        for contribution in contributions:
            _, pseudonym, number, level, samples, total = contribution
            if level < levels:
                if not level:
                    self._units += samples
                # One sample by itself, or a partial.
                self._add_single(level, buckets.of(total) if pseudonym else number, samples, total)
                continue
            block = level - levels
            if block < len(closing):
                total, value = divmod(total, radix)
                self._add_single(closing[block], buckets.of(value), 1, value)
            if block < is_open:
                self._add_clipped(block, total)
            elif self._awaits_blocks:
                self._keep(contribution, block, total)
        return []

    def _add_single(self, level: int, bucket: int, samples: int, total: int) -> None:
        beginning = self._beginning
        if beginning is None:
            self._arrived += samples
            place, waiting = self._mean.places[level][bucket], self._waiting
            waiting[place] = waiting.get(place, 0) + (total << SAMPLES_BITS | samples)
        elif level <= self._top:
            self._samples += samples
            self._total += self._mean.buckets.clipped(bucket, samples, total, self._low, self._high)

    def _keep(self, contribution: Contribution, block: int, total: int) -> None:
        """Keep a block that may count later."""
        self._arrived += self._beyond(block)
        waiting = self._blocks.setdefault(block, {})
        if contribution.pseudonym in waiting:
            raise ValueError(f"a unit's block number {block} arrived twice")
        waiting[contribution.pseudonym] = contribution.effective, total
        self._changes.write(self._kept(block, contribution.pseudonym, contribution.effective, total))

    def _kept(self, block: int, pseudonym: str, effective: int, total: int) -> Contribution:
        shape = self._mean.shape
        return Contribution(effective, pseudonym, shape.number(block), shape.levels + block, shape.weight(block), total)

    def _add_clipped(self, block: int, total: int) -> None:
        clip = self._clips[block]
        if clip is not None:
            self._samples += self._mean.shape.weights[block]
            self._total += min(max(total, clip[0]), clip[1])

    @property
    def _awaits_blocks(self) -> bool:
        """Whether blocks that are not open may still count."""
        beginning = self._beginning
        return beginning is None or (beginning.alike and len(self._clips) < self._mean.shape.blocks)

    # ---------------------------------------------------------------- a tick is complete

    def close(self, tick: int | None = None) -> Sequence[Activation]:
        """Begin if enough has come; open octaves."""
        if self._beginning is None:
            look = self._wait.look(None if self._mean.each else tick)
            longs = len(self._blocks.get(0, ()))
            beginning = None if look is None else self._mean.begin(self._units, longs, self._arrived, look)
            if beginning is None:
                return ()
            activations = [self._activate(beginning)]
        else:
            activations = self._open_octaves(self._beginning)
        self._ticks += 1
        self._previous = self._samples, self._total
        return activations

    def _activate(self, beginning: Beginning) -> Activation:
        """Choose the clip ranges, and count what waited."""
        mean, level, size = self._mean, 0, 1
        shares = mean.shares(beginning)
        centre = mean.buckets.boundaries[mean.buckets.count // 2]
        if beginning.longs:
            level, size = mean.shape.levels, mean.shape.weight(0)
            beginning, centre = self._begin_long(beginning)
        elif beginning.firsts:
            centre = self._choose_range(beginning)
        if not beginning.alike:
            self._open_all(beginning.cap)
        self._beginning = beginning
        self._wait.first = None  # the state keeps it no longer
        self._count(beginning)
        waiting, self._waiting = self._waiting, {}
        for (single, bucket), held in waiting.items():
            self._add_single(single, bucket, held & SAMPLES, held >> SAMPLES_BITS)
        self._count_blocks()
        units = beginning.longs or self._units
        spent = mean.call_epsilon * (shares.centre + shares.scale)
        return Activation(level, mean.grid.mean_value(centre, 1), units * size, spent)

    # ---------------------------------------------------------------- clip ranges

    @property
    def _choices(self) -> Choices:
        return Choices(self._mean, self._keys.key, self._keys.group, self._keys.coordinate)

    @property
    def _single(self) -> int:
        """The most that a single sample may move, in grid steps."""
        ends = self._mean.buckets.boundaries
        return ends[self._high] - ends[self._low]

    def _open_all(self, cap: int) -> None:
        """Clip a block of w samples like w single samples, where they do not come one by one."""
        shape, ends = self._mean.shape, self._mean.buckets.boundaries
        for block in range(shape.blocks):
            size, end = shape.weight(block), shape.end(block)
            if end <= cap:
                beyond = end > shape.singles
                self._clips += ((size * ends[self._low], size * ends[self._high]) if beyond else None,)

    def _choose_range(self, beginning: Beginning) -> int:
        """Choose the boundaries to clip to from units' first samples; return their centre, in grid steps."""
        mean = self._mean
        first = [self._waiting.get((0, bucket), 0) & SAMPLES for bucket in range(mean.buckets.count)]
        forecast = mean.forecast(self._units, self._arrived, self._wait.ticks)
        noise = forecast.noise_sd(beginning.cap, Fraction(beginning.cap), mean.noise_epsilon)
        centre, self._low, self._high = self._choices.range(first, mean.shares(beginning), noise)
        return centre

    def _begin_long(self, beginning: Beginning) -> tuple[Beginning, int]:
        """Choose the boundaries to clip to from units' first blocks, and whether octaves have clips of their own."""
        mean, totals = self._mean, [total for _, total in self._blocks[0].values()]
        centre, half = self._choices.first_blocks(totals, mean.shares(beginning))
        self._width = mean.block_width(half)
        self._low, self._high = mean.buckets.around(centre, -(-self._width // 2))
        forecast = mean.forecast(self._units, self._arrived, self._wait.ticks)
        unalike = beginning._replace(alike=False, cap=mean.choose_cap(forecast))
        if self._relative_noise(unalike, forecast) < WORTH * self._relative_noise(beginning, forecast):
            return unalike, centre
        self._open(mean.shape.octave(0), Fraction(centre), half)
        return beginning, centre

    def _relative_noise(self, beginning: Beginning, forecast: Forecast) -> Fraction:
        """The noise of one way to begin, to be held against that of another, with the clip ranges chosen."""
        share = self._mean.counter_share(beginning)
        return forecast.noise_sd(beginning.cap, Fraction(self._most(beginning)), share)

    def _beyond(self, block: int) -> int:
        """The samples of a block that do not come one by one as well."""
        shape = self._mean.shape
        return shape.weight(block) if shape.end(block) > shape.singles else 0

    # ---------------------------------------------------------------- octaves

    def _open_octaves(self, beginning: Beginning) -> list[Activation]:
        mean, activations = self._mean, []
        while beginning.alike and len(self._clips) < mean.shape.blocks:
            octave, share = mean.shape.octave((len(self._clips) - 1) // 2), mean.shares(beginning).octave
            if len(self._blocks.get(octave[0], ())) < mean.octave_units(self._units, share):
                break
            activations.append(self._open_octave(octave, share * mean.call_epsilon))
        return activations

    def _open_octave(self, octave: range, epsilon: Fraction) -> Activation:
        """Choose the scale of the block means of an octave, and count the blocks that waited."""
        mean, shape = self._mean, self._mean.shape
        centre = self._last_release()
        units, size = len(self._blocks[octave[0]]), shape.weight(octave[0])
        widest = min(self._half, mean.grid.steps)
        candidates = [widest, *(half for half in mean.half_widths if half < widest)][:NARROWER]
        totals = [total for _, total in self._blocks[octave[0]].values()]
        half = self._choices.half_width(octave[0], totals, centre, candidates, epsilon)
        affordable = self._allowance(octave) // (2 * size * len(octave))
        self._open(octave, centre, min(widest, half + self._last_noise(), affordable))
        self._count_blocks()
        return Activation(shape.levels + octave[0], mean.grid.mean_value(centre, 1), units * size, epsilon)

    def _allowance(self, octave: range) -> int:
        """The most that the octave's blocks may move: its share of the budget, and what octaves before it left."""
        spent = sum(clip[1] - clip[0] for clip in self._clips if clip)
        return self._mean.block_budget(self._width, octave.stop) - spent

    def _open(self, octave: range, centre: Fraction, half: int) -> None:
        """Clip the means of the octave's blocks to `half` steps around the centre, and to the range."""
        size, steps = self._mean.shape.weight(octave[0]), self._mean.grid.steps
        middle = int(size * centre)
        low, high = max(0, middle - size * half), min(size * steps, middle + size * half)
        self._half = half
        self._clips += ((low, high),) * len(octave)

    def _count_blocks(self) -> None:
        """Count the blocks that waited and are open now; the rest wait on while octaves open."""
        for block in [block for block in self._blocks if block < len(self._clips)]:
            for _, total in self._blocks[block].values():
                self._add_clipped(block, total)
            self._drop(block)
        if not self._awaits_blocks:
            for block in list(self._blocks):
                self._drop(block)

    def _last_release(self) -> Fraction:
        """The mean that the last release gave, in grid steps: charged already, and free to use."""
        samples, total = self._previous
        mean = Fraction(total + self._counter.noise(self._ticks), samples)
        return min(max(mean, Fraction(0)), Fraction(self._mean.grid.steps))

    def _last_noise(self) -> int:
        """Standard deviation of the last release, in grid steps, which is how far off an octave's centre is."""
        return int(noise_sd(self._counter.tree.scales(self._ticks)) / self._previous[0]) + 1

    # ---------------------------------------------------------------- out

    def ahead(self, contributions: Sequence[Contribution]) -> tuple[()]:
        """Always empty: a tree of this counter draws all of its nodes at once, and then seldom."""
        return ()

    def estimate(self) -> Estimate | None:
        """The clipped sum and noise over the samples; before it begins the middle of the range, which says nothing."""
        if self._beginning is None:
            return unknown(self._mean, self._wait) if self._waiting else None
        mean, t = self._mean, self._ticks
        noisy = self._total + self._counter.noise(t)
        noise = self._counter.tree.widths(t, mean.grid.step, mean.coverage)
        ends = self.bounds if mean.clamps else None
        return mean.named(estimate_within(mean.grid, noisy, self._samples, noise, ends))

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The bounds of the mean, certain and in units of the range; None before it begins."""
        if self._beginning is None:
            return None
        grid, ends = self._mean.grid, self._mean.buckets.boundaries
        return grid.mean_value(ends[self._low], 1), grid.mean_value(ends[self._high], 1)

    # ---------------------------------------------------------------- state

    def _drop(self, block: int) -> None:
        """Forget the blocks of this number."""
        place = block + self._mean.shape.levels
        self._changes.drop((place, name) for name in self._blocks.pop(block))

    @property
    def kept(self) -> Mapping[tuple[int, str], Contribution]:
        levels = self._mean.shape.levels
        return {
            (levels + block, name): self._kept(block, name, effective, total)
            for block, waiting in self._blocks.items()
            for name, (effective, total) in waiting.items()
        }

    def take_changes(self) -> tuple[list[Contribution], list[tuple[int, str]]]:
        return self._changes.take()

    def head(self) -> list[Any]:
        """[beginning, clip range and width, blocks' clips, units, ticks, sums, those before, waiting]."""
        waiting = [
            [level, bucket, held & SAMPLES, held >> SAMPLES_BITS]
            for (level, bucket), held in sorted(self._waiting.items())
        ]
        beginning = [] if self._beginning is None else [int(part) for part in self._beginning]
        clips = [list(clip or ()) for clip in self._clips]
        return [
            beginning, [self._low, self._high, self._width, self._half], clips,
            [self._units, *self._wait.head(), self._ticks], [self._samples, self._total], list(self._previous), waiting,
        ]  # fmt: skip

    def restore(self, head: list[Any], kept: Iterable[Contribution]) -> None:
        beginning, clip, clips, ticks, sums, previous, waiting = head
        self._low, self._high, self._width, self._half = map(int, clip)
        self._clips = tuple([(int(clip[0]), int(clip[1])) if clip else None for clip in clips])
        self._units, *wait, self._ticks = map(int, ticks)
        self._wait.restore(wait)
        self._samples, self._total = map(int, sums)
        self._previous = int(previous[0]), int(previous[1])
        places = self._mean.places
        self._waiting = {
            places[level][bucket]: int(total) << SAMPLES_BITS | int(samples)
            for level, bucket, samples, total in waiting
        }
        self._blocks = {}
        for row in kept:
            self._blocks.setdefault(row.level - self._mean.shape.levels, {})[row.pseudonym] = row.effective, row.total
        self._arrived = sum(held & SAMPLES for held in self._waiting.values())
        self._arrived += sum(self._beyond(block) * len(rows) for block, rows in self._blocks.items())
        if beginning:
            cap, firsts, longs, alike = map(int, beginning)
            self._beginning = Beginning(cap, firsts, longs, alike=bool(alike))
            self._count(self._beginning)
