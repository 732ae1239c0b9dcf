"""The page ends when it is told to: a cancellation that was swallowed is repeated, and no thread is waited for."""

import asyncio
import threading

import pytest

from shoal.agents.dashboard.ending import all_of, aside


async def deaf(times: int, heard: list[int]) -> None:
    """Goes on after so many cancellations."""
    for _ in range(times):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            heard.append(1)
    await asyncio.Event().wait()


def test_who_takes_a_cancellation_for_his_own_is_cancelled_again() -> None:
    heard: list[int] = []

    async def story() -> None:
        task = asyncio.ensure_future(all_of([deaf(2, heard), deaf(0, [])]))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(story())
    assert heard == [1, 1]


def test_one_that_fails_ends_the_others() -> None:
    async def fails() -> None:
        raise ValueError("of its own")

    with pytest.raises(ValueError, match="of its own"):
        asyncio.run(all_of([deaf(0, []), fails()]))


def test_a_thread_tells_what_it_found_and_how_it_failed() -> None:
    async def story() -> None:
        assert await aside(lambda: 3) == 3
        with pytest.raises(ZeroDivisionError):
            await aside(lambda: 1 // 0)

    asyncio.run(story())


def test_a_thread_that_goes_on_holds_nothing_up() -> None:
    go_on, began = threading.Event(), threading.Event()

    def work() -> bool:
        began.set()
        return go_on.wait()

    async def story() -> None:
        task = asyncio.ensure_future(aside(work))
        while not began.is_set():
            await asyncio.sleep(0)
        task.cancel()

    asyncio.run(story())  # would wait for ever for a thread of its own pool
    go_on.set()
