"""Reading ahead: the items of an iterator in their order, a few made before they are asked for."""

import threading
from collections.abc import Iterator

import pytest

from shoal.agents.input.read_ahead import AHEAD, read_ahead


def test_items_come_in_their_order_and_the_iterator_ends_once() -> None:
    assert list(read_ahead(iter(range(100)))) == list(range(100))
    assert list(read_ahead(iter(()))) == []


def test_what_making_an_item_raises_comes_where_the_item_would() -> None:
    def failing() -> Iterator[int]:
        yield from range(5)
        raise OSError("the disk is gone")

    seen = []
    with pytest.raises(OSError, match="the disk is gone"):  # noqa: PT012
        for item in read_ahead(failing()):
            seen.append(item)
    assert seen == [0, 1, 2, 3, 4]


def test_no_more_is_made_than_a_few_items_ahead() -> None:
    made, asked = [], threading.Event()

    def counting() -> Iterator[int]:
        for number in range(100):
            made.append(number)
            if number == AHEAD:
                asked.set()
            yield number

    items = read_ahead(counting())
    assert next(items) == 0
    assert asked.wait(60)  # the thread goes on by itself as far as it may
    assert len(made) <= AHEAD + 1


def test_who_stops_early_leaves_no_thread_behind() -> None:
    before = threading.active_count()
    items = read_ahead(iter(range(100)))
    assert next(items) == 0
    items.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before
