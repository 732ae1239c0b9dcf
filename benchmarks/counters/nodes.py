"""Counters whose releases add and subtract single noisy nodes: what those have in common that differ in which nodes.

Guarantee    pure epsilon-DP for all releases together; inputs may react to them (docs/proofs/counters.md)
Relation     values: two streams differ in what one unit contributed; who contributes, and when, is public
Unit         its elements, wherever they lie, move by at most `width` grid steps in all
Sensitivity  L1, exact: width * levels over the nodes of a tree; an element is in at most `levels` nodes
Noise        discrete Laplace, scale b = width * levels / epsilon, on every node; a function of key and node
Capacity     `size` elements per tree; it is never extended, the next element starts a new one, with new noise
Variance     of release t, in squared grid steps: 2p / (1 - p)**2 with p = exp(-1 / b), times the number of nodes in the
             totals of past trees and in the prefix
Source       Li, Hay, Rastogi, Miklau and McGregor (2010)
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from shoal.mechanisms import check
from shoal.mechanisms.counters.counter import Scales, Subkeys
from shoal.mechanisms.noise import laplace


@dataclass(frozen=True)
class NodeTree(ABC):
    """All that is public about such a counter; all epochs have the same tree."""

    width: int  # grid steps that one unit can move in all
    epsilon: Fraction  # paid once, wherever the unit's elements lie

    def __post_init__(self) -> None:
        check.positive(width=self.width, epsilon=self.epsilon)

    @property
    @abstractmethod
    def levels(self) -> int:
        """The most nodes that an element is in."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Elements per tree."""

    @abstractmethod
    def signed_nodes(self, t: int) -> Iterable[tuple[int, int]]:
        """What prefix t of a tree, 0 <= t <= size, is the sum of: (index, sign of the node)."""

    @abstractmethod
    def holders(self, place: int) -> Iterable[int]:
        """The nodes that hold element `place`, 1 <= place <= size, of a tree."""

    @abstractmethod
    def count(self, t: int) -> int:
        """How many nodes prefix t of a tree adds or subtracts."""

    @property
    def l1_sensitivity(self) -> int:
        """The most that one unit changes all nodes together, in grid steps."""
        return self.width * self.levels

    @cached_property
    def scale(self) -> Fraction:
        """Scale b of the noise on every node."""
        return self.l1_sensitivity / Fraction(self.epsilon)

    def locate(self, t: int) -> tuple[int, int]:
        """Prefix t as (trees that are full and past, elements in the current one)."""
        epoch = (t - 1) // self.size if t else 0
        return epoch, t - epoch * self.size

    def sensitivities(self, epoch: int) -> tuple[tuple[int, Fraction], ...]:
        """The same in every epoch."""
        return ((self.l1_sensitivity, self.scale),)

    def nodes_of(self, element: int) -> tuple[tuple[int, int], ...]:
        """The nodes that hold an element, as (epoch, index)."""
        epoch, place = self.locate(element)
        return tuple((epoch, index) for index in self.holders(place))

    def nodes(self, t: int) -> int:
        """How many noisy nodes release t consists of."""
        epoch, within = self.locate(t)
        return epoch * self.count(self.size) + self.count(within)

    def scales(self, t: int) -> Scales:
        """What the noise of release t consists of."""
        nodes = self.nodes(t)
        return ((self.scale, nodes),) if nodes else ()

    def variance(self, t: int) -> float:
        """Variance of the noise of release t, for planning and error bars: the private path has no floats."""
        return self.nodes(t) * laplace.variance(self.scale)

    def counter(self, subkey: Subkeys) -> "NodeCounter":
        """The noise of the releases under a key."""
        return NodeCounter(self, subkey)


@dataclass(slots=True)
class NodeCounter:
    """The noise of the releases; the draws of the last prefix are kept for the next, which shares most of them."""

    tree: NodeTree
    subkey: Subkeys = field(repr=False)  # epoch -> the subkey of its nodes
    _past: tuple[int, int] = field(default=(0, 0), init=False, repr=False)  # (epochs, their total noise)
    _epoch: int = field(default=-1, init=False, repr=False)  # whose draws are kept
    _draw: laplace.DiscreteLaplace = field(init=False, repr=False)
    _kept: dict[int, int] = field(default_factory=dict, init=False, repr=False)  # index -> draw

    def noise(self, t: int) -> int:
        """What is added to the exact sum of the first t elements."""
        check.not_negative(t=t)
        epoch, within = self.tree.locate(t)
        return self._total(epoch) + self._prefix(epoch, within)

    def _total(self, epochs: int) -> int:
        """Noise in the totals of all trees before the current one; each is summed up once."""
        done, noise = self._past if self._past[0] <= epochs else (0, 0)
        noise += sum(self._prefix(epoch, self.tree.size) for epoch in range(done, epochs))
        self._past = epochs, noise
        return noise

    def _prefix(self, epoch: int, t: int) -> int:
        if epoch != self._epoch:
            self._draw = laplace.DiscreteLaplace(self.tree.scale, self.subkey(epoch))
            self._epoch, self._kept = epoch, {}
        before, self._kept = self._kept, {}
        noise = 0
        for index, sign in self.tree.signed_nodes(t):
            drawn = before[index] if index in before else self._draw.draw(index)
            self._kept[index] = drawn
            noise += sign * drawn
        return noise
