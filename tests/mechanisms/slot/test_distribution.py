"""Distributions of a cell: sensitivity by brute force, and error bars that hold."""

import dataclasses
import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.bins.shares import edges
from shoal.mechanisms.bins.tree import BinTree, tree_for
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.noise.laplace import DiscreteLaplace
from shoal.mechanisms.slot.cell import CellParameters, Draws, Users
from shoal.mechanisms.slot.distribution import (
    choose_cap,
    histogram,
    noised_sums,
    predicted_error,
    release,
    scales,
    worst_error,
)
from tests.mechanisms.mechanism_cases import KEY
from tests.support.effort import examples

GRID = Grid(Fraction(0), Fraction(64), 1 << 12)
HALVES = (Fraction(1, 10), Fraction(1, 2), Fraction(9, 10))


def cell(**more: Any) -> CellParameters:
    parameters: dict[str, Any] = {"grid": GRID, "epsilon": Fraction(1), "quantiles": HALVES, "cap": 100}
    return CellParameters(**(parameters | more))


def draws(slot: int = 0) -> Draws:
    return Draws(KEY, b"cell", slot)


PEOPLE: Users = [[(37 * i * i + 101 * j) % 4097 for j in range(1 + i % 5)] for i in range(60)]


def neighbours(users: Users, values: list[int]) -> Iterator[Users]:
    """All cells in which one user has other samples."""
    for i, samples in enumerate(users):
        for others in itertools.product(values, repeat=len(samples)):
            yield [*users[:i], others, *users[i + 1 :]]


@pytest.mark.parametrize(
    ("bins", "cap", "users"),
    [(4, 9, [[0], [1, 4], [2, 2, 2]]), (6, 2, [[5, 5, 5, 1], [2], [4, 0]]), (5, 1, [[1, 2], [0, 4], [3]])],
)
def test_no_neighbour_moves_a_level_by_more_than_its_noise_is_for_and_one_by_just_so_much(
    bins: int, cap: int, users: Users
) -> None:
    """Brute force over all neighbours, on every level; then the whole loss is at most epsilon."""
    of = cell(grid=Grid(Fraction(0), Fraction(1), bins), bins=bins, epsilon=Fraction("0.7"))
    tree = BinTree(bins, (2, 3))
    most = min(cap, max(map(len, users)))
    own = tree.sums(histogram(users, of, cap))
    worst, levels = Fraction(0), [0] * 2
    for other in neighbours(users, list(range(bins))):
        moved = [
            sum(abs(a - b) for a, b in zip(one, two, strict=True))
            for one, two in zip(own, tree.sums(histogram(other, of, cap)), strict=True)
        ]
        levels = [max(a, b) for a, b in zip(levels, moved, strict=True)]
        loss = sum((moved[i] / DiscreteLaplace(s, KEY).scale for i, s in enumerate(scales(tree, most, of.epsilon))))
        worst = max(worst, Fraction(loss))
    assert levels == [2 * most] * 2
    assert of.epsilon * Fraction(999_990, 1_000_000) <= worst <= of.epsilon


@examples(20)
@given(st.integers(2, 1000), st.integers(1, 50), st.fractions(Fraction(1, 10**6), 50))
def test_the_levels_use_no_more_than_epsilon(bins: int, most: int, epsilon: Fraction) -> None:
    used = sum(2 * most / DiscreteLaplace(scale, KEY).scale for scale in scales(tree_for(bins), most, epsilon))
    assert used <= epsilon
    assert used >= epsilon * Fraction(999_990, 1_000_000)


@pytest.mark.parametrize("bins", [64, 400])
def test_the_noise_of_a_level_is_that_of_its_scale_and_key(bins: int) -> None:
    tree, by_level = tree_for(bins), [Fraction(7), Fraction(3)]
    noised = noised_sums(tree, [0] * bins, by_level, draws(5))
    for level, scale in enumerate(by_level):
        noise = DiscreteLaplace(scale, draws(5).subkey("distribution", level))
        assert noised[level] == [noise.draw(i) for i in range(tree.nodes[level])]


def test_neighbours_differ_in_nothing_but_the_estimates() -> None:
    one, other = (release([[value] * 5, *PEOPLE[1:]], cell(cap="optimal"), draws()) for value in (0, 4096))
    assert (one.samples, one.noise_sd, one.details) == (other.samples, other.noise_sd, other.details)
    assert one.value != other.value


@given(
    st.lists(st.lists(st.integers(0, 4096), min_size=1, max_size=5), min_size=1, max_size=8),
    st.integers(2, 70),
    st.sampled_from([Fraction(1, 100), Fraction(1), Fraction(50)]),
)
def test_whatever_the_noise_what_is_published_is_a_distribution(users: Users, bins: int, epsilon: Fraction) -> None:
    value = release(users, cell(bins=bins, epsilon=epsilon), draws()).value
    assert len(value["cdf"]) == len(value["histogram"]) == bins
    assert value["cdf"] == sorted(value["cdf"])
    assert value["cdf"][0] >= 0
    assert value["cdf"][-1] == 1
    assert min(value["histogram"]) >= 0
    assert math.fsum(value["histogram"]) == pytest.approx(1, abs=1e-12)
    assert np.cumsum(value["histogram"]) == pytest.approx(value["cdf"], abs=1e-9)
    places = list(value["quantiles"].values())
    assert places == sorted(places)
    assert list(value["quantiles"]) == ["0.1", "0.5", "0.9"]
    # a quantile lies in the bin in which the cdf passes it
    ends = edges(GRID, bins)
    for q, place in zip(HALVES, places, strict=True):
        index = next(i for i, share in enumerate(value["cdf"]) if share >= q)
        assert ends[index] <= place <= ends[index + 1]


def test_without_noise_the_cdf_is_that_of_the_samples() -> None:
    of = cell(epsilon=Fraction(10**9), bins=64, cap=3)
    estimate = release(PEOPLE, of, draws())
    samples = sorted(i for samples in PEOPLE for i in samples[:3])
    expected = [sum(i * 64 < b * 4096 for i in samples) / len(samples) for b in range(1, 64)] + [1.0]
    assert estimate.value["cdf"] == pytest.approx(expected, abs=1e-6)
    assert estimate.samples == len(samples)
    # and quantiles are those of the samples, up to a bin
    for q, place in estimate.value["quantiles"].items():
        assert abs(samples[int(float(q) * len(samples))] / 64 - place) <= 1


@pytest.mark.parametrize("at", [0, 2048, 4096])
def test_equal_samples_take_the_general_path(at: int) -> None:
    estimate = release([[at] * 3] * 9, cell(epsilon=Fraction(10**6), bins=16), draws())
    filled = [i for i, share in enumerate(estimate.value["histogram"]) if share > 0.99]
    assert filled == [min(at // 256, 15)]
    # one user, one sample, little epsilon: also defined
    single = release([[at]], cell(epsilon=Fraction(1, 10**60)), draws())
    assert single.value["cdf"][-1] == 1
    assert all(math.isfinite(x) for x in single.low["cdf"] + single.high["cdf"] + single.noise_sd["cdf"])
    assert (single.low["quantiles"]["0.5"], single.high["quantiles"]["0.5"]) == (0.0, 64.0)


def test_error_bars_hold_and_errors_are_as_predicted() -> None:
    """200 slots: bounds of every bin and quantile hold nearly always, deviations are those told, errors no larger."""
    of, slots = cell(bins=32, epsilon=Fraction(4)), 200
    exact = release(PEOPLE, dataclasses.replace(of, epsilon=Fraction(10**9)), draws()).value
    names = ("cdf", "histogram")
    inside, squares, error, found = {name: 0 for name in (*names, "quantiles")}, dict.fromkeys(names, 0.0), 0.0, []
    for slot in range(slots):
        found.append(release(PEOPLE, of, draws(slot)))
        for name in names:
            low, high, true = (np.array(x[name]) for x in (found[-1].low, found[-1].high, exact))
            inside[name] += int(np.sum((low <= true + 1e-9) & (true <= high + 1e-9)))
            middle = (low + high) / 2 - true
            squares[name] += float(np.sum(middle[:-1] ** 2))
        bars = [(found[-1].low["quantiles"][q], found[-1].high["quantiles"][q]) for q in exact["quantiles"]]
        inside["quantiles"] += sum(a <= x <= b for x, (a, b) in zip(exact["quantiles"].values(), bars, strict=True))
        error += float(np.mean(np.abs(np.array(found[-1].value["cdf"]) - exact["cdf"]))) / slots
    for name, of_each in (("cdf", 32), ("histogram", 32), ("quantiles", 3)):
        assert 0.94 <= inside[name] / (slots * of_each) <= 1
    for name in names:
        told = sum(sd**2 for sd in found[0].noise_sd[name][:-1]) * slots
        assert squares[name] == pytest.approx(told, rel=0.1)
    assert found[0].details["error"] == pytest.approx(predicted_error([len(samples) for samples in PEOPLE], of))
    assert error <= predicted_error([len(samples) for samples in PEOPLE], of)


def test_the_optimal_cap_has_the_least_worst_error() -> None:
    counts = [1, 1, 2, 3, 3, 8, 20, 90]
    for epsilon in (Fraction(1, 10), Fraction(2), Fraction(40), Fraction(1000)):
        of = cell(cap="optimal", epsilon=epsilon, dropped=7)
        errors = {
            cap: worst_error(sum(min(m, cap) for m in counts), cap, sum(counts) + 7, 64, epsilon)
            for cap in range(1, 91)
        }
        assert choose_cap(counts, of) == min(errors, key=lambda cap: errors[cap])
        assert predicted_error(counts, of) == pytest.approx(min(1, float(min(errors.values()))))
    assert choose_cap(counts, cell(cap="median")) == 3
    assert choose_cap(counts, cell(cap=4)) == 4


def test_the_same_key_and_cell_give_the_same_bytes() -> None:
    one, other, third = (release(PEOPLE, cell(), draws(slot)) for slot in (3, 3, 4))
    assert one == other != third


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"bins": 1}, "bins"),
        ({"bins": 4097}, "4096 steps"),
        ({"quantiles": (Fraction(1),)}, "quantiles must lie between"),
    ],
)
def test_what_makes_no_sense_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        release(PEOPLE, cell(**change), draws())
    with pytest.raises(ValueError, match=said):
        predicted_error([3], cell(**change))


@examples(20)
@given(st.integers(0, 4096), st.integers(2, 100))
def test_a_bin_holds_the_samples_between_its_edges(index: int, bins: int) -> None:
    (place,) = [i for i, n in enumerate(histogram([[index]], cell(bins=bins), 1)) if n]
    ends = edges(GRID, bins)
    assert ends[place] <= GRID.mean_value(index, 1) <= ends[place + 1]
    assert ends[0] == 0
