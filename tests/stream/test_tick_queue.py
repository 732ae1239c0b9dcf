"""What waits for its tick comes out in an order in which no value has a say."""

import random

from hypothesis import given
from hypothesis import strategies as st

from shoal.stream.tick_queue import Waiting

names = st.tuples(st.integers(0, 2), st.sampled_from(["a", "b", "c"]), st.integers(1, 3), st.integers(0, 3))


@given(st.lists(st.tuples(names, st.integers(0, 9), st.integers(0, 9)), unique_by=lambda row: row[0]), st.randoms())
def test_values_have_no_say_in_the_order_of_a_tick(rows: list[tuple[tuple[int, str, int, int], int, int]], shuffle):
    # given the contributions of a tick, and those of a neighbour in another order of arrival
    assert isinstance(shuffle, random.Random)
    orders = []
    for value in (1, 2):
        arrived = [(*name, 1, row[value - 1]) for name, *row in rows]
        shuffle.shuffle(arrived)
        waiting = Waiting({"basket": 0})
        if arrived:
            waiting.add("basket", "basket|", 0, arrived)
            ((_, contributions),) = waiting.rows("basket", 0, 1)
            orders.append([row[:4] for row in contributions])
    # then both come out alike, by time, pseudonym, number and level
    assert all(order == sorted(name for name, *_ in rows) for order in orders)


def written(waiting: Waiting) -> dict[bytes, bytes]:
    """What a transaction writes; nothing is dropped."""
    return {name: value for name, value in waiting.take_changes() if value is not None}


rows_of = st.lists(st.integers(1, 4), min_size=1, max_size=6)


@given(rows_of, st.lists(st.booleans(), min_size=6, max_size=6), st.integers(0, 6))
def test_rows_wait_in_the_runs_that_they_came_in(sizes: list[int], pauses: list[bool], crash: int):
    # given rows in messages, between which a transaction may end, and once a successor takes over
    waiting, changelog, due, runs = Waiting({"basket": 0}), dict[bytes, bytes](), [], 0
    for number, size in enumerate(sizes):
        rows = [(1, f"{number}-{place}", 1, 0, 1, place) for place in range(size)]
        due += rows
        runs += 1
        waiting.add("basket", "basket|", 6, list(rows))
        if pauses[number] or number == crash:
            changelog |= written(waiting)
        if number == crash:
            waiting = Waiting({"basket": 0})
            for name, value in changelog.items():
                waiting.restore("basket", name, value)
            assert waiting.take_changes() == []
    # then each run has one record of its own, and all rows are there once
    changelog |= written(waiting)
    assert len(changelog) == runs
    ((_, found),) = waiting.rows("basket", 6, start=60)
    assert [tuple(one) for one in found] == sorted(due)
    assert waiting.count == len(due)
    # and they leave nothing there
    assert waiting.drop("basket", 6) == 1
    assert (sorted(waiting.dropped), waiting.count) == (sorted(changelog), 0)


cells = st.tuples(st.integers(0, 300), st.integers(1, 9), st.integers(0, 10**15))


messages = st.lists(cells, min_size=1, max_size=4)


@given(st.lists(st.tuples(messages, st.booleans()), min_size=1))
def test_partials_add_up_to_their_exact_sums(blocks: list[tuple[list[tuple[int, int, int]], bool]]):
    # given partials in pieces, between which a transaction may end
    waiting = Waiting({"basket": 256})
    changelog: dict[bytes, bytes] = {}
    for found, pause in blocks:
        waiting.add_cells("basket", "basket|", 6, [number for cell in found for number in cell])
        if pause:
            changelog |= written(waiting)
    # then each cell holds every sample and every grid step once
    expected: dict[int, list[int]] = {}
    for cell, samples, total in (cell for found, _ in blocks for cell in found):
        count, old = expected.get(cell, [0, 0])
        expected[cell] = [count + samples, old + total]
    by_level: dict[int, int] = {}
    for cell, (count, _) in expected.items():
        by_level[cell >> 8] = by_level.get(cell >> 8, 0) + count
    # and as many of them are reckoned with as so many samples can fill, whatever they are
    assert waiting.count == sum(min(count, 256) for count in by_level.values()) >= len(expected)
    # and those that a changelog has do so too, when it is read again
    again = Waiting({"basket": 256})
    for name, value in (changelog | written(waiting)).items():
        again.restore("basket", name, value)
    assert again.take_changes() == []
    ((group, came),), ((_, due),) = waiting.rows("basket", 6, start=60), again.rows("basket", 6, start=60)
    assert (group, came) == ("", due)
    assert {one.level << 8 | one.number: list(one[4:]) for one in due} == expected
    assert {one[:2] for one in due} == {(60, "")}
    # and they leave nothing there
    assert (waiting.drop("basket", 6, ""), again.drop("basket", 6)) == (1, 1)
    assert set(changelog) <= set(again.dropped) == set(waiting.dropped)
    assert (waiting.count, again.count) == (0, 0)
