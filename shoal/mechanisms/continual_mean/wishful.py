"""Wishful continual mean: one block of all m samples of a unit, clipped around a given prior.

Guarantee    pure epsilon-DP for all releases of all groups together; the time and order of samples may react to them
Relation     values: two streams differ in the values of one unit; who contributes when, and in which group, is public
Unit         all values of a user in the metric, at most m per group in at most G groups
Prior        given: its own privacy loss, if any, is charged where it was made
Sensitivity  L1, exact: 2 D * h over the nodes of a group; a unit is one element; h = bit length of users
Noise        discrete Laplace, scale b = 2 D * h * G / epsilon, on every node; a function of key, group and node
Variance     after t units with m samples, in squared grid steps: nodes(t) * 2p / (1 - p)**2 / (m t)**2, p = exp(-1 / b)
Order        the paper assumes that each unit gives exactly m samples, one unit after the other. In any other order the
             releases are the same, but later. The samples of a unit with fewer than m are never used
Proof        docs/proofs/continual-mean.md
Source       George, Ramesh, Singh and Tyagi (2024), Algorithm 3, equations (2) and (3), appendix B
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from shoal.mechanisms.continual_mean.given_prior import ClippedReleaser, GivenPrior
from shoal.mechanisms.counters.binary import BinaryTree
from shoal.mechanisms.error_bars import Scales
from shoal.mechanisms.statistic import COUNT_BITS, COUNT_MASK, Block, over_cap
from shoal.mechanisms.workload import Pattern


class Wishful(GivenPrior):
    """Algorithm 3 of George et al."""

    name: ClassVar[str] = "wishful"

    @cached_property
    def tree(self) -> BinaryTree:
        width = 2 * self.half_width(self.max_contributions, projections=1)
        return BinaryTree(self.users, width, self.group_epsilon)

    def bounder(self) -> "WholeBounder":
        return WholeBounder(self.max_contributions)

    def counted(self, pattern: Pattern, tau: float) -> tuple[int, Scales]:
        units = pattern.reached(self.max_contributions, tau)
        return units * self.max_contributions, self.tree.scales(units)

    def releaser(self, key: bytes, group: bytes, coordinate: int = 0) -> ClippedReleaser:
        clip = self.around(self.max_contributions, self.tree.width // 2)
        return self.clipped(key, group, coordinate, [clip], [self.tree])


@dataclass(frozen=True, slots=True)
class WholeBounder:
    """Sums a unit's samples into one block of m; the account is the sum and the number of samples.

    >>> bounder = WholeBounder(max_contributions=2)
    >>> account, block = bounder.add(0, 30)
    >>> block, bounder.add(account, 12)
    (None, (2, Block(number=1, level=0, samples=2, total=42, part=None)))
    """

    max_contributions: int
    merges: bool = False
    parts: int = 0

    def add(self, account: int, value: int) -> tuple[int, Block | None]:
        count = (account & COUNT_MASK) + 1
        total = (account >> COUNT_BITS) + value
        if count < self.max_contributions:
            return total << COUNT_BITS | count, None
        if count > self.max_contributions:
            raise over_cap()
        return count, Block(1, 0, count, total)
