"""Multi-tree continual mean: blocks of a unit's samples, clipped around a given prior, one counter per level.

Guarantee    pure epsilon-DP for all releases of all groups together; the time and order of samples may react to them
Relation     values: two streams differ in the values of one unit; who contributes when, and in which group, is public
Unit         all values of a user in the metric, at most m per group in at most G groups
Prior        given: its own privacy loss, if any, is charged where it was made
Budget       per group e = epsilon / G: e / (L + 1) for each of the counters of levels 0 .. L
Sensitivity  a unit is one element of each level's counter, of width 2 D_l
Noise        discrete Laplace, scale b_l = 2 D_l * h * (L + 1) / e, h = bit length of users, on every node
Variance     in squared grid steps: sum over l of nodes_l(n_l) * 2p_l / (1 - p_l)**2 over (sum of n_l w_l)**2
Proof        docs/proofs/continual-mean.md
Source       George, Ramesh, Singh and Tyagi (2024), Algorithm 5, equations (4), (6), (7), with log2 for every log
"""

from functools import cached_property
from typing import ClassVar

from shoal.mechanisms.continual_mean import blocks
from shoal.mechanisms.continual_mean.given_prior import ClippedReleaser, GivenPrior
from shoal.mechanisms.continual_mean.levels import Level, scales_of
from shoal.mechanisms.counters.binary import BinaryTree
from shoal.mechanisms.error_bars import Scales
from shoal.mechanisms.workload import Pattern


class MultiTree(GivenPrior):
    """Algorithm 5 of George et al. on blocks."""

    name: ClassVar[str] = "multi-tree"

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        return tuple(self._level(index) for index in range(self.top + 1))

    def _level(self, index: int) -> Level:
        weight = blocks.weight(index)
        half_width = self.half_width(weight, self.projections)
        tree = BinaryTree(self.users, 2 * half_width, self.group_epsilon / (self.top + 1))
        return Level(index, weight, half_width, tree)

    def counted(self, pattern: Pattern, tau: float) -> tuple[int, Scales]:
        closed = self.closed(pattern, tau)
        return blocks.samples_in(closed), scales_of(self.levels, closed)

    def releaser(self, key: bytes, group: bytes, coordinate: int = 0) -> ClippedReleaser:
        clips = [self.around(level.weight, level.half_width) for level in self.levels]
        return self.clipped(key, group, coordinate, clips, [level.tree for level in self.levels])
