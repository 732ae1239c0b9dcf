"""BestFit: each user in one array, arrays that are as few as they are said to be, and nothing but counts decides."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.slot.means.packing import Array, best_fit
from tests.mechanisms.slot.cell_cases import COUNTS


def plainly(counts: list[int], capacity: int) -> list[Array]:
    """The definition, in quadratic time."""
    arrays: list[Array] = []
    for user in sorted(range(len(counts)), key=lambda user: (-counts[user], user)):
        brings = min(counts[user], capacity)
        fitting = [array for array in arrays if array.fill + brings <= capacity]
        if not fitting:
            fitting = [Array([], 0)]
            arrays += fitting
        fullest = max(fitting, key=lambda array: array.fill)  # the first of several
        fullest.users.append(user)
        fullest.fill += brings
    return arrays


@given(st.lists(st.integers(1, 30), min_size=1, max_size=80), st.integers(1, 40))
def test_each_user_goes_to_the_fullest_array_with_room(counts: list[int], capacity: int) -> None:
    assert best_fit(counts, capacity) == plainly(counts, capacity)


@given(COUNTS, st.integers(1, 1200))
def test_each_user_lies_in_one_array_and_no_array_overflows(counts: list[int], capacity: int) -> None:
    arrays = best_fit(counts, capacity)
    assert sorted(user for array in arrays for user in array.users) == list(range(len(counts)))
    for array in arrays:
        assert array.fill == sum(min(counts[user], capacity) for user in array.users) <= capacity
    # as many as S / capacity at least, and no two would fit into one
    samples = sum(array.fill for array in arrays)
    assert -(-samples // capacity) <= len(arrays) <= 1 + 2 * samples / capacity
    emptiest = sorted(array.fill for array in arrays)[:2]
    assert len(arrays) == 1 or sum(emptiest) > capacity


@given(COUNTS, st.integers(1, 50), st.randoms(use_true_random=False))
def test_the_fills_do_not_depend_on_the_order_of_users(counts: list[int], cap: int, shuffle: random.Random) -> None:
    shuffled = counts.copy()
    shuffle.shuffle(shuffled)
    assert [array.fill for array in best_fit(shuffled, cap)] == [array.fill for array in best_fit(counts, cap)]


def test_ties_go_by_position_and_by_age() -> None:
    arrays = best_fit([3, 3, 1, 1], 4)
    assert [array.users for array in arrays] == [[0, 2], [1, 3]]


def test_an_array_holds_something() -> None:
    with pytest.raises(ValueError, match="capacity must be greater than 0"):
        best_fit([1], 0)
