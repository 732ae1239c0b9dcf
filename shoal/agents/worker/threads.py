"""Runs blocking calls in threads, beside the event loop.

At its end Python waits for the threads of its executors, so a call that waits for a database could hold up a worker
that was told to stop. These threads hold up nothing; what they call must be safe to be cut off anywhere.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any


async def in_thread(call: Callable[..., Any], *arguments: Any) -> Any:
    """The call's result; a caller that is cancelled leaves the call to itself."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def finish(outcome: Callable[[Any], None], result: Any) -> None:
        if not future.done():
            outcome(result)

    def run() -> None:
        try:
            outcome, result = future.set_result, call(*arguments)
        except BaseException as error:  # it belongs to the caller
            outcome, result = future.set_exception, error
        with contextlib.suppress(RuntimeError):  # the loop has ended, and nobody waits
            loop.call_soon_threadsafe(finish, outcome, result)

    threading.Thread(target=run, name=f"shoal {getattr(call, '__name__', 'call')}", daemon=True).start()
    return await future
