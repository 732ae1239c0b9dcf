"""Laws of every continual counter, past its stated capacity, by brute force; and the counters of the package.

docs/proofs/counters.md: releases are A x + L z with L R = A, so a unit that changes the elements by d pays at most the
sum over nodes of |R d| / scale. Here L is what the code does with its draws, and R what the tree says of its nodes.
"""

import itertools
from collections import Counter as Multiset
from fractions import Fraction
from functools import cache
from math import lcm

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal.mechanisms
from shoal.mechanisms.counters.counter import Tree, rounded
from shoal.mechanisms.counters.growing_root import GrowingRootCounter
from shoal.mechanisms.counters.square_root import SquareRootCounter
from shoal.mechanisms.error_bars import noise_sd
from shoal.mechanisms.noise import laplace
from tests.mechanisms.counters.counter_cases import (
    CASES,
    Case,
    CasesOf,
    Injected,
    Linear,
    counter_classes,
    inherited,
    linear,
    over_cases,
)
from tests.mechanisms.mechanism_cases import Draws, epoch_key
from tests.support.cover import in_a_loop
from tests.support.effort import tries


@cache
def linear_of(case: Case) -> Linear:
    return linear(case)


def scales_of(case: Case, width: int, epsilon: Fraction) -> dict[tuple[bytes, int], Fraction]:
    """The scale of each draw, as the sampler got it."""
    injected = Injected()
    with injected.instead():
        counter = case.counter(width, epsilon)
        for t in range(1, case.length + 1):
            counter.noise(t)
    for scales in injected.scales.values():
        assert len(scales) == 1, "two scales under one subkey would share bits"
    return {name: next(iter(injected.scales[name[0]])) for name in injected.asked}


def noise_with(case: Case, found: Linear, z: list[int]) -> list[int]:
    injected = Injected()
    injected.values = dict(zip(found.names, z, strict=True))
    with injected.instead():
        counter = case.counter()
        return [counter.noise(t) for t in range(1, case.length + 1)]


class CounterLaws(CasesOf):
    """What every counter of `cases` fulfils."""

    @over_cases
    def test_cases_reach_over_several_epochs(self, case: Case) -> None:
        assert case.tree().locate(case.length)[0] >= 2

    # ---------------------------------------------------------------- privacy

    @pytest.mark.slow
    def test_noise_times_nodes_is_the_prefix_sums(self, case: Case) -> None:
        """L R = A: so a change of the elements is a change of the draws, by R of it."""
        found = linear_of(case)
        common = lcm(*(coefficient.denominator for row in found.noise for coefficient in row))
        noise = np.array([[int(coefficient * common) for coefficient in row] for row in found.noise], dtype=np.object_)
        product = noise @ np.array(found.nodes, dtype=np.object_)
        assert (product == common * np.tril(np.ones_like(product))).all()

    @pytest.mark.parametrize(("width", "epsilon"), [(1, Fraction(1)), (7, Fraction(2, 3))])
    def test_the_worst_element_costs_epsilon_exactly(self, case: Case, width: int, epsilon: Fraction) -> None:
        found, tree = linear_of(case), case.tree(width, epsilon)
        scale = scales_of(case, width, epsilon)
        losses = [
            sum(width / scale[name] for name, held in zip(found.names, found.nodes, strict=True) if held[s])
            for s in range(case.length)
        ]
        assert max(losses) == epsilon
        # and as the tree says, kind by kind, for each epoch
        if hasattr(tree, "l1_sensitivity"):
            assert tree.l1_sensitivity == tree.sensitivities(0)[0][0]
        for epoch in range(tree.locate(case.length)[0] + 1):
            stated = tree.sensitivities(epoch)
            assert sum(sensitivity / b for sensitivity, b in stated) <= epsilon
            places = [s for s in range(case.length) if tree.locate(s + 1)[0] == epoch]
            for sensitivity, b in stated:
                nodes = [held for name, held in zip(found.names, found.nodes, strict=True) if scale[name] == b]
                assert max(sum(held[s] for held in nodes) for s in places) * width <= sensitivity

    @over_cases
    def test_a_unit_with_several_elements_costs_no_more(self, typical: Case) -> None:
        """All placements of a unit's 3 elements, over epochs and within one, and all changes of them by 1."""
        found, tree = linear_of(typical), typical.tree(width=3)
        scale = scales_of(typical, 3, Fraction(1))
        common = lcm(*(b.numerator for b in scale.values()))
        weights = np.array([int(common / scale[name]) for name in found.names], dtype=np.int64)
        nodes = np.array(found.nodes, dtype=np.int64)
        worst = 0
        for change in itertools.product((-1, 1), repeat=3):
            for places in itertools.combinations_with_replacement(range(min(typical.length, 24)), 3):
                moved = sum((c * nodes[:, p] for c, p in zip(change, places, strict=True)), np.zeros_like(weights))
                worst = max(worst, int(np.abs(moved) @ weights))
        assert Fraction(worst, common) == tree.epsilon

    @over_cases
    def test_noise_of_a_new_epoch_is_new(self, case: Case) -> None:
        """An element is in nodes of its epoch alone, of which nothing was drawn before: no tree is extended."""
        found, tree = linear_of(case), case.tree()
        homes = [{tree.locate(s + 1)[0] for s, holds in enumerate(held) if holds} for held in found.nodes]
        assert all(len(epochs) <= 1 for epochs in homes)
        for t, row in enumerate(found.noise, start=1):
            for coefficient, epochs in zip(row, homes, strict=True):
                assert not coefficient or not epochs or max(epochs) <= tree.locate(t)[0]

    # ---------------------------------------------------------------- exactness

    @pytest.mark.slow
    @settings(inherited, max_examples=tries(8))
    @given(data=st.data())
    def test_moving_the_draws_by_the_nodes_moves_the_noise_by_the_sums(self, case: Case, data: st.DataObject) -> None:
        """r(z + R d) = r(z) + A d, exactly, for all integers: r is what is really added."""
        found = linear_of(case)
        size = data.draw(st.sampled_from([3, 10**3, 10**18, 10**25]))
        draws = data.draw(st.randoms(use_true_random=False))
        z = [draws.randint(-size, size) for _ in found.names]
        d = [draws.randint(-size, size) for _ in range(case.length)]
        moved = [
            zj + sum(di for di, held in zip(d, row, strict=True) if held)
            for zj, row in zip(z, found.nodes, strict=True)
        ]
        one, other = noise_with(case, found, z), noise_with(case, found, moved)
        assert [b - a for a, b in zip(one, other, strict=True)] == list(itertools.accumulate(d))
        # and r(z) is L z, rounded once
        for t, row in enumerate(found.noise):
            y = sum((coefficient * zj for coefficient, zj in zip(row, z, strict=True)), start=Fraction(0))
            assert one[t] == rounded(*y.as_integer_ratio())

    @given(visits=st.lists(st.integers(0, 60), min_size=1, max_size=12))
    @settings(inherited, max_examples=tries(8))
    def test_noise_is_a_function_of_key_and_t(self, case: Case, visits: list[int]) -> None:
        counter = case.counter(2, Fraction(1, 3))
        assert [counter.noise(t) for t in visits] == [case.counter(2, Fraction(1, 3)).noise(t) for t in visits]

    @over_cases
    def test_other_keys_give_other_noise(self, case: Case) -> None:
        tree = case.tree(1 << 20)
        one, other = tree.counter(epoch_key), tree.counter(lambda epoch: epoch_key(epoch + 1000))
        assert all(one.noise(t) != other.noise(t) for t in range(1, case.length + 1))

    @over_cases
    def test_no_two_draws_have_one_name(self, typical: Case, monkeypatch: pytest.MonkeyPatch) -> None:
        """Draws are independent only if no two are one number."""
        draws = Draws(monkeypatch)
        counter = typical.counter(1 << 20)
        for t in range(1, typical.length + 1):
            counter.noise(t)
        assert len(draws.seen) == len(set(draws.seen.values()))

    # ---------------------------------------------------------------- variance

    @over_cases
    def test_variance_and_scales_are_those_of_the_draws_used(self, case: Case) -> None:
        found, tree = linear_of(case), case.tree()
        for t, row in enumerate(found.noise, start=1):
            used = [
                (abs(coefficient), scale) for coefficient, scale in zip(row, found.scales, strict=True) if coefficient
            ]
            exact = sum(coefficient**2 * Fraction(laplace.variance(scale)) for coefficient, scale in used)
            assert tree.variance(t) == pytest.approx(float(exact), rel=1e-12)
            stated: Multiset[Fraction] = Multiset()
            for scale, count in tree.scales(t):
                stated[scale] += count
            assert stated == Multiset(coefficient * scale for coefficient, scale in used)
        assert tree.scales(0) == ()
        assert tree.variance(0) == 0
        assert case.counter().noise(0) == 0

    @over_cases
    @in_a_loop
    @pytest.mark.parametrize("t", [1, 10, 29, 1000])
    def test_error_bars_follow_the_variance(self, case: Case, t: int) -> None:
        tree: Tree = case.tree(1 << 20)
        assert noise_sd(tree.scales(t)) == pytest.approx(tree.variance(t) ** 0.5, rel=1e-5)

    # ---------------------------------------------------------------- arguments

    @over_cases
    def test_a_counter_refuses_what_makes_no_sense(self, case: Case) -> None:
        for width, epsilon in ((0, 1), (1, 0), (1, -1)):
            with pytest.raises(ValueError, match="must be greater than 0"):
                case.tree(width, Fraction(epsilon))
        with pytest.raises(TypeError, match="must be an int or a Fraction"):
            case.make(1, 0.5)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="t must be 0 or more"):
            case.counter().noise(-1)

    @over_cases
    def test_the_key_does_not_show(self, case: Case) -> None:
        assert "subkey" not in repr(case.counter())


class TestCounters(CounterLaws):
    cases = CASES

    def test_every_counter_of_the_package_is_here(self) -> None:
        trees, counters = counter_classes(shoal.mechanisms)
        assert trees == set(CASES)
        of_rho = {SquareRootCounter, GrowingRootCounter}
        assert {type(case.counter()) for cases in CASES.values() for case in cases} == counters - of_rho
