"""Error bars of BLUE counters, which come from integers, against the same computation in fractions."""

from collections.abc import Iterator
from fractions import Fraction
from random import Random

import pytest

from shoal.mechanisms import error_bars
from shoal.mechanisms.counters.blue import BlueTree, GrowingBlue
from shoal.mechanisms.counters.complete_tree import Complete
from shoal.mechanisms.counters.counter import Scales
from shoal.mechanisms.counters.tree_row import Rows
from shoal.mechanisms.error_bars import COVERAGE, coverage_of
from tests.support.effort import tries

STEP = (3, 1 << 20)
MOST = 10_000
TREES: dict[str, Rows] = {
    "growing": GrowingBlue(7, Fraction(3, 10)),
    "growing-by-2": GrowingBlue(1, Fraction(1), arity=2),
    "growing-from-3": GrowingBlue(5, Fraction(2), horizon=3, arity=3),
    "days-of-a-year": GrowingBlue(1 << 20, Fraction(43, 50), horizon=365),
    "hours-of-a-year": GrowingBlue(12345, Fraction(1, 2), horizon=8760),
    "more-than-all": GrowingBlue(3 * 2**20 + 17, Fraction(1, 7), horizon=100_000),
    "small-trees": BlueTree(1000, Fraction(1, 3), 3, 4),
    "hardly-any-noise": BlueTree(1, Fraction(50), 14, 3),
}


def coefficients(tree: Complete, t: int) -> Iterator[tuple[Fraction, int]]:
    """Coefficients of prefix t with numbers of nodes, as docs/proofs/blue.md has them, in the order of `numerators`."""
    if t == tree.leaves:
        yield from tree.total_coefficients()
        return
    g, above = Fraction(0), Fraction(0)
    for i in range(tree.height, -1, -1):
        share = Fraction(t % tree.sizes[i], tree.sizes[i])
        g += (share - above) / tree.ratios[i]
        yield abs(tree.sizes[i] * g), 1
        if i:
            digit = t % tree.sizes[i] // tree.sizes[i - 1]
            for f, subtrees in ((1, digit), (0, tree.arity - 1 - digit)):
                base = abs(g + (f - share) / tree.ratios[i - 1])
                yield from ((tree.sizes[j] * base, subtrees * tree.sizes[i - 1 - j]) for j in range(i))
        above = share


def scales_in_fractions(rows: Rows, t: int) -> Scales:
    position = rows.position(t)
    counts: dict[Fraction, int] = {}
    for tree, epochs in rows.runs(position.epoch):
        for coefficient, count in tree.upper.total_coefficients():
            scale = coefficient * rows.scale(tree)
            counts[scale] = counts.get(scale, 0) + count * len(epochs)
    for coefficient, count in coefficients(position.tree, position.within):
        if coefficient and count:
            scale = coefficient * rows.scale(position.tree)
            counts[scale] = counts.get(scale, 0) + count
    return tuple(counts.items())


@pytest.mark.parametrize("name", TREES)
def test_widths_are_those_of_scales_in_fractions(name: str) -> None:
    """Widths and scales are compared for a sample of t up to 10,000; all 10,000 of each tree were compared once."""
    rows, sample = TREES[name], Random(name).sample(range(1, MOST + 1), tries(100))
    for t in {*range(1, 10), *sample, MOST}:
        # given the scales, equal ones of past trees and the open one merged, in the order in which they are added up
        scales = scales_in_fractions(rows, t)
        assert rows.scales(t) == scales
        # then the widths are the same floats
        for coverage in (COVERAGE, coverage_of(1000)):
            assert rows.widths(t, STEP, coverage) == error_bars.widths(STEP, scales, coverage)
