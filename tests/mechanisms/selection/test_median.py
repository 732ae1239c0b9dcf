"""The private median: packing, bins, costs, and its exact output law against e**epsilon."""

import itertools
import math
import random
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.noise.keyed import Bits, derive
from shoal.mechanisms.selection import median
from shoal.mechanisms.selection.median import UnitSamples, bins, costs, midpoint, pack
from tests.mechanisms.mechanism_cases import KEY

UNITS = st.lists(
    st.tuples(st.sampled_from([1, 2, 4, 8]), st.integers(0, 3), st.integers(0, 8)), min_size=8, max_size=40
).map(
    lambda rows: [UnitSamples(samples, at, f"{i:032x}", samples * value) for i, (samples, at, value) in enumerate(rows)]
)


def law(units: list[UnitSamples], level: int, arrays: int, steps: int, epsilon: Fraction) -> list[float]:
    """The output law, from packing, costs and the definition of the exponential mechanism alone."""
    totals = [sum(unit.total for unit in array) for array in pack(units, 1 << (level - 1), arrays)]
    weights = [math.exp(-float(epsilon) * cost / 4) for cost in costs(totals, (1 << (level - 1)) * steps, bins(level))]
    return [weight / sum(weights) for weight in weights]


@given(UNITS)
def test_each_unit_lies_in_one_array_and_each_array_is_full(units: list[UnitSamples]) -> None:
    arrays = pack(units, 8, sum(unit.samples for unit in units) // 8)
    assert all(sum(unit.samples for unit in array) == 8 for array in arrays)
    assert max(Counter(unit.pseudonym for array in arrays for unit in array).values()) == 1
    # larger contributors first
    order = [unit.samples for array in arrays for unit in array]
    assert order == sorted(order, reverse=True)


@given(UNITS, st.randoms(use_true_random=False), st.integers(0, 8))
def test_who_lies_where_is_decided_without_values_and_without_arrival(
    units: list[UnitSamples], shuffle: random.Random, value: int
) -> None:
    count = sum(unit.samples for unit in units) // 8
    others = [unit._replace(total=value * unit.samples) for unit in units]
    shuffle.shuffle(others)
    one, other = pack(units, 8, count), pack(others, 8, count)
    assert [[unit.pseudonym for unit in a] for a in one] == [[unit.pseudonym for unit in a] for a in other]


def test_units_that_cannot_be_packed_stop() -> None:
    with pytest.raises(ValueError, match="do not fill the arrays"):
        pack([UnitSamples(2, 0, "a", 0)], 4, 1)
    with pytest.raises(ValueError, match="do not fill the arrays"):
        pack([], 4, 1)
    with pytest.raises(ValueError, match="would lie in two arrays"):
        pack([UnitSamples(3, 0, "a", 0), UnitSamples(2, 0, "b", 0)], 4, 1)


def test_bins_are_half_the_root_rounded_up() -> None:
    assert [bins(level) for level in range(2, 40)] == [math.ceil(math.sqrt(2**level) / 2) for level in range(2, 40)]


@given(st.lists(st.integers(0, 80), min_size=1, max_size=12), st.integers(2, 8))
def test_costs_count_the_means_on_either_side_of_the_nearest_bin(totals: list[int], level: int) -> None:
    count = bins(level)
    middles = [midpoint(i, count) for i in range(count)]
    nearest = [max(middles, key=lambda y: (-abs(y - Fraction(t, 80)), y)) for t in totals]
    expected = [max(sum(y < middle for y in nearest), sum(y > middle for y in nearest)) for middle in middles]
    assert costs(totals, 80, count) == expected


@pytest.mark.parametrize(("level", "arrays"), [(3, 3), (5, 4), (6, 3)])
def test_one_array_moves_each_cost_by_at_most_one(level: int, arrays: int) -> None:
    """All data sets of a few arrays and bins, all changes of one array: half of epsilon at most, and nearly that."""
    count, epsilon, worst = bins(level), Fraction(1), 0.0
    weights = {}
    for totals in itertools.product(range(count), repeat=arrays):
        cost = costs(totals, count, count)
        one = [math.exp(-float(epsilon) * c / 4) for c in cost]
        weights[totals] = cost, [w / sum(one) for w in one]
    for totals, (cost, one) in weights.items():
        for value in range(count):
            neighbour = (value, *totals[1:])
            other_cost, other = weights[neighbour]
            assert max(abs(a - b) for a, b in zip(cost, other_cost, strict=True)) <= 1
            worst = max(worst, *(abs(math.log(a / b)) for a, b in zip(one, other, strict=True)))
    assert 0.2 * epsilon <= worst <= epsilon / 2 + Fraction(1, 10**9)


@pytest.mark.parametrize("level", [3, 4, 5])
def test_one_unit_with_several_blocks_stays_within_epsilon(level: int) -> None:
    """A unit's samples all go from low to high: the law of the prior changes by at most a factor e**(epsilon / 2)."""
    size, steps, epsilon = 1 << (level - 1), 4, Fraction(1)
    units = [UnitSamples(size >> (i % 3), i, f"{i:032x}", (i % 5) * (size >> (i % 3))) for i in range(12)]
    for changed, low, high in itertools.product(range(12), (0, 2), (1, 4)):
        one, other = (
            law(
                [unit._replace(total=v * unit.samples) if i == changed else unit for i, unit in enumerate(units)],
                level,
                6,
                steps,
                epsilon,
            )
            for v in (low, high)
        )
        assert all(abs(math.log(a / b)) <= epsilon / 2 + Fraction(1, 10**9) for a, b in zip(one, other, strict=True))


def test_a_unit_in_several_arrays_would_break_it() -> None:
    """Why the order of packing matters: blocks taken as units of their own move the law by more than epsilon."""
    steps, level, epsilon = 4, 5, Fraction(1)

    # given a unit whose blocks of 8, 4, 2, 1 and 1 samples go to arrays with others, all changed from lowest to highest
    def arrays(value: int) -> list[int]:
        return [16 * value] * 5 + [16, 16, 32, 48]

    laws = []
    for value in (0, 4):
        weights = [math.exp(-float(epsilon) * c / 4) for c in costs(arrays(value), 16 * steps, bins(level))]
        laws.append([w / sum(weights) for w in weights])
    assert max(abs(math.log(a / b)) for a, b in zip(*laws, strict=True)) > epsilon


def test_the_median_is_drawn_with_its_exact_law() -> None:
    totals, bits, epsilon = [1, 3, 9, 9, 10, 15], Bits(derive(KEY, "median")), Fraction(3)
    drawn = Counter(median.median_bin(totals, 16, bins(6), epsilon, bits.draw(index)) for index in range(10_000))
    weights = [math.exp(-3 * c / 4) for c in costs(totals, 16, 4)]
    for index, weight in enumerate(weights):
        p = weight / sum(weights)
        assert abs(drawn[index] - 10_000 * p) <= 5 * math.sqrt(10_000 * p * (1 - p))


@pytest.mark.parametrize(("level", "arrays"), [(8, 2 * 214), (10, 2 * 237)])
def test_the_prior_is_as_near_as_claimed(level: int, arrays: int) -> None:
    """Claim E.1 with epsilon = 0.5 and beta = 0.01; 200 priors, of which 2 % may fail."""
    size, bits, failures = 1 << (level - 1), Bits(derive(KEY, "coins", level)), 0
    bound = 2 * math.sqrt(math.log(2 * arrays / 0.01) / 2**level)
    for trial in range(200):
        words = bits.draw(trial)
        coins = [sum((next(words) & next(words)).bit_count() for _ in range(size // 64)) for _ in range(arrays // 2)]
        chosen = median.median_bin(coins, size, bins(level), Fraction(1), words)
        failures += abs(float(midpoint(chosen, bins(level))) - 0.25) > bound
    assert failures <= 4
