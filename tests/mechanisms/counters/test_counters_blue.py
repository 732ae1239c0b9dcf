"""BLUE counters against least squares by matrices, and what large trees cost."""

from fractions import Fraction
from itertools import accumulate
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from shoal.mechanisms.counters import blue, complete_tree, tree_row
from shoal.mechanisms.counters.blue import BlueTree, GrowingBlue
from shoal.mechanisms.counters.complete_tree import Complete, Draw, Draws
from shoal.mechanisms.counters.least_squares import LeastSquares
from shoal.mechanisms.counters.tree_row import Rows, RowsCounter
from shoal.mechanisms.noise import laplace
from tests.mechanisms.counters.counter_cases import given, inherited
from tests.mechanisms.mechanism_cases import epoch_key


def matrix(tree: Complete) -> np.ndarray:
    """R: which node holds which leaf, nodes breadth first from the root."""
    rows = []
    for size in reversed(tree.sizes):
        rows += [np.isin(np.arange(tree.leaves), np.arange(at, at + size)) for at in range(0, tree.leaves, size)]
    return np.array(rows, dtype=float)


@pytest.mark.parametrize(("arity", "height"), [(2, 0), (2, 1), (2, 5), (3, 3), (5, 3), (10, 2), (14, 1)])
def test_a_prefix_is_the_least_squares_estimate(arity: int, height: int) -> None:
    """No unbiased linear estimate of a prefix has less variance (Gauss and Markov), and the closed form is its."""
    # given noise on all nodes of a tree
    tree = LeastSquares(arity, height)
    r = matrix(tree)
    z = laplace.DiscreteLaplace(Fraction(1000), bytes(32)).draw_block(0, tree.nodes)
    # when prefixes are estimated by the normal equations of least squares
    a = np.tril(np.ones((tree.leaves, tree.leaves)))
    estimates = a @ np.linalg.solve(r.T @ r, r.T)
    # then they are the counter's
    prefixes = tree.prefixes(given(z))
    found = [prefixes.numerator(t) / tree.denominator for t in range(1, tree.leaves + 1)]
    assert found == pytest.approx(list(estimates @ z.astype(float)), abs=1e-6)
    squares = [float(tree.squares(t)) for t in range(1, tree.leaves + 1)]
    assert squares == pytest.approx(list((estimates**2).sum(axis=1)))
    sums = [float(tree.sum_squares(t)) for t in range(1, tree.leaves + 1)]
    assert sums == pytest.approx(list(accumulate(squares)))
    assert tree.total_squares == tree.squares(tree.leaves)


def test_one_by_one_or_in_blocks_the_draws_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = BlueTree(1 << 20, Fraction(1), 13, 3)
    places = [1, 13, 60, 168, 169, 170, 400]
    noise = [tree.counter(epoch_key).noise(t) for t in places]
    for few in (0, 10**6):
        monkeypatch.setattr(tree_row, "FEW", few)
        monkeypatch.setattr(complete_tree, "FEW", few)
        assert [tree.counter(epoch_key).noise(t) for t in places] == noise


class CompleteLaws:
    """What the complete trees of every `kind` fulfil, whose estimates of a prefix are linear in all their nodes."""

    kind: Any

    @inherited
    @hypothesis.given(arity=st.integers(2, 6), height=st.integers(0, 3), t=st.integers(0, 300))
    def test_sums_of_squares_need_no_loop(self, arity: int, height: int, t: int) -> None:
        tree = self.kind(arity, height)
        t = min(t, tree.leaves)
        assert tree.sum_squares(t) == sum(tree.squares(s) for s in range(1, t + 1))
        squares = sum(count * numerator**2 for numerator, count in tree.numerators(t).items())
        assert tree.squares(t) == Fraction(squares, tree.denominator**2)
        assert tree.total_squares == tree.squares(tree.leaves)
        assert tree.total_squares == sum(count * coefficient**2 for coefficient, count in tree.total_coefficients())

    @pytest.mark.parametrize(("arity", "height"), [(2, 7), (3, 4), (5, 3)])
    def test_a_tree_that_is_drawn_piece_by_piece_has_the_same_prefixes(
        self, monkeypatch: pytest.MonkeyPatch, arity: int, height: int
    ) -> None:
        tree, asked = self.kind(arity, height), [0]
        noise = laplace.DiscreteLaplace(Fraction(10**6), bytes(32))

        def draw(first: int, count: int) -> Draws:
            asked[0] += count
            return noise.draw_block(first, count)

        places = [*range(1, tree.leaves + 1), 1, tree.leaves // 2]
        expected = [tree.prefixes(draw).numerator(t) for t in places]
        for piece in (1, arity, arity**2, tree.leaves):
            monkeypatch.setattr(complete_tree, "_PIECE", piece)
            asked[0] = 0
            whole = tree.prefixes(draw)
            assert asked[0] == tree.nodes
            # going through the tree, what is below a node is drawn again when the way comes to it
            assert [whole.numerator(t) for t in places[: tree.leaves]] == expected[: tree.leaves]
            assert tree.nodes < asked[0] <= height * tree.nodes
            assert [whole.numerator(t) for t in places] == expected

    def test_both_ends_of_a_window_have_a_way_of_their_own(self) -> None:
        """So that the later end does not draw again what the earlier one comes to."""
        tree, asked = self.kind(4, 3), [0]
        noise = laplace.DiscreteLaplace(Fraction(10**6), bytes(32))

        def draw(first: int, count: int) -> Draws:
            asked[0] += count
            return noise.draw_block(first, count)

        expected = [tree.prefixes(draw).numerator(t) for t in range(tree.leaves + 1)]
        for length in (1, 3, 5, 17, 40):
            asked[0] = 0
            both = tree.prefixes(draw)
            for end in range(1, tree.leaves + 1):
                start = max(end - length, 0)
                assert [both.numerator(t) for t in (end, start)] == [expected[end], expected[start]]
            assert asked[0] <= 2 * tree.height * tree.nodes

    @pytest.mark.parametrize("size", [1 << 45, 1 << 52, 1 << 60, (1 << 63) - 1])
    def test_sums_beyond_64_bits_are_exact(self, size: int) -> None:
        # given draws that fit into 64 bits, all of one sign, so that their sums may not
        tree = self.kind(6, 3)
        z = [size - node for node in range(tree.nodes)]
        narrow = tree.prefixes(given(np.array(z, dtype=np.int64)))
        wide = tree.prefixes(given(np.array(z, dtype=np.object_)))
        assert [narrow.numerator(t) for t in range(217)] == [wide.numerator(t) for t in range(217)]


class TestLeastSquares(CompleteLaws):
    kind = LeastSquares


@pytest.mark.parametrize("width", [1, 1 << 45, 1 << 70])
def test_a_total_weighs_the_levels(width: int) -> None:
    tree = BlueTree(width, Fraction(1), 6, 4)
    counter = tree.counter(epoch_key)
    draw = laplace.DiscreteLaplace(tree.scale(tree.shape(0)), epoch_key(0)).draw
    z = [Fraction(draw(node)) for node in range(259)]
    # then the total is the weighted sum of levels, as fractions give it
    levels = [sum(z[first:last]) for first, last in ((43, 259), (7, 43), (1, 7), (0, 1))]
    total = sum((6**i * level for i, level in enumerate(levels)), start=Fraction(0)) / 259
    assert Fraction(*counter.exact(216)) == total


def test_past_trees_are_told_by_their_upper_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A counter that is restored far in draws what is open, and a few numbers of each tree before it."""
    drawn: dict[int, int] = {}  # epoch -> how many
    real = RowsCounter._draw

    def draw(counter: RowsCounter, tree: Complete, epoch: int) -> Draw:
        def counted(first: int, count: int) -> Draws:
            drawn[epoch] = drawn.get(epoch, 0) + count
            return real(counter, tree, epoch)(first, count)

        return counted

    monkeypatch.setattr(RowsCounter, "_draw", draw)
    tree = GrowingBlue(1, Fraction(1))
    last = tree.counter(epoch_key)
    last.noise(11111)
    # of the open tree every node once
    assert drawn == {0: 11, 1: 111, 2: 111, 3: 111, 4: 111111}
    # and the next release draws nothing
    before = dict(drawn)
    last.noise(11112)
    assert drawn == before


def test_going_back_is_allowed() -> None:
    counter = GrowingBlue(5, Fraction(1)).counter(epoch_key)
    forth = [counter.noise(t) for t in range(1, 130)]
    assert [counter.noise(t) for t in range(129, 0, -1)] == forth[::-1]


def test_epochs_stop_growing() -> None:
    tree = GrowingBlue(1, Fraction(1))
    assert [tree.shape(epoch).leaves for epoch in (0, 1, 5, 6, 1000)] == [10, 100, 10**6, 10**6, 10**6]
    assert tree.locate(10**9) == (1004, 888_890)
    # and the first trees for a horizon are no larger
    assert GrowingBlue(1, Fraction(1), horizon=10**9).shape(0).leaves <= tree_row.LARGEST


def test_the_horizon_is_in_the_first_trees_and_growth_goes_on_from_it() -> None:
    tree = GrowingBlue(1, Fraction(1), horizon=5000)
    first = tree.shape(0)
    assert (first.arity, first.height + 1) == tree_row.best_shape(LeastSquares, blue._ARITIES, 5000)
    assert tree.shape(tree.locate(5000)[0]) == first
    after = tree.stretches[1].tree
    assert after.leaves >= 5000 > after.leaves // 10


@pytest.mark.parametrize(
    ("arity", "levels", "message"),
    [
        (1, 2, "arity must be at least 2, not 1"),
        (2, 0, "levels must be greater than 0"),
        (2, 22, "arity 2 with 22 levels makes trees of more than 1048576 leaves"),
        (1 << 21, 1, "arity must be at least 0 and below 1048577"),
    ],
)
def test_trees_that_make_no_sense_are_refused(arity: int, levels: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BlueTree(1, Fraction(1), arity, levels)


def test_growth_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="arity must be at least 2, not 1"):
        GrowingBlue(1, Fraction(1), arity=1)
    with pytest.raises(ValueError, match="horizon must be greater than 0, not 0"):
        GrowingBlue(1, Fraction(1), horizon=0)
    with pytest.raises(ValueError, match="horizon must be greater than 0, not 0"):
        BlueTree.best(0, width=1, epsilon=Fraction(1))
    with pytest.raises(TypeError, match="abstract method stretches"):
        Rows(1, Fraction(1))  # type: ignore[abstract]
