"""Full continual mean: blocks of a unit's samples, one counter per level, clipped around private priors.

Guarantee    pure epsilon-DP for all releases of all groups together; the time and order of samples may react to them
Relation     values: two streams differ in the values of one unit; who contributes when, and in which group, is public
Unit         all values of a user in the metric, at most m per group in at most G groups
Budget       per group e = epsilon / G: e / (2 L) for each of L priors, e / (2 (L + 1)) for each of L + 1 counters
Priors       a unit lies in one array of a prior, and moves its costs by 1. The paper allows for two arrays; with the
             rate for one, half of the paper's k_l arrays are enough. Versions registered before keep k_l
Sensitivity  a unit is one element of each level's counter, of width steps (levels 0, 1) or 2 D_l (levels from 2)
Noise        discrete Laplace, scale b_l = width_l * h * 2 (L + 1) / e, h = bit length of users, on every node
Variance     in squared grid steps: sum over active l of nodes_l(n_l) * 2p / (1 - p)**2 over (sum of n_l w_l)**2
Activation   of level l from 2: the blocks below it fill all arrays of 2**(l-1) samples (a function of the pattern); no
             later than by the paper's line 9, as a unit's blocks hold more than half of its samples
Subgaussian  with sigma no sample is bounded by the range, so levels 0 and 1 wait for a prior too, that of level 1, of
             first samples. Their width is 2 D_1, and all L priors are made
Proof        docs/proofs/continual-mean.md
Source       George, Ramesh, Singh and Tyagi (2024), Algorithm 6, with log2 for every log
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

from shoal.mechanisms.continual_mean import blocks
from shoal.mechanisms.continual_mean.levels import BlockMean, Level, LevelKeys, scales_of
from shoal.mechanisms.counters.binary import BinaryCounter, BinaryTree
from shoal.mechanisms.decimals import ceiling, decimal, rounding_up
from shoal.mechanisms.error_bars import Scales, Widths, estimate_within, widths
from shoal.mechanisms.noise.keyed import Bits, derive
from shoal.mechanisms.selection.median import UnitSamples, bins, median_bin, midpoint, pack
from shoal.mechanisms.statistic import Activation, Contribution, Estimate, LevelState
from shoal.mechanisms.workload import Pattern

UNCLIPPED = 2  # levels of bounded data that need no prior: they are active from the start
MOST_BINS = 1 << 16
MOST_WIDTHS = 1 << 14  # that are kept
AS_PRINTED = 2  # the sensitivity of a unit in two arrays
MASK_BITS = 40  # of a unit's mask, with a bit for each level
TIME_BITS = 64  # of a block's time; totals have any size
MASK, TIME = (1 << MASK_BITS) - 1, (1 << TIME_BITS) - 1
ZERO = 1 << TIME_BITS - 1  # the epoch


@dataclass(frozen=True, kw_only=True)
class Full(BlockMean):
    """Algorithm 6 of George et al. on blocks."""

    name: ClassVar[str] = "full"

    sensitivity: int = 1  # of a prior's costs, for which its rate is made; 2 as printed, for a unit in two arrays

    def __post_init__(self) -> None:
        super().__post_init__()
        if bins(self.top, self.scatter) > MOST_BINS:
            raise ValueError("range is too wide for a prior as fine as sigma allows; narrow range, or raise sigma")

    @property
    def first(self) -> int:
        return UNCLIPPED if self.sigma is None else 1

    @property
    def scatter(self) -> Fraction:
        """The spread as a fraction of the range."""
        return self.spread / self.grid.steps

    @property
    def prior_epsilon(self) -> Fraction:
        return self.group_epsilon / (2 * self.top)

    @property
    def median_epsilon(self) -> Fraction:
        """What `median_bin` is told: it allows for a sensitivity of 2, and a prior of less costs as much less."""
        return self.prior_epsilon * Fraction(2, self.sensitivity)

    @property
    def tree_epsilon(self) -> Fraction:
        return self.group_epsilon / (2 * (self.top + 1))

    @property
    def prior_failure(self) -> Fraction:
        return self.failure / (3 * self.top)

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        return tuple(self._level(index) for index in range(self.top + 1))

    def _level(self, index: int) -> Level:
        weight = blocks.weight(index)
        if index < UNCLIPPED and self.sigma is None:
            return Level(index, weight, 0, BinaryTree(self.users, self.grid.steps, self.tree_epsilon))
        prior = max(index, 1)  # level 0 has the weight of level 1, and shares its prior
        half_width = self.half_width(prior)
        tree = BinaryTree(self.users, 2 * half_width, self.tree_epsilon)
        return Level(index, weight, half_width, tree, self.arrays(prior), bins(prior, self.scatter))

    def arrays(self, level: int) -> int:
        """16 / e' * ln(2**(l/2) / beta), the paper's k_l, with e' the share of one prior: half of it, or as printed.

        Half of it is rounded down: then what line 9 asks for in samples is there in blocks. There are at most 2**(l/2)
        bins; with sigma at most 2**(l/2) * range / spread, or one.
        """
        with rounding_up():
            choices = Decimal(2).ln() * level / 2 + decimal(1 / self.scatter).ln()
            log = max(choices, Decimal(0)) + decimal(1 / self.prior_failure).ln()
            needed = decimal(8 * self.sensitivity / self.prior_epsilon) * log
            return ceiling(needed) if self.sensitivity == AS_PRINTED else max(1, int(needed))

    def half_width(self, level: int) -> int:
        """D_l = ceil(spread * (sqrt(w_l / 2 * ln(2 n p / (failure / 3))) + sqrt(2**l * ln(2 k_l / beta)))).

        The first root bounds a block's deviation from its mean, the second is w_l times the error of the prior.
        """
        with rounding_up():
            deviation = self.deviation(blocks.weight(level), self.projections, self.failure / 3)
            prior = decimal(2 * self.arrays(level) / self.prior_failure).ln() * (1 << level)
            return ceiling(decimal(self.spread) * (deviation + prior.sqrt()))

    def counted(self, pattern: Pattern, tau: float) -> tuple[int, Scales]:
        active = list(self._active(self.closed(pattern, tau)))
        return blocks.samples_in(active), scales_of(self.levels, active)

    @cached_property
    def unclipped(self) -> tuple[tuple[int, int], ...]:
        """The clip intervals of the levels that are active from the start."""
        return ((0, self.grid.steps),) * UNCLIPPED if self.sigma is None else ()

    @cached_property
    def needed(self) -> tuple[int, ...]:
        """The samples from which the prior of each level is made."""
        return (0, *(level.array_size * level.arrays for level in self.levels[1:]))

    def widths(self, counts: Sequence[int]) -> Widths:
        """The widths of the noise with so many blocks in each level: one for all groups with as many nodes."""
        nodes = tuple([level.tree.nodes(count) for level, count in zip(self.levels, counts, strict=False)])
        found = self._widths.get(nodes)
        if found is None:
            if len(self._widths) == MOST_WIDTHS:
                self._widths.clear()
            law = scales_of(self.levels, counts)
            found = self._widths[nodes] = widths(self.sample_grid.step, law, self.coverage)
        return found

    @cached_property
    def _widths(self) -> dict[tuple[int, ...], Widths]:
        return {}

    def _active(self, closed: Sequence[int]) -> Iterator[int]:
        """The blocks of each level that counts: those without a prior, then while blocks below hold enough."""
        ready = 0
        for index, count in enumerate(closed):
            if index >= self.first or self.sigma is not None:
                level = self.levels[max(index, self.first)]  # with sigma, level 0 waits for the prior of level 1
                below = ready if index else closed[0]
                if below < level.array_size * level.arrays:
                    return
            yield count
            ready += blocks.weight(index) * count

    def releaser(self, key: bytes, group: bytes, coordinate: int = 0) -> "FullReleaser":
        return FullReleaser(self, key, group, coordinate)


class FullReleaser:
    """Counts and clipped sums of active levels; every block, with its pseudonym, until the top level is active.

    Levels activate in order: a unit's block of level l comes with blocks below it that hold as many samples, so the
    condition of a level implies that of the level before.
    """

    __slots__ = (
        "_active", "_bins", "_changes", "_clips", "_coordinate", "_counters", "_counts", "_group", "_kept", "_key",
        "_mean", "_next", "_ready", "_sums", "_units",
    )  # fmt: skip

    def __init__(self, mean: Full, key: bytes, group: bytes, coordinate: int) -> None:
        self._mean, self._key, self._group, self._coordinate = mean, key, group, coordinate
        self._counters: tuple[BinaryCounter[BinaryTree] | None, ...] = ()  # made when a level counts
        self._clear()

    def _clear(self) -> None:
        self._clips = self._mean.unclipped  # of the levels that are active; they activate in order
        self._active = len(self._clips)
        self._next = self._mean.first  # whose prior comes next
        self._bins: tuple[int, ...] = ()  # of the priors so far
        self._counts = [0] * self._active  # of active levels
        self._sums = [0] * self._active
        # Of each unit whose blocks are kept a mask, with bit l if its block of level l is here, and its block of level
        # 0; then its blocks of the other levels. A group may have many units, and there may be many groups: so two
        # numbers are one, and a level without blocks has no dictionary.
        self._units: dict[str, int] = {}
        self._kept: tuple[dict[str, int], ...] = ()
        self._ready = 0  # samples that units offer to the prior of the next level
        self._changes = blocks.Changes()

    def add(self, contribution: Contribution) -> tuple[Activation, ...]:
        return tuple(self.add_all((contribution,)))

    def add_all(self, contributions: Iterable[Contribution]) -> list[Activation]:
        """Push the blocks of active levels; keep each while a prior may still need it. They come by the million."""
        activations: list[Activation] = []
        active, clips, counts, sums = self._active, self._clips, self._counts, self._sums
        needed = self._mean.needed
        for contribution in contributions:
            level = contribution[3]
            if level < active:
                low, high = clips[level]
                total = contribution[5]
                counts[level] += 1
                sums[level] += low if total < low else high if total > high else total
            if active == len(needed):
                continue
            self._keep(contribution)
            self._changes.write(contribution)
            if self._ready >= needed[self._next]:
                activations += self._activate_all()
                active, clips, counts, sums = self._active, self._clips, self._counts, self._sums
        return activations

    def _keep(self, contribution: Contribution) -> None:
        effective, pseudonym, _, level, _, total = contribution
        unit = self._units.get(pseudonym, 0)
        if not unit and not level:  # mostly; one sample is all that it offers to any prior
            self._units[pseudonym] = (total << TIME_BITS | effective + ZERO) << MASK_BITS | 1
            self._ready += 1
            return
        before = unit & MASK
        if before >> level & 1:
            raise ValueError(f"a unit's block of level {level} arrived twice")
        block = total << TIME_BITS | effective + ZERO
        if level:
            while len(self._kept) < level:
                self._kept += ({},)
            self._kept[level - 1][pseudonym] = block
        else:
            unit = self._units.pop(pseudonym, 0) | block << MASK_BITS  # in the order of level 0
        self._units[pseudonym] = unit | 1 << level
        if level < self._next:  # what a unit offers to a prior is in blocks below it
            after = before | 1 << level
            self._ready += _offer(after, self._next) - (_offer(before, self._next) if before else 0)

    def _blocks(self, level: int) -> Iterator[tuple[str, int, int]]:
        """Pseudonym, effective time and total of the blocks of a level that are kept."""
        held: Iterable[tuple[str, int]] = ()
        if not level:
            held = ((pseudonym, unit >> MASK_BITS) for pseudonym, unit in self._units.items() if unit & 1)
        elif level <= len(self._kept):
            held = self._kept[level - 1].items()
        return ((pseudonym, (block & TIME) - ZERO, block >> TIME_BITS) for pseudonym, block in held)

    def _activate_all(self) -> Iterator[Activation]:
        needed = self._mean.needed
        while self._next < len(needed):
            if self._ready < needed[self._next]:
                return
            yield self._activate(self._mean.levels[self._next])
        self._drop_kept()

    def _activate(self, level: Level) -> Activation:
        """Choose the prior, project the blocks that waited, and push them."""
        mean, size = self._mean, level.array_size
        arrays = pack(self._offers(level.index), size, level.arrays)
        totals = [sum(unit.total for unit in array) - size * mean.margin for array in arrays]
        prior_key = derive(self._key, self._group, "prior", "mean", self._coordinate, level.index, 0)
        words = Bits(prior_key).draw(0)
        before = self._active
        self._open(level, median_bin(totals, size * mean.grid.steps, level.bins, mean.median_epsilon, words))
        for index in range(before, self._active):
            low, high = self._clips[index]
            waiting = [total for *_, total in self._blocks(index)]
            self._counts[index] = len(waiting)
            self._sums[index] = sum(min(max(total, low), high) for total in waiting)
        self._ready = sum(_offer(unit & MASK, self._next) for unit in self._units.values())
        return Activation(
            level=level.index,
            prior=mean.grid.mean_value(midpoint(self._bins[-1], level.bins) * mean.grid.steps, 1),
            samples=level.arrays * size,
            epsilon=mean.prior_epsilon,
        )

    def _open(self, level: Level, chosen: int) -> None:
        """Make the level active with the clip interval around the chosen bin; level 0 along with level 1."""
        clip = self._mean.interval(level.weight, midpoint(chosen, level.bins), level.half_width)
        new = level.index + 1 - self._active
        self._clips += (clip,) * new
        self._counts += [0] * new
        self._sums += [0] * new
        self._bins += (chosen,)
        self._active = self._next = level.index + 1

    def _offers(self, level: int) -> Iterator[UnitSamples]:
        """Each unit's offer to the prior of a level: its samples in blocks below it, without gaps."""
        for pseudonym, unit in self._units.items():
            samples = _offer(unit & MASK, level)
            if samples:
                first = unit >> MASK_BITS
                total = sum(kept[pseudonym] >> TIME_BITS for kept in self._kept[: samples.bit_length() - 1])
                yield UnitSamples(samples, (first & TIME) - ZERO, pseudonym, (first >> TIME_BITS) + total)

    def _drop_kept(self) -> None:
        levels = range(len(self._mean.levels))
        self._changes.drop((level, pseudonym) for level in levels for pseudonym, *_ in self._blocks(level))
        self._units, self._kept = {}, ()

    def close(self, tick: int | None = None) -> tuple[Activation, ...]:
        """Activates nothing: levels activate within a tick, in canonical order, as the paper has it."""
        return ()

    def ahead(self, contributions: Sequence[Contribution]) -> Iterator[tuple[BinaryCounter[Any], int]]:
        """Those of the levels that are active already."""
        counts = list(self._counts)
        for contribution in contributions:
            if contribution.level < self._active:
                counts[contribution.level] += 1
        for level, count in zip(self._mean.levels, counts, strict=False):
            if count:
                yield self._counter(level), count

    def estimate(self) -> Estimate | None:
        mean, samples, total = self._mean, 0, 0
        for level, count, clipped in zip(mean.levels, self._counts, self._sums, strict=False):
            if count:
                samples += count * level.weight
                total += clipped + self._counter(level).noise(count)
        if not samples:
            return None
        return estimate_within(mean.sample_grid, total, samples, mean.widths(self._counts), mean.ends)

    def _counter(self, level: Level) -> BinaryCounter[BinaryTree]:
        index = level.index
        if index >= len(self._counters):
            self._counters += (None,) * (index + 1 - len(self._counters))
        counter = self._counters[index]
        if counter is None:
            counter = BinaryCounter(level.tree, LevelKeys(self._key, self._group, self._coordinate, index))
            self._counters = (*self._counters[:index], counter, *self._counters[index + 1 :])
        return counter

    @property
    def kept(self) -> Mapping[tuple[int, str], Contribution]:
        """All blocks until the top level is active, then none; built on demand, since the state itself is smaller."""
        return {
            (level, pseudonym): Contribution(effective, pseudonym, level + 1, level, blocks.weight(level), total)
            for level in range(len(self._mean.levels))
            for pseudonym, effective, total in self._blocks(level)
        }

    def take_changes(self) -> tuple[list[Contribution], list[tuple[int, str]]]:
        return self._changes.take()

    @property
    def levels(self) -> list[LevelState]:
        rows = zip(self._padded(self._counts), self._padded(self._sums), strict=True)
        waiting = (sum(1 for _ in self._blocks(level)) for level in range(len(self._mean.levels)))
        return [LevelState(elements, total, kept) for (elements, total), kept in zip(rows, waiting, strict=True)]

    def _padded(self, numbers: list[int]) -> list[int]:
        """Of all levels, with 0 for those that are not active."""
        return numbers + [0] * (len(self._mean.levels) - len(numbers))

    def head(self) -> list[Any]:
        """[bins of the priors, elements per level, clipped sums per level]."""
        return [list(self._bins), self._padded(self._counts), self._padded(self._sums)]

    def restore(self, head: list[Any], kept: Iterable[Contribution]) -> None:
        """Become the releaser that had this head; blocks that the head no longer needs are ignored."""
        chosen, counts, sums = head
        self._clear()
        levels = self._mean.levels
        for level, index in zip(levels[self._mean.first :], chosen, strict=False):
            self._open(level, int(index))
        self._counts = [int(count) for count in counts[: self._active]]
        self._sums = [int(total) for total in sums[: self._active]]
        if self._active < len(levels):
            for contribution in kept:
                self._keep(contribution)


@lru_cache(1 << 12)  # asked of each unit, and their masks are few
def _offer(mask: int, level: int) -> int:
    """Samples in a unit's blocks 0, 1, ... below `level` up to the first that is missing: a power of two, or 0.

    >>> [_offer(mask, 3) for mask in (0b0, 0b1, 0b11, 0b101, 0b110, 0b111, 0b1111)]
    [0, 1, 2, 1, 0, 4, 4]
    """
    run = min((~mask & (mask + 1)).bit_length() - 1, level)
    return 1 << (run - 1) if run else 0
