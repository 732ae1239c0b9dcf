"""Fingerprints of partials: those of other sums differ, those of the same sums do not, however these are cut."""

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from shoal.agents.audit.replay import fingerprints
from shoal.agents.audit.replay.fingerprints import Partials
from shoal.models.records import Partial

cells = st.integers(0, 600)
numbers = st.integers(-(2**63), 2**64 - 1)
totals = numbers | st.lists(numbers, min_size=1, max_size=12)
triples = st.lists(st.tuples(st.integers(-3, 3), cells, st.integers(1, 99), numbers), max_size=30)


def print_of(*partials: Partial) -> bytes:
    made = Partials()
    made.add(partials)
    return made.print


def summed(found: list[tuple[int, int, int, int]]) -> dict[tuple[int, int], tuple[int, int]]:
    """Samples and total of each tick and cell."""
    sums: dict[tuple[int, int], tuple[int, int]] = {}
    for start, cell, samples, total in found:
        before = sums.get((start, cell), (0, 0))
        sums[start, cell] = before[0] + samples, before[1] + total
    return sums


@given(triples, triples, st.randoms())
def test_prints_are_the_same_if_and_only_if_the_sums_are(first: list[Any], other: list[Any], random: Any) -> None:
    def cut(found: list[Any]) -> list[Partial]:
        left, partials = random.sample(found, len(found)), []
        while left:
            start, *numbers = left.pop()
            flat = list(numbers)
            while left and left[-1][0] == start and random.random() < 0.5:
                flat += left.pop()[1:]
            partials.append((start, flat))
        return partials

    whole = [(start, [cell, *both]) for (start, cell), both in summed(first).items()]
    assert print_of(*cut(first)) == print_of(*whole)
    assert (print_of(*cut(first)) == print_of(*cut(other))) == (summed(first) == summed(other))


@given(st.integers(-(2**63), 2**63 - 1), cells, st.integers(1, 99), totals, st.integers(0, 11), st.integers(1, 9))
def test_any_coordinate_of_a_total_counts(
    start: int, cell: int, samples: int, total: Any, place: int, more: int
) -> None:
    same, changed = print_of((start, [cell, samples, total])), [total] if isinstance(total, int) else list(total)
    changed[place % len(changed)] += more
    assert print_of((start, [cell, samples, changed if isinstance(total, list) else changed[0]])) != same
    assert print_of((start, [cell, 1, total]), (start, [cell, samples - 1, 0])) == same


@given(st.integers(0, 5), st.integers(0, 5), numbers)
def test_numbers_do_not_move_between_ticks_cells_samples_and_totals(one: int, other: int, number: int) -> None:
    assume(one != other and number)
    assert print_of((one, [0, 1, number])) != print_of((other, [0, 1, number]))
    assert print_of((0, [one, 1, number])) != print_of((0, [other, 1, number]))
    assert print_of((0, [one, number, 0])) != print_of((0, [one, 0, number]))
    assert print_of((one, [other, 1, number])) != print_of((other, [one, 1, number]))


def test_what_json_tells_apart_is_told_apart() -> None:
    """To Python `true` is 1: who wrote it is no shoal."""
    assert print_of((0, [1, 2, 3])) != print_of((0, [True, 2, 3]))
    assert print_of((0, [1, 2, 3])) == print_of((0, [1, 2, [3]]))
    assert print_of() == print_of((0, []))


@pytest.mark.parametrize("flat", [[1, 2, 0.5], [1, 2, ["3"]], [1, None, 3]])
def test_sums_that_are_no_whole_numbers_are_no_shoals(flat: list[Any]) -> None:
    with pytest.raises(TypeError):
        print_of((0, flat))


def test_who_names_many_cells_fills_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprints, "LANES", tuple(map(fingerprints.Cells, range(2))))
    monkeypatch.setattr(fingerprints, "MOST_CELLS", 10)
    flat = [number for cell in range(30) for number in (cell, 1, 7)]
    assert print_of((0, flat)) == print_of(*((0, flat[first : first + 3]) for first in range(0, 90, 3)))
    assert [len(cells) for cells in fingerprints.LANES] == [10, 10]
