"""Records of a changelog go to whoever restores from them in threads, beside the event loop."""

import asyncio
import threading
from typing import NamedTuple

import pytest

from shoal.agents.kafka.changelog import Take, give_all
from shoal.models.errors import FailStop

PATIENCE = 60.0  # seconds; nothing here takes as long


class Given(NamedTuple):
    """A record, as far as a changelog's reader looks at it."""

    offset: int
    key: bytes = b"key"
    value: bytes = b"value"


def test_the_event_loop_goes_on_while_records_are_taken() -> None:
    goes_on = threading.Event()

    def take(key: bytes | None, value: bytes | None, offset: int) -> None:
        assert goes_on.wait(PATIENCE)

    async def story() -> None:
        asyncio.get_running_loop().call_soon(goes_on.set)
        await give_all([(take, [Given(0)], 1)])

    asyncio.run(story())


def test_partitions_are_taken_beside_one_another_and_each_in_order_up_to_its_end() -> None:
    both = threading.Barrier(2)
    taken: tuple[list[int], list[int]] = [], []

    def taker(into: list[int]) -> Take:
        def take(key: bytes | None, value: bytes | None, offset: int) -> None:
            both.wait(PATIENCE)
            into.append(offset)

        return take

    first, second = map(taker, taken)
    asyncio.run(give_all([(first, [Given(0), Given(1), Given(2)], 2), (second, [Given(5), Given(6)], 9)]))
    assert taken == ([0, 1], [5, 6])


def test_nothing_is_taken_any_more_when_a_failure_is_told() -> None:
    failed, ended = threading.Event(), threading.Event()

    def fail(key: bytes | None, value: bytes | None, offset: int) -> None:
        failed.set()
        raise FailStop("torn")

    def take(key: bytes | None, value: bytes | None, offset: int) -> None:
        assert failed.wait(PATIENCE)
        ended.wait(0.2)  # longer than an exception needs to come through
        ended.set()

    with pytest.raises(FailStop, match="torn"):
        asyncio.run(give_all([(fail, [Given(0)], 1), (take, [Given(0)], 1)]))
    assert ended.is_set()
