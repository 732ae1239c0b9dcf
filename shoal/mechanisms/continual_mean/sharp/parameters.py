"""Public parameters of the sharp mean, and what follows from them and the pattern: shares, caps, when it begins."""

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property

from shoal.mechanisms.continual_mean.looks import next_look, stride
from shoal.mechanisms.continual_mean.mean import MeanParameters
from shoal.mechanisms.continual_mean.sharp.bounder import MOST, Shape
from shoal.mechanisms.continual_mean.sharp.buckets import Buckets
from shoal.mechanisms.continual_mean.sharp.cap import (
    Beginning,
    Forecast,
    blocks_pay,
    brief,
    choose_cap,
    is_even,
    patience,
)
from shoal.mechanisms.continual_mean.sharp.gaussian import call_epsilon, noise_epsilon, part_of_noise
from shoal.mechanisms.counters.blue import GrowingBlue
from shoal.mechanisms.counters.growing_root import GrowingRoot
from shoal.mechanisms.privacy.accounting import Concentrated
from shoal.mechanisms.selection import clip_range

RELEASES = 365  # expected of a group in the library, where nobody says a number; tunes only
HALVINGS = 24  # candidates of a scale: the range times 2**(-j / 2)
# Half width of a later block's mean where units are alike, as a part of the first blocks' over the root of its weight:
# two and a half standard deviations become 2.8.
ALIKE = Fraction(9, 8)
ALIKE_OFTEN = Fraction(8, 5)  # with more releases than MANY: then an octave's centre, a release, is less exact
MANY = 10_000
# A clip range leaves a part of the units outside on purpose, and no call tells how far: they might be at the end of the
# range. So it is chosen where that part, in ranges, is at most this many times the noise of the naive sum.
RISK = Fraction(2)
NARROWER = 8  # candidates of an octave's scale: the one before, times 2**(-j / 2)
MOST_ANSWERS = 1 << 14  # that are kept of `begin`
LARGEST = 1 << 63  # what a contribution carries stays below it: it travels as an integer of 64 bits


@dataclass(frozen=True, slots=True)
class Shares:
    """The parts of a group's epsilon for calls."""

    centre: Fraction
    scale: Fraction
    octave: Fraction  # of each octave but the first


OCTAVES = Fraction(1, 2)  # for all of them at most: with a cap of many millions there are too many for a share each
NOTHING = Shares(Fraction(0), Fraction(0), Fraction(0))
SHORT = Shares(Fraction(20, 1000), Fraction(120, 1000), Fraction(0))


def shares_of_longs(units: Fraction) -> Shares:
    """The shares where the first blocks of `units` units times epsilon give the clip range.

    The more of them there are, the less is needed.

    >>> shares_of_longs(Fraction(1000)) == Shares(Fraction(40, 1000), Fraction(120, 1000), Fraction(3, 80))
    True
    """
    return Shares(
        min(max(80 / units, Fraction(12, 1000)), Fraction(40, 1000)),
        min(max(140 / units, Fraction(25, 1000)), Fraction(120, 1000)),
        min(max(50 / units, Fraction(20, 1000)), Fraction(3, 80)),
    )


@dataclass(frozen=True, kw_only=True)
class SharpParameters(MeanParameters):
    """All public parameters of a sharp mean."""

    horizon: int | None = None  # releases expected of a group; tunes accuracy, never the guarantee
    each: bool = False  # a release per contribution: then the horizon is what would come if all gave all they may
    day: int | None = None  # ticks of a day; None: a release per contribution, or the length of a tick is not known

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shape.blocks and MOST * self.grid.steps << self.buckets.bits >= LARGEST:
            raise ValueError("grid must be below 2**29 for blocks of sharp: a sum and a value come in one integer")

    @cached_property
    def shape(self) -> Shape:
        return Shape(self.max_contributions)

    @property
    def releases(self) -> int:
        return self.horizon or RELEASES

    @cached_property
    def buckets(self) -> Buckets:
        return Buckets(self.grid.steps)

    @cached_property
    def places(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """(level, bucket) of single samples, by both: each is made once, for all groups in which some wait there."""
        buckets = range(self.buckets.count)
        return tuple(tuple((level, bucket) for bucket in buckets) for level in range(self.shape.levels))

    @cached_property
    def half_widths(self) -> tuple[int, ...]:
        """The candidates of a scale in grid steps, descending; none is 0.

        >>> from shoal.mechanisms.continual_mean.sharp import Sharp
        >>> from shoal.mechanisms.grid import Grid
        >>> grid = Grid(Fraction(0), Fraction(1), 64)
        >>> mean = Sharp(grid=grid, epsilon=Fraction(1), max_contributions=4, users=9)
        >>> mean.half_widths
        (64, 46, 32, 23, 16, 12, 8, 6, 4, 3, 2, 1)
        """
        with localcontext(Context(prec=40, rounding=ROUND_CEILING)):
            roots = (Decimal(self.grid.steps) / Decimal(2) ** (Decimal(j) / 2) for j in range(HALVINGS))
            return tuple(sorted({int(root.to_integral_value()) for root in roots}, reverse=True))

    @property
    def least_half_width(self) -> int:
        """The least half width of first blocks' means: one sample at the range's other end is not cut off.

        Rare such samples may be all there is, and most blocks have none: then no scale of blocks tells of them.
        """
        return -(-self.grid.steps // self.shape.weight(0))

    # ---------------------------------------------------------------- what epsilon is spent on

    @cached_property
    def call_epsilon(self) -> Fraction:
        """The epsilon of which calls have shares: the group's, or with Gaussian noise one whose squares are so small a
        part of the group's rho.
        """
        return self.group_epsilon if self.group_rho is None else call_epsilon(self.group_rho)

    @cached_property
    def noise_epsilon(self) -> Fraction:
        """The epsilon of noise, for forecasts: the group's, or that with which Laplace noise would be as large."""
        return self.group_epsilon if self.group_rho is None else noise_epsilon(self.group_rho, self.releases)

    def shares(self, beginning: Beginning) -> Shares:
        """The shares of `call_epsilon` for the calls that are made; what they leave is the counter's."""
        if beginning.longs:
            shares = shares_of_longs(beginning.longs * self.call_epsilon)
            octave = min(shares.octave, OCTAVES / max(1, self.shape.octaves - 1)) if beginning.alike else Fraction(0)
            return Shares(shares.centre, shares.scale, octave)
        return SHORT if beginning.firsts else NOTHING

    def counter_share(self, beginning: Beginning) -> Fraction:
        """The part of the group's epsilon, or of what is like it, that the calls leave to the counter."""
        if self.group_rho is not None:
            return part_of_noise(self.counter_rho(self.group_rho, beginning) / self.group_rho)
        shares = self.shares(beginning)
        return 1 - shares.centre - shares.scale - shares.octave * self._later_octaves

    def counter_rho(self, rho: Fraction, beginning: Beginning) -> Fraction:
        """The rho that the calls, exponential mechanisms, leave to the counter of a group that has `rho` in all."""
        shares = self.shares(beginning)
        calls = shares.centre, shares.scale, *(shares.octave for _ in range(self._later_octaves))
        return rho - sum(Concentrated.of_exponential(share * self.call_epsilon).rho for share in calls)

    @property
    def _later_octaves(self) -> int:
        return max(0, self.shape.octaves - 1)

    def counter(self, width: int, beginning: Beginning) -> GrowingBlue | GrowingRoot:
        if self.group_rho is not None:
            return GrowingRoot(width, self.counter_rho(self.group_rho, beginning), self.releases)
        return GrowingBlue(width, self.group_epsilon * self.counter_share(beginning), horizon=self.releases)

    @property
    def late_variance(self) -> float:
        typical = Beginning(self.max_contributions, firsts=1, longs=0, alike=False)
        return self.counter(self.grid.steps, typical).variance(self.releases)

    # ---------------------------------------------------------------- when to begin, and with what

    def begin(self, units: int, longs: int, samples: int, ticks: int) -> Beginning | None:
        """The way to begin after `ticks` ticks of a group, or None to wait: a function of the pattern.

        `units` have a first sample, and `longs` a first block. In a tick many groups have the same pattern: the answers
        are kept, for the exact arithmetic behind them takes most of the time of a group that waits.
        """
        pattern, answers = (units, longs, samples, ticks), self._answers
        if pattern not in answers:
            if len(answers) == MOST_ANSWERS:
                answers.clear()
            answers[pattern] = self._begin(*pattern)
        return answers[pattern]

    @cached_property
    def _answers(self) -> dict[tuple[int, int, int, int], Beginning | None]:
        """Of `begin`, by its arguments."""
        return {}

    def _begin(self, units: int, longs: int, samples: int, ticks: int) -> Beginning | None:
        if not units or ticks % stride(ticks):  # no units: late samples may overtake a unit's first
            return None
        forecast = self.forecast(units, samples, ticks)
        if self.shape.blocks and self._blocks_pay(forecast):
            overdue = ticks >= 2 * self.patience
            enough = longs >= (self.least_longs if overdue else self.wanted_longs(units))
            if enough and is_even(Fraction(samples, units), 2 * self.shape.alone, units, longs):
                return Beginning(self.max_contributions, firsts=0, longs=longs, alike=True)
            if not overdue:
                return None
        return self._begin_short(forecast, units, ticks)

    def _begin_short(self, forecast: Forecast, units: int, ticks: int) -> Beginning | None:
        """A beginning with single samples, or with blocks that are clipped like them."""
        most = self.max_contributions
        risked = RISK * forecast.noise_sd(most, Fraction(most), self.noise_epsilon)
        least = max(self.least_units, math.ceil(self._outside / min(risked, Fraction(9, 20))))
        possible = self.users <= 1 or least <= self.users
        late = ticks >= self.brief_patience * (2 if possible or units < self.least_units else 1)
        if units >= least:
            return Beginning(self.choose_cap(forecast), firsts=units, longs=0, alike=False)
        ready = units >= self.ready_units or forecast.samples >= self.ready_samples
        if late or (ready and not possible):
            return Beginning(self.choose_cap(forecast), firsts=0, longs=0, alike=False)
        return None

    @cached_property
    def _outside(self) -> int:
        """The number of units that a clip range should leave outside."""
        return clip_range.outside(len(self.half_widths), self.call_epsilon * SHORT.scale)

    @cached_property
    def least_units(self) -> int:
        """The number of units below which a centre would be a random number."""
        return -(-28 // (self.call_epsilon * SHORT.centre))

    @cached_property
    def least_longs(self) -> int:
        """The number of first blocks below which a scale would be a random number."""
        epsilon = self.call_epsilon * shares_of_longs(Fraction(1)).scale
        return max(-(-33 // epsilon), clip_range.values_needed(len(self.half_widths), epsilon, clip_range.SURE))

    @cached_property
    def ready_units(self) -> int:
        """The number of units to wait for: a rank error no longer matters, or half of those expected are there."""
        enough = -(-4000 // self.call_epsilon)
        return max(self.least_units, min(enough, self.users // 2 or enough))

    @cached_property
    def ready_samples(self) -> int:
        """The number of samples to wait for if units stay away: unclipped noise would be a fifth of the range."""
        return -(-150 * self.max_contributions // self.noise_epsilon)

    @property
    def patience(self) -> int:
        """The number of ticks to wait for enough first blocks; twice as many for blocks at all."""
        return patience(self.releases, self.max_contributions, each=self.each)

    @property
    def brief_patience(self) -> int:
        """The number of ticks to wait for enough units, where blocks do not decide; twice as many for units at all."""
        return brief(self.patience, self.day)

    def latest(self, ticks: int) -> int:
        """Latest tick at which a group that has waited `ticks` ticks begins, if it has a unit by then."""
        longest = self.patience if self.shape.blocks else self.brief_patience
        return next_look(max(2 * longest, ticks + 1))

    def wanted_longs(self, units: int) -> int:
        """The number of units' first blocks to wait for, if `units` units are there."""
        return max(self.least_longs, min(-(-4500 // self.call_epsilon), units * 3 // 4))

    def octave_units(self, units: int, octave: Fraction) -> int:
        """The number of units' first blocks from which an octave's scale is made, at that share of epsilon."""
        epsilon = octave * self.call_epsilon
        least = max(-(-28 // epsilon), clip_range.values_needed(NARROWER, epsilon, clip_range.SURE))
        return max(least, min(-(-40 // epsilon), units * 3 // 4))

    def forecast(self, units: int, samples: int, ticks: int) -> Forecast:
        """The forecast from what has come in a group's first `ticks` ticks."""
        return Forecast(units, samples, self.users, max(Fraction(1), Fraction(self.releases, ticks)), self.releases)

    def choose_cap(self, forecast: Forecast) -> int:
        """The cap that counts if every sample costs the same."""
        return choose_cap(forecast, self.caps, self.max_contributions, self.noise_epsilon)

    @cached_property
    def caps(self) -> tuple[int, ...]:
        """The caps to choose from, ascending: powers of two of single samples, and the ends of blocks.

        >>> from shoal.mechanisms.continual_mean.sharp import Sharp
        >>> from shoal.mechanisms.grid import Grid
        >>> grid = Grid(Fraction(0), Fraction(1), 64)
        >>> mean = Sharp(grid=grid, epsilon=Fraction(1), max_contributions=128, users=9)
        >>> mean.caps
        (1, 2, 4, 8, 16, 32, 64, 96, 128)
        """
        few = [1 << j for j in range(self.shape.levels - 1)]
        ends = [self.shape.end(block) for block in range(self.shape.blocks)]
        return *few, self.shape.singles, *(end for end in ends if end > self.shape.singles)

    def _blocks_pay(self, forecast: Forecast) -> bool:
        return blocks_pay(forecast, self.choose_cap(forecast), self.max_contributions, self._width_in_blocks)

    @cached_property
    def _width_in_blocks(self) -> Fraction:
        """The most that a unit can move in all with blocks, in clip widths."""
        return self.shape.alone + Fraction(self.block_budget(self.grid.steps), self.grid.steps)

    def block_budget(self, width: int, blocks: int | None = None) -> int:
        """The most that a unit's first `blocks` blocks, or all, may move in grid steps, by octave.

        `width` is what a single sample may move, and what the mean of a first block may, times the root of its weight.
        """
        with localcontext(Context(prec=40, rounding=ROUND_CEILING)):
            return sum(self._moves(block, width) for block in range(self.shape.blocks if blocks is None else blocks))

    def block_width(self, half: int) -> int:
        """The most that a first block's mean, clipped to that half width, may move, times the root of its weight."""
        with localcontext(Context(prec=40, rounding=ROUND_CEILING)):
            return int((2 * half * Decimal(self.shape.weight(0)).sqrt()).to_integral_value())

    def most(self, beginning: Beginning, single: int, block_width: int) -> int:
        """C, the most that a unit can move in all, in grid steps, if a single sample may move `single`."""
        if not beginning.alike:
            return single * beginning.cap
        return single * self.shape.alone + self.block_budget(block_width)

    def _moves(self, block: int, width: int) -> int:
        alike = ALIKE if self.releases <= MANY else ALIKE_OFTEN
        weight = self.shape.weight(block)
        move = width * Decimal(weight).sqrt()
        if block not in self.shape.octave(0):
            move *= Decimal(alike.numerator) / alike.denominator
        return min(int(move.to_integral_value()), weight * self.grid.steps)
