"""Wishful continual mean: one block of all m samples of a unit, clipped around a given prior.

Guarantee    pure epsilon-DP for all releases of all groups together; the time and order of samples may react to them
Relation     values: two streams differ in the values of one unit; who contributes when, and in which group, is public
Unit         all values of a user in the metric, at most m per group in at most G groups
Prior        given: its own privacy loss, if any, is charged where it was made. If few users choose it,
             see few_users_prior.py
Sensitivity  L1, exact: 2 D * h over the nodes of a group; a unit is one element; h = bit length of users
Noise        discrete Laplace, scale b = 2 D * h * G / epsilon, on every node; a function of key, group and node
Variance     after t units with m samples, in squared grid steps: nodes(t) * 2p / (1 - p)**2 / (m t)**2, p = exp(-1 / b)
Order        the paper assumes that each unit gives exactly m samples, one unit after the other. In any other order the
             releases are the same, but later. The samples of a unit with fewer than m are never used
Proof        docs/proofs/continual-mean.md
Source       George, Ramesh, Singh and Tyagi (2024), Algorithm 3, equations (2) and (3), appendix B
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from shoal.mechanisms.continual_mean.given_prior import GivenPrior
from shoal.mechanisms.counters.binary import BinaryTree
from shoal.mechanisms.statistic import COUNT_BITS, COUNT_MASK, Block, over_cap
from shoal.mechanisms.workload import Pattern


class Wishful(GivenPrior):
    """Algorithm 3 of George et al."""

    name: ClassVar[str] = "wishful"

    @property
    def weights(self) -> tuple[int, ...]:
        return (self.max_contributions,)

    @property
    def projections(self) -> int:
        return 1

    def trees_of(self, widths: Sequence[int]) -> tuple[BinaryTree]:
        return (BinaryTree(self.users, widths[0], self.counters_epsilon),)

    def bounder(self) -> "WholeBounder":
        return WholeBounder(self.max_contributions)

    def closed(self, pattern: Pattern, tau: float) -> list[int]:
        return [pattern.reached(self.max_contributions, tau)]


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
