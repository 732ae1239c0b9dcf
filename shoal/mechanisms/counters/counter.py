"""The interface of every continual counter: a public tree, frozen, and the keyed noise of its releases.

A counter releases every prefix sum of a stream of integers. Release t is the exact sum of the first t elements plus
`noise(t)`, an integer that depends on key and t alone. Written out, release t is (A x + L z)_t, rounded: A holds the
prefix sums, z are independent draws of discrete Laplace noise, and L R = A for a matrix R that says which sums of
elements ("nodes") the draws z protect. A unit that changes the elements by d changes R x by R d, so

    privacy loss <= sum over nodes of |(R d)_node| / scale of the node's draw

also if inputs react to releases (docs/proofs/counters.md). `sensitivities` states the numerators, `epsilon` the sum.

Rounding     of a rational y is floor(y + 1/2), once and last: then r(z + R d) = r(z) + A d for all integer d
Epochs       t may exceed what a tree holds: the next element begins a new tree with new noise, under its own subkey
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Protocol

Scales = tuple[tuple[Fraction, int], ...]  # (|coefficient| * scale, how many independent draws that have it)
Subkeys = Callable[[int], bytes]  # number of an epoch, say -> the subkey of its draws


class Tree(Protocol):
    """All public parameters of a counter."""

    @property
    def width(self) -> int:
        """Grid steps that one unit can change in all: the sum over its elements of how far each can move."""
        ...

    @property
    def epsilon(self) -> Fraction:
        """The privacy loss of a unit, paid once for all releases together."""
        ...

    def locate(self, t: int) -> tuple[int, int]:
        """Prefix t as (epochs that are full and past, elements in the current one)."""
        ...

    def sensitivities(self, epoch: int) -> tuple[tuple[int, Fraction], ...]:
        """Pairs (the most that a unit changes them in L1, scale), one for each kind of node that holds elements.

        A unit's changes, wherever they lie, sum to `width`; so it pays at most the largest sum of quotients: epsilon.
        """
        ...

    def nodes_of(self, element: int) -> tuple[tuple[int, int], ...]:
        """Names (epoch of the subkey, index) of the nodes that hold an element: its column of R, which is 0 or 1."""
        ...

    def scales(self, t: int) -> Scales:
        """The scales of the draws that make up the noise of release t, each with how many there are."""
        ...

    def variance(self, t: int) -> float:
        """Variance of the noise of release t in squared grid steps, for planning: the private path has no floats."""
        ...

    def counter(self, subkey: Subkeys) -> "Counter":
        """The noise of this tree's releases under a key."""
        ...


class Counter(Protocol):
    """The noise of a tree's releases: a function of key and t, whatever was asked before."""

    @property
    def tree(self) -> Tree: ...

    def noise(self, t: int) -> int:
        """The noise that is added to the exact sum of the first t elements."""
        ...


def rounded(numerator: int, denominator: int) -> int:
    """floor(numerator / denominator + 1/2): halves go up, so adding an integer before or after is the same.

    >>> [rounded(n, 2) for n in (-3, -1, 1, 3)]
    [-1, 0, 1, 2]
    """
    return (2 * numerator + denominator) // (2 * denominator)
