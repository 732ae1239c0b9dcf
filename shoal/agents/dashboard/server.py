"""The server of the live page: the page, all data at once, and what is new as server-sent events.

Bound to this machine it answers under names of this machine alone, so that no page from elsewhere reaches it by a name
of its own. Bound elsewhere it wants a token: the page sends it once and gets a cookie that no script can read. Fails if
the port is taken.
"""

import asyncio
import hashlib
import hmac
import secrets
import socket
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import orjson
from aiohttp import ClientSession, web
from aiohttp.typedefs import Handler

from shoal.agents.dashboard.ending import all_of
from shoal.agents.dashboard.ledger import Auditor
from shoal.agents.dashboard.live import Hub
from shoal.agents.dashboard.page import page, policy
from shoal.agents.dashboard.workers import ask
from shoal.agents.http_server.limits import HEADERS, guarded, serving
from shoal.agents.http_server.names import Names, is_local
from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.reading.live import Reader
from shoal.models.config.addresses import Address

COOKIE = "shoal-dashboard"
WORKERS_EVERY = 2.0  # seconds
STILL_HERE = 15.0  # seconds of silence after which a listener is told that all is well
SLOWLY = 0.5  # seconds that a wrong token takes
MOST_OF_LOGIN = 16 << 10  # bytes
LOGIN_LIMIT = 5.0  # seconds in which the body of a login must arrive
MOST_CONNECTIONS = 256  # also of pages that listen
REFUSAL = "this name is not served here; start the page with --name NAME\n"


@dataclass(frozen=True)
class Access:
    """Names under which the page is reached, and the token that opens it, if any."""

    names: Names
    token: str | None = None

    @classmethod
    def to(cls, host: str, names: tuple[str, ...], token: str | None) -> "Access":
        """Off this machine there is always a token; one is made if none was given."""
        return cls(Names(host, names), token or (None if is_local(host) else secrets.token_urlsafe(24)))

    @property
    def ticket(self) -> str:
        """What the cookie holds: it opens the page, and does not tell the token."""
        return hashlib.sha256(b"shoal dashboard " + (self.token or "").encode()).hexdigest()

    def allows(self, request: web.Request) -> bool:
        """Whether whoever asks has shown the token."""
        shown = request.cookies.get(COOKIE, "").encode(errors="surrogateescape")
        return self.token is None or hmac.compare_digest(shown, self.ticket.encode())


class Pages:
    """Answers HTTP requests: the page, its data, the stream of events, and the login by token."""

    def __init__(self, hub: Hub, access: Access) -> None:
        self._hub, self._access = hub, access

    def app(self) -> web.Application:
        app = web.Application(
            middlewares=[guarded(self._access.names, REFUSAL), self._token], client_max_size=MOST_OF_LOGIN
        )
        app.add_routes([
            web.get("/", self.index), web.get("/snapshot", self.snapshot), web.get("/events", self.events),
            web.post("/login", self.login), web.get("/healthz", self.healthz),
        ])  # fmt: skip
        return app

    @web.middleware
    async def _token(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path in ("/snapshot", "/events") and not self._access.allows(request):
            return web.Response(status=401, text="a token is needed\n")
        return await handler(request)

    async def index(self, request: web.Request) -> web.Response:
        text = page()
        tag = f'"{hashlib.sha256(text.encode()).hexdigest()[:20]}"'
        headers = {
            "Content-Security-Policy": f"{policy()}; frame-ancestors 'none'",
            "Cache-Control": "no-cache",
            "ETag": tag,
        }
        if request.headers.get("If-None-Match") == tag:
            return web.Response(status=304, headers=headers)
        answer = web.Response(text=text, content_type="text/html", headers=headers)
        answer.enable_compression()
        return answer

    async def snapshot(self, _request: web.Request) -> web.Response:
        version, body = await self._hub.whole()
        headers = {"Content-Encoding": "gzip", "Cache-Control": "no-store", "Shoal-Version": str(version)}
        return web.Response(body=body, content_type="application/json", headers=headers)

    async def events(self, request: web.Request) -> web.StreamResponse:
        queue = self._hub.listen(request.query.get("seen"))
        answer = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store", **HEADERS}
        )
        try:
            await answer.prepare(request)
            await answer.write(b"retry: 1000\n\n")
            while True:
                try:
                    message = await asyncio.wait_for(queue.get(), STILL_HERE)
                except TimeoutError:
                    message = b": still here\n\n"
                await answer.write(message)
        except (ConnectionError, asyncio.CancelledError):
            return answer
        finally:
            self._hub.leave(queue)

    async def login(self, request: web.Request) -> web.Response:
        """Exchange the token for a cookie; JSON alone, which no form of another site can send."""
        given: Any = None
        if request.content_type == "application/json":
            with suppress(ValueError, TimeoutError, web.RequestPayloadError):
                given = orjson.loads(await asyncio.wait_for(request.read(), LOGIN_LIMIT))
        token = given.get("token") if isinstance(given, dict) else None
        expected = self._access.token or ""
        if not isinstance(token, str) or not hmac.compare_digest(token.encode(), expected.encode()):
            await asyncio.sleep(SLOWLY)
            return web.Response(status=401, text="not the token of this page\n")
        answer = web.Response(status=204)
        answer.set_cookie(
            COOKIE, self._access.ticket, httponly=True, samesite="Strict", secure=request.secure, path="/"
        )  # fmt: skip
        return answer

    async def healthz(self, _request: web.Request) -> web.Response:
        return web.json_response({"live": True})


async def serve(
    hub: Hub, access: Access, listening: socket.socket, settings: KafkaSettings, workers: list[Address]
) -> None:
    """Serve until cancelled; whatever is away comes back by itself."""
    tasks: list[Coroutine[Any, Any, None]] = [
        Auditor(hub, hub.config.audit.url).run(), _watch(hub, workers), Reader(hub, settings).run(),
    ]  # fmt: skip
    async with serving(Pages(hub, access).app(), listening, MOST_CONNECTIONS):
        await all_of(tasks)


async def _watch(hub: Hub, workers: list[Address]) -> None:
    async with ClientSession() as session:
        while workers:
            hub.set("workers", await ask(session, workers))
            await asyncio.sleep(WORKERS_EVERY)
