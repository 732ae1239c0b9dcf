"""Full continual mean: blocks of a unit's samples, one counter per level, clipped around private priors.

Guarantee    pure epsilon-DP for all releases of all groups together; the time and order of samples may react to them
Relation     values: two streams differ in the values of one unit; who contributes when, and in which group, is public
Unit         all values of a user in the metric, at most m per group in at most G groups
Budget       per group e = epsilon / G: e / (2 L) for each of L priors, e / (2 (L + 1)) for each of L + 1 counters
Sensitivity  a unit is one element of each level's counter, of width steps (levels 0, 1) or 2 D_l (levels from 2)
Noise        discrete Laplace, scale b_l = width_l * h * 2 (L + 1) / e, h = bit length of users, on every node
Variance     in squared grid steps: sum over active l of nodes_l(n_l) * 2p / (1 - p)**2 over (sum of n_l w_l)**2
Activation   of level l from 2: the blocks below it hold 2**(l-1) k_l samples (a function of the pattern)
Proof        docs/proofs/continual-mean.md
Source       George, Ramesh, Singh and Tyagi (2024), Algorithm 6, with log2 for every log
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from typing import Any

from shoal.mechanisms import blocks
from shoal.mechanisms.binary import BinaryCounter, BinaryTree
from shoal.mechanisms.interval import estimate
from shoal.mechanisms.keyed import Bits, derive
from shoal.mechanisms.median import Unit, bins, median_bin, midpoint, pack
from shoal.mechanisms.statistic import (
    COUNT_BITS,
    COUNT_MASK,
    Activation,
    Block,
    Contribution,
    Estimate,
    MeanParameters,
    algorithm,
    over_cap,
)

ALWAYS = 2  # levels 0 and 1 are active from the start and not clipped
# Decimals of 50 digits, each step rounded up, and this factor on the result cover every rounding, so that the ceilings
# are at least the formulas and the same on every machine. Whatever D_l they give, the noise is made for width 2 D_l.
_MARGIN = 1 + Decimal(10) ** -30
_WEIGHTS = tuple(map(blocks.weight, range(COUNT_BITS)))
_CONTEXT = Context(prec=50, rounding=ROUND_CEILING)


@dataclass(frozen=True, slots=True)
class Level:
    """All that is public about one level."""

    index: int
    weight: int  # w_l
    arrays: int  # k_l; 0 where no prior is needed
    half_width: int  # D_l: grid steps on either side of the prior; 0 where nothing is clipped
    tree: BinaryTree

    @property
    def array_size(self) -> int:
        """Samples in an array of the level's prior."""
        return 1 << (self.index - 1)


@algorithm("full")
class Full(MeanParameters):
    """Algorithm 6 of George et al. on blocks."""

    @property
    def top(self) -> int:
        """L; at least 1, so that the shares are defined for m = 1."""
        return max(1, blocks.top_level(self.max_contributions))

    @property
    def prior_epsilon(self) -> Fraction:
        """For one prior."""
        return self.group_epsilon / (2 * self.top)

    @property
    def tree_epsilon(self) -> Fraction:
        """For one level's counter."""
        return self.group_epsilon / (2 * (self.top + 1))

    @property
    def prior_failure(self) -> Fraction:
        """Beta = failure / (3 L)."""
        return self.failure / (3 * self.top)

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """Levels 0 .. L."""
        return tuple(self._level(index) for index in range(self.top + 1))

    def _level(self, index: int) -> Level:
        weight = blocks.weight(index)
        if index < ALWAYS:
            return Level(index, weight, 0, 0, BinaryTree(self.users, self.grid.steps, self.tree_epsilon))
        arrays, half_width = self.arrays(index), self.half_width(index)
        return Level(index, weight, arrays, half_width, BinaryTree(self.users, 2 * half_width, self.tree_epsilon))

    def arrays(self, level: int) -> int:
        """k_l = ceil(16 / e' * ln(2**(l/2) / beta)), with e' the share of one prior."""
        with localcontext(_CONTEXT):
            log = Decimal(2).ln() * level / 2 + _decimal(1 / self.prior_failure).ln()
            return _ceiling(_decimal(16 / self.prior_epsilon) * log)

    def half_width(self, level: int) -> int:
        """D_l = ceil(steps * (sqrt(w_l / 2 * ln(2 n L / (failure / 3))) + sqrt(2**l * ln(2 k_l / beta)))).

        The first root bounds a block's deviation from its mean, the second is w_l times the error of the prior.
        """
        with localcontext(_CONTEXT):
            deviation = _decimal(2 * self.users * self.top / (self.failure / 3)).ln() * blocks.weight(level) / 2
            prior = _decimal(2 * self.arrays(level) / self.prior_failure).ln() * (1 << level)
            return _ceiling(self.grid.steps * (deviation.sqrt() + prior.sqrt()))

    def bounder(self) -> "BlockBounder":
        """Samples are summed into blocks."""
        return BlockBounder(self.max_contributions)

    def releaser(self, key: bytes, group: bytes) -> "FullReleaser":
        """The mean of one group."""
        return FullReleaser(self, key, group)


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / value.denominator


def _ceiling(value: Decimal) -> int:
    return int((value * _MARGIN).to_integral_value(ROUND_CEILING))


@dataclass(frozen=True, slots=True)
class BlockBounder:
    """Sums a unit's samples into blocks; the account is the open block's sum and the number of samples.

    >>> bounder = BlockBounder(max_contributions=4)
    >>> account, block = bounder.add(2, 30)
    >>> block, bounder.add(account, 12)
    (None, (4, Block(number=3, level=2, samples=2, total=42, part=None)))
    """

    max_contributions: int
    merges: bool = False

    def add(self, account: int, value: int) -> tuple[int, Block | None]:
        """One more sample."""
        count = (account & COUNT_MASK) + 1
        if count > self.max_contributions:
            raise over_cap()
        total = (account >> COUNT_BITS) + value
        if count & (count - 1):
            return total << COUNT_BITS | count, None
        level = count.bit_length() - 1
        return count, Block(level + 1, level, _WEIGHTS[level], total)


class FullReleaser:
    """Counts and clipped sums of active levels; every block, with its pseudonym, until the top level is active.

    Levels activate in order: a unit's block of level l comes with blocks below it that hold as many samples, so the
    condition of a level implies that of the level before.
    """

    __slots__ = (
        "_active", "_bins", "_clips", "_counters", "_counts", "_dropped", "_group", "_key", "_kept", "_levels", "_mean",
        "_ready", "_sums", "_units", "_written",
    )  # fmt: skip

    def __init__(self, mean: Full, key: bytes, group: bytes) -> None:
        self._mean, self._key, self._group = mean, key, group
        self._levels = mean.levels
        self._counters = [BinaryCounter(level.tree, self._subkeys(level.index)) for level in self._levels]
        self._clear()

    def _clear(self) -> None:
        self._active = ALWAYS  # levels below this one are active; they activate in order
        self._bins: list[int] = []  # of the priors of levels 2, 3, ...
        self._clips = [(0, self._mean.grid.steps)] * ALWAYS
        self._counts = [0] * len(self._levels)
        self._sums = [0] * len(self._levels)
        self._kept: list[dict[str, tuple[int, int]]] = [{} for _ in self._levels]  # pseudonym -> (effective, total)
        self._units: dict[str, int] = {}  # pseudonym -> bit l: its block of level l is here
        self._ready = 0  # samples that units offer to the prior of the next level
        self._written: list[Contribution] = []
        self._dropped: list[tuple[int, str]] = []

    def _subkeys(self, level: int) -> "Subkeys":
        return Subkeys(self._key, self._group, level)

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
        self._written.append(contribution)
        next_level = self._levels[active]
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
        if level < self._active:  # what a unit offers to a prior is in blocks below it
            self._ready += _offer(after, self._active) - (_offer(before, self._active) if before else 0)

    def _activate_all(self) -> Iterator[Activation]:
        while self._active < len(self._levels):
            level = self._levels[self._active]
            if self._ready < level.array_size * level.arrays:
                return
            yield self._activate(level)
        self._drop_kept()

    def _activate(self, level: Level) -> Activation:
        """Choose the prior, project the blocks that waited, and push them."""
        size, full = level.array_size, level.array_size * self._mean.grid.steps
        arrays = pack(self._offers(level.index), size, level.arrays)
        totals = [sum(unit.total for unit in array) for array in arrays]
        words = Bits(derive(self._key, self._group, "prior", "mean", 0, level.index, 0)).draw(0)
        self._open(level, median_bin(totals, full, level.index, self._mean.prior_epsilon, words))
        low, high = self._clips[level.index]
        waiting = self._kept[level.index].values()
        self._counts[level.index] = len(waiting)
        self._sums[level.index] = sum(min(max(total, low), high) for _, total in waiting)
        self._ready = sum(_offer(mask, self._active) for mask in self._units.values())
        return Activation(
            level=level.index,
            prior=self._mean.grid.mean_value(midpoint(self._bins[-1], bins(level.index)) * self._mean.grid.steps, 1),
            arrays=level.arrays,
            samples=level.arrays * size,
            epsilon=self._mean.prior_epsilon,
        )

    def _open(self, level: Level, chosen: int) -> None:
        """Make the level active with the clip interval around the chosen bin: exactly 2 D_l wide, on the grid."""
        middle = level.weight * self._mean.grid.steps * midpoint(chosen, bins(level.index)) // 1
        self._bins.append(chosen)
        self._clips.append((middle - level.half_width, middle + level.half_width))
        self._active = level.index + 1

    def _offers(self, level: int) -> Iterator[Unit]:
        """What each unit offers to the prior of a level: its samples in blocks below it, without gaps."""
        first = self._kept[0]
        for pseudonym, mask in self._units.items():
            samples = _offer(mask, level)
            if samples:
                total = sum(self._kept[below][pseudonym][1] for below in range(samples.bit_length()))
                yield Unit(samples, first[pseudonym][0], pseudonym, total)

    def _drop_kept(self) -> None:
        unseen = {(contribution.level, contribution.pseudonym) for contribution in self._written}
        keys = ((level, pseudonym) for level, kept in enumerate(self._kept) for pseudonym in kept)
        self._dropped += [key for key in keys if key not in unseen]
        self._written = []
        self._units = {}
        self._kept = [{} for _ in self._levels]

    def close(self) -> tuple[Activation, ...]:
        """Nothing: levels activate in the midst of a tick, in canonical order, as the paper has it."""
        return ()

    def estimate(self) -> Estimate | None:
        """(sum of the active levels' sums and noise) / (samples in them)."""
        samples, total = 0, 0
        scales: list[tuple[Fraction, int]] = []
        for level, counter, count, clipped in zip(self._levels, self._counters, self._counts, self._sums, strict=True):
            if count:
                samples += count * level.weight
                total += clipped + counter.noise(count)
                scales.extend(level.tree.scales(count))
        return estimate(self._mean.grid, total, samples, tuple(scales)) if samples else None

    @property
    def kept(self) -> Mapping[tuple[int, str], Contribution]:
        """All blocks until the top level is active, then none. Built on demand: the state itself is smaller."""
        return {
            (level, pseudonym): Contribution(effective, pseudonym, level + 1, level, blocks.weight(level), total)
            for level, kept in enumerate(self._kept)
            for pseudonym, (effective, total) in kept.items()
        }

    def take_changes(self) -> tuple[list[Contribution], list[tuple[int, str]]]:
        """Blocks kept, and keys dropped, since the last call."""
        changes = self._written, self._dropped
        self._written, self._dropped = [], []
        return changes

    def head(self) -> list[Any]:
        """[bins of the priors, elements per level, clipped sums per level]."""
        return [list(self._bins), list(self._counts), list(self._sums)]

    def restore(self, head: list[Any], kept: Iterable[Contribution]) -> None:
        """Take the state over; blocks that the head no longer needs are ignored."""
        chosen, counts, sums = head
        self._clear()
        for level, index in zip(self._levels[ALWAYS:], chosen, strict=False):
            self._open(level, int(index))
        self._counts, self._sums = [int(count) for count in counts], [int(total) for total in sums]
        if self._active < len(self._levels):
            for contribution in kept:
                self._keep(contribution)


@dataclass(frozen=True, slots=True)
class Subkeys:
    """The subkey of each epoch of one level's counter."""

    key: bytes = field(repr=False)
    group: bytes
    level: int

    def __call__(self, epoch: int) -> bytes:
        """The subkey of the epoch's nodes."""
        return derive(self.key, self.group, "tree", "mean", 0, self.level, epoch)


def _offer(mask: int, level: int) -> int:
    """Samples in a unit's blocks 0, 1, ... below `level` up to the first that is missing: a power of two, or 0.

    >>> [_offer(mask, 3) for mask in (0b0, 0b1, 0b11, 0b101, 0b110, 0b111, 0b1111)]
    [0, 1, 2, 1, 0, 4, 4]
    """
    run = min((~mask & (mask + 1)).bit_length() - 1, level)
    return 1 << (run - 1) if run else 0
