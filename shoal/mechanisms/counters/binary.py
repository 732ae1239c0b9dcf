"""Binary counter: every prefix sum of a stream, released as the stream arrives.

Guarantee    pure epsilon-DP for all releases together; inputs may react to them (docs/proofs/binary-counter.md)
Relation     values: two streams differ in what one unit contributed; who contributes, and when, is public
Unit         one element, worth at most `width` grid steps; for a unit of m elements, pass m times one element's width
Sensitivity  L1, exact: width * h over the nodes; h = bit length of capacity, the most nodes an element is in
Noise        discrete Laplace, scale b = width * h / epsilon, on every node; a function of key and node
Capacity     a tree takes 2**h - 1 elements and is never extended; the next element starts a new one, with new noise
Variance     of release t within a tree, in squared grid steps: popcount(t) * 2p / (1 - p)**2 with p = exp(-1 / b)
Source       Chan, Shi and Song (2011), Dwork, Naor, Pitassi and Rothblum (2010); George et al. (2024), Algorithm 1
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import islice
from typing import Any, Generic, Self, TypeVar

from shoal.mechanisms import check
from shoal.mechanisms.counters.counter import Scales, Subkeys
from shoal.mechanisms.error_bars import Law
from shoal.mechanisms.noise import laplace
from shoal.mechanisms.noise.batch import Sampler, draw_each


class Fenwick(ABC):
    """Trees in which node j of an epoch covers the elements j - lowbit(j) + 1 .. j, whatever their noise."""

    capacity: int  # elements expected; the tree that holds them has the same height up to `size`

    @cached_property
    def height(self) -> int:
        """h: the most nodes an element is in. Not 1 + ln N: that noise is too small for the epsilon claimed."""
        return self.capacity.bit_length()

    @cached_property
    def size(self) -> int:
        return (1 << self.height) - 1

    def locate(self, t: int) -> tuple[int, int]:
        epoch = (t - 1) // self.size if t else 0
        return epoch, t - epoch * self.size

    def nodes(self, t: int) -> int:
        """The number of noisy nodes that prefix t adds up: the totals of all past trees, and the current prefix."""
        epoch, within = self.locate(t)
        return epoch * self.height + within.bit_count()

    @abstractmethod
    def scales(self, t: int) -> Law:
        """The law of the noise of release t."""

    @abstractmethod
    def sampler(self, subkey: bytes) -> Sampler:
        """Draws the noise of each node, by its number, under an epoch's subkey."""


Trees = TypeVar("Trees", bound=Fenwick)


@dataclass(frozen=True)
class BinaryTree(Fenwick):
    """All public parameters of a binary counter.

    >>> tree = BinaryTree(capacity=1000, width=1, epsilon=Fraction(1))
    >>> tree.height, tree.size, tree.scale
    (10, 1023, Fraction(10, 1))
    """

    capacity: int
    width: int  # grid steps that one unit can move in all
    epsilon: Fraction  # charged once, for the life of the metric version

    def __post_init__(self) -> None:
        check.positive(capacity=self.capacity, width=self.width, epsilon=self.epsilon)

    @classmethod
    def best(cls, capacity: int, *, width: int, epsilon: Fraction) -> Self:
        return cls(capacity, width, epsilon)

    @property
    def l1_sensitivity(self) -> int:
        """The most that one unit changes all nodes together, in grid steps."""
        return self.width * self.height

    @cached_property
    def scale(self) -> Fraction:
        """Scale b of the noise on every node."""
        return self.l1_sensitivity / Fraction(self.epsilon)

    def sensitivities(self, epoch: int) -> tuple[tuple[int, Fraction], ...]:
        return ((self.l1_sensitivity, self.scale),)

    def nodes_of(self, element: int) -> tuple[tuple[int, int], ...]:
        """The nodes that hold an element, as (epoch, node): its position s, s + lowbit(s), ..."""
        epoch, node = self.locate(element)
        nodes = []
        while node <= self.size:
            nodes.append((epoch, node))
            node += node & -node
        return tuple(nodes)

    def scales(self, t: int) -> Scales:
        nodes = self.nodes(t)
        return ((self.scale, nodes),) if nodes else ()

    def variance(self, t: int) -> float:
        """Variance of release t, for planning and error bars: the private path has no floats.

        >>> round(BinaryTree(capacity=1023, width=1, epsilon=Fraction(1)).variance(1023), 1)
        1998.3
        """
        return self.nodes(t) * laplace.variance(self.scale)

    def sampler(self, subkey: bytes) -> Sampler:
        return laplace.DiscreteLaplace(self.scale, subkey)

    def counter(self, subkey: Subkeys) -> "BinaryCounter[BinaryTree]":
        return BinaryCounter(self, subkey)


@dataclass(slots=True)
class BinaryCounter(Generic[Trees]):
    """The noise of a tree's releases. Node j of an epoch covers the elements j - lowbit(j) + 1 .. j (Fenwick).

    >>> counter = BinaryCounter(BinaryTree(7, 1, Fraction(1)), subkey=lambda epoch: bytes([epoch] * 32))
    >>> node = laplace.DiscreteLaplace(Fraction(3), bytes(32)).draw
    >>> counter.noise(7) == node(4) + node(6) + node(7)
    True
    """

    tree: Trees
    subkey: Subkeys = field(repr=False)  # epoch -> the subkey of its nodes
    _past: tuple[int, int] = field(default=(0, 0), init=False)  # (epochs, their total noise)
    _epoch: int = field(default=-1, init=False)  # whose nodes the sampler draws and _sums are of
    _sampler: Sampler = field(init=False, repr=False)
    _at: int = field(default=0, init=False)  # a prefix of that epoch
    _sums: tuple[int, ...] = field(default=(), init=False)  # its noise up to each of its nodes: one for each bit of it

    def noise(self, t: int) -> int:
        if type(t) is not int or t < 0:
            check.not_negative(t=t)
        epoch, within = self.tree.locate(t)
        return (self._total(epoch) if epoch else 0) + self._prefix(epoch, within)

    def _total(self, epochs: int) -> int:
        """The noise in the totals of all trees before the current one; each tree is added up once."""
        done, noise = self._past if self._past[0] <= epochs else (0, 0)
        for epoch in range(done, epochs):
            noise += self._prefix(epoch, self.tree.size)
        self._past = epochs, noise
        return noise

    def _prefix(self, epoch: int, t: int) -> int:
        """The noise of prefix t of one tree: nodes t's highest bit, t's two highest, ..., t, with common ones kept."""
        self._open(epoch)
        if t != self._at:
            self._go_to(t, [self._sampler.draw(node) for node in self._missing(t)])
        return self._sums[-1] if t else 0

    def _open(self, epoch: int) -> None:
        if epoch != self._epoch:
            self._sampler = self.tree.sampler(self.subkey(epoch))
            self._epoch, self._at, self._sums = epoch, 0, ()

    def _missing(self, t: int) -> list[int]:
        """The nodes of prefix t of the open tree that are not among those of the last prefix."""
        other = (t ^ self._at).bit_length()  # bits of t, from the lowest, that are not in common
        node, nodes = t >> other << other, []
        while node != t:
            node |= 1 << (t ^ node).bit_length() - 1
            nodes.append(node)
        return nodes

    def _go_to(self, t: int, drawn: Sequence[int]) -> None:
        """Prefix t of the open tree is the last one now, with these draws of the nodes that were missing."""
        sums = self._sums[: t.bit_count() - len(drawn)]
        noise = sums[-1] if sums else 0
        for draw in drawn:
            noise += draw
            sums += (noise,)
        self._at, self._sums = t, sums

    def _ahead(self, t: int) -> tuple[int, list[int]]:
        """What release t needs of the open tree: the prefix, and its missing nodes; past trees are added up now."""
        epoch, within = self.tree.locate(t)
        if epoch:
            self._total(epoch)
        self._open(epoch)
        return within, self._missing(within)


def draw_together(wanted: Iterable[tuple[BinaryCounter[Any], int]]) -> None:
    """Have counters, each of them once, draw what these releases need: a block for all counters that share a tree.

    Each then has the noise of its release at hand, as if it had been asked for it.
    """
    lots: list[list[tuple[BinaryCounter[Any], int, list[int]]]] = []  # one for each tree, of which there are few
    for counter, t in wanted:
        within, missing = counter._ahead(t)
        if missing:
            lot = next((lot for lot in lots if lot[0][0].tree is counter.tree), None)
            if lot is None:
                lots.append(lot := [])
            lot.append((counter, within, missing))
    for lot in lots:
        samplers = [counter._sampler for counter, _, missing in lot for _ in missing]
        drawn = iter(draw_each(samplers, [node for _, _, missing in lot for node in missing]))
        for counter, within, missing in lot:
            counter._go_to(within, list(islice(drawn, len(missing))))
