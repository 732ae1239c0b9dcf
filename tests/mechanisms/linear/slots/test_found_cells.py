"""Cells that nobody declared: by which law a slot shows them, and that nothing of one slot outlives it."""

import itertools
import math
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import cache
from typing import Any
from unittest.mock import patch

import pytest

from shoal.mechanisms.groups import Closed
from shoal.mechanisms.linear.came import NEWCOMERS
from shoal.mechanisms.linear.slots import statistic as module
from shoal.mechanisms.selection.first_crossing import FirstCrossing, falling
from shoal.mechanisms.statistic import Contribution
from tests.mechanisms.linear.slots.slot_cases import KEY, NAMES, came, sided
from tests.support.effort import tries

EPSILON = Fraction(1)
MOST_RHO = 40


def selection(delta: Fraction, weights: tuple[int, ...] = (1,), unit: int = 1) -> FirstCrossing:
    return FirstCrossing(EPSILON, delta, 1, weights, unit, ends=True)


def shown(of: FirstCrossing, cell: str, slot: int, rows: list[Contribution], statistic: Any = "mean") -> bool:
    """Whether the product shows a cell of a slot."""
    return sided(statistic, groups=None, selection=of).is_shown(of, KEY, cell, slot, rows)


def newcomers(weight: int) -> list[Contribution]:
    return [Contribution(0, "", 0, 0, 5, 9), Contribution(0, "", NEWCOMERS, 0, 1, weight)]


def words_of(chance: float) -> Iterator[int]:
    """A uniform number."""
    return itertools.repeat(min(int(chance * 2**64), 2**64 - 1))


@contextmanager
def scripted(of: FirstCrossing, rho: int, uniform: float) -> Iterator[None]:
    """With rho as wished, and a uniform number for the tick."""
    x = math.exp(-float(of.epsilon) / of.unit)

    def words(key: bytes, cell: bytes, slot: int, name: str) -> Iterator[int]:
        return words_of((x**rho + x ** (rho + 1)) / 2 if name == "rho" else uniform)

    with patch.object(module, "slot_words", words):
        yield


@cache
def chance(of: FirstCrossing, weight: int) -> float:
    """That the product shows a cell of this weight: by all rho, and by where the tick's number turns the outcome."""
    total = 0.0
    x = math.exp(-float(of.epsilon) / of.unit)
    for rho in range(MOST_RHO * of.unit):
        p = min(1.0, x ** (of.threshold(1) + rho - weight)) if weight else 0.0
        for off in (1e-3, -1e-3):
            uniform = 1 - p + off * p
            if 1e-8 < p < 1:  # beyond that floats have too few digits
                with scripted(of, rho, uniform):
                    assert shown(of, "c", 7, newcomers(weight)) == (off > 0)
        total += (1 - x) * x**rho * p
    return total


CASES = [
    (selection(Fraction(1, 100)), 1),
    (selection(Fraction(1, 3)), 1),
    (selection(Fraction(1, 50), *falling(2)), 0),
    (selection(Fraction(1, 50), (1, 1, 1), 3), 1),
]


@pytest.mark.parametrize("of", [case for case, exact in CASES if exact])
def test_a_unit_moves_no_outcome_beyond_epsilon_and_delta(of: FirstCrossing) -> None:
    """Of one cell, for each weight that a unit may bring, and all numbers of others up to far beyond the threshold."""
    for weight in set(of.weights):
        factor = math.exp(float(of.epsilon) * weight / of.unit)
        for others in range(3 * of.threshold(1)):
            there, without = chance(of, others + weight), chance(of, others)
            delta = there if others == 0 else 0.0
            assert there <= factor * without + delta + 1e-9
            assert without <= factor * there + 1e-9
            assert 1 - there <= factor * (1 - without) + 1e-9
            assert 1 - without <= factor * (1 - there) + delta + 1e-9


@pytest.mark.parametrize("of", [case for case, exact in CASES if exact])
def test_delta_is_the_chance_that_a_unit_shows_a_cell_alone(of: FirstCrossing) -> None:
    alone = sum(chance(of, weight) for weight in of.weights)
    assert alone <= float(of.delta) * (1 + 1e-9)
    assert alone > 0.3 * float(of.delta)  # a threshold is whole: less is not lost


def test_with_weights_that_fall_a_unit_shows_its_cells_with_a_chance_of_delta_at_most() -> None:
    """At fine weights by the formula that the law above confirms."""
    of = CASES[2][0]
    x = math.exp(-float(of.epsilon) / of.unit)
    alone = sum(x ** (of.threshold(1) - weight) / (1 + x) for weight in of.weights)
    assert 0.99 * float(of.delta) < alone <= float(of.delta)


def test_nobody_shows_a_cell_whatever_the_draws_are() -> None:
    of = selection(Fraction(1, 2))
    with scripted(of, 0, 1 - 2**-53):
        assert not shown(of, "c", 7, [Contribution(0, "", 0, 0, 5, 9)])
        assert not shown(of, "c", 7, newcomers(0))
        assert not shown(of, "c", 7, [Contribution(0, "", NEWCOMERS, 1, 5, 9)])  # samples of a bin
        assert shown(of, "c", 7, newcomers(9))


@pytest.mark.parametrize("statistic", NAMES)
def test_each_slot_and_cell_has_draws_of_its_own(statistic: Any) -> None:
    """At a weight that shows half of them."""
    of = selection(Fraction(1, 10**6))
    rows = came(sided(statistic), [3], newcomers=of.threshold(1))
    slots, count = range(tries(200)), tries(200)
    by_slot = [shown(of, "c", slot, rows, statistic) for slot in slots]
    by_cell = [shown(of, str(cell), 7, rows, statistic) for cell in range(count)]
    for those in (by_slot, by_cell):
        assert 0.3 < sum(those) / len(those) < 0.95
    assert by_slot == [shown(of, "c", slot, rows, statistic) for slot in slots]
    words = [next(module.slot_words(KEY, b"c", slot, name)) for slot in (1, 2) for name in ("rho", "cross")]
    assert len(set(words)) == 4


def test_of_what_is_not_shown_nothing_is_said_and_nothing_kept() -> None:
    of = sided("mean", groups=None, selection=selection(Fraction(1, 10**6)))
    cells: Any = of.in_groups(KEY)
    rows = [("few", came(of, [3], newcomers=1)), ("many", came(of, [3, 5], newcomers=99))]
    few, many = cells.close(7, rows)
    assert few == Closed("few", None, is_published=False, is_hidden=True)
    assert many == Closed("many", of.released(KEY, b"many", 7, rows[1][1]))
    assert list(cells.changes()) == list(cells.hidden_changes()) == []
    assert (cells.due(), cells.head("many"), cells.level("many", 0)) == (None, {"releaser": []}, None)
    cells.restore("many", cells.head("many"), ())
    # and the next slot finds anew
    assert [one.is_published for one in cells.close(8, rows[:1])] == [False]
    assert shown(selection(Fraction(1, 10**6)), "many", 8, rows[1][1])
