"""Where values are clipped from above: the ladder, the choice, when it is made, and what both tell of a unit."""

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.noise.keyed import Bits
from shoal.mechanisms.selection.upper_end import ENOUGH, RUNGS, Ladder, UpperEnd
from tests.support.effort import examples, tries

HALF = Fraction(1, 2)
FOUR = Ladder(4)  # rungs 4, 3, 2, 1: few enough to go through all inputs


def words(seed: int) -> Iterator[int]:
    return Bits(seed.to_bytes(32, "big")).draw(0)


# ---------------------------------------------------------------- the ladder


@examples(60)
@given(st.one_of(st.integers(1, 100), st.integers(1, 2**32)), st.integers(0, 2**32))
def test_a_ladder_is_a_quarter_of_a_halving_a_rung_exactly(steps: int, value: int):
    ladder = Ladder(steps)
    for number in range(RUNGS):
        exact = [k for k in ladder.rungs if k**4 << number >= steps**4]  # as large as W 2**(-number / 4), at least
        assert (exact[-1] - 1) ** 4 << number < steps**4
    assert list(ladder.rungs) == sorted(set(ladder.rungs), reverse=True)
    assert (ladder.rungs[0], ladder.rungs[-1] >= 1, len(ladder.rungs) <= RUNGS) == (steps, True, True)
    value = min(value, steps)
    holding = [number for number, rung in enumerate(ladder.rungs) if value <= rung]
    assert ladder.rung_of(value) == max(holding)


def test_the_usual_grid_has_all_rungs():
    assert len(Ladder(2**20).rungs) == RUNGS


# ---------------------------------------------------------------- the choice


def chances(end: UpperEnd, numbers: Sequence[int]) -> list[float]:
    """The law by its definition, from the units' numbers and not from the product's costs."""
    n, rungs = sum(numbers), end.ladder.rungs
    above = [sum(numbers[:number]) for number in range(len(rungs))]
    eps, share = float(end.epsilon), float(end.share)
    weights = [math.exp(-eps * abs(count - share * n) / (2 * (1 - share))) for count in above]
    return [weight / sum(weights) for weight in weights]


@pytest.mark.parametrize("share", [Fraction(1, 100), Fraction(1, 7), HALF])
def test_a_rung_is_chosen_by_its_law(share: Fraction):
    end, numbers = UpperEnd(FOUR, Fraction(2), Fraction(1), share), (1, 0, 2, 4)
    expected, many = chances(end, numbers), tries(4000)
    found = [0] * 4
    for seed in range(many):
        found[end.choose(numbers, words(seed))] += 1
    for count, chance in zip(found, expected, strict=True):
        assert abs(count / many - chance) < 5 * math.sqrt(chance * (1 - chance) / many)


def small(units: int) -> Iterator[tuple[int, ...]]:
    """All numbers of so many units or fewer."""
    return (each for each in itertools.product(range(units + 1), repeat=4) if sum(each) <= units)


def more(numbers: Sequence[int], rung: int) -> tuple[int, ...]:
    """One unit more."""
    return tuple(count + (number == rung) for number, count in enumerate(numbers))


@pytest.mark.parametrize("share", [Fraction(1, 100), Fraction(1, 20), Fraction(1, 3), HALF])
def test_a_unit_moves_no_cost_by_more_than_1_less_the_share_and_some_by_that(share: Fraction):
    end = UpperEnd(FOUR, Fraction(1), Fraction(1), share)
    moved = [
        abs(a - b)
        for numbers in small(4)
        for rung in range(4)
        for a, b in zip(end.costs(numbers), end.costs(more(numbers, rung)), strict=True)
    ]
    assert Fraction(max(moved), share.denominator) == 1 - share


@pytest.mark.parametrize("share", [Fraction(1, 20), Fraction(1, 3), HALF])
def test_the_choice_costs_epsilon_and_hardly_less_somewhere(share: Fraction):
    """All small inputs; and many units, among whom a top rung is compared with a low one."""
    end = UpperEnd(FOUR, Fraction(1), Fraction(1), share)
    many = [(0, 0, 0, 60), (1, 0, 0, 60), (0, 0, 30, 30), (30, 0, 0, 30), (2, 0, 0, 58)]
    worst = 0.0
    for numbers in [*small(4), *many]:
        for rung in range(4):
            pairs = zip(chances(end, numbers), chances(end, more(numbers, rung)), strict=True)
            worst = max([worst, *(abs(math.log(a / b)) for a, b in pairs)])
    assert 0.75 < worst <= 1 + 1e-9


# ---------------------------------------------------------------- when


def test_it_is_made_for_sure_once_there_are_so_many_units_and_before_by_its_law():
    end = UpperEnd(FOUR, Fraction(40), Fraction(1, 2), HALF)
    assert (end.needed, end.cost) == (1, Fraction(81, 2))
    assert all(end.is_due(units, 2, words(seed)) for seed in range(20) for units in (3, 4, 99))
    many = tries(4000)
    for units in (0, 1, 2):
        chance = math.exp(-(3 - units) / 2)
        found = sum(end.is_due(units, 2, words(seed)) for seed in range(many)) / many
        assert abs(found - chance) < 5 * math.sqrt(chance * (1 - chance) / many)
    ratio = math.exp(-0.5)
    zeros = sum(end.rho(words(seed)) == 0 for seed in range(many)) / many
    assert abs(zeros - (1 - ratio)) < 5 * math.sqrt(ratio * (1 - ratio) / many)


MOST_RHO = 30


@cache
def law(end: UpperEnd, path: tuple[tuple[int, ...], ...]) -> dict[Any, float]:
    """Of the tick of the choice and of the rung, for units' numbers by tick; None is never."""
    found: dict[Any, float] = {None: 0.0}
    ratio = math.exp(-float(end.crossing))
    for rho in range(MOST_RHO):
        alive = (1 - ratio) * ratio**rho
        for tick, numbers in enumerate(path):
            p = math.exp(-float(end.crossing) * max(0, end.needed + rho - sum(numbers)))
            for rung, chance in enumerate(chances(end, numbers)):
                found[tick, rung] = found.get((tick, rung), 0.0) + alive * p * chance
            alive *= 1 - p
        found[None] += alive
    return found


@pytest.mark.parametrize(("epsilon", "share"), [(Fraction(20), HALF), (Fraction(60), Fraction(1, 3))])
def test_when_and_which_cost_the_sum_of_both_and_no_delta(epsilon: Fraction, share: Fraction):
    """Over all streams of three ticks, to which a unit comes at any tick with an extreme number."""
    end = UpperEnd(FOUR, epsilon, Fraction(1), share)
    comes = [(0, 0, 0, 0), (1, 0, 0, 0), (0, 0, 0, 1), (0, 1, 0, 1), (0, 0, 0, 3)]
    worst = 0.0
    for ticks in itertools.product(comes, repeat=3):
        path = tuple(tuple(map(sum, zip(*ticks[: tick + 1], strict=True))) for tick in range(3))
        for at, rung in itertools.product(range(3), (0, 3)):
            there = tuple(more(numbers, rung) if tick >= at else numbers for tick, numbers in enumerate(path))
            one, other = law(end, path), law(end, there)
            assert one.keys() == other.keys()
            worst = max(worst, *(abs(math.log(one[what] / other[what])) for what in one if one[what] > 1e-12))
    assert worst <= float(end.cost) + 1e-9
    assert worst > float(epsilon) / 2


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"share": Fraction(51, 100)}, "share must be 1/2 at most"),
        ({"share": Fraction(0)}, "share must be greater than 0"),
        ({"epsilon": Fraction(0)}, "epsilon must be greater than 0"),
        ({"crossing": Fraction(0)}, "crossing must be greater than 0"),
        ({"share": 0.01}, "share must be an int or a Fraction"),
    ],
)
def test_what_would_cost_more_or_nothing_is_refused(given: dict[str, Any], why: str):
    usual: dict[str, Any] = {"ladder": FOUR, "epsilon": Fraction(1), "crossing": Fraction(1), "share": Fraction(1, 100)}
    with pytest.raises((ValueError, TypeError), match=why):
        UpperEnd(**(usual | given))


def test_so_many_units_are_waited_for_that_the_rank_of_the_choice_is_told():
    end = UpperEnd(FOUR, Fraction(1, 5), Fraction(1, 50), Fraction(1, 100))
    assert end.needed == ENOUGH / (end.share * end.epsilon) == 10_000
    assert "share=1/100, needed=10000" in end.shape()
