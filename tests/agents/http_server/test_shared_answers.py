"""A server beside a program: what askers cost the program, and who is answered while strangers hold connections."""

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from socket import create_connection, socket

import pytest

from shoal.agents.http_server import limits, shared_answers
from shoal.agents.http_server.limits import HEADERS, PortTaken, listen
from shoal.agents.http_server.names import Names
from shoal.agents.http_server.shared_answers import MOST_CONNECTIONS, Answer, Render, serve_aside
from tests.support.strangers import START, exchange, refusals

GET = "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n"


class Program:
    """A program with an event loop, and the port at which it is asked."""

    def __init__(self) -> None:
        self.loop, self.port, self.renderings = asyncio.new_event_loop(), 0, 0

    def render(self) -> dict[str, Answer]:
        self.renderings += 1
        return {"/metrics": Answer(b"number %d" % self.renderings, content_type="text/plain")}

    def get(self, path: str, host: str = "localhost") -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of an answer."""
        head, _, body = exchange(self.port, (GET % (path, host)).encode()).partition(b"\r\n\r\n")
        first, *headers = head.decode().split("\r\n")
        return int(first.split()[1]), dict(line.split(": ", 1) for line in headers), body


@contextmanager
def program(
    names: Names | None = None, render: Callable[[Program], Render] = lambda one: one.render
) -> Iterator[Program]:
    one = Program()
    listening = listen("127.0.0.1", 0, remedy="")
    one.port = listening.getsockname()[1]

    async def begin() -> None:
        serve_aside(listening, names or Names("127.0.0.1"), "not here\n", ("/metrics",), render(one))

    thread = threading.Thread(target=one.loop.run_forever)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(begin(), one.loop).result()
        yield one
    finally:
        one.loop.call_soon_threadsafe(one.loop.stop)
        thread.join()
        one.loop.close()


def ends(connection: socket) -> bool:
    """Whether the server closes this connection, with or without an answer."""
    connection.settimeout(30)
    try:
        while connection.recv(1 << 16):
            pass
    except ConnectionError:
        pass
    except TimeoutError:
        return False
    return True


def test_all_who_ask_share_one_rendering_a_second() -> None:
    """Catches a rendering for each request, which a test with a few requests takes for nothing."""
    with program() as one:
        # given many requests at once, each after the answer to the one before
        begun = time.monotonic()
        threads = [threading.Thread(target=lambda: [one.get("/metrics") for _ in range(10)]) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # then there was at most one rendering for each second that began
        assert 1 <= one.renderings <= 1 + (time.monotonic() - begun)
        # and nobody keeps an answer, guesses its type or has another request on the connection
        status, headers, body = one.get("/metrics")
        assert (status, body) == (200, b"number %d" % one.renderings)
        assert headers.items() >= {**HEADERS, "Cache-Control": "no-store", "Connection": "close"}.items()
        # and no probe causes a rendering
        before = one.renderings
        assert {one.get("/healthz")[::2] for _ in range(50)} == {(200, b'{"live": true}')}
        assert one.renderings == before


def test_connections_without_a_request_are_displaced_by_whoever_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches connections without a limit: files of the process are then used up by strangers."""
    monkeypatch.setattr(limits, "HEADER_LIMIT", 600.0)
    with program() as one, ExitStack() as opened:
        # given far more connections than are allowed, none of which ends its header
        address = "127.0.0.1", one.port
        half = [opened.enter_context(create_connection(address, 30)) for _ in range(3 * MOST_CONNECTIONS)]
        for connection in half:
            connection.sendall(START)
        # then others are answered, and the oldest are closed
        assert one.get("/healthz")[0] == one.get("/metrics")[0] == 200
        assert all(map(ends, half[:MOST_CONNECTIONS]))


def test_a_header_that_does_not_end_is_waited_for_as_long_as_one_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a time limit that begins anew with every byte: a few connections then last for ever."""
    monkeypatch.setattr(limits, "HEADER_LIMIT", 1.0)
    with program() as one, create_connection(("127.0.0.1", one.port), 30) as slow:
        slow.sendall(START)
        slow.settimeout(0.1)
        begun, is_open = time.monotonic(), True
        while is_open and time.monotonic() < begun + 30:
            try:
                slow.sendall(b"X: a\r\n")
                is_open = bool(slow.recv(100))
            except TimeoutError:
                pass  # nothing yet
            except ConnectionError:
                is_open = False
        assert not is_open


def test_a_program_that_is_stuck_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a thread that says "live" for a program whose loop has no turns any more."""
    with program() as one:
        assert one.get("/healthz")[0] == 200
        # when the program's loop is held up, for less time than it may be
        monkeypatch.setattr(shared_answers, "EVERY", 0.0)
        held, let_go = threading.Event(), threading.Event()
        one.loop.call_soon_threadsafe(held.set)
        one.loop.call_soon_threadsafe(let_go.wait, 60)
        held.wait()
        # then a probe is answered at once
        assert one.get("/healthz")[0] == 200
        # and after that time neither probe nor metrics are fine
        monkeypatch.setattr(shared_answers, "PATIENCE", 0.1)
        assert (one.get("/metrics")[0], one.get("/healthz")[::2]) == (503, (503, b'{"live": false}'))
        # until it goes on
        let_go.set()
        monkeypatch.setattr(shared_answers, "PATIENCE", 30.0)
        assert (one.get("/metrics")[0], one.get("/healthz")[0]) == (200, 200)
    # and once it has ended, whoever still asks is told so
    assert (one.get("/metrics")[0], one.get("/healthz")[0]) == (503, 503)


def test_names_of_elsewhere_are_refused_and_addresses_are_not() -> None:
    """Catches a port that a page of another origin reads after DNS rebinding, and probes by address that fail."""
    with program(Names("0.0.0.0", ("worker",))) as one:
        hosts = (
            "localhost",
            "127.0.0.1:80",
            "10.1.2.3:9100",
            "[fd00::7]:9100",
            "worker:9100",
            "Worker",
            "evil.example",
        )
        found = {host: one.get("/metrics", host)[0] for host in hosts}
        assert found == {**dict.fromkeys(hosts, 200), "evil.example": 403}
        assert one.get("/metrics", "evil.example")[1].items() >= HEADERS.items()
        assert exchange(one.port, b"GET /healthz HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.0 200 ")
        assert one.get("/nowhere")[1].items() >= HEADERS.items()


def test_no_request_makes_a_traceback_or_an_error_of_the_server(caplog: pytest.LogCaptureFixture) -> None:
    """Catches requests of strangers that fill a log, or end in status 500."""
    with caplog.at_level(logging.WARNING), program() as one:
        found = refusals(one.port)
        assert {name: status for name, status in found.items() if not status.startswith(("2", "4"))} == {}
        assert found["a name of elsewhere"] == "403"
        assert caplog.records == []
        # an error of the program is in the log
        assert one.get("/healthz")[0] == 200
    with caplog.at_level(logging.WARNING), program(render=lambda _: lambda: json.loads("no")) as one:
        assert one.get("/metrics")[0] == 500
        assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [json.JSONDecodeError]


def test_a_port_that_is_taken_is_said_in_one_line() -> None:
    """Catches an error of the system without the address and the remedy."""
    with listen("127.0.0.1", 0, remedy="") as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            PortTaken, match=rf"^here: cannot listen on 127.0.0.1 port {port} \(Address .*\); take another$"
        ):
            listen("127.0.0.1", port, where="here: ", remedy="take another")
