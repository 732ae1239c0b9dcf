"""Trees over bins: their shapes, and the best estimate from all nodes against dense least squares."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from shoal.mechanisms.bins.tree import BinTree, EvenTree, Shape, branching, even_tree, prefix_variance, shapes, tree_for
from tests.support.cover import in_a_loop
from tests.support.effort import examples

Matrix = NDArray[np.float64]
TREES = [(2, (2,)), (6, (2, 4)), (5, (2, 4)), (9, (2, 3, 2)), (7, (2, 2, 2)), (16, (4, 4)), (13, (4, 5)), (3, (2, 2))]


def factorisations(bins: int, least: int = 2) -> list[Shape]:
    """All ascending products that are just so many."""
    found: list[Shape] = [(bins,)]
    for n in range(least, math.isqrt(bins) + 1):
        if bins % n == 0:
            found += [(n, *rest) for rest in factorisations(bins // n, n)]
    return found


@in_a_loop
@pytest.mark.parametrize(
    ("bins", "shape", "variance"),
    [
        (64, (8, 8), 56),
        (256, (16, 16), 120),
        (1024, (32, 32), 248),
        (4096, (16, 16, 16), 405),
        (65536, (16, 16, 16, 16), 960),
    ],
)
def test_the_best_factorisations_are_the_known_ones(bins: int, shape: Shape, variance: int) -> None:
    best = min(factorisations(bins), key=prefix_variance)
    assert (best, round(prefix_variance(best), 6)) == (shape, variance)
    # then what is used is as good: with one more leaf here and there it may be better
    assert prefix_variance(branching(bins)) <= variance + 1e-6
    assert branching(bins) == (shape if bins != 1024 else (8, 10, 13))


@given(st.integers(2, 400))
@example(2)
@example(61)
def test_shapes_cover_the_bins_and_none_is_larger_than_it_must_be(bins: int) -> None:
    for shape in shapes(bins):
        assert math.prod(shape) >= bins > math.prod(shape[:-1]) * (shape[-1] - 1)
        assert list(shape) == sorted(shape)
    assert set(factorisations(bins)) <= set(shapes(bins))


@examples(20)
@given(st.integers(2, 2000))
def test_the_shares_are_all_of_epsilon_and_no_more(bins: int) -> None:
    shares = tree_for(bins).shares
    assert 1 - Fraction(len(shares), 1 << 40) <= sum(shares) <= 1
    # and go by the cube root of the number of siblings
    roots = [math.cbrt(n - 1) for n in branching(bins)]
    assert [float(share) for share in shares] == pytest.approx([root / sum(roots) for root in roots], rel=1e-9)


@in_a_loop
@pytest.mark.parametrize("powers", [0.0, 0.2, 0.5, 1.0])
def test_no_other_shares_of_this_form_are_better(powers: float) -> None:
    for shape in ((2, 16), (3, 5, 9), (8, 8)):
        weights = [(n - 1) ** powers for n in shape]
        others = sum((n - 1) / (w / sum(weights)) ** 2 for n, w in zip(shape, weights, strict=True))
        assert prefix_variance(shape) <= others * (1 + 1e-12)


def least_squares(tree: BinTree, values: list[int], total: int) -> tuple[Matrix, Matrix]:
    """Dense generalised least squares among the bins with that total: the estimate, and the covariance of any.

    Bins are the total in the last one, and what the others take away from it.
    """
    nodes = [
        ([start <= b < start + size for b in range(tree.bins)], float(2 / share**2))
        for size, share in zip(tree.sizes, tree.shares, strict=True)
        for start in range(0, tree.bins, size)
    ]
    r, weights = np.array([row for row, _ in nodes], dtype=float), np.diag([1 / variance for _, variance in nodes])
    last, free = np.eye(tree.bins)[-1] * total, np.vstack((np.eye(tree.bins - 1), -np.ones(tree.bins - 1)))
    covariance: Matrix = np.linalg.inv(free.T @ r.T @ weights @ r @ free).astype(np.float64)
    estimate = last + free @ covariance @ free.T @ r.T @ weights @ (np.array(values) - r @ last)
    return estimate, free @ covariance @ free.T


@in_a_loop
@pytest.mark.parametrize(("bins", "shape"), TREES)
def test_the_estimate_is_that_of_dense_least_squares(bins: int, shape: Shape) -> None:
    tree = BinTree(bins, shape)
    rng = np.random.default_rng(5)
    noised = [rng.integers(-50, 90, nodes).tolist() for nodes in tree.nodes]
    # given noised sums of all nodes and an exact total
    expected, covariance = least_squares(tree, [*itertools.chain(*noised)], 123)
    found = tree.estimate(noised, 123)
    assert found == pytest.approx(expected)
    assert found.sum() == pytest.approx(123)
    # then the variances of bins and prefixes are those of its covariance
    ones = np.tril(np.ones((bins, bins)))
    assert tree.bin_variances == pytest.approx(np.diag(covariance), abs=1e-12)
    assert tree.prefix_variances == pytest.approx(np.diag(ones @ covariance @ ones.T), abs=1e-12)
    assert tree.prefix_variances[-1] == 0


@in_a_loop
@pytest.mark.parametrize(("bins", "shape"), TREES)
def test_without_noise_the_estimate_is_exact(bins: int, shape: Shape) -> None:
    tree, histogram = BinTree(bins, shape), [(7 * i) % 5 for i in range(bins)]
    sums = tree.sums(histogram)
    assert [len(level) for level in sums] == list(tree.nodes)
    assert sums[-1] == histogram
    assert tree.estimate(sums, sum(histogram)) == pytest.approx(histogram)


@examples(13)
@given(st.integers(2, 40), st.data())
def test_a_sample_that_moves_moves_two_nodes_of_each_level_at_most(bins: int, data: st.DataObject) -> None:
    tree = tree_for(bins)
    a, b = (data.draw(st.integers(0, bins - 1)) for _ in range(2))
    before = [0] * bins
    after = before.copy()
    before[a] += 1
    after[b] += 1
    for one, other, size in zip(tree.sums(before), tree.sums(after), tree.sizes, strict=True):
        assert sum(abs(x - y) for x, y in zip(one, other, strict=True)) == (2 if a // size != b // size else 0)


def test_the_estimate_is_better_than_whole_nodes_alone() -> None:
    tree = tree_for(64)
    assert tree.prefix_variances.mean() < prefix_variance((8, 8)) / 2.9


@pytest.mark.parametrize(
    ("bins", "shape", "said"), [(1, (2,), "bins"), (9, (2, 4), "no place"), (4, (1, 4), "no place")]
)
def test_shapes_without_a_place_for_all_bins_are_refused(bins: int, shape: Shape, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        BinTree(bins, shape)


@in_a_loop
@pytest.mark.parametrize(("bins", "shape"), TREES)
def test_without_a_known_total_the_estimate_is_that_of_dense_least_squares(bins: int, shape: Shape) -> None:
    # given noised sums of the nodes of a tree, all with noise of variance 1
    tree = EvenTree(bins, shape)
    rng = np.random.default_rng(6)
    noised = [rng.integers(-50, 90, nodes).tolist() for nodes in tree.nodes]
    rows = [[start <= b < start + size for b in range(bins)] for size in tree.sizes for start in range(0, bins, size)]
    r = np.array(rows, dtype=float)
    # when nothing else is known
    covariance = np.linalg.inv(r.T @ r)
    # then bins and total are estimated by the normal equations
    assert tree.estimate(noised) == pytest.approx(covariance @ r.T @ np.array([*itertools.chain(*noised)]))
    assert tree.total_variance == pytest.approx(covariance.sum())
    # and variances are those of the total, and of what is left given the total
    before = np.tril(np.ones((bins, bins)))
    for sums, given_total, of_total in (
        (np.eye(bins), tree.bin_variances, tree.bin_shares),
        (before, tree.prefix_variances, tree.prefix_shares),
    ):
        found = np.diag(sums @ covariance @ sums.T)
        assert given_total + of_total**2 * tree.total_variance == pytest.approx(found, abs=1e-12)
        assert of_total * tree.total_variance == pytest.approx(sums @ covariance.sum(1), abs=1e-12)
    assert tree.prefix_shares[-1] == 1


def test_shapes_of_even_trees_are_those_of_least_variance() -> None:
    """Of prefixes cut into whole nodes: with h levels each node has h**2 times the variance."""
    for bins in (2, 5, 16, 17, 64, 100, 256, 1024):
        best = min(len(shape) ** 2 * sum(n - 1 for n in shape) for shape in shapes(bins))
        shape = even_tree(bins).shape
        assert len(shape) ** 2 * sum(n - 1 for n in shape) == best
    assert [even_tree(bins).shape for bins in (16, 64, 256)] == [(16,), (8, 8), (16, 16)]
