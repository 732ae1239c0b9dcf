"""Breaches that no law of the other files sees; the mutants (tests/mutants) stand behind each of these tests."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from shoal.mechanisms.continual_mean import full
from shoal.mechanisms.continual_mean.statistic import ALGORITHMS
from shoal.mechanisms.counters.least_squares import LeastSquares
from shoal.mechanisms.counters.square_root import prefixes
from shoal.mechanisms.counters.square_root_coefficients import Root
from shoal.mechanisms.noise import keyed
from shoal.mechanisms.noise.laplace import DiscreteLaplace
from shoal.mechanisms.statistic import Contribution
from tests.mechanisms.counters.counter_cases import given
from tests.mechanisms.mechanism_cases import KEY, Draws, Sample, contributions, mean, play
from tests.support.cover import in_a_loop

plain = pytest.mark.parametrize("name", ["naive", "full"])


@pytest.mark.parametrize("bits", [60, 90, 200])
def test_large_noise_has_all_its_digits(bits: int) -> None:
    """Noise with gaps, as floats have, leaves the low digits of a sum as they are."""
    noise = DiscreteLaplace(1 << bits, KEY)
    draws = [abs(noise.draw(index)) for index in range(64)]
    assert {draw & 1 for draw in draws} == {0, 1}
    assert len({draw & 0xFF for draw in draws}) > 30
    assert len({draw >> 1 for draw in draws}) == 64


def test_sums_of_draws_do_not_overflow() -> None:
    # given draws that fit into 64 bits, and weighted sums of them that do not
    tree = LeastSquares(6, 4)  # so large that numpy sums them
    draws = np.full(tree.nodes, 1 << 54, dtype=np.int64)
    small, large = tree.prefixes(given(draws)), tree.prefixes(given(draws.astype(np.object_)))
    # then they are what Python's integers give
    assert [small.numerator(t) for t in range(1, 1297)] == [large.numerator(t) for t in range(1, 1297)]


def test_elements_of_the_root_are_rounded_exactly() -> None:
    # given draws next to a half of what one element makes of them, on either side
    root = Root.of(5, unit_columns=True)
    one = root.values[0] * next(root.weights())
    for z, element in ((one * (1 << 30) + (one - 1) // 2, 1 << 30), (one * (1 << 30) + (one + 1) // 2, (1 << 30) + 1)):
        # then it is the nearest, which no float could tell
        assert next(prefixes(root, iter([z, 0, 0, 0, 0]))) == element


@plain
def test_noise_does_not_depend_on_the_sum(name: str) -> None:
    # given streams of equal values, at both ends of the range and between them
    parameters = mean(ALGORITHMS[name])
    steps = parameters.grid.steps
    values: list[list[float]] = []
    for value in (0, steps // 4, steps):
        releaser = parameters.releaser(KEY, b"")
        values.append([])
        for unit in range(20):
            releaser.add(Contribution(unit, f"{unit:032x}", 1, 0, 1, value))
            estimate = releaser.estimate()
            assert estimate is not None
            assert estimate.value is not None
            values[-1].append(estimate.value)
    # then the releases of one key differ by what the means differ, over a range of 4: the noise is the same, and there
    least, between, largest = values
    assert [b - a for a, b in zip(least, between, strict=True)] == pytest.approx([1] * 20, abs=1e-6)
    assert [b - a for a, b in zip(least, largest, strict=True)] == pytest.approx([4] * 20, abs=1e-6)
    assert all(abs(value + 1) > 1e-9 for value in least)


@plain
def test_sums_are_exact_however_large(name: str) -> None:
    # given values with more digits than a float has
    parameters = mean(ALGORITHMS[name], steps=1 << 70, epsilon=Fraction(1))
    releaser = parameters.releaser(KEY, b"")
    values = [(1 << 70) - 3, 1, (1 << 69) + 1, 2, (1 << 70) - 5]
    for unit, value in enumerate(values):
        releaser.add(Contribution(unit, f"{unit:032x}", 1, 0, 1, value))
    # then not the last of them is lost
    assert sum(values) in numbers(releaser.head())


def numbers(state: Any) -> list[Any]:
    """All numbers of a head, however deep."""
    return [one for part in state for one in numbers(part)] if isinstance(state, list) else [state]


@in_a_loop
@pytest.mark.parametrize("name", ["naive", "wishful", "multi-tree", "full"])
def test_each_level_and_each_tree_has_draws_of_its_own(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # given trees of one element, so that each element of each level is a tree, with one draw
    one_sample = name in ("naive", "wishful")
    parameters = mean(ALGORITHMS[name], users=1, m=1 if one_sample else 8, epsilon=Fraction(10**6))
    sent = contributions(parameters, [Sample(at // 6, f"{at % 6:032x}", at) for at in range(6 if one_sample else 48)])
    draws = Draws(monkeypatch)
    estimates, _ = play(parameters.releaser(KEY, b""), sent)
    # then there are as many draws as elements, none of them for two
    assert estimates[-1] is not None
    assert estimates[-1].samples == sum(c.samples for c in sent)
    assert len(draws.seen) == len(sent) >= 6


def test_each_prior_has_bits_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    # given a mean of which three levels wait for a prior
    read = []

    class Reading(keyed.Bits):
        def draw(self, index: int) -> Iterator[int]:
            read.append((self._subkey, index))
            return super().draw(index)

    monkeypatch.setattr(full, "Bits", Reading)
    parameters = mean(full.Full, epsilon=Fraction(10**6))
    sent = contributions(parameters, [Sample(at // 6, f"{at % 6:032x}", at) for at in range(96)])
    _, activations = play(parameters.releaser(KEY, b""), sent)
    assert len(set(read)) == len(read) == len(activations) == 3


def test_a_prior_is_made_with_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[Fraction] = []

    def overheard(totals: Sequence[int], size: int, count: int, epsilon: Fraction, words: Iterator[int]) -> int:
        used.append(epsilon)
        return 0

    monkeypatch.setattr(full, "median_bin", overheard)
    parameters = mean(full.Full, epsilon=Fraction(10**6), groups=3)
    assert isinstance(parameters, full.Full)
    sent = contributions(parameters, [Sample(at // 6, f"{at % 6:032x}", at) for at in range(96)])
    _, activations = play(parameters.releaser(KEY, b""), sent)
    # then each call costs half of what it is told, and that is what the budget has for it
    assert [told / 2 for told in used] == [one.epsilon for _, one in activations] == [parameters.prior_epsilon] * 3


def test_blocks_that_waited_are_clipped_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    # given two blocks of level 2, one below the interval 14 .. 18 and one above it, that wait for its prior
    monkeypatch.setattr(full, "median_bin", lambda *_: 0)
    monkeypatch.setattr(full.Full, "arrays", lambda *_: 1)
    monkeypatch.setattr(full.Full, "half_width", lambda *_: 2)
    releaser = mean(full.Full, steps=16, m=4).releaser(KEY, b"")
    assert isinstance(releaser, full.FullReleaser)
    releaser.add(Contribution(0, "a", 3, 2, 2, 0))
    releaser.add(Contribution(0, "c", 3, 2, 2, 20))
    releaser.add(Contribution(0, "b", 1, 0, 1, 0))
    (activation,) = releaser.add(Contribution(0, "b", 2, 1, 1, 0))
    # then they count as the ends of the interval
    assert activation.level == 2
    assert releaser._sums[2] == 14 + 18
