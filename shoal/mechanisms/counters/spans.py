"""Spans of leaves of complete trees: how the best estimate of the sum over some consecutive leaves uses the nodes.

    |L_span|^2 = sum over i of (n_i - n_(i+1)) / lambda_i,   n_i = sum over blocks of k**i leaves of (overlap)^2 / k**i

like that of a prefix (least_squares.py), of which a span is the difference of two.

Proof        docs/proofs/decay.md
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from shoal.mechanisms.counters.complete_tree import Coefficients, Complete


def norm(size: int, start: int, end: int) -> Fraction:
    """Sum over blocks of `size` leaves of (overlap with leaves start .. end - 1)**2 / size.

    >>> norm(4, 2, 9), norm(4, 1, 3)
    (Fraction(21, 4), Fraction(1, 1))
    """
    if start == end:
        return Fraction(0)
    first, last = start // size, (end - 1) // size
    if first == last:
        return Fraction((end - start) ** 2, size)
    head, tail = (first + 1) * size - start, end - last * size
    return Fraction(head * head + tail * tail, size) + (last - first - 1) * size


def mean_norm(size: int, length: int) -> Fraction:
    """The mean of `norm` over all positions of a span of `length` leaves: pairs of leaves, by how often they share.

    >>> mean_norm(4, 7) == sum(norm(4, start, start + 7) for start in range(4)) / 4
    True
    """
    m = min(size, length)
    pairs = size * length * (2 * m - 1) - (size + length) * (m - 1) * m + Fraction((m - 1) * m * (2 * m - 1), 3)
    return pairs / size**2


def weighted(tree: Complete, norms: Sequence[Fraction]) -> Fraction:
    """The sum over heights i of (n_i - n_(i+1)) / lambda_i."""
    following = [*norms[1:], Fraction(0)]
    parts = ((a - b) / ratio for a, b, ratio in zip(norms, following, tree.ratios, strict=True))
    return sum(parts, start=Fraction(0))


def span_squares(tree: Complete, start: int, end: int) -> Fraction:
    """Sum of the squared coefficients in the estimate of the sum of leaves start .. end - 1, over one tree or more.

    >>> from shoal.mechanisms.counters.least_squares import LeastSquares
    >>> tree = LeastSquares(arity=3, height=2)
    >>> span_squares(tree, 2, 7) == sum(c * c * count for c, count in span_coefficients(tree, 2, 7))
    True
    """
    return weighted(tree, [norm(size, start, end) for size in tree.sizes])


def span_coefficients(tree: Complete, start: int, end: int) -> Coefficients:
    """The coefficients in the estimate of the sum of leaves start .. end - 1: (|coefficient|, how many), none 0."""
    if start == end:
        return ()
    if (start, end) == (0, tree.leaves):
        return tree.total_coefficients()
    counts: dict[Fraction, int] = {}
    for coefficient, count in _cells(tree, tree.height, start, end, Fraction(0), Fraction(0)):
        if coefficient and count:
            counts[abs(coefficient)] = counts.get(abs(coefficient), 0) + count
    return tuple(counts.items())


def _cells(
    tree: Complete, i: int, start: int, end: int, g: Fraction, above: Fraction
) -> Iterator[tuple[Fraction, int]]:
    """The nodes under one of height i that the span fills in part, itself included.

    A node of height j has k**j g_j, g_j being the sum over its ancestors and itself, of heights m >= j, of
    (f_m - f_(m+1)) / lambda_m with f the part that the span fills; where f is 0 or 1, so it is for all below.
    """
    size, share = tree.sizes[i], Fraction(end - start, tree.sizes[i])
    g += (share - above) / tree.ratios[i]
    yield size * g, 1
    child = tree.sizes[i - 1]
    overlaps = [(max(start - at, 0), min(end - at, child)) for at in range(0, size, child)]
    filled = overlaps.count((0, child))
    empty = sum(low >= high for low, high in overlaps)
    for f, subtrees in ((1, filled), (0, empty)):
        base = g + (f - share) / tree.ratios[i - 1]
        yield from ((tree.sizes[j] * base, subtrees * tree.sizes[i - 1 - j]) for j in range(i))
    for low, high in overlaps:
        if low < high and (low, high) != (0, child):
            yield from _cells(tree, i - 1, low, high, g, share)
