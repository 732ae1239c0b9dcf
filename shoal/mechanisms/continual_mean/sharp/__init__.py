"""Sharp continual mean: the most accurate one here, for users who differ and for users who are alike.

Samples wait until enough units have come. Then the pattern so far says how a group begins (`begin`):

    short   few samples per unit, or very different numbers of them: the part of the cap that pays counts, each sample
            clipped to a private range of units' first samples, if that range cannot cost more than it saves
    long    units with many samples each: a private range of the means of units' first blocks. If it shows that longer
            blocks can be clipped more narrowly, each octave of blocks gets a private clip range of its own

From there on one BLUE counter, indexed by release, takes the clipped sums of the ticks.

Guarantee    pure epsilon-DP for all releases of all groups together; the time and order of samples may react to them
Relation     values: two streams differ in the values of one unit; who contributes when, and in which group, is public
Unit         all values of a user in the metric, at most m per group in at most G groups
Budget       per group e = epsilon / G: `shares` of e for the centre, the scale and each later octave's scale, the rest
             for the counter; what calls that are not made do not need, the counter gets
Sensitivity  of a call: one number per unit, each cost moves by at most 1 or 2 (clip_range.py). Of the counter, in L1:
             the width of the clip range for each sample that counts one by one, the width of its clip for each block;
             the sum over all that a unit can ever make is at most C, the width that the counter's noise is made for
Noise        of a BLUE counter of width C, over ticks in which the group released (blue.py)
Variance     in squared grid steps: that of the counter at the tick, over (samples included)**2
Bias         at most, in units of the range b - a and for any data: the part of the samples that is left out (over the
             cap, or in blocks still open) + for those included, how far the clip range stays inside the range
Proof        docs/proofs/sharp.md
Source       the blocks of George, Ramesh, Singh and Tyagi (2024); the rest is derived in the proof
"""

from fractions import Fraction
from typing import ClassVar

from shoal.mechanisms.continual_mean.forecast import Prospect
from shoal.mechanisms.continual_mean.sharp.bounder import SharpBounder
from shoal.mechanisms.continual_mean.sharp.forecast import SharpProspect
from shoal.mechanisms.continual_mean.sharp.parameters import SharpParameters
from shoal.mechanisms.continual_mean.sharp.releaser import SharpReleaser
from shoal.mechanisms.workload import Pattern


class Sharp(SharpParameters):
    """A sharp mean, with both its sides."""

    name: ClassVar[str] = "sharp"

    def bounder(self) -> SharpBounder:
        return SharpBounder(self.shape, self.buckets)

    def releaser(self, key: bytes, group: bytes, coordinate: int = 0) -> SharpReleaser:
        return SharpReleaser(self, key, group, coordinate)

    def prospect(self, pattern: Pattern, releases: int | None, spread: Fraction = Fraction(1)) -> Prospect:
        """The releases to come, with the private choices predicted for an assumed law of values."""
        return SharpProspect(self, pattern, releases, spread)
