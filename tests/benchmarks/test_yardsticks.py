"""The yardsticks pass the laws of the package's counters, and are as good as their papers say."""

import re
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import benchmarks.counters
from benchmarks.counters.elders import EldersTree, size_sum
from benchmarks.counters.honaker import BottomUp, HonakerTree
from benchmarks.counters.hybrid import HybridTree
from benchmarks.counters.kary import KaryTree, digit_sum
from benchmarks.counters.smooth import SmoothTree
from shoal.mechanisms.counters.binary import BinaryTree
from shoal.mechanisms.counters.blue import BlueTree, GrowingBlue
from tests.mechanisms.counters.counter_cases import Case, Make, counter_classes
from tests.mechanisms.counters.test_counters import CounterLaws
from tests.mechanisms.counters.test_counters_accuracy import AccuracyLaws, sampled_mean
from tests.mechanisms.counters.test_counters_blue import CompleteLaws
from tests.mechanisms.counters.test_counters_shapes import ShapeLaws
from tests.mechanisms.mechanism_cases import epoch_key, unproved

pytestmark = pytest.mark.long

ONE: dict[str, Any] = {"width": 1, "epsilon": Fraction(1)}


def hybrid(growth: int, horizon: int, inner: Any = BlueTree.best) -> Make:
    return lambda width, epsilon: HybridTree(width, epsilon, growth=growth, horizon=horizon, inner=inner)


def shapes(name: str, cls: Any, *rows: tuple[int, int, int]) -> list[Case]:
    """Trees by their two numbers; third, so many elements that several epochs begin."""
    return [
        Case(f"{name}-{a}-{b}", lambda width, epsilon, a=a, b=b: cls(width, epsilon, a, b), length)  # type: ignore[misc]
        for a, b, length in rows
    ]


# Small trees of each class; a class of trees that has none fails test_every_yardstick_is_here.
CASES: dict[type, list[Case]] = {
    HonakerTree: shapes("honaker", HonakerTree, (1, 2, 5), (2, 2, 9), (3, 3, 22), (4, 2, 27), (6, 2, 70)),
    KaryTree: shapes("kary", KaryTree, (2, 1, 7), (5, 1, 12), (2, 3, 20), (3, 2, 24), (4, 2, 40)),
    EldersTree: shapes("elders", EldersTree, (3, 1, 5), (7, 1, 10), (3, 3, 30), (5, 2, 28)),
    SmoothTree: shapes("smooth", SmoothTree, (1, 1, 4), (1, 4, 10), (2, 2, 14), (4, 1, 10), (2, 3, 24)),
    HybridTree: [
        Case("hybrid-binary", hybrid(2, 20, BinaryTree.best), 34),
        Case("hybrid-elders", hybrid(3, 100, EldersTree.best), 30),
        Case("hybrid-growing", hybrid(5, 10, lambda size, width, epsilon: GrowingBlue(width, epsilon, arity=2)), 40),
        Case("hybrid-blue", hybrid(2, 1000), 40),
    ],
}


class TestYardsticks(CounterLaws, AccuracyLaws, ShapeLaws):
    cases = CASES

    def test_every_yardstick_is_here(self) -> None:
        trees, counters = counter_classes(benchmarks.counters)
        assert trees == set(CASES)
        # and all counters but those of the package, which bottom-up trees share
        assert {type(case.counter()) for cases in CASES.values() for case in cases} >= counters != set()


def test_every_guarantee_links_the_note_that_proves_it() -> None:
    assert unproved(benchmarks.counters) == []


class TestBottomUp(CompleteLaws):
    kind = BottomUp


# ---------------------------------------------------------------- accuracy


@pytest.mark.parametrize(
    ("cls", "length", "best"),
    [
        (HonakerTree, 1023, 581),
        (HonakerTree, 2**16 - 1, 2254),
        (KaryTree, 2**10, 245),
        (KaryTree, 2**16, 961),
        (EldersTree, 2**10, 170.5),
        (EldersTree, 2**16, 614.6),
        (SmoothTree, 2**10, 306),
        (SmoothTree, 2**16, 1050),
        (SmoothTree, 2**20, 1944),
    ],
)
def test_yardsticks_are_as_good_as_published(cls: Any, length: int, best: float) -> None:
    assert sampled_mean(cls.best(length, **ONE), length) <= 1.01 * best


@pytest.mark.parametrize(("cls", "best"), [(KaryTree, 1881), (EldersTree, 1147)])
def test_a_million_elements_in_closed_form(cls: Any, best: float) -> None:
    tree = cls.best(2**20, **ONE)
    total = {KaryTree: digit_sum, EldersTree: size_sum}[cls](2**20, tree.arity, tree.height)
    assert 2 * tree.height**2 * total / 2**20 == pytest.approx(best, rel=0.01)


@pytest.mark.parametrize(("length", "best"), [(2**10, 391), (2**16, 1083), (2**20, 1801)])
def test_hybrid_over_the_last_half(length: int, best: float) -> None:
    tree = HybridTree(**ONE, horizon=length)
    places = range(length // 2 + 1, length + 1, max(1, length // 500))
    assert sum(tree.variance(t) for t in places) / len(places) <= 1.01 * best


@pytest.mark.parametrize("length", [2**10, 2**16, pytest.param(2**20, marks=pytest.mark.long)])
def test_none_has_less_variance_than_blue(length: int) -> None:
    """This is why no configuration names them."""
    blue = BlueTree.best(length, **ONE).mean_variance(length)
    for cls in (HonakerTree, KaryTree, EldersTree, SmoothTree):
        assert sampled_mean(cls.best(length, **ONE), length) > 1.3 * blue
    assert sampled_mean(HybridTree(**ONE, horizon=length), length) > 1.3 * blue


# ---------------------------------------------------------------- shapes


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
