"""What waits for its tick comes out in an order in which no value has a say."""

import random

from hypothesis import given
from hypothesis import strategies as st

from shoal.stream.waiting import Waiting

places = st.tuples(st.integers(0, 2), st.sampled_from(["a", "b", "c"]), st.integers(1, 3), st.integers(0, 3))


@given(st.lists(st.tuples(places, st.integers(0, 9), st.integers(0, 9)), unique_by=lambda row: row[0]), st.randoms())
def test_values_have_no_say_in_the_order_of_a_tick(rows: list[tuple[tuple[int, str, int, int], int, int]], shuffle):
    # given the contributions of a tick, and those of a neighbour in another order of arrival
    assert isinstance(shuffle, random.Random)
    orders = []
    for value in (1, 2):
        arrived = [(*place, 1, row[value - 1]) for place, *row in rows]
        shuffle.shuffle(arrived)
        waiting = Waiting(["basket"])
        if arrived:
            waiting.add("basket", "basket|", 0, arrived, merges=False)
            orders.append([row[:4] for row in waiting.pop("basket")[2]])
    # then both come out alike, by time, pseudonym, number and level
    assert all(order == sorted(place for place, *_ in rows) for order in orders)


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2), st.integers(0, 10**20)), min_size=1),
    st.lists(st.booleans(), min_size=50),
)
def test_blocks_of_a_part_merge_to_their_exact_sum(blocks: list[tuple[int, int, int]], pauses: list[bool]):
    # given blocks that merge by part and level, in pieces, between which a transaction may end
    waiting = Waiting(["basket"])
    for (part, level, total), pause in zip(blocks, pauses, strict=False):
        waiting.add("basket", "basket|", 0, [(0, "", part, level, 1, total)], merges=True)
        if pause:
            waiting.take_changes()
    # then each row holds every sample and every grid step once
    expected: dict[tuple[int, int], list[int]] = {}
    for part, level, total in blocks[: len(pauses)]:
        count, old = expected.get((part, level), [0, 0])
        expected[part, level] = [count + 1, old + total]
    found = {(row[2], row[3]): list(row[4:]) for row in waiting.pop("basket")[2]}
    assert found == expected
