"""Sharp continual mean: the most accurate one here, for users who differ and for users who are alike.

Samples wait until enough units have come. Then a private centre and scale of the units' first samples give a clip
range, the pattern so far gives the part of the cap that pays, and from there on one BLUE counter, indexed by release,
takes the clipped sums of the ticks. Units with many samples have those beyond the first 64 summed into blocks; private
scales of block means show how far units differ from each other, and each octave of blocks is clipped accordingly.

Guarantee    pure epsilon-DP for all releases of all groups together; the time and order of samples may react to them
Relation     values: two streams differ in the values of one unit; who contributes when, and in which group, is public
Unit         all values of a user in the metric, at most m per group in at most G groups
Budget       per group e = epsilon / G: `Shares` of e for the centre, the scale and each octave's scale, the rest for
             the counter; what calls that the pattern rules out do not need, the counter gets
Sensitivity  of a call: one number per unit, each cost moves by at most 1 or 2 (scale.py). Of the counter, in L1: W for
             each of a unit's samples up to the cap, the octave's width for each of two blocks of an octave; the sum
             over all that a unit can ever make is at most C, the width that the counter's noise is made for
Noise        of a BLUE counter of width C, over ticks in which the group released (blue.py)
Variance     in squared grid steps: that of the counter at the tick, over (samples included)**2
Bias         at most, in units of the range b - a and for any data: the part of the samples that is left out (over the
             cap, or in blocks still open) + for those included, how far the clip range stays inside the range
Proof        docs/proofs/sharp.md
Source       the blocks of George, Ramesh, Singh and Tyagi (2024); the rest is derived in the proof
"""

from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property

from shoal.mechanisms.blue import GrowingBlue
from shoal.mechanisms.buckets import Buckets
from shoal.mechanisms.caps import Forecast, blocks_pay, choose_cap
from shoal.mechanisms.sharp_bounder import EVENT_LEVELS, EVENTS, SharpBounder, blocks, weight
from shoal.mechanisms.sharp_releaser import SharpReleaser
from shoal.mechanisms.statistic import MeanParameters, algorithm

RELEASES = 365  # expected of a group where no horizon is given; tunes only
HALVINGS = 24  # candidates of a scale: the range times 2**(-j / 2)
# Half width of a block's mean where units are alike, as a part of the samples' half width over the root of its weight:
# a sample's quantile at about 2 standard deviations becomes a block's at about 2.8.
ALIKE = Fraction(7, 5)


@dataclass(frozen=True, slots=True)
class Shares:
    """Parts of a group's epsilon."""

    centre: Fraction
    scale: Fraction
    octaves: Fraction  # of all octaves together

    def counter(self, *, ranged: bool, blocks: bool) -> Fraction:
        """What the calls leave that are made: of the samples' range, of the octaves."""
        return 1 - ranged * (self.centre + self.scale) - blocks * self.octaves


SHORT = Shares(Fraction(20, 1000), Fraction(25, 1000), Fraction(0))  # units without blocks: no call may cost much
LONG = Shares(Fraction(35, 1000), Fraction(45, 1000), Fraction(120, 1000))


@algorithm("sharp")
@dataclass(frozen=True, kw_only=True)
class Sharp(MeanParameters):
    """All that is public about a sharp mean."""

    horizon: int | None = None  # releases expected of a group; tunes accuracy, never the guarantee

    @cached_property
    def blocks(self) -> int:
        """How many blocks a unit's samples beyond the single ones make; 0 where all samples are single."""
        return blocks(self.max_contributions)

    @property
    def octaves(self) -> int:
        """Blocks go in pairs, of which the last may have one only."""
        return -(-self.blocks // 2)

    @property
    def shares(self) -> Shares:
        """Of a group's epsilon."""
        return LONG if self.octaves else SHORT

    @property
    def octave_epsilon(self) -> Fraction:
        """For one octave's scale."""
        return self.group_epsilon * self.shares.octaves / self.octaves

    @cached_property
    def buckets(self) -> Buckets:
        """Of the single samples."""
        return Buckets(self.grid.steps)

    @cached_property
    def half_widths(self) -> tuple[int, ...]:
        """Candidates of a scale in grid steps, descending; none is 0.

        >>> from shoal.mechanisms.grid import Grid
        >>> mean = Sharp(grid=Grid(Fraction(0), Fraction(1), 64), epsilon=Fraction(1), max_contributions=4, users=9)
        >>> mean.half_widths
        (64, 46, 32, 23, 16, 12, 8, 6, 4, 3, 2, 1)
        """
        with localcontext(Context(prec=40, rounding=ROUND_CEILING)):
            roots = (Decimal(self.grid.steps) / Decimal(2) ** (Decimal(j) / 2) for j in range(HALVINGS))
            return tuple(sorted({int(root.to_integral_value()) for root in roots}, reverse=True))

    @cached_property
    def least_units(self) -> int:
        """With fewer units than this a centre would be a random number."""
        return -(-28 // (self.group_epsilon * self.shares.centre))

    @cached_property
    def ready_units(self) -> int:
        """How many units are waited for: until a rank error no longer matters, or half of those expected are there."""
        enough = -(-4000 // self.group_epsilon)
        return max(self.least_units, min(enough, self.users // 2 or enough))

    @property
    def patience(self) -> int:
        """How many releases are waited for enough units; twice as many for units at all."""
        return -(-self.releases // 16)

    def is_ready(self, units: int, samples: int, ticks: int) -> bool:
        """Whether to begin at a group's release number `ticks`: a function of the pattern."""
        if not units:  # late samples may overtake a unit's first
            return False
        if units >= self.ready_units or samples >= self.ready_samples:
            return True
        return ticks >= self.patience * (1 if units >= self.least_units else 2)

    @cached_property
    def ready_samples(self) -> int:
        """How many samples are waited for, if units stay away: unclipped noise would be a fifth of the range."""
        return -(-150 * self.max_contributions // self.group_epsilon)

    def octave_units(self, units: int) -> int:
        """How many units' first blocks of an octave its scale is made from, of `units` there are."""
        return max(-(-600 // self.group_epsilon), min(-(-2000 // self.group_epsilon), units * 3 // 4))

    @property
    def singles(self) -> int:
        """How many of a unit's samples are single."""
        return EVENTS if self.blocks else self.max_contributions

    def forecast(self, units: int, samples: int, ticks: int) -> Forecast:
        """By what has come up to a group's release number `ticks`."""
        return Forecast(units, samples, self.users, max(Fraction(1), Fraction(self.releases, ticks)))

    def choose_cap(self, forecast: Forecast) -> int:
        """How much of each unit counts."""
        if self.blocks and blocks_pay(forecast, self.singles, self.max_contributions, self.relative_width(None)):
            return self.max_contributions
        caps = [*(1 << j for j in range(self.singles.bit_length()) if 1 << j < self.singles), self.singles]
        return choose_cap(forecast, caps, self.max_contributions, self.group_epsilon)

    def relative_width(self, cap: int | None) -> Fraction:
        """What a unit can move in all at a cap, in clip widths; None: with all its blocks."""
        if cap is not None and cap <= self.singles:
            return Fraction(cap)
        return self.singles + Fraction(self.block_budget(1 << 20), 1 << 20)

    @property
    def releases(self) -> int:
        """Expected of a group."""
        return self.horizon or RELEASES

    def block_budget(self, width: int, blocks: int | None = None) -> int:
        """What a unit's first blocks, or all, may move in grid steps, where single samples are clipped to `width`."""
        with localcontext(Context(prec=40, rounding=ROUND_CEILING)):
            roots = sum(
                Decimal(weight(EVENT_LEVELS + block)).sqrt()
                for block in range(self.blocks if blocks is None else blocks)
            )
            return int((width * Decimal(ALIKE.numerator) / ALIKE.denominator * roots).to_integral_value())

    def counter(self, width: int, share: Fraction) -> GrowingBlue:
        """The counter for units that can move `width` grid steps in all, at a share of the group's epsilon."""
        return GrowingBlue(width, self.group_epsilon * share, horizon=self.releases)

    def bounder(self) -> SharpBounder:
        """Single samples with their buckets, then blocks."""
        return SharpBounder(self.max_contributions, self.buckets)

    def releaser(self, key: bytes, group: bytes, coordinate: int = 0) -> SharpReleaser:
        """The mean of one group and coordinate."""
        return SharpReleaser(self, key, group, coordinate)
