"""How accurate counters are: closed forms against the best that is published, Monte Carlo against closed forms."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from shoal.mechanisms.counters.binary import BinaryTree
from shoal.mechanisms.counters.blue import BlueTree, GrowingBlue
from shoal.mechanisms.elders import EldersTree, size_sum
from shoal.mechanisms.honaker import HonakerTree
from shoal.mechanisms.hybrid import HybridTree
from shoal.mechanisms.kary import KaryTree, digit_sum
from shoal.mechanisms.smooth import SmoothTree
from tests.mechanisms.counters.counter_cases import Case, every_case, one_of_each
from tests.mechanisms.mechanism_cases import epoch_key

ONE: dict[str, Any] = {"width": 1, "epsilon": Fraction(1)}


@pytest.mark.parametrize(("length", "best"), [(2**10, 118.1), (2**16, 409.5), (2**20, 750.9)])
def test_blue_with_a_known_length(length: int, best: float) -> None:
    """Best published for pure epsilon-DP: 170.5, 614.6, 1147 (Andersson, Pagh, Steiner and Torkamani, 2024)."""
    assert BlueTree.best(length, **ONE).mean_variance(length) == pytest.approx(best, rel=0.05)
    assert GrowingBlue(**ONE, horizon=length).mean_variance(length) == pytest.approx(best, rel=0.05)


@pytest.mark.parametrize(("length", "most"), [(2**10, 170), (2**16, 570), (2**20, 1040)])
def test_blue_without_a_known_length(length: int, most: float) -> None:
    assert GrowingBlue(**ONE).mean_variance(length) <= most


@pytest.mark.parametrize(
    ("cls", "length", "best"),
    [
        (BinaryTree, 1023, 1001),
        (BinaryTree, 2**16 - 1, 4096),
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
def test_the_others_are_as_good_as_published(cls: Any, length: int, best: float) -> None:
    tree = cls.best(length, **ONE)
    places = range(1, length + 1) if length < 2**12 else range(1, length + 1, 97)
    assert sum(tree.variance(t) for t in places) / len(places) <= 1.01 * best


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


def test_a_horizon_that_is_exceeded_costs_little() -> None:
    for length in (2**10, 2**16, 2**20):
        tuned, plain = GrowingBlue(**ONE, horizon=length), GrowingBlue(**ONE)
        for beyond in (2 * length, 4 * length, 16 * length):
            assert tuned.mean_variance(beyond) < 1.3 * plain.mean_variance(beyond)


@every_case
@pytest.mark.parametrize("horizon", [1, 5, 64])
def test_the_mean_variance_is_the_mean_of_the_variances(case: Case, horizon: int) -> None:
    tree = case.tree(3, Fraction(1, 2))
    if hasattr(tree, "mean_variance"):
        mean = sum(tree.variance(t) for t in range(1, horizon + 1)) / horizon
        assert tree.mean_variance(horizon) == pytest.approx(mean)


@one_of_each
def test_measured_variance_is_the_closed_form(case: Case) -> None:
    """Each within 5 standard errors; Laplace noise has kurtosis 6 at most, so (6 - 1) / runs bounds the square."""
    runs, places = 200, [1, case.length // 2, case.length]
    counters = (case.tree(1000).counter(lambda epoch, run=run: epoch_key(1000 * run + epoch)) for run in range(runs))
    noise = np.array([[counter.noise(t) for t in places] for counter in counters], dtype=float)
    for t, found in zip(places, (noise**2).mean(axis=0), strict=True):
        assert found / case.tree(1000).variance(t) == pytest.approx(1, abs=5 * (5 / runs) ** 0.5)
