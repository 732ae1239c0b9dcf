"""Records of a changelog go to whoever restores from them in threads, beside the event loop."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
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


def test_a_failure_comes_when_the_last_thread_has_ended() -> None:
    released = threading.Event()

    def fail(key: bytes | None, value: bytes | None, offset: int) -> None:
        raise FailStop("torn")

    async def story() -> None:
        # given two threads: one fails, the other goes on
        loop, began = asyncio.get_running_loop(), asyncio.Event()
        loop.set_default_executor(ThreadPoolExecutor(2))

        def take(key: bytes | None, value: bytes | None, offset: int) -> None:
            loop.call_soon_threadsafe(began.set)
            assert released.wait(PATIENCE)

        giving = asyncio.create_task(give_all([(fail, [Given(0)], 1), (take, [Given(0)], 1)]))
        await began.wait()
        # when the thread that failed has become free, and the event loop has had time for the exception
        await asyncio.to_thread(bool)
        for _ in range(20):
            await asyncio.sleep(0)
        has_ended = giving.done()
        released.set()  # in any case, for asyncio.run waits for all threads
        # then the exception had to wait for the other thread
        assert not has_ended
        with pytest.raises(FailStop, match="torn"):
            await giving

    asyncio.run(story())
