"""Server with limits: on connections, on the time for a header, and on what a malformed request can cause.

Whoever connects while all connections are taken displaces the oldest one that waits for a request, else the oldest.
So a flood displaces itself, and a probe is answered. Files that the rest of the process needs are never used up.
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler, Middleware

from shoal.agents.http_server.names import Names
from shoal.models.errors import ShoalError

HEADER_LIMIT = 5.0  # seconds in which a request's header must arrive, the next one of a connection included
BODY_LINGERS = 1.0  # seconds for which an unread body is still taken in
ACCEPTED_AT_ONCE = 8  # far below any limit on connections: each has its request read before it is displaced
WAITING_TO_CONNECT = 1024  # connections that the system keeps until they are accepted
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Server": "shoal",  # and no versions
}
OF_CLIENTS = (HttpProcessingError, ConnectionError, web.RequestPayloadError)  # errors that a client causes


class PortTaken(ShoalError):
    """The port cannot be listened on."""


def listen(host: str, port: int, *, where: str = "", remedy: str) -> socket.socket:
    """Socket that listens; `where` begins the error's text, `remedy` ends it.

    Raises:
        PortTaken: the port cannot be listened on.
    """
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        number = error.errno or 0  # not above 0 where there is no such name
        reason = os.strerror(number) if number > 0 else error.strerror
        raise PortTaken(f"{where}cannot listen on {host} port {port} ({reason}); {remedy}") from None


class Connections(dict["Connection", None]):
    """Open connections of one server, oldest first."""

    def __init__(self, most: int) -> None:
        self._most = most

    def add(self, connection: "Connection") -> None:
        """Keep a new connection; close another one if there are too many."""
        if len(self) >= self._most:
            displaced = next((one for one in self if not one.is_busy), next(iter(self)))
            del self[displaced]
            displaced.abort()
        self[connection] = None


class Connection(web.RequestHandler):
    """Connection of one client."""

    __slots__ = ("_held", "is_busy")

    def __init__(self, server: web.Server, held: Connections) -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type]  # as aiohttp's own runner passes it
            keepalive_timeout=HEADER_LIMIT,
            lingering_time=BODY_LINGERS,
            auto_decompress=False,  # of requests: no client here compresses one
        )
        self._held, self.is_busy = held, False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._held.add(self)

    def connection_lost(self, error: BaseException | None) -> None:
        self._held.pop(self, None)
        super().connection_lost(error)

    def abort(self) -> None:
        """Close the connection at once, whatever it still has to send."""
        transport = self.transport
        self.force_close()
        if transport is not None:
            transport.abort()

    def log_exception(self, *words: Any, **more: Any) -> None:
        """Log an error, unless the client caused it."""
        if not isinstance(more.get("exc_info"), OF_CLIENTS):
            super().log_exception(*words, **more)

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """Answer a malformed request without a word of it, and without a traceback in the log."""
        if not isinstance(exc, OF_CLIENTS):
            return super().handle_error(request, status, exc, message)
        if request.writer.output_size > 0:
            raise ConnectionResetError
        answer = web.Response(status=400, text="not a request that is understood here\n", headers=HEADERS)
        answer.force_close()
        return answer


def guarded(names: Names, refusal: str) -> Middleware:
    """Middleware that refuses other names, and adds the usual headers to every answer."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        connection: Any = request.protocol
        connection.is_busy = True
        try:
            host = request.headers.get("Host")
            if host is not None and not names.allow(host):  # every browser sends it
                answer: web.StreamResponse = web.Response(status=403, text=refusal)
            else:
                answer = await handler(request)
        except web.HTTPException as refused:
            refused.headers.update(HEADERS)
            raise
        finally:
            connection.is_busy = False
        if not answer.prepared:
            answer.headers.update(HEADERS)
        return answer

    return guard


@asynccontextmanager
async def serving(app: web.Application, listening: socket.socket, most: int) -> AsyncIterator[None]:
    """Serve within the block, on at most `most` connections."""
    runner, held = web.AppRunner(app, handle_signals=False, shutdown_timeout=1.0), Connections(most)
    await runner.setup()
    server = runner.server
    assert server is not None  # noqa: S101  it is there after the setup
    loop = asyncio.get_running_loop()
    accepting = await loop.create_server(
        lambda: Connection(server, held), sock=listening, backlog=ACCEPTED_AT_ONCE
    )  # fmt: skip
    listening.listen(WAITING_TO_CONNECT)
    try:
        yield
    finally:
        accepting.close()
        await runner.cleanup()
