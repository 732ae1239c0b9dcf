"""Cells that nobody declared: by which law a slot shows them, and that nothing of one slot outlives it."""

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache, partial
from typing import Any

import pytest

from shoal.mechanisms.groups import Closed
from shoal.mechanisms.linear.came import NEWCOMERS
from shoal.mechanisms.linear.slots.statistic import FoundCells
from shoal.mechanisms.selection.first_crossing import FirstCrossing, falling
from shoal.mechanisms.statistic import Contribution
from tests.mechanisms.linear.slots.slot_cases import KEY, NAMES, came, sided
from tests.support.effort import tries

EPSILON = Fraction(1)
MOST_RHO = 40


def selection(delta: Fraction, weights: tuple[int, ...] = (1,), unit: int = 1) -> FirstCrossing:
    return FirstCrossing(EPSILON, delta, 1, weights, unit, ends=True)


def found(of: FirstCrossing, statistic: Any = "slot-mean") -> FoundCells:
    groups = sided(statistic, groups=None, selection=of).in_groups(KEY)
    assert isinstance(groups, FoundCells)
    return groups


def newcomers(weight: int) -> list[Contribution]:
    return [Contribution(0, "", 0, 0, 5, 9), Contribution(0, "", NEWCOMERS, 0, 1, weight)]


def words_of(chance: float) -> Iterator[int]:
    """A uniform number."""
    return itertools.repeat(min(int(chance * 2**64), 2**64 - 1))


class Scripted(FoundCells):
    """With rho as wished, and a uniform number for the tick."""

    rho, uniform = 0, 0.5

    def _words(self, cell: bytes, slot: int, name: str) -> Iterator[int]:
        x = math.exp(-float(self._selection.epsilon) / self._selection.unit)
        return words_of((x**self.rho + x ** (self.rho + 1)) / 2 if name == "rho" else self.uniform)


@cache
def chance(of: FirstCrossing, weight: int) -> float:
    """That the product shows a cell of this weight: by all rho, and by where the tick's number turns the outcome."""
    cells, total = Scripted(sided("slot-mean"), of, KEY), 0.0
    x = math.exp(-float(of.epsilon) / of.unit)
    for rho in range(MOST_RHO * of.unit):
        cells.rho = rho
        p = min(1.0, x ** (of.threshold(1) + rho - weight)) if weight else 0.0
        for off in (1e-3, -1e-3):
            uniform = 1 - p + off * p
            if 1e-8 < p < 1:  # beyond that floats have too few digits
                cells.uniform = uniform
                assert cells.is_shown("c", 7, newcomers(weight)) == (off > 0)
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
            shown, without = chance(of, others + weight), chance(of, others)
            delta = shown if others == 0 else 0.0
            assert shown <= factor * without + delta + 1e-9
            assert without <= factor * shown + 1e-9
            assert 1 - shown <= factor * (1 - without) + 1e-9
            assert 1 - without <= factor * (1 - shown) + delta + 1e-9


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
    cells = Scripted(sided("slot-mean"), selection(Fraction(1, 2)), KEY)
    cells.uniform = 1 - 2**-53
    assert not cells.is_shown("c", 7, [Contribution(0, "", 0, 0, 5, 9)])
    assert not cells.is_shown("c", 7, newcomers(0))
    assert not cells.is_shown("c", 7, [Contribution(0, "", NEWCOMERS, 1, 5, 9)])  # samples of a bin
    assert cells.is_shown("c", 7, newcomers(9))


@pytest.mark.parametrize("statistic", NAMES)
def test_each_slot_and_cell_has_draws_of_its_own(statistic: Any) -> None:
    """At a weight that shows half of them."""
    of = selection(Fraction(1, 10**6))
    cells = found(of, statistic)
    rows = came(sided(statistic), [3], newcomers=of.threshold(1))
    slots, count = range(tries(200)), tries(200)
    by_slot = [cells.is_shown("c", slot, rows) for slot in slots]
    by_cell = [cells.is_shown(str(cell), 7, rows) for cell in range(count)]
    for shown in (by_slot, by_cell):
        assert 0.3 < sum(shown) / len(shown) < 0.95
    assert by_slot == [cells.is_shown("c", slot, rows) for slot in slots]
    words = [next(cells._words(b"c", slot, name)) for slot in (1, 2) for name in ("rho", "cross")]
    assert len(set(words)) == 4


def test_of_what_is_not_shown_nothing_is_said_and_nothing_kept() -> None:
    of = sided("slot-mean", groups=None, selection=selection(Fraction(1, 10**6)))
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
    assert partial(cells.is_shown, "many")(8, rows[1][1])
