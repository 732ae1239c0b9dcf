"""Work that goes on until the page ends, and does not hold that up: whatever is away, and whatever is being read."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any, TypeVar

Result = TypeVar("Result")
AGAIN = 0.5  # seconds after which a task that has not ended is cancelled once more


async def all_of(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Do all of it until this is cancelled or one of them fails; then end the others.

    A client whose brokers go away may take a cancellation for its own and go on: so it is repeated.
    """
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        while left := [task for task in tasks if not task.done()]:
            for task in left:
                task.cancel()
            await asyncio.wait(left, timeout=AGAIN)


async def aside(work: Callable[[], Result]) -> Result:
    """Do it in a thread that nobody waits for when the page ends: an audit reads for minutes."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()

    def settle(how: Callable[[Any], None], what: object) -> None:
        if not future.done():  # nobody has given it up
            how(what)

    def tell(how: Callable[[Any], None], what: object) -> None:
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, how, what)

    def run() -> None:
        try:
            found = work()
        except Exception as error:
            tell(future.set_exception, error)
        else:
            tell(future.set_result, found)

    threading.Thread(target=run, daemon=True).start()
    return await future
