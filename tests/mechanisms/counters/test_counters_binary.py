"""The binary counter: mistakes that the laws of test_counters.py must catch, and how many draws it takes."""

import math
from collections.abc import Callable
from fractions import Fraction

import pytest

from shoal.mechanisms.counters.binary import BinaryTree
from shoal.mechanisms.noise import laplace
from tests.mechanisms.counters.counter_cases import Case, binary, linear
from tests.mechanisms.mechanism_cases import epoch_key
from tests.support.cover import in_a_loop


def loss(capacity: int, length: int) -> Fraction:
    """What an element really costs where epsilon = 1 is claimed, from the draws and their scales alone."""
    found = linear(Case("mutant", binary(capacity), length))
    nodes = node_sums([[int(coefficient) for coefficient in row] for row in found.noise])
    costs = [[abs(moved) / scale for moved in row] for row, scale in zip(nodes, found.scales, strict=True)]
    return max(sum(column, Fraction(0)) for column in zip(*costs, strict=True))


def node_sums(rows: list[list[int]]) -> list[list[int]]:
    """R with L R = A, by substitution: each row of this L has one node that is new. The tree is not asked."""
    solved: dict[int, list[int]] = {}
    for t, row in enumerate(rows):
        held = [int(s <= t) for s in range(len(rows))]
        (fresh,) = [node for node, used in enumerate(row) if used and node not in solved]
        for node, used in enumerate(row):
            if used and node != fresh:
                held = [h - used * r for h, r in zip(held, solved[node], strict=True)]
        solved[fresh] = held
    return [solved[node] for node in range(len(rows[0]))]


@in_a_loop
@pytest.mark.parametrize("capacity", range(1, 18))
def test_an_element_costs_what_is_claimed(capacity: int) -> None:
    assert loss(capacity, 2 * capacity + 34) == 1
    assert binary(capacity)(1, Fraction(1)).height == capacity.bit_length()  # type: ignore[attr-defined]


@pytest.mark.parametrize("height", [lambda n: 1 + int(math.log(n)), lambda n: math.ceil(math.log2(n)) or 1])
def test_too_small_a_height_is_caught(height: Callable[[int], int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: the natural for the binary logarithm claims an epsilon that is 1.4 times too small."""
    # given noise for too few nodes, on trees as large as they must be for the capacity
    monkeypatch.setattr(BinaryTree, "height", property(lambda tree: height(tree.capacity)))
    monkeypatch.setattr(BinaryTree, "size", property(lambda tree: (1 << tree.capacity.bit_length()) - 1))
    # then the law above fails
    assert any(loss(capacity, 3 * capacity) > 1 for capacity in (4, 8, 16))


def test_extending_a_tree_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BinaryTree, "size", property(lambda tree: 1 << 30))
    assert loss(3, 40) > 1


def test_growing_by_one_draws_one_node(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 0
    real = laplace.DiscreteLaplace.draw

    def draw(noise: laplace.DiscreteLaplace, index: int) -> int:
        nonlocal count
        count += 1
        return real(noise, index)

    monkeypatch.setattr(laplace.DiscreteLaplace, "draw", draw)
    counter = BinaryTree(100, 1, Fraction(1)).counter(epoch_key)
    for t in range(1, 1001):
        counter.noise(t)
    assert count <= 1000 + 7 * 8  # the last prefix of a tree is its total, which is taken once more
