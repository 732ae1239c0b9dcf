"""The best linear unbiased estimate of every prefix of a complete k-ary tree whose nodes are all noisy, exactly.

Every node, leaves and root included, carries one draw of one scale. With R the 0/1 matrix of which node holds which
leaf, the noise of prefix t is (L z)_t for L = A (R'R)**-1 R'. R'R has eigenvalue lambda_i = 1 + k + ... + k**i on
range(P_i - P_{i+1}), P_i being the mean over blocks of k**i leaves and P_{h+1} = 0:

    (L z)_t = sum over i of 1_[1,t]' (P_i - P_{i+1}) R'z / lambda_i
    |L_t|^2 = sum over i of (n_i(t) - n_{i+1}(t)) / lambda_i,   n_i(t) = q k**i + r**2 / k**i,   q, r = divmod(t, k**i)

Proof        docs/proofs/blue.md
Source       Hay, Rastogi, Miklau and Suciu (2010) for least squares on trees
"""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property

from shoal.mechanisms.counters.complete_tree import Complete, Draw, NodeSums, Numerators


class LeastSquares(Complete):
    """A tree whose prefixes are estimated from all its nodes.

    >>> tree = LeastSquares(arity=10, height=3)
    >>> tree.leaves, tree.nodes, tree.ratios, tree.first(0)
    (1000, 1111, (1, 11, 111, 1111), 111)
    >>> LeastSquares(2, 1).numerators(2), LeastSquares(2, 1).denominator  # a third of each leaf, two thirds of the root
    ({2: 2, 4: 1}, 6)
    """

    @cached_property
    def denominator(self) -> int:
        return self.leaves * math.lcm(*self.ratios)

    def squares(self, t: int) -> Fraction:
        norms = [Fraction(t // size * size * size + (t % size) ** 2, size) for size in self.sizes]
        return self._weighted(norms)

    def sum_squares(self, t: int) -> Fraction:
        return self._weighted([_sum_of_norms(t, size) for size in self.sizes])

    def _weighted(self, norms: Sequence[Fraction]) -> Fraction:
        following = [*norms[1:], Fraction(0)]
        return sum(
            ((a - b) / ratio for a, b, ratio in zip(norms, following, self.ratios, strict=True)), start=Fraction(0)
        )

    def numerators(self, t: int) -> Numerators:
        if t == self.leaves:
            unit = self.denominator // self.nodes
            return {size * unit: count for size, count in zip(self.sizes, reversed(self.sizes), strict=True)}
        counts: Numerators = {}
        for numerator, count in _by_path(self, t):
            if numerator:
                size = abs(numerator)
                counts[size] = counts.get(size, 0) + count
        return counts

    def moments(self, t: int) -> tuple[float, float]:
        """Sums of the squared coefficients of prefix t and of their fourth powers, in floats, for error bars.

        >>> tree = LeastSquares(arity=10, height=3)
        >>> [round(moment, 6) for moment in tree.moments(123)], round(float(tree.squares(123)), 6)
        ([4.34497, 1.737922], 4.34497)
        """
        if t == self.leaves:
            parts = [(float(coefficient) ** 2, count) for coefficient, count in self.total_coefficients()]
            return sum(count * square for square, count in parts), sum(count * square**2 for square, count in parts)
        second = fourth = g = above = 0.0
        for i in range(self.height, -1, -1):  # g and share are g_i and f_i of `_by_path`
            rest = t % self.sizes[i]
            share = rest / self.sizes[i]
            g += (share - above) / self.ratios[i]
            square = (self.sizes[i] * g) ** 2
            second, fourth, above = second + square, fourth + square**2, share
            if i:
                digit = rest // self.sizes[i - 1]
                for f, subtrees in ((1, digit), (0, self.arity - 1 - digit)):
                    square = (g + (f - share) / self.ratios[i - 1]) ** 2
                    second += subtrees * self._below[i][0] * square
                    fourth += subtrees * self._below[i][1] * square**2
        return second, fourth

    @cached_property
    def _below(self) -> list[tuple[int, int]]:
        """The sums of k**2j and of k**4j over the nodes of a subtree of height i - 1, j being the height of a node."""
        sizes, heights = self.sizes, range(self.height + 1)
        sums = [[sum(sizes[j] ** power * sizes[i - 1 - j] for j in range(i)) for i in heights] for power in (2, 4)]
        return list(zip(*sums, strict=True))

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """What a sum over children of each height is multiplied by, of a prefix times the denominator."""
        pairs = zip(self.sizes[1:], self.ratios[:-1], strict=True)
        return tuple(self.denominator // (size * ratio) for size, ratio in pairs)

    def prefixes(self, draw: Draw) -> "LeastSquaresPrefixes":
        return LeastSquaresPrefixes(self, draw)


def _sum_of_norms(t: int, size: int) -> Fraction:
    """Sum of s - r + r**2 / size over s = 1 .. t, with r = s mod size."""
    full, rest = divmod(t, size)
    remainders = full * (size * (size - 1) // 2) + rest * (rest + 1) // 2
    squares = full * ((size - 1) * size * (2 * size - 1) // 6) + rest * (rest + 1) * (2 * rest + 1) // 6
    return t * (t + 1) // 2 - remainders + Fraction(squares, size)


def _by_path(tree: LeastSquares, t: int) -> Iterator[tuple[int, int]]:
    """Coefficients of prefix t times the denominator, with numbers of nodes, along the path from the root to leaf t.

    With f_i the share of the path's node of height i that the prefix holds, and g_i the sum over j >= i of
    (f_j - f_{j+1}) / lambda_j: the path's node of height i has k**i g_i; a node of height j in a subtree whose root has
    height i has k**j (g_{i+1} + (f - f_{i+1}) / lambda_i), f being 1 to the left of the path and 0 to its right.

    In the code `g` is g_i times the denominator, `rest` is f_i k**i, and `tree.weights` has the denominator over
    k**(i+1) lambda_i: every number is an integer.
    """
    sizes, arity, rest = tree.sizes, tree.arity, t
    g = t * (tree.denominator // (tree.leaves * tree.nodes))
    yield tree.leaves * g, 1
    for i in range(tree.height - 1, -1, -1):
        weight, above = tree.weights[i], rest
        digit, rest = divmod(above, sizes[i])
        for base, subtrees in ((g + weight * (sizes[i + 1] - above), digit), (g - weight * above, arity - 1 - digit)):
            if base and subtrees:
                yield from ((sizes[j] * base, subtrees * sizes[i - j]) for j in range(i + 1))
        g += weight * (rest * arity - above)
        yield sizes[i] * g, 1


class LeastSquaresPrefixes:
    """The noise of every prefix of one tree, from the draws of all its nodes; memory: that of `NodeSums`."""

    __slots__ = ("_sums", "_tree")

    def __init__(self, tree: LeastSquares, draw: Draw) -> None:
        self._tree, self._sums = tree, NodeSums(tree, draw)

    def numerator(self, t: int) -> int:
        """(L z)_t times the tree's denominator.

        In the sum over i the blocks of k**(i+1) leaves inside the prefix cancel. What is left are the blocks of k**i
        inside the block of k**(i+1) that holds t, and parts of both where t is not at their ends.
        """
        tree = self._tree
        noise = self._sums.root * t * (tree.denominator // (tree.leaves * tree.nodes))
        for i, weight in enumerate(tree.weights):
            size, between = tree.sizes[i], self._sums.between
            block, rest = divmod(t, size)
            parent, parent_rest = divmod(t, size * tree.arity)
            if parent_rest:
                first = parent * tree.arity
                part = between(i, block, block + 1) * rest if rest else 0
                inside = between(i, first, block) * size + part
                noise += weight * (inside * tree.arity - between(i, first, first + tree.arity) * parent_rest)
        return noise
