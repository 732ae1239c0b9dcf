"""Server in a thread of its own, for a program whose event loop must not notice how often anybody asks.

The program's loop renders all answers together, at most once a second and only if somebody asks; everybody shares them.
Connections, headers and refusals are work of the thread, which uses at most a part of the interpreter's time.
"""

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NoReturn

from aiohttp import web

from shoal.agents.http_server.limits import guarded, serving
from shoal.agents.http_server.names import Names

EVERY = 1.0  # seconds for which rendered answers are given out
PATIENCE = 30.0  # seconds without a turn of the program's loop after which it counts as stuck
MOST_CONNECTIONS = 128
SHARE = 0.25  # of one processor that the thread may use
MEASURED = 0.05  # seconds over which the share is measured
BUSY = "the worker's event loop is busy; ask again\n"


@dataclass(frozen=True)
class Answer:
    """Answer to one path."""

    body: bytes
    status: int = 200
    content_type: str = "application/json; charset=utf-8"


Render = Callable[[], dict[str, Answer]]


class Rendered:
    """Answers by path as the program's loop rendered them last. Used in the server's thread alone."""

    def __init__(self, loop: asyncio.AbstractEventLoop, render: Render) -> None:
        self._loop, self._render = loop, render
        self._answers: asyncio.Future[dict[str, Answer]] | None = None
        self._requested = self._turned = float("-inf")  # when answers were asked of the loop, and it last had a turn
        self._asked: float | None = None  # when the loop was asked for a turn that it has not had yet

    async def answers(self) -> dict[str, Answer]:
        """Answers of the last second; waits for new ones if they are older.

        Raises:
            TimeoutError: the program's loop is stuck, or has ended.
        """
        if self._loop.is_closed():
            raise TimeoutError
        now = time.monotonic()
        if self._answers is None or (self._answers.done() and now - self._requested >= EVERY):
            self._requested = now
            rendering = asyncio.run_coroutine_threadsafe(self._on_loop(), self._loop)
            self._answers = asyncio.wrap_future(rendering)
        return await asyncio.wait_for(asyncio.shield(self._answers), PATIENCE)

    async def _on_loop(self) -> dict[str, Answer]:
        return self._render()

    def is_alive(self) -> bool:
        """Whether the program's loop has turns; it is asked for one at most once a second."""
        now = time.monotonic()
        if self._loop.is_closed():
            return False
        if self._asked is None and now - self._turned >= EVERY:
            self._asked = now
            self._loop.call_soon_threadsafe(self._turn)
        asked = self._asked
        return asked is None or now - asked < PATIENCE

    def _turn(self) -> None:
        self._turned, self._asked = time.monotonic(), None


def serve_aside(listening: socket.socket, names: Names, refusal: str, paths: Collection[str], render: Render) -> None:
    """Serve from a thread of its own until the process ends; the running loop renders the answers to `paths`."""
    rendered = Rendered(asyncio.get_running_loop(), render)

    async def answer(request: web.Request) -> web.Response:
        try:
            found = (await rendered.answers())[request.path]
        except TimeoutError:
            return _said(Answer(BUSY.encode(), 503, "text/plain; charset=utf-8"))
        return _said(found)

    async def live(_request: web.Request) -> web.Response:
        is_live = rendered.is_alive()
        return _said(Answer(b'{"live": true}' if is_live else b'{"live": false}', 200 if is_live else 503))

    app = web.Application(middlewares=[guarded(names, refusal)])
    app.add_routes([web.get("/healthz", live), *(web.get(path, answer) for path in paths)])
    threading.Thread(target=lambda: asyncio.run(_serve(app, listening)), name="shoal web", daemon=True).start()


def _said(answer: Answer) -> web.Response:
    """Response that nobody keeps, and after which the connection is closed."""
    headers = {"Content-Type": answer.content_type, "Cache-Control": "no-store"}
    response = web.Response(body=answer.body, status=answer.status, headers=headers)
    response.force_close()
    return response


async def _serve(app: web.Application, listening: socket.socket) -> NoReturn:
    """Serve; whenever the thread has used more than its share of a processor, stand still."""
    async with serving(app, listening, MOST_CONNECTIONS):
        while True:
            begun, used = time.monotonic(), time.thread_time()
            await asyncio.sleep(MEASURED)
            rest = (time.thread_time() - used) / SHARE - (time.monotonic() - begun)
            if rest > 0:
                time.sleep(rest)  # the whole thread: it also accepts nothing meanwhile
