"""Distributions of a slot that protect presence: exact without noise, and what a unit moves in a tree of counts."""

import math
from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.bins.tree import tree_for
from shoal.mechanisms.kinds import kind_of
from shoal.mechanisms.linear.came import NEWCOMERS
from shoal.mechanisms.linear.slots.statistic import LinearSlots
from shoal.mechanisms.statistic import PART_BITS, Contribution
from tests.mechanisms.account_cases import Ledger
from tests.mechanisms.linear.slots.slot_cases import HOUR, KEY, SURE, metric, sided
from tests.support.cover import in_a_loop
from tests.support.effort import examples, tries


def distribution(bins: int, *, epsilon: Fraction | int = 1, m: int = 5, **more: Any) -> LinearSlots:
    return sided("distribution", epsilon=epsilon, m=m, steps=1024, bins=bins, **more)


def in_bins(samples: list[int]) -> list[Contribution]:
    """What bound sends of samples, which are bins, and of units that come."""
    counts = Counter(samples)
    mask = (1 << PART_BITS) - 1
    rows = [Contribution(0, "", b & mask, 1 + (b >> PART_BITS), n, 0) for b, n in counts.items()]
    return [*rows, Contribution(0, "", NEWCOMERS, 0, 4, 4)]


@in_a_loop
@pytest.mark.parametrize("bins", [2, 5, 61, 300])
@examples(20)
@given(st.data())
def test_without_noise_the_release_is_the_exact_distribution(bins: int, data: st.DataObject) -> None:
    samples = data.draw(st.lists(st.integers(0, bins - 1), min_size=1, max_size=40))
    of = distribution(bins, epsilon=SURE, quantiles=(Fraction(1, 2),))
    released = of.released(KEY, b"c", 7, in_bins(samples))
    exact = np.bincount(samples, minlength=bins) / len(samples)
    assert released.counts["count"] == pytest.approx(len(samples), abs=1e-6)
    for name, shares in (("histogram", exact), ("cdf", np.cumsum(exact))):
        assert released.value[name] == pytest.approx(shares.tolist(), abs=1e-6)
        assert released.low[name] == pytest.approx(shares.tolist(), abs=1e-6)
        assert released.high[name] == pytest.approx(shares.tolist(), abs=1e-6)
    middle = -1 + 4 * (sorted(samples)[(len(samples) - 1) // 2] + 1) / bins
    assert middle - 4 / bins - 1e-6 <= released.value["quantiles"]["0.5"] <= middle + 1e-6
    assert released.details == {"mechanism": f"tree {'x'.join(map(str, tree_for(bins).shape))}"}


def test_levels_have_noise_of_their_own() -> None:
    of = distribution(64, epsilon=Fraction(1, 10**6))
    noisy = of.noisy_sides(KEY, b"c", 7, [])
    assert len(noisy) == len(set(noisy)) == 8 + 64
    other = of.noisy_sides(KEY, b"c", 8, [])
    assert not set(noisy) & set(other)
    # the first draws of two levels of equal scale would else be one
    assert of.noisy_sides(KEY, b"c", 7, in_bins([0]))[0] - noisy[0] == 1


@pytest.mark.parametrize("bins", [2, 7, 64])
def test_what_is_kept_of_a_slot_gives_its_parts_again(bins: int) -> None:
    sides: Any = distribution(bins).sides
    parts = sides.parts(0, list(range(bins)))
    assert sides.parts(*sides.whole(parts)) == parts


@in_a_loop
@pytest.mark.parametrize("bins", [2, 7, 64])
@pytest.mark.parametrize("unit", ["user-slot", "user"])
def test_a_unit_with_all_its_samples_pays_epsilon_and_none_pays_more(bins: int, unit: str) -> None:
    """Through the very accounts, over all placements of three records in cells, slots and bins at the ends."""
    keys = metric(
        statistic="distribution",
        bins=bins,
        group="g",
        groups=["g", "h"],
        unit=unit,
        max_contributions=2,
        grid=1024,
    )
    of, worst = LinearSlots.of(keys.parts), 0.0
    slots = (2, 2, 2) if unit == "user-slot" else (2, 3, 3)
    for chosen in product(product("gh", (0, 1024)), repeat=3):
        ledger = Ledger(lambda site: kind_of(keys.parts).accounts(keys.parts, of.bounder(), site))
        for (cell, index), slot in zip(chosen, slots, strict=True):
            ledger.accounts.add(b"a", cell, index, slot * HOUR, slot * HOUR)
        rows: dict[Any, list[Contribution]] = {}
        for group, effective, _, block in ledger.sent:
            assert block.part is not None
            row = Contribution(0, "", block.part, block.level, block.samples, block.total)
            rows.setdefault((group, effective), []).append(row)
        loss = sum(
            total * sums.epsilon / sums.width
            for each in rows.values()
            for total, sums in zip(of.exact(each), of.decayed, strict=True)
        )
        worst = max(worst, float(loss))
    assert worst <= 1  # epsilon
    assert worst == pytest.approx(1, abs=1e-9)


def test_too_few_samples_have_no_distribution() -> None:
    of = distribution(8, m=1)
    for slot in range(tries(40)):
        released = of.released(KEY, b"c", slot, in_bins([0] * 20))
        assert (released.value is None) == (released.counts["count"] < 3 * released.counts["count_sd"])
    assert of.released(KEY, b"c", 0, []).value is None


@pytest.mark.parametrize("bins", [5, 61, 64])
def test_without_a_total_the_estimate_is_that_of_least_squares(bins: int) -> None:
    """And its covariances with the total are those that error bars go by."""
    tree = tree_for(bins)
    rows = [[float(i // size == node) for i in range(bins)] for size, n in zip(tree.sizes, tree.nodes, strict=True)
            for node in range(n)]  # fmt: skip
    weights = np.concatenate([1 / own[:n] for own, n in zip(tree.own, tree.nodes, strict=True)])
    design = np.array(rows)
    covariance = np.linalg.inv(design.T @ (weights[:, None] * design))
    noised = [list(range(3, 3 + 7 * n, 7)) for n in tree.nodes]
    expected = covariance @ (design.T @ (weights * np.concatenate([np.array(each, float) for each in noised])))
    assert tree.estimate(noised, None) == pytest.approx(expected)
    total = covariance.sum()
    assert tree.total_variance == pytest.approx(total)
    assert tree.bin_shares == pytest.approx(covariance.sum(axis=0) / total)
    assert tree.bin_variances == pytest.approx(np.diag(covariance) - tree.bin_shares**2 * total, abs=1e-9)
    prefixes = np.tril(np.ones((bins, bins)))
    with_total = prefixes @ covariance @ np.ones(bins)
    assert tree.prefix_shares == pytest.approx(with_total / total)
    of_prefixes = np.diag(prefixes @ covariance @ prefixes.T)
    assert tree.prefix_variances == pytest.approx(of_prefixes - tree.prefix_shares**2 * total, abs=1e-9)


@pytest.mark.slow
def test_error_bars_are_those_of_the_noise() -> None:
    """Few samples, so that the number of all is noisy, too; intervals are said to hold in 95 of 100."""
    of, count = distribution(8, m=1), max(300, tries(1500))
    samples = [0] * 40 + [3] * 100 + [7] * 60
    exact = np.cumsum(np.bincount(samples, minlength=8)) / len(samples)
    errors, deviations, held = [], [], np.zeros(8)
    for slot in range(count):
        released = of.released(KEY, b"c", slot, in_bins(samples))
        cdf = np.array(released.low["cdf"]), np.array(released.high["cdf"])
        errors.append((cdf[0] + cdf[1]) / 2 - exact)
        deviations.append(released.noise_sd["cdf"])
        held += (cdf[0] - 1e-9 <= exact) & (exact <= cdf[1] + 1e-9)
    measured = np.sqrt(np.mean(np.square(errors), axis=0))[:-1]
    told = np.sqrt(np.mean(np.square(deviations), axis=0))[:-1]
    assert measured == pytest.approx(told, rel=0.12 + 3 / math.sqrt(count))
    assert min(held) / count > 0.95 - 3 * math.sqrt(0.05 * 0.95 / count)
