"""Laws of every continual counter of the package, past its stated capacity, by brute force."""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms import laplace
from shoal.mechanisms.binary import BinaryCounter, BinaryTree
from tests.mechanisms.mechanism_cases import Draws, classes, epoch_key

# How to make each counter of the package; one that has no entry fails test_every_counter_is_here.
COUNTERS: dict[type, Callable[[int, int, Fraction], Any]] = {
    BinaryCounter: lambda capacity, width, epsilon: BinaryCounter(BinaryTree(capacity, width, epsilon), epoch_key),
}
made = pytest.mark.parametrize("make", COUNTERS.values(), ids=[cls.__name__ for cls in COUNTERS])
Matrix = list[list[int]]


def test_every_counter_is_here() -> None:
    assert {cls for cls in classes() if hasattr(cls, "noise")} == set(COUNTERS)


def used_nodes(make: Callable[[int, int, Fraction], Any], capacity: int, length: int) -> Matrix:
    """L: row t says how often each node's draw is in the noise of prefix t, found from the draws alone."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        # given draws that are distinct powers of a large base, so that a sum shows what it consists of
        names: dict[tuple[bytes, int], int] = {}

        def draw(noise: laplace.DiscreteLaplace, index: int) -> int:
            return 1 << (4 * names.setdefault((noise._bits._subkey, index), len(names)))

        monkeypatch.setattr(laplace.DiscreteLaplace, "draw", draw)
        counter = make(capacity, 1, Fraction(1))
        sums = [counter.noise(t) for t in range(1, length + 1)]
    return [[total >> 4 * node & 15 for node in range(len(names))] for total in sums]


def node_sums(rows: Matrix) -> Matrix:
    """R with L R = A, A the prefix sums: which elements each node holds. Each row of L has one node that is new."""
    length, nodes = len(rows), len(rows[0])
    solved: dict[int, list[int]] = {}
    for t, row in enumerate(rows):
        fresh = [node for node in range(nodes) if row[node] and node not in solved]
        held = [int(s <= t) for s in range(length)]
        for node in range(nodes):
            if row[node] and node in solved:
                held = [h - row[node] * r for h, r in zip(held, solved[node], strict=True)]
        (node,) = fresh
        assert row[node] == 1
        solved[node] = held
    return [solved[node] for node in range(nodes)]


def worst_element(rows: Matrix) -> int:
    """The most that a change of 1 in one element changes all nodes together."""
    columns: list[tuple[int, ...]] = list(zip(*node_sums(rows), strict=True))
    return max(sum(map(abs, column)) for column in columns)


@made
@pytest.mark.parametrize("capacity", range(1, 18))
def test_sensitivity_is_exact_past_the_capacity(make: Callable[[int, int, Fraction], Any], capacity: int) -> None:
    """docs/proofs/binary-counter.md: releases are A x + L z, L R = A; one element changes R x by h at most, and can."""
    rows = used_nodes(make, capacity, 3 * capacity + 40)
    tree = make(capacity, 1, Fraction(1)).tree
    assert worst_element(rows) == tree.l1_sensitivity == tree.height
    assert all(sum(row) == tree.nodes(t) for t, row in enumerate(rows, start=1))


@made
def test_sensitivity_of_a_unit_with_several_elements(make: Callable[[int, int, Fraction], Any]) -> None:
    """All placements of a unit's 3 elements, all changes of them: m times one element's sensitivity is enough."""
    rows = used_nodes(make, 4, 21)
    nodes = node_sums(rows)
    tree = make(4, 3, Fraction(1)).tree  # width: 3 elements of at most 1 step
    worst = 0
    for places in itertools.combinations(range(21), 3):
        for change in itertools.product((-1, 1), repeat=3):
            moved = sum(abs(sum(c * node[p] for p, c in zip(places, change, strict=True))) for node in nodes)
            worst = max(worst, moved)
    assert worst == tree.l1_sensitivity


@pytest.mark.parametrize("height", [lambda n: 1 + int(math.log(n)), lambda n: math.ceil(math.log2(n)) or 1])
def test_too_small_a_height_is_caught(height: Callable[[int], int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: the natural for the binary logarithm claims an epsilon that is 1.4 times too small."""
    # given noise for too few nodes, on trees as large as they must be for the capacity
    monkeypatch.setattr(BinaryTree, "height", property(lambda tree: height(tree.capacity)))
    monkeypatch.setattr(BinaryTree, "size", property(lambda tree: (1 << tree.capacity.bit_length()) - 1))
    make = COUNTERS[BinaryCounter]
    # then the law above fails
    assert any(
        worst_element(used_nodes(make, capacity, 3 * capacity)) > make(capacity, 1, Fraction(1)).tree.l1_sensitivity
        for capacity in (4, 8, 16)
    )


@made
def test_extending_a_tree_would_be_caught(
    make: Callable[[int, int, Fraction], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BinaryTree, "size", property(lambda tree: 1 << 30))
    assert worst_element(used_nodes(make, 3, 40)) > make(3, 1, Fraction(1)).tree.l1_sensitivity


@made
@given(visits=st.lists(st.integers(0, 60), min_size=1, max_size=20))
def test_noise_is_a_function_of_key_and_element(make: Callable[[int, int, Fraction], Any], visits: list[int]) -> None:
    counter = make(5, 2, Fraction(1, 3))
    assert [counter.noise(t) for t in visits] == [make(5, 2, Fraction(1, 3)).noise(t) for t in visits]


@made
def test_variance_and_scales_are_those_of_the_draws_used(make: Callable[[int, int, Fraction], Any]) -> None:
    rows = used_nodes(make, 6, 30)
    counter = make(6, 5, Fraction(1, 2))
    for t, row in enumerate(rows, start=1):
        assert counter.tree.variance(t) == pytest.approx(sum(row) * laplace.variance(counter.tree.scale))
        assert counter.tree.scales(t) == ((counter.tree.scale, sum(row)),)
    assert counter.tree.scales(0) == ()
    assert counter.noise(0) == 0


@made
def test_the_draws_have_the_stated_scale(
    make: Callable[[int, int, Fraction], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    draws = Draws(monkeypatch)
    counter = make(6, 5, Fraction(1, 2))
    counter.noise(100)
    assert set(draws.scales.values()) == {counter.tree.scale}
    assert counter.tree.scale * counter.tree.epsilon == counter.tree.l1_sensitivity


@made
def test_growing_by_one_draws_one_node(
    make: Callable[[int, int, Fraction], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 0
    real = laplace.DiscreteLaplace.draw

    def draw(noise: laplace.DiscreteLaplace, index: int) -> int:
        nonlocal count
        count += 1
        return real(noise, index)

    monkeypatch.setattr(laplace.DiscreteLaplace, "draw", draw)
    counter = make(100, 1, Fraction(1))
    for t in range(1, 1001):
        counter.noise(t)
    assert count <= 1000 + 7 * 8  # the last prefix of a tree is its total, which is taken once more


@made
def test_a_counter_refuses_what_makes_no_sense(make: Callable[[int, int, Fraction], Any]) -> None:
    for capacity, width, epsilon in ((0, 1, 1), (1, 0, 1), (1, 1, 0)):
        with pytest.raises(ValueError, match="must be greater than 0"):
            make(capacity, width, Fraction(epsilon))
    with pytest.raises(ValueError, match="t must be 0 or more"):
        make(1, 1, Fraction(1)).noise(-1)
