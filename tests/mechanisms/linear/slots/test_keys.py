"""What a metric's keys say of statistics per slot that protect presence, and what is refused."""

from fractions import Fraction
from typing import Any

import pytest

from shoal.mechanisms.linear.sides import TwoSides
from shoal.mechanisms.selection.first_crossing import FirstCrossing
from tests.mechanisms.linear.slots.slot_cases import HEXAGONS, made, metric
from tests.support.cover import in_a_loop

FOUND = {"cell": HEXAGONS, "delta": "1e-9"}


@in_a_loop
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"algorithm": "best"}, "algorithm is for relation values: add-remove has one of its own; remove it"),
        ({"slot": None, "unit": "user"}, "every is missing"),
        ({"value": None}, "value is missing"),
        ({"value": ["x", "y"], "range": [(0, 1), (0, 1)]}, "several values are for relation values"),
        ({"statistic": "variance", "grid": 2**17}, "grid of a variance is at most 65536"),
        ({"step": "1h"}, "step is now every"),
        ({"every": "1h"}, "every is not for statistics per slot"),
        ({"life": "9h"}, "life is not for statistics per slot"),
        ({"withheld": True}, "withheld is not for statistics per slot"),
        ({"users": 100}, "users is not for relation add-remove"),
        ({"clip": "auto", "users": 99}, "users is not for relation add-remove"),
        ({"clip": {"share": "0.1"}}, "clip is for means and sums of every step"),
        ({"prior": 3}, "prior is not for relation add-remove"),
        ({"simultaneous": 3}, "simultaneous is not for relation add-remove"),
        ({"min_users": 5}, "min_users goes by how many there are, which relation add-remove protects"),
        ({"contribution_cap": "median"}, "contribution_cap goes by how many there are"),
        ({"spread_share": "0.2"}, "spread_share goes by how many there are"),
        ({"max_cells": 2, **FOUND}, "max_cells is now max_groups"),
        ({"max_groups": 65, **FOUND}, "max_groups is at most 64 where keys are found; use fewer, or declare groups"),
        ({"max_per_group": 4, **FOUND}, "max_per_group limits each group, and here one limit is for all groups"),
        ({"max_slots": 2, "unit": "user-day"}, "max_slots is for relation values"),
        ({"across_cells": "split", **FOUND}, "across_cells is for relation values"),
        ({"max_groups": 2}, "max_groups needs cells: add cell or group, or remove it"),
        ({"group": "g", "groups": ["a"], "max_groups": 2}, "max_contributions limits a unit in all cells and slots"),
        ({"max_gap": 3}, "max_gap is for sums, counts, variances and means with a decay, under relation values"),
        ({"bins": 8}, "bins is for statistic distribution"),
        ({"max_contributions": None}, "max_contributions is missing"),
        ({"unit": "event", "max_contributions": None}, "unit event is not for statistics per slot"),
        ({"unit": "user-90m"}, "unit user-90m is not a whole number of slots"),
        ({"start": None}, "start is missing; add it: the time at which the first slot begins"),
        ({"start": "1970-01-01T00:30:00Z"}, "start is not a multiple of slot"),
        ({"end": "1970-01-01T02:30:00Z"}, "end is not a multiple of slot"),
        ({"end": "1970-01-01T02:00:00Z"}, "end is not after start"),
        ({"group": "g", **FOUND}, "cell and group both say where"),
        ({"groups": ["a"]}, "groups needs cells: add cell or group"),
        ({"selection": {"epsilon": "0.2"}}, "selection needs cells"),
        ({"delta": "0.01"}, "delta must be 0: it is for cells that nobody declared"),
        ({"group": "g"}, "delta must be above 0, for cells that nobody declared"),
        ({"group": "g", "groups": ["a"], "delta": "1e-9"}, "delta must be 0"),
        ({"group": "g", "groups": ["a"], "selection": {"epsilon": "0.2"}}, "groups declares them"),
        ({"selection": {"keys": 2}, **FOUND}, "keys is now max_groups"),
        ({"selection": {"epsilon": 1}, **FOUND}, "selection takes all of epsilon"),
        ({"cell": HEXAGONS, "groups": ["abc"]}, "groups has 'abc', which is no cell of resolution 7"),
        ({"cell": HEXAGONS, "groups": ["881f1d48b7fffff"]}, "which is no cell of resolution 7"),
        ({"cell": HEXAGONS, "groups": ["871F1D48BFFFFFF"]}, "write H3 indices as releases do"),
        ({"epsilon": "1e-70"}, "epsilon must be at least"),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        made(**given)


def test_what_the_keys_say() -> None:
    alone = made()
    assert (alone.groups, alone.first, alone.end, alone.selection, alone.clamps) == (("",), 2, None, None, True)
    assert alone.sides == TwoSides(alone.grid.steps)
    assert (alone.grid.steps, alone.sums.width, alone.sums.epsilon) == (2**20, 4 * 2**20, Fraction(1))
    assert metric().parts.unit.name == "user-slot"
    declared = made(cell=HEXAGONS, groups=["871f1d48bffffff"], end="1970-01-01T09:00:00Z", clamp=False)
    assert (declared.groups, declared.end, declared.epsilon) == (("871f1d48bffffff",), 9, Fraction(1))
    assert not declared.clamps
    both = made(statistic="variance")
    assert (both.grid.steps, both.sums.width, both.sums.epsilon) == (2**16, 4 * 2**32, Fraction(1))
    found = made(**FOUND)
    assert (found.groups, found.epsilon) == (None, Fraction(1, 2))
    assert found.selection == FirstCrossing(Fraction(1, 2), Fraction(1, 10**9), 1, ends=True)


def test_a_unit_of_a_slot_weighs_most_in_its_first_cell_and_a_longer_one_alike_in_all() -> None:
    of_slot = made(selection={"epsilon": "0.2"}, max_groups=3, **FOUND).selection
    assert of_slot is not None
    assert (of_slot.weights, of_slot.unit) == ((35746, 17873, 11915), 65536)
    for unit in ("user-day", "user"):
        of_day = made(max_groups=3, unit=unit, **FOUND).selection
        assert of_day is not None
        assert (of_day.weights, of_day.unit, of_day.horizon, of_day.ends) == ((1, 1, 1), 3, 1, True)


def test_with_epsilon_1_and_delta_1e_9_a_cell_needs_22_people() -> None:
    """T = 1: ceil(1 + ln(1 / delta) - ln(1 + 1 / e))."""
    found = made(epsilon=2, selection={"epsilon": 1}, **FOUND).selection
    assert found is not None
    assert found.threshold(1) == 22


def test_cells_that_nobody_declared_are_found_by_metrics_that_protect_presence() -> None:
    assert metric(**FOUND).parts.finds_keys
    assert not metric(cell=HEXAGONS, groups=["871f1d48bffffff"]).parts.finds_keys
    assert not metric().parts.finds_keys
