"""Single-tree continual mean: blocks of a unit's samples, clipped around a given prior, in one counter.

Guarantee    pure epsilon-DP for all releases of all groups together; the time and order of samples may react to them
Relation     values: two streams differ in the values of one unit; who contributes when, and in which group, is public
Unit         all values of a user in the metric, at most m per group in at most G groups
Prior        given: its own privacy loss, if any, is charged where it was made. If few users choose it,
             see few_users_prior.py
Sensitivity  L1: a unit is at most one element of each level 0 .. L, which moves by at most 2 D_l, so sum of 2 D_l times
             h is exact; the noise is made for 2 D_L * (L + 1) * h, as printed; h = bit length of users * (L + 1)
Noise        discrete Laplace, scale b = 2 D_L * (L + 1) * h * G / epsilon, on every node
Variance     after t blocks of N samples, in squared grid steps: nodes(t) * 2p / (1 - p)**2 / N**2 with p = exp(-1 / b)
Proof        docs/proofs/continual-mean.md
Source       George, Ramesh, Singh and Tyagi (2024), Algorithm 4, equations (4) and (5), with log2 for every log
"""

from collections.abc import Sequence
from typing import ClassVar

from shoal.mechanisms.continual_mean.given_prior import GivenPrior
from shoal.mechanisms.counters.binary import BinaryTree


class SingleTree(GivenPrior):
    """Algorithm 4 of George et al. on blocks."""

    name: ClassVar[str] = "single-tree"

    def trees_of(self, widths: Sequence[int]) -> tuple[BinaryTree]:
        elements = self.top + 1
        return (BinaryTree(self.users * elements, widths[-1] * elements, self.counters_epsilon),)
