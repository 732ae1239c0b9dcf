"""How accurate counters are: closed forms against the best that is published, Monte Carlo against closed forms."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from shoal.mechanisms.counters.binary import BinaryTree
from shoal.mechanisms.counters.blue import BlueTree, GrowingBlue
from shoal.mechanisms.counters.counter import Tree
from tests.mechanisms.counters.counter_cases import CASES, Case, CasesOf, over_cases
from tests.mechanisms.mechanism_cases import epoch_key
from tests.support.cover import in_a_loop

ONE: dict[str, Any] = {"width": 1, "epsilon": Fraction(1)}


def sampled_mean(tree: Tree, length: int) -> float:
    """The mean variance of so many releases, or of a hundredth of them where there are many."""
    places = range(1, length + 1) if length < 2**12 else range(1, length + 1, 97)
    return sum(tree.variance(t) for t in places) / len(places)


@pytest.mark.parametrize(("length", "best"), [(2**10, 118.1), (2**16, 409.5), (2**20, 750.9)])
def test_blue_with_a_known_length(length: int, best: float) -> None:
    """Best published for pure epsilon-DP: 170.5, 614.6, 1147 (Andersson, Pagh, Steiner and Torkamani, 2024)."""
    assert BlueTree.best(length, **ONE).mean_variance(length) == pytest.approx(best, rel=0.05)
    assert GrowingBlue(**ONE, horizon=length).mean_variance(length) == pytest.approx(best, rel=0.05)


@pytest.mark.parametrize(("length", "most"), [(2**10, 170), (2**16, 570), (2**20, 1040)])
def test_blue_without_a_known_length(length: int, most: float) -> None:
    assert GrowingBlue(**ONE).mean_variance(length) <= most


@pytest.mark.parametrize(("length", "best"), [(1023, 1001), (2**16 - 1, 4096)])
def test_the_binary_counter_is_as_good_as_published(length: int, best: float) -> None:
    assert sampled_mean(BinaryTree.best(length, **ONE), length) <= 1.01 * best


def test_a_horizon_that_is_exceeded_costs_little() -> None:
    for length in (2**10, 2**16, 2**20):
        tuned, plain = GrowingBlue(**ONE, horizon=length), GrowingBlue(**ONE)
        for beyond in (2 * length, 4 * length, 16 * length):
            assert tuned.mean_variance(beyond) < 1.3 * plain.mean_variance(beyond)


class AccuracyLaws(CasesOf):
    """What the stated variances of every counter of `cases` fulfil."""

    @over_cases
    @in_a_loop
    @pytest.mark.parametrize("horizon", [1, 5, 64])
    def test_the_mean_variance_is_the_mean_of_the_variances(self, case: Case, horizon: int) -> None:
        tree = case.tree(3, Fraction(1, 2))
        if hasattr(tree, "mean_variance"):
            mean = sum(tree.variance(t) for t in range(1, horizon + 1)) / horizon
            assert tree.mean_variance(horizon) == pytest.approx(mean)

    @over_cases
    def test_measured_variance_is_the_closed_form(self, typical: Case) -> None:
        """Each within 5 standard errors; Laplace noise has kurtosis 6 at most, so (6 - 1) / runs bounds the square."""
        runs, places = 200, [1, typical.length // 2, typical.length]
        tree = typical.tree(1000)
        counters = (tree.counter(lambda epoch, run=run: epoch_key(1000 * run + epoch)) for run in range(runs))
        noise = np.array([[counter.noise(t) for t in places] for counter in counters], dtype=float)
        for t, found in zip(places, (noise**2).mean(axis=0), strict=True):
            assert found / tree.variance(t) == pytest.approx(1, abs=5 * (5 / runs) ** 0.5)


class TestAccuracy(AccuracyLaws):
    cases = CASES
