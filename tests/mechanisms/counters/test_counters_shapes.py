"""The trees of the counters: which shapes there are, which one is chosen, and sums over prefixes without a loop."""

import re
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.counters.binary import BinaryTree
from shoal.mechanisms.counters.blue import BlueTree
from shoal.mechanisms.counters.least_squares import LeastSquares
from shoal.mechanisms.elders import EldersTree, size_sum
from shoal.mechanisms.honaker import BottomUp, HonakerTree
from shoal.mechanisms.hybrid import HybridTree
from shoal.mechanisms.kary import KaryTree, digit_sum
from shoal.mechanisms.smooth import SmoothTree
from tests.mechanisms.mechanism_cases import epoch_key

ONE: dict[str, Any] = {"width": 1, "epsilon": Fraction(1)}
BEST = [BinaryTree.best, BlueTree.best, HonakerTree.best, KaryTree.best, EldersTree.best, SmoothTree.best]
every_best = pytest.mark.parametrize("best", BEST, ids=[make.__self__.__name__ for make in BEST])  # type: ignore[attr-defined]


@every_best
@pytest.mark.parametrize("elements", [1, 2, 3, 10, 1000, 10**6, 10**9, 10**14])
def test_there_is_a_tree_for_every_number_of_elements(best: Any, elements: int) -> None:
    tree = best(elements, width=3, epsilon=Fraction(1, 7))
    assert (tree.width, tree.epsilon) == (3, Fraction(1, 7))
    assert tree.variance(elements) > 0
    # and it reaches so far, if it is of the kind that does not go on with equal trees by design
    assert isinstance(tree, BlueTree | HonakerTree) or elements > 10**12 or tree.locate(elements)[0] == 0


@every_best
def test_no_elements_make_no_tree(best: Any) -> None:
    with pytest.raises(ValueError, match="must be greater than 0, not 0"):
        best(0, **ONE)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: KaryTree(**ONE, arity=1, height=3), "arity must be at least 2, not 1"),
        (lambda: KaryTree(**ONE, arity=2, height=0), "height must be greater than 0, not 0"),
        (lambda: KaryTree(**ONE, arity=2, height=44), "nodes must be at least 0 and below"),
        (lambda: EldersTree(**ONE, arity=1, height=3), "arity must be an odd number from 3, not 1"),
        (lambda: EldersTree(**ONE, arity=4, height=3), "arity must be an odd number from 3, not 4"),
        (lambda: EldersTree(**ONE, arity=3, height=0), "height must be greater than 0, not 0"),
        (lambda: EldersTree(**ONE, arity=3, height=30), "nodes must be at least 0 and below"),
        (lambda: SmoothTree(**ONE, zeros=0, ones=3), "zeros must be greater than 0, not 0"),
        (lambda: SmoothTree(**ONE, zeros=3, ones=0), "ones must be greater than 0, not 0"),
        (lambda: SmoothTree(**ONE, zeros=24, ones=25), "height must be at least 0 and below 49, not 49"),
        (lambda: HonakerTree(**ONE, levels=22), "arity 2 with 22 levels makes trees of more than 1048576 leaves"),
        (lambda: HybridTree(**ONE, horizon=0), "horizon must be greater than 0, not 0"),
        (lambda: HybridTree(**ONE, growth=1), "growth must be at least 2, not 1"),
    ],
)
def test_shapes_that_make_no_sense_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        make()


@given(st.integers(2, 12), st.integers(1, 4), st.integers(1, 400))
def test_sums_of_digits_need_no_loop(arity: int, height: int, t: int) -> None:
    tree = KaryTree(**ONE, arity=arity, height=height)
    assert digit_sum(t, arity, height) == sum(tree.count(s) for s in range(1, t + 1))


@given(st.integers(1, 6), st.integers(2, 4), st.integers(1, 400))
def test_sums_of_signed_digits_need_no_loop(half: int, height: int, t: int) -> None:
    tree = EldersTree(**ONE, arity=2 * half + 1, height=height)
    t = min(t, tree.size)
    assert size_sum(t, tree.arity, height) == sum(tree.count(s) for s in range(1, t + 1))


@pytest.mark.parametrize("kind", [BottomUp, LeastSquares])
@given(arity=st.integers(2, 6), height=st.integers(0, 3), t=st.integers(0, 300))
def test_sums_of_squares_need_no_loop(kind: Any, arity: int, height: int, t: int) -> None:
    tree = kind(arity, height)
    t = min(t, tree.leaves)
    assert tree.sum_squares(t) == sum(tree.squares(s) for s in range(1, t + 1))
    assert tree.squares(t) == sum(count * coefficient**2 for coefficient, count in tree.coefficients(t))
    assert (
        tree.total_squares == sum(count * c**2 for c, count in tree.total_coefficients()) == tree.squares(tree.leaves)
    )


@given(st.integers(1, 30), st.integers(2, 4), st.data())
def test_signed_digits_make_the_number(half: int, height: int, data: st.DataObject) -> None:
    tree = EldersTree(**ONE, arity=2 * half + 1, height=height)
    t = data.draw(st.integers(0, tree.size))
    digits = tree.digits(t)
    assert sum(digit * tree.arity**i for i, digit in enumerate(digits)) == t
    assert max(map(abs, digits)) <= half


@pytest.mark.parametrize(("zeros", "ones"), [(1, 1), (1, 5), (5, 1), (3, 4)])
def test_smooth_leaves_are_the_numbers_with_so_many_ones_in_order(zeros: int, ones: int) -> None:
    tree = SmoothTree(**ONE, zeros=zeros, ones=ones)
    expected = sorted(sum(1 << bit for bit in bits) for bits in combinations(range(zeros + ones), ones))
    assert [tree.leaf(rank) for rank in range(tree.size + 1)] == expected


def test_every_release_of_a_smooth_counter_has_the_same_variance() -> None:
    tree = SmoothTree.best(5000, **ONE)
    assert len({tree.variance(t) for t in range(1, tree.size + 1)}) == 1


def test_the_split_of_a_hybrid_is_a_matter_of_the_horizon() -> None:
    # given a horizon within the first epoch, before which there are no sums, and one with many epochs before it
    short, long = HybridTree(**ONE, horizon=1), HybridTree(**ONE, horizon=1000)
    assert short.share == Fraction(1, 64)
    assert long.variance(700) < short.variance(700) / 100
    # and what runs for a horizon costs epsilon before and after it
    tree = HybridTree(**ONE, horizon=10)
    for epoch in range(12):
        assert sum(sensitivity / scale for sensitivity, scale in tree.sensitivities(epoch)) == 1


def test_a_hybrid_restored_far_in_draws_only_sums_and_the_current_epoch() -> None:
    tree = HybridTree(width=1 << 20, epsilon=Fraction(1), inner=EldersTree.best)
    numbers: list[int] = []

    def subkey(number: int) -> bytes:
        numbers.append(number)
        return epoch_key(number)

    tree.counter(subkey).noise(10**6)
    assert numbers == [0, tree.first_subkey(tree.locate(10**6)[0])]
