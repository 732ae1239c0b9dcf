"""A difference is found wherever it is, and can be read."""

from typing import Any

import pytest

from tests.golden.difference import excerpts, first_difference
from tests.support.cover import in_a_loop


@in_a_loop
@pytest.mark.parametrize(
    ("stored", "found", "told"),
    [
        ({"a": 1}, {"a": 2}, ".a: 1 is stored, 2 found"),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, "the answer: keys a, b are stored, b, a found"),
        ({"a": [{"b": 1}]}, {"a": [{"c": 1}]}, ".a[0]: keys b are stored, c found"),
        ([1, 2], [1], ": 2 entries are stored, 1 found"),
        (1, 1.0, ": 1 is stored, 1.0 found"),
        (1.0, 1.00001, ": 1.0 is stored, 1.00001 found"),
        (False, 0, ": False is stored, 0 found"),
        (None, {}, ": None is stored, {} found"),
        ({"a": "one"}, {"a": "onto"}, ".a:\n  stored one\n  found  onto\n"),
    ],
)
def test_a_difference_is_told_with_its_place(stored: Any, found: Any, told: str) -> None:
    assert first_difference(stored, found) == told


@pytest.mark.parametrize("value", [{"a": [1, 2.0, "x", None, True]}, [], 1e-9])
def test_equal_answers_have_none(value: Any) -> None:
    assert first_difference(value, value) is None


def test_fractions_may_differ_as_machines_do() -> None:
    assert first_difference({"a": 1.0}, {"a": 1.0000000001}) is None


def test_of_long_lines_the_part_is_shown_in_which_they_differ() -> None:
    stored, found = excerpts("a" * 500 + "b" + "c" * 500, "a" * 500 + "d" + "c" * 500).splitlines()
    assert stored == f"  stored …{'a' * 60}b{'c' * 59}…"
    assert found == f"  found  …{'a' * 60}d{'c' * 59}…"
    assert excerpts("x", None) == "  stored x\n  found  (no such line)"
