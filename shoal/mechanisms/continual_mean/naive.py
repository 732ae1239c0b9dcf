"""Naive mean: one binary counter over all samples, with noise for the most that a unit can contribute.

Guarantee    pure epsilon-DP for all releases of all groups together, or with a `rho` rho-zCDP, hence (epsilon,
             delta)-DP; the time and order of samples may react to them
Relation     values: two streams differ in the values of one unit; who contributes when, and in which group, is public
Unit         all values of a user in the metric, at most m per group in at most G groups
Sensitivity  L1, exact: m * steps * h over the nodes of a group; h = bit length of users * m. L2: gaussian_binary.py
Noise        discrete Laplace, scale b = m * steps * h * G / epsilon, on every node; a function of key, group and node.
             With a `rho` discrete Gaussian, of rho / G in a group
Variance     of the mean after t samples, in squared grid steps: nodes(t) * 2p / (1 - p)**2 / t**2, p = exp(-1 / b); or
             nodes(t) * sigma2 / t**2
Proof        docs/proofs/binary-counter.md, coordinates.md
Source       George, Ramesh, Singh and Tyagi (2024), Algorithm 2
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, ClassVar

from shoal.mechanisms.continual_mean.levels import LevelKeys
from shoal.mechanisms.continual_mean.mean import Headed, MeanParameters
from shoal.mechanisms.counters.binary import BinaryCounter, BinaryTree
from shoal.mechanisms.counters.gaussian_binary import GaussianBinaryTree
from shoal.mechanisms.error_bars import Law, Widths, estimate_within, widths
from shoal.mechanisms.statistic import Activation, Contribution, Estimate, OneByOne
from shoal.mechanisms.workload import Pattern


class Naive(MeanParameters):
    """Algorithm 2 of George et al. over one tree of users * m elements."""

    name: ClassVar[str] = "naive"

    @cached_property
    def tree(self) -> BinaryTree | GaussianBinaryTree:
        elements = self.users * self.max_contributions
        if self.group_rho is not None:
            return GaussianBinaryTree(elements, self.grid.steps, self.max_contributions, self.group_rho)
        return BinaryTree(elements, self.max_contributions * self.grid.steps, self.group_epsilon)

    @property
    def late_variance(self) -> float:
        return self.tree.variance(self.users * self.max_contributions)

    def bounder(self) -> OneByOne:
        return OneByOne(self.max_contributions)

    def counted(self, pattern: Pattern, tau: float) -> tuple[int, Law]:
        samples = pattern.samples(self.max_contributions, tau)
        return samples, self.tree.scales(samples)

    def widths(self, t: int) -> Widths:
        """The widths of the noise of release t: one for each number of nodes, for all groups."""
        nodes = self.tree.nodes(t)
        found = self._widths.get(nodes)
        if found is None:
            found = self._widths[nodes] = widths(self.grid.step, self.tree.scales(t), self.coverage)
        return found

    @cached_property
    def _widths(self) -> dict[int, Widths]:
        return {}

    def releaser(self, key: bytes, group: bytes, coordinate: int = 0) -> "NaiveReleaser":
        return NaiveReleaser(self, self.tree.counter(LevelKeys(key, group, coordinate, 0)))


class NaiveReleaser(Headed):
    """Exact count and sum of the samples; contributions may come merged, the counter takes them as single samples."""

    __slots__ = ("_counter", "_mean", "_samples", "_total")

    def __init__(self, mean: Naive, counter: BinaryCounter[Any]) -> None:
        self._mean = mean
        self._counter = counter
        self._samples = 0
        self._total = 0

    def add(self, contribution: Contribution) -> tuple[Activation, ...]:
        self._samples += contribution.samples
        self._total += contribution.total
        return ()

    def ahead(self, contributions: Sequence[Contribution]) -> tuple[tuple[BinaryCounter[Any], int]]:
        return ((self._counter, self._samples + sum([contribution.samples for contribution in contributions])),)

    def estimate(self) -> Estimate | None:
        t = self._samples
        if not t:
            return None
        mean = self._mean
        noisy = self._total + self._counter.noise(t)
        return mean.named(estimate_within(mean.grid, noisy, t, mean.widths(t), mean.ends))

    def head(self) -> list[Any]:
        return [self._samples, self._total]

    def restore(self, head: list[Any], kept: Iterable[Contribution]) -> None:
        self._samples, self._total = map(int, head)
