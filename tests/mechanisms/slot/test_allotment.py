"""Users in many cells: the quick loop against a literal one, and the law that a user's shares sum to at most 1."""

from collections import Counter, defaultdict
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.slot import allotment, chop_users
from shoal.mechanisms.slot.allotment import (
    Allotment,
    Cells,
    chop,
    mean_and_variance_error,
    mean_error,
    recommended,
    result_of,
    split,
    sweep,
)
from tests.support.cover import in_a_loop

USERS, CELLS = "abcdef", "12345"
samples = st.sampled_from([1, 1, 1, 2, 3, 7])
members = st.dictionaries(st.sampled_from(USERS), samples, min_size=1)
places = st.dictionaries(st.sampled_from(CELLS), members, min_size=1)
epsilons = st.sampled_from([Fraction(1, 10), Fraction(1), Fraction(5), Fraction(40)])
numbers = st.integers(1, len(CELLS))


def literal(cells: Cells, most: int, epsilon: Fraction) -> tuple[dict[str, set[str]], int | None, Fraction]:
    """Who leaves which cell, where the loop stops, and its threshold: exactly, and as slowly as it is written."""
    inside = {cell: set(cells[cell]) for cell in sorted(cells)}
    users = sorted({user for users in cells.values() for user in users})
    count = {user: sum(user in users for users in inside.values()) for user in users}
    at = epsilon / max(count.values())
    left: dict[str, set[str]] = {cell: set() for cell in inside}
    stopped = None

    def error(cell: str, kept: set[str]) -> Fraction | float:
        counts = [cells[cell][user] for user in kept]
        if not counts:
            return float("inf")
        return 1 - Fraction(sum(counts), sum(cells[cell].values())) + Fraction(max(counts)) / (at * sum(counts))

    threshold = max(error(cell, users) for cell, users in inside.items())
    while (reached := max(count.values())) > most:
        user = min(user for user in users if count[user] == reached)
        after = {cell: error(cell, kept - {user}) for cell, kept in inside.items() if user in kept}
        best = min(after, key=lambda cell: (after[cell], cell))
        if stopped is None and after[best] > threshold:
            stopped = reached
        inside[best].discard(user)
        left[best].add(user)
        count[user] -= 1
    return {cell: users for cell, users in left.items() if users}, stopped, Fraction(threshold)


def chopped(cells: Cells, most: int, epsilon: Fraction = Fraction(1), **more: Any) -> Allotment:
    return result_of(chop(cells, most, epsilon, **more))


@given(places, numbers, epsilons)
def test_the_quick_loop_does_what_the_slow_one_does(cells: Cells, most: int, epsilon: Fraction) -> None:
    found = chopped(cells, most, epsilon)
    left, stopped, threshold = literal(cells, most, epsilon)
    assert {cell: set(users) for cell, users in found.left_out.items()} == left
    assert found.stopped == stopped
    assert found.threshold == pytest.approx(float(threshold))


@in_a_loop
@pytest.mark.parametrize("largest", [2, 4, 9, 30])
def test_so_it_does_with_more_users_and_cells(largest: int) -> None:
    random, names = Random(largest), [f"u{user:02}" for user in range(12)]
    for epsilon in [Fraction(1, 2), Fraction(2), Fraction(4), Fraction(8), Fraction(30)] * 10:
        # given users some of whom have many samples in some cells
        cells = {
            cell: {user: random.choice([1, 1, 1, largest]) for user in random.sample(names, random.randint(3, 9))}
            for cell in "abcdefgh"
        }
        left, stopped, _ = literal(cells, 2, epsilon)
        found = chopped(cells, 2, epsilon)
        assert ({cell: set(users) for cell, users in found.left_out.items()}, found.stopped) == (left, stopped)


@given(places, epsilons)
def test_the_number_that_is_recommended_is_where_the_loop_stops(cells: Cells, epsilon: Fraction) -> None:
    _, stopped, _ = literal(cells, 1, epsilon)
    assert result_of(recommended(cells, epsilon)) == (stopped or 1)


def counts_of(cells: Cells, found: Allotment) -> Counter[str]:
    """Of every user the cells that it still is in."""
    return Counter(
        user for cell, users in cells.items() for user in users if user not in found.left_out.get(cell, frozenset())
    )


@given(places, numbers, epsilons, st.sampled_from([mean_error, mean_and_variance_error]))
def test_the_shares_of_a_users_cells_sum_to_epsilon_at_most(
    cells: Cells, most: int, epsilon: Fraction, error: Any
) -> None:
    found = chopped(cells, most, epsilon, error=error)
    before, after = Counter(user for users in cells.values() for user in users), counts_of(cells, found)
    spent: dict[str, Fraction] = defaultdict(Fraction)
    for cell, users in cells.items():
        for user in users.keys() - found.left_out.get(cell, frozenset()):
            spent[user] += found.share(cell, epsilon)
    assert max(spent.values()) <= epsilon
    assert spent.keys() == before.keys()
    # everybody is in as many cells as before, or in the most that are allowed
    assert after == {user: min(size, most) for user, size in before.items()}
    assert (found.before, found.after) == (max(before.values()), max(after.values()))
    for cell, divisor in found.divisors.items():
        kept = cells[cell].keys() - found.left_out.get(cell, frozenset())
        assert divisor == max(after[user] for user in kept)
        sizes, total = [cells[cell][user] for user in kept], sum(cells[cell].values())
        assert found.dropped.get(cell, 0) == total - sum(sizes)
        assert found.errors[cell] == error(sum(sizes), max(sizes), total, float(epsilon) / divisor)
    assert found.degradation == max(found.errors.values()) / found.threshold


@given(places, st.lists(numbers, min_size=1), epsilons)
def test_several_numbers_at_once_are_each_as_if_alone(cells: Cells, counts: list[int], epsilon: Fraction) -> None:
    found = result_of(sweep(cells, counts, epsilon))
    assert found == [chopped(cells, most, epsilon) for most in sorted(set(counts), reverse=True)]


@given(places, numbers, epsilons)
def test_the_order_in_which_counts_came_has_no_say(cells: Cells, most: int, epsilon: Fraction) -> None:
    other = {cell: dict(reversed([*users.items()])) for cell, users in reversed([*cells.items()])}
    assert chopped(other, most, epsilon) == chopped(cells, most, epsilon)


@given(places, numbers, epsilons)
def test_it_pauses_often_and_what_comes_of_it_is_the_same(cells: Cells, most: int, epsilon: Fraction) -> None:
    whole = chopped(cells, most, epsilon)
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in ((allotment, "PORTION", 2), (chop_users, "WORK", 1), (chop_users, "USERS", 2)):
            patch.setattr(module, name, value)
        pauses = len(list(chop(cells, most, epsilon)))
        assert chopped(cells, most, epsilon) == whole
        assert result_of(recommended(cells, epsilon)) == (literal(cells, 1, epsilon)[1] or 1)
    assert pauses >= sum(map(len, whole.left_out.values()))


@given(places, epsilons)
def test_a_split_leaves_nobody_out(cells: Cells, epsilon: Fraction) -> None:
    most = max(Counter(user for users in cells.values() for user in users).values())
    found = result_of(split(cells, most + 1, epsilon))
    assert (found.left_out, found.dropped) == ({}, {})
    assert found.divisors == dict.fromkeys(cells, most + 1)
    assert found.degradation == 1
    assert found.errors == {
        cell: pytest.approx(max(users.values()) * (most + 1) / (float(epsilon) * sum(users.values())))
        for cell, users in cells.items()
    }
    if most > 1:
        with pytest.raises(ValueError, match=f"a user is in {most} cells"):
            result_of(split(cells, most - 1, epsilon))


def test_one_who_is_everywhere_with_many_samples_costs_all_the_others() -> None:
    # given 12 cells with 40 users each, who are in no other cell, and one who is in all of them with 30 samples
    cells = {f"c{c:02}": {f"u{c:02}{u:02}": 1 for u in range(40)} | {"heavy": 30} for c in range(12)}
    # then where noise is large all cells but one do without the one, and each has all of epsilon
    found = chopped(cells, 1, Fraction(1, 2))
    assert (found.before, found.after, found.stopped) == (12, 1, None)
    assert result_of(recommended(cells, Fraction(1, 2))) == 1
    assert set(found.divisors.values()) == {1}
    assert found.left_out == {cell: {"heavy"} for cell in sorted(cells)[:-1]}
    assert found.degradation < 0.1
    # and where noise is small they do not
    assert result_of(recommended(cells, Fraction(50))) == 12


def test_a_cell_that_only_one_user_is_in_is_given_up_last() -> None:
    # given a user who is alone in two cells and with others in one
    cells = {"1": {"a": 1}, "2": {"a": 1}, "3": {"a": 1, "b": 1, "c": 1, "d": 1}}
    found = chopped(cells, 2)
    assert found.left_out == {"3": {"a"}}
    assert len(found.divisors) == len(cells)
    assert found.stopped is None
    # then if it may be in one cell only, a cell is left empty: it has no share
    found = chopped(cells, 1)
    assert (found.stopped, found.dropped) == (2, {"1": 1, "3": 1})
    assert found.left_out == {"1": {"a"}, "3": {"a"}}
    assert found.divisors == {"2": 1, "3": 1}


@in_a_loop
@pytest.mark.parametrize(
    ("cells", "most", "epsilon", "word"),
    [
        ({}, 1, 1, "cells"),
        ({"1": {}, "2": {"a": 1}}, 1, 1, "users"),
        ({"1": {"a": 0, "b": 1}}, 1, 1, "samples"),
        ({"1": {"a": 1}}, 0, 1, "most"),
        ({"1": {"a": 1}}, 1, 0, "epsilon"),
    ],
)
@pytest.mark.parametrize("way", [chop, split])
def test_what_cannot_be_is_refused(way: Any, cells: Cells, most: int, epsilon: int, word: str) -> None:
    with pytest.raises(ValueError, match=f"{word} must be greater than 0"):
        result_of(way(cells, most, Fraction(epsilon)))


@in_a_loop
@pytest.mark.parametrize("total", range(1, 14))
def test_the_error_of_mean_and_variance_is_that_of_the_formulas(total: int) -> None:
    for kept in range(1, total + 1):
        for largest in range(1, kept + 1):
            square, half = (lambda n: (n * n // 4) / (n * n)), 1.5 / 2
            lost = total - kept
            bias = kept * lost / total**2 if total > 2 * lost else square(total)
            moved = largest * (kept - largest) / kept**2 if kept > 2 * largest else square(kept)
            expected = 1 - kept / total + bias + (largest / kept + moved) / half
            assert mean_and_variance_error(kept, largest, total, 1.5) == pytest.approx(expected)
