"""Sharp continual mean of subgaussian samples: one private centre, then blocks clipped to what sigma says of them.

Blocks wait until enough units have come, and each unit's mean is exact enough. Then one centre is chosen privately from
units' means. A block of w samples is clipped around w times that centre, to z standard deviations, z sigma sqrt(w), and
w times what the centre may be off. Where that takes too little off the error, nothing is chosen: the centre is the
middle of the range, and may be off by half of it. From then on one BLUE counter, indexed by release, takes the clipped
sums of the ticks.

Guarantee    pure epsilon-DP for all releases of all groups together, whatever the samples are like; the time and order
             of samples may react to them
Relation     values: two streams differ in the values of one unit; who contributes when, and in which group, is public
Unit         all values of a user in the metric, at most m per group in at most G groups
Budget       per group e = epsilon / G: s e for the centre, (1 - s) e for the counter; s is a function of the pattern
Sensitivity  of the centre: one number per unit, each cost moves by at most 2 (clip_range.py). Of the counter, in L1: a
             unit closes each block once, which moves by the width of its interval; C is the sum of these widths
Noise        of a BLUE counter of width C, over ticks from that on with which the group begins (blue.py)
Variance     in squared grid steps: that of the counter at the tick, over (samples included)**2
Accuracy     assumes that samples are sigma-subgaussian around one mean in the range. Users whose means differ by more
             than sigma / sqrt(samples of each) are cut off, and so are longer tails: the mean is then biased
Proof        docs/proofs/continual-mean.md
Source       the blocks of George, Ramesh, Singh and Tyagi (2024), section 4; the rest is derived in the proof
"""

from fractions import Fraction
from typing import ClassVar

from shoal.mechanisms.continual_mean.forecast import Prospect
from shoal.mechanisms.continual_mean.subgaussian.forecast import SubgaussianProspect
from shoal.mechanisms.continual_mean.subgaussian.parameters import SubgaussianParameters
from shoal.mechanisms.continual_mean.subgaussian.releaser import SubgaussianReleaser
from shoal.mechanisms.workload import Pattern


class Subgaussian(SubgaussianParameters):
    """The sharp mean with sigma, with both its sides."""

    name: ClassVar[str] = "sharp with sigma"

    def releaser(self, key: bytes, group: bytes, coordinate: int = 0) -> SubgaussianReleaser:
        return SubgaussianReleaser(self, key, group, coordinate)

    def prospect(self, pattern: Pattern, releases: int | None, spread: Fraction = Fraction(1)) -> Prospect:
        return SubgaussianProspect(self, pattern, releases)
