"""Multi-tree continual mean: blocks of a unit's samples, clipped around a given prior, one counter per level.

Guarantee    pure epsilon-DP for all releases of all groups together; the time and order of samples may react to them
Relation     values: two streams differ in the values of one unit; who contributes when, and in which group, is public
Unit         all values of a user in the metric, at most m per group in at most G groups
Prior        given: its own privacy loss, if any, is charged where it was made. If few users choose it,
             see few_users_prior.py
Budget       per group e = epsilon / G: e / (L + 1) for each of the counters of levels 0 .. L
Sensitivity  a unit is one element of each level's counter, of width 2 D_l
Noise        discrete Laplace, scale b_l = 2 D_l * h * (L + 1) / e, h = bit length of users, on every node
Variance     in squared grid steps: sum over l of nodes_l(n_l) * 2p_l / (1 - p_l)**2 over (sum of n_l w_l)**2
Proof        docs/proofs/continual-mean.md
Source       George, Ramesh, Singh and Tyagi (2024), Algorithm 5, equations (4), (6), (7), with log2 for every log
"""

from collections.abc import Sequence
from typing import ClassVar

from shoal.mechanisms.continual_mean.given_prior import GivenPrior
from shoal.mechanisms.counters.binary import BinaryTree


class MultiTree(GivenPrior):
    """Algorithm 5 of George et al. on blocks."""

    name: ClassVar[str] = "multi-tree"

    def trees_of(self, widths: Sequence[int]) -> tuple[BinaryTree, ...]:
        epsilon = self.counters_epsilon / (self.top + 1)
        return tuple(BinaryTree(self.users, width, epsilon) for width in widths)
