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
from functools import cached_property, partial
from typing import Any, ClassVar

from shoal.mechanisms.continual_mean import blocks
from shoal.mechanisms.continual_mean.levels import BlockMean, Level, LevelKeys, scales_of
from shoal.mechanisms.counters.binary import BinaryCounter, BinaryTree
from shoal.mechanisms.decimals import ceiling, decimal, rounding_up
from shoal.mechanisms.error_bars import Scales, estimate
from shoal.mechanisms.noise.keyed import Bits, derive
from shoal.mechanisms.selection.median import UnitSamples, bins, median_bin, midpoint, pack
from shoal.mechanisms.statistic import Activation, Contribution, Estimate, LevelState
from shoal.mechanisms.workload import Pattern

UNCLIPPED = 2  # levels of bounded data that need no prior: they are active from the start
MOST_BINS = 1 << 16
AS_PRINTED = 2  # the sensitivity of a unit in two arrays


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
        "_active", "_bins", "_changes", "_clips", "_counters", "_counts", "_kept", "_levels", "_mean", "_next",
        "_prior_key", "_ready", "_subkeys", "_sums", "_units",
    )  # fmt: skip

    def __init__(self, mean: Full, key: bytes, group: bytes, coordinate: int) -> None:
        self._mean, self._levels = mean, mean.levels
        self._subkeys = partial(LevelKeys, key, group, coordinate)  # of a level's counter
        self._counters: list[BinaryCounter[BinaryTree] | None] = [None] * len(self._levels)  # made when a level counts
        self._prior_key = partial(derive, key, group, "prior", "mean", coordinate)
        self._clear()

    def _clear(self) -> None:
        bounded = self._mean.sigma is None
        self._clips = [(0, self._mean.grid.steps)] * UNCLIPPED if bounded else []
        self._active = len(self._clips)  # levels below this one are active; they activate in order
        self._next = self._mean.first  # whose prior comes next
        self._bins: list[int] = []  # of the priors so far
        self._counts = [0] * len(self._levels)
        self._sums = [0] * len(self._levels)
        self._kept: list[dict[str, tuple[int, int]]] = [{} for _ in self._levels]  # pseudonym -> (effective, total)
        self._units: dict[str, int] = {}  # pseudonym -> bit l: its block of level l is here
        self._ready = 0  # samples that units offer to the prior of the next level
        self._changes = blocks.Changes()

    def add(self, contribution: Contribution) -> tuple[Activation, ...]:
        """Push the block if its level is active; keep it while a prior may still need it."""
        level = contribution.level
        active = self._active
        if level < active:
            low, high = self._clips[level]
            total = contribution.total
            self._counts[level] += 1
            self._sums[level] += low if total < low else high if total > high else total
        if active == len(self._levels):
            return ()
        self._keep(contribution)
        self._changes.written.append(contribution)
        next_level = self._levels[self._next]
        if self._ready < next_level.array_size * next_level.arrays:
            return ()
        return tuple(self._activate_all())

    def _keep(self, contribution: Contribution) -> None:
        effective, pseudonym, _, level, _, total = contribution
        kept = self._kept[level]
        if pseudonym in kept:
            raise ValueError(f"a unit's block of level {level} arrived twice")
        kept[pseudonym] = effective, total
        before = self._units.get(pseudonym, 0)
        self._units[pseudonym] = after = before | 1 << level
        if level < self._next:  # what a unit offers to a prior is in blocks below it
            self._ready += _offer(after, self._next) - (_offer(before, self._next) if before else 0)

    def _activate_all(self) -> Iterator[Activation]:
        while self._next < len(self._levels):
            level = self._levels[self._next]
            if self._ready < level.array_size * level.arrays:
                return
            yield self._activate(level)
        self._drop_kept()

    def _activate(self, level: Level) -> Activation:
        """Choose the prior, project the blocks that waited, and push them."""
        mean, size = self._mean, level.array_size
        arrays = pack(self._offers(level.index), size, level.arrays)
        totals = [sum(unit.total for unit in array) - size * mean.margin for array in arrays]
        words = Bits(self._prior_key(level.index, 0)).draw(0)
        before = self._active
        self._open(level, median_bin(totals, size * mean.grid.steps, level.bins, mean.median_epsilon, words))
        for index in range(before, self._active):
            low, high = self._clips[index]
            waiting = self._kept[index].values()
            self._counts[index] = len(waiting)
            self._sums[index] = sum(min(max(total, low), high) for _, total in waiting)
        self._ready = sum(_offer(mask, self._next) for mask in self._units.values())
        return Activation(
            level=level.index,
            prior=mean.grid.mean_value(midpoint(self._bins[-1], level.bins) * mean.grid.steps, 1),
            samples=level.arrays * size,
            epsilon=mean.prior_epsilon,
        )

    def _open(self, level: Level, chosen: int) -> None:
        """Make the level active with the clip interval around the chosen bin; level 0 along with level 1."""
        clip = self._mean.interval(level.weight, midpoint(chosen, level.bins), level.half_width)
        self._clips += [clip] * (level.index + 1 - self._active)
        self._bins.append(chosen)
        self._active = self._next = level.index + 1

    def _offers(self, level: int) -> Iterator[UnitSamples]:
        """Each unit's offer to the prior of a level: its samples in blocks below it, without gaps."""
        first = self._kept[0]
        for pseudonym, mask in self._units.items():
            samples = _offer(mask, level)
            if samples:
                total = sum(self._kept[below][pseudonym][1] for below in range(samples.bit_length()))
                yield UnitSamples(samples, first[pseudonym][0], pseudonym, total)

    def _drop_kept(self) -> None:
        self._changes.drop((level, pseudonym) for level, kept in enumerate(self._kept) for pseudonym in kept)
        self._units = {}
        self._kept = [{} for _ in self._levels]

    def close(self) -> tuple[Activation, ...]:
        """Activates nothing: levels activate within a tick, in canonical order, as the paper has it."""
        return ()

    def estimate(self) -> Estimate | None:
        samples, total = 0, 0
        scales: list[tuple[Fraction, int]] = []
        for level, count, clipped in zip(self._levels, self._counts, self._sums, strict=True):
            if count:
                samples += count * level.weight
                total += clipped + self._counter(level).noise(count)
                scales.extend(level.tree.scales(count))
        mean = self._mean
        if not samples:
            return None
        return estimate(mean.sample_grid, total, samples, tuple(scales), mean.ends, mean.coverage)

    def _counter(self, level: Level) -> BinaryCounter[BinaryTree]:
        counter = self._counters[level.index]
        if counter is None:
            counter = self._counters[level.index] = BinaryCounter(level.tree, self._subkeys(level.index))
        return counter

    @property
    def kept(self) -> Mapping[tuple[int, str], Contribution]:
        """All blocks until the top level is active, then none; built on demand, since the state itself is smaller."""
        return {
            (level, pseudonym): Contribution(effective, pseudonym, level + 1, level, blocks.weight(level), total)
            for level, kept in enumerate(self._kept)
            for pseudonym, (effective, total) in kept.items()
        }

    def take_changes(self) -> tuple[list[Contribution], list[tuple[int, str]]]:
        return self._changes.take()

    @property
    def levels(self) -> list[LevelState]:
        rows = zip(self._counts, self._sums, self._kept, strict=True)
        return [LevelState(elements, total, len(kept)) for elements, total, kept in rows]

    def head(self) -> list[Any]:
        """[bins of the priors, elements per level, clipped sums per level]."""
        return [list(self._bins), list(self._counts), list(self._sums)]

    def restore(self, head: list[Any], kept: Iterable[Contribution]) -> None:
        """Become the releaser that had this head; blocks that the head no longer needs are ignored."""
        chosen, counts, sums = head
        self._clear()
        for level, index in zip(self._levels[self._mean.first :], chosen, strict=False):
            self._open(level, int(index))
        self._counts, self._sums = [int(count) for count in counts], [int(total) for total in sums]
        if self._active < len(self._levels):
            for contribution in kept:
                self._keep(contribution)


def _offer(mask: int, level: int) -> int:
    """Samples in a unit's blocks 0, 1, ... below `level` up to the first that is missing: a power of two, or 0.

    >>> [_offer(mask, 3) for mask in (0b0, 0b1, 0b11, 0b101, 0b110, 0b111, 0b1111)]
    [0, 1, 2, 1, 0, 4, 4]
    """
    run = min((~mask & (mask + 1)).bit_length() - 1, level)
    return 1 << (run - 1) if run else 0
