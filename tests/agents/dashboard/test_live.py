"""The live page: real releases out of a real Kafka, a real worker and audit log, in a real browser."""

import asyncio
import json
import os
import re
import signal
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psycopg
import pytest
from sqlalchemy import make_url
from typer.testing import CliRunner

from shoal.agents.audit import key_file
from shoal.agents.cli.main import app
from shoal.agents.dashboard.ledger import Auditor
from shoal.agents.dashboard.live import AT_ONCE, QUEUE, WHOLE, Hub
from shoal.models.config.file import load
from tests.support import nursery
from tests.support.browser import Browser
from tests.support.kafka import Kafka, Record
from tests.support.releases import INHERITED, release
from tests.support.strangers import refusals
from tests.support.workers import Worker, wait_until

CONFIG = """
[kafka]
brokers = "{brokers}"
app = "{app}"
partitions = 2
[audit]
url = "{url}"
[privacy]
epsilon = 4
[web]
port = {port}
[[metric]]
name = "basket"
topic = "{app}-purchases"
user = "customer"
value = "amount"
time = "at"
statistic = "sum"
range = [0, 200]
every = "1d"
max_contributions = 8
epsilon = 1.5
"""
NUMBER = "document.querySelector('#m-basket .now b')?.innerText"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


def configured(folder: Path, app: str, brokers: str, url: str = "sqlite:///shoal.db", port: int = 1) -> Path:
    path = folder / "shoal.toml"
    path.write_text(CONFIG.format(app=app, brokers=brokers, url=url, port=port))
    return path


@contextmanager
def dashboard(config: Path, *arguments: str) -> Iterator[str]:
    """The address of a page that runs until the block is left."""
    with tempfile.TemporaryFile() as errors, tempfile.TemporaryFile() as output:
        process = nursery.start("dashboard", config, "--port", "0", *arguments, output=output, errors=errors)

        def said() -> str:
            return os.pread(errors.fileno(), 1 << 16, 0).decode()

        try:
            wait_until(lambda: said().endswith("\n") or process.poll() is not None, 60, said)
            assert said().startswith("the page is at http"), said()
            yield said().split()[-1]
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(10)
        assert (process.returncode, said().count("\n")) == (0, 1), said()


def published(*releases: dict[str, Any]) -> list[Record]:
    return [Record(f"{one['metric']}|".encode(), json.dumps(one).encode(), partition=0) for one in releases]


def answer(
    url: str, *, host: str | None = None, data: dict[str, Any] | None = None, cookie: str | None = None
) -> tuple[int, dict[str, str]]:
    request = Request(url, data=None if data is None else json.dumps(data).encode())
    if data is not None:
        request.add_header("Content-Type", "application/json")
    if host is not None:
        request.add_header("Host", host)
    if cookie is not None:
        request.add_header("Cookie", cookie)
    try:
        with urlopen(request, timeout=30) as found:
            return found.status, dict(found.headers)
    except HTTPError as error:
        return error.code, dict(error.headers)


def test_what_is_published_is_on_the_page_as_it_is_committed(kafka: Kafka, browser: Browser, tmp_path: Path) -> None:
    # given an app whose topics do not exist yet: the page says so
    name = kafka.name("board")
    config = configured(tmp_path, name, kafka.bootstrap)
    with dashboard(config) as url, browser.tab() as tab:
        tab.open(url)
        tab.until("/Kafka is away/.test(document.getElementById('state').innerText)")
        assert f"no topic {name}.activations, {name}.releases" in tab.text("#running")
        assert "there is no audit log yet" in tab.text("#running")
        assert not (tmp_path / "shoal.db").exists()
        # when they are there, and something is published
        kafka.create_topic(f"{name}.activations", 2)
        topic = kafka.create_topic(f"{name}.releases", 2)
        kafka.produce(topic, published(release("basket", 1, 100.0, 9), release("basket", 2, 120.0, 9)), kafka.name())
        # then it comes by itself, and so does what follows
        tab.until(f"{NUMBER} === '120'")
        kafka.produce(topic, published(release("basket", 3, -3.0, 9)), kafka.name())
        tab.until(f"{NUMBER} === '−3'")
        assert "zero is within the noise" in tab.text("#m-basket .now")
        assert "3 releases" in tab.run("document.querySelector('#m-basket .plot svg:not(.rank)').ariaLabel")
        # a metric that nobody knew
        kafka.produce(topic, published(release("other", 1, 5.0, 1)), kafka.name())
        tab.until("document.getElementById('m-other')")
        # while it is paused, nothing moves; then all of it is there
        tab.press("#pause")
        kafka.produce(topic, published(release("basket", 4, 70.0, 9)), kafka.name())
        tab.until("held.length === 1")
        assert tab.run(NUMBER) == "−3"
        tab.press("#pause")
        tab.until(f"{NUMBER} === '70'")
        # the topics alone are read, by no group
        assert tab.complaints() == []
        assert {re.sub(r"^http://127\.0\.0\.1:\d+|\?.*", "", each) for each in tab.requests()} == {
            "/", "/snapshot", "/events"
        }  # fmt: skip
        # what comes while everything is asked for may not be in the answer: it is asked for again
        count = "fetch = (...a) => { if (++asked === 1) { again(); } return plain(...a); }"
        tab.run(f"(asked = 0, plain = fetch, {count}, again(), true)")
        tab.until("asked === 2")
    assert name not in kafka_groups(kafka)


def test_an_open_page_draws_groups_with_names_that_objects_inherit(
    kafka: Kafka, browser: Browser, tmp_path: Path
) -> None:
    # given an open page of a metric with one group
    name = kafka.name("board")
    kafka.create_topic(f"{name}.activations", 1)
    topic = kafka.create_topic(f"{name}.releases", 1)
    writer = kafka.name()
    kafka.produce(topic, published(release("basket", 1, 1.0, group="first")), writer)
    with dashboard(configured(tmp_path, name, kafka.bootstrap)) as url, browser.tab() as tab:
        tab.open(url)
        tab.until("document.querySelector('#m-basket .now b')")
        # when groups with inherited names begin while it is open, and another one behind them in the same message
        groups = [*INHERITED, "behind them"]
        for seq in (1, 2):
            kafka.produce(topic, published(*(release("basket", seq, 5.0, group=group) for group in groups)), writer)
        # then the page has two releases of each, without asking for another snapshot, and a small chart
        tab.until("views.get('m-basket').columns('behind them')?.at.length === 2")
        tab.until(f"document.querySelectorAll('#m-basket .multiples button').length === {1 + len(groups)}")
        shown = "[...document.querySelectorAll('#m-basket .multiples button')].map((button) => button.title)"
        assert sorted(tab.run(shown)) == sorted(["first", *groups])
        assert tab.run(f"{json.dumps(groups)}.map((g) => views.get('m-basket').columns(g).v)") == [[5, 5]] * len(groups)
        # and no object has inherited anything from them
        assert tab.run("[0 in {}, 0 in Object, 0 in ''.toString]") == [False] * 3
        assert tab.complaints() == []


def kafka_groups(kafka: Kafka) -> set[str]:
    async def ask() -> set[str]:
        from aiokafka.admin import AIOKafkaAdminClient

        client = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap)
        await client.start()
        try:
            return {group[0] for group in await client.list_consumer_groups()}
        finally:
            await client.close()

    return asyncio.run(ask())


@pytest.mark.long
@pytest.mark.kafka
@pytest.mark.slow
def test_the_page_survives_an_outage_of_all_brokers(browser: Browser, tmp_path: Path) -> None:
    with Kafka() as kafka:
        config = configured(tmp_path, "board", kafka.bootstrap)
        kafka.create_topic("board.activations", 1)
        topic = kafka.create_topic("board.releases", 1)
        kafka.produce(topic, published(release("basket", 1, 100.0, 9)), "writer")
        with dashboard(config) as url, browser.tab() as tab:
            tab.open(url)
            tab.until(f"{NUMBER} === '100'")
            # when no broker is there, the page says so and keeps what it has
            kafka.stop()
            tab.until("/Kafka is away/.test(document.getElementById('state').innerText)", 120)
            assert tab.run(NUMBER) == "100"
            # and goes on where it was when they are back
            kafka.start()
            tab.until("!/Kafka is away/.test(document.getElementById('state').innerText)", 120)
            kafka.produce(topic, published(release("basket", 2, -3.0, 9)), "writer")
            tab.until(f"{NUMBER} === '−3'")
            assert "repeated" not in tab.text("footer")
            # and ends at once without them
            kafka.stop()
            tab.until("/Kafka is away/.test(document.getElementById('state').innerText)", 120)


@pytest.mark.slow
def test_a_deployment_shows_its_workers_budget_and_audit(kafka: Kafka, browser: Browser, tmp_path: Path) -> None:
    # given a worker that has published
    name, port = kafka.name("board"), free_port()
    config = configured(tmp_path, name, kafka.bootstrap, port=port)
    key_file.new(tmp_path / "shoal.key")
    events = tmp_path / "events.jsonl"
    lines = [{"customer": f"c{i}", "amount": i, "at": f"2026-03-{1 + i // 10:02}T12:00:00Z"} for i in range(60)]
    events.write_text("".join(json.dumps(line) + "\n" for line in [*lines, {"customer": "c", "at": "never"}]))
    assert CliRunner().invoke(app, ["topics", str(config)]).exit_code == 0
    worker = Worker(config, tmp_path / "worker.log")
    try:
        sent = CliRunner().invoke(app, ["produce", str(config), "--input", str(events), "--end"])
        assert sent.exit_code == 0, sent.output
        # when its page is opened, and another worker is named that is not there
        with dashboard(config, "--workers", f"127.0.0.1:{port},127.0.0.1:1") as url, browser.tab() as tab:
            tab.open(url)
            tab.until("document.querySelectorAll('#m-basket .plot .line').length")
            tab.until("/1 of 2 workers not ready/.test(document.getElementById('state').innerText)")
            tab.until("/6\\d\\s+ready/.test(document.getElementById('running').innerText)")
            # then it says how each does
            said = tab.text("#running")
            assert "127.0.0.1:1: it cannot be reached" in said
            assert "events not yet counted\t0" in said
            assert re.search(r"basket\t[67] Mar 2026", said)
            assert re.search(r"bad-(value|time)\s+basket 1", said)
            # what is charged, and that the log is in order
            assert "ε 1.5 of ε 4" in tab.text("#privacy")
            tab.until("/unbroken chains/.test(document.getElementById('running').innerText)")
            assert tab.complaints() == []
    finally:
        worker.end()


def test_a_token_opens_the_page_once_and_for_no_script(browser: Browser, tmp_path: Path) -> None:
    config = configured(tmp_path, "board", "127.0.0.1:1")
    token = tmp_path / "token"
    token.write_text("open sesame\n")
    with dashboard(config, "--token-file", str(token)) as url:
        base = url.split("/#")[0]
        assert url == f"{base}/#token=open%20sesame"
        assert answer(f"{base}/snapshot")[0] == 401
        assert answer(f"{base}/events")[0] == 401
        assert answer(f"{base}/snapshot", cookie="shoal-dashboard=\xe9")[0] == 401
        assert answer(f"{base}/login", data={"token": "guess"})[0] == 401
        assert answer(f"{base}/login", data={"token": 1})[0] == 401
        # a person types it
        with browser.tab() as tab:
            tab.open(f"{base}/")
            tab.until("!document.getElementById('token').hidden")
            tab.run("(() => { const f = document.getElementById('token'); f.elements.token.value = 'guess';"
                    " f.requestSubmit(); })()")  # fmt: skip
            tab.until("/not the token/.test(document.querySelector('#token [role=alert]').innerText)")
            tab.run("(() => { const f = document.getElementById('token'); f.elements.token.value = 'open sesame';"
                    " f.requestSubmit(); })()")  # fmt: skip
            tab.until("/Nothing is released yet/.test(document.getElementById('note').innerText)")
            assert tab.run("document.cookie") == ""
        # or follows the address, from which it goes
        with browser.tab() as tab:
            tab.open(url)
            tab.until("/Nothing is released yet/.test(document.getElementById('note').innerText)")
            assert tab.run("location.href") == f"{base}/"
            tab.until("/127.0.0.1:1: no broker answers/.test(document.getElementById('running').innerText)")


def test_only_names_of_this_machine_are_answered_and_nothing_else_is_let_in(tmp_path: Path) -> None:
    with dashboard(configured(tmp_path, "board", "127.0.0.1:1"), "--name", "board.example") as url:
        port = url.rstrip("/").rsplit(":", 1)[1]
        assert answer(url, host=f"evil.example:{port}")[0] == 403
        assert answer(f"{url}snapshot", host="evil.example")[0] == 403
        assert answer(url, host="board.example")[0] == 200
        status, headers = answer(url, host=f"localhost:{port}")
        assert status == 200
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "Access-Control-Allow-Origin" not in headers
        assert answer(f"{url}healthz")[0] == 200
        assert answer(f"{url}nothing")[0] == 404


def test_no_request_of_a_stranger_makes_a_traceback_or_an_error_of_the_page(tmp_path: Path) -> None:
    """Catches logins and requests that end in status 500; `dashboard` sees that nothing more is on standard error."""
    token = tmp_path / "token"
    token.write_text("open sesame\n")
    with dashboard(configured(tmp_path, "board", "127.0.0.1:1"), "--token-file", str(token)) as url:
        found = refusals(int(url.split(":")[2].split("/")[0]))
        assert {name: status for name, status in found.items() if not status.startswith(("2", "4"))} == {}
        logins = (
            "a lone surrogate",
            "deep lists",
            "an unknown charset",
            "a body that is no gzip",
            "a body that ends early",
        )
        assert [found[name] for name in logins] == ["401"] * len(logins)


def test_to_read_the_audit_log_select_is_enough(postgresql_url: str, tmp_path: Path) -> None:
    # given a log, and a user of the database who may SELECT and nothing else
    config = configured(tmp_path, "board", "127.0.0.1:1", postgresql_url)
    assert CliRunner().invoke(app, ["migrate", str(config)]).exit_code == 0
    url = make_url(postgresql_url)
    with psycopg.connect(url.set(drivername="postgresql").render_as_string(False), autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS looker")
        connection.execute("CREATE ROLE looker LOGIN")
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO looker")
        hub = Hub(load(config))
        # when the page looks, then it finds the log in order
        auditor = Auditor(hub, url.set(username="looker").render_as_string(False))
        assert auditor._budget() is None
        assert (auditor._audit()["ok"], auditor._audit()["findings"]) == (True, [])
        connection.execute("DROP OWNED BY looker")
        connection.execute("DROP ROLE looker")


def line(*releases: dict[str, Any]) -> list[bytes]:
    return [json.dumps(one).encode() for one in releases]


def test_listeners_hear_what_is_new_and_slow_ones_ask_for_everything(tmp_path: Path) -> None:
    async def story() -> None:
        hub = Hub(load(configured(tmp_path, "board", "127.0.0.1:1")))
        queue = hub.listen()
        # what is read of the past is not told one by one
        hub.take(line(release("m", 1, 1.0)), quiet=True)
        assert queue.empty()
        hub.is_read()
        assert [queue.get_nowait()[:13] for _ in range(2)] == [b"event: status", b"event: again\n"]
        # one that is new is
        hub.take(line(release("m", 2, 2.5), release("m", 2, 2.5)))
        assert queue.get_nowait().startswith(b'event: releases\ndata: [["m",1,"",2,')
        assert queue.empty()
        # many at once are not
        hub.take(line(*(release("m", seq, 1.0) for seq in range(3, 4 + AT_ONCE))))
        assert queue.get_nowait() == WHOLE
        # one who does not listen is told once more, and then no longer
        for seq in range(1000, 1000 + 2 * QUEUE):
            hub.take(line(release("m", seq, 1.0)))
        assert queue.qsize() == QUEUE + 1
        assert [queue.get_nowait() for _ in range(QUEUE + 1)][-1] == WHOLE
        # the same state is no news
        hub.set("sql", {"why": None})
        assert queue.empty()
        hub.leave(queue)
        hub.tell_all()
        assert queue.empty()
        # everything is made once until something changes
        assert await hub.whole() is await hub.whole()
        # and who begins to listen after that is told whether something did
        version, _ = await hub.whole()
        assert hub.listen(str(version)).empty()
        hub.take(line(release("m", 5000, 1.0)))
        assert hub.listen(str(version)).get_nowait() == WHOLE

    asyncio.run(story())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a configuration, or a file of releases with --input"),
        (["CONFIG", "--workers", "nowhere"], '"nowhere" is not HOST:PORT'),
        (["CONFIG", "--token-file", "missing"], "cannot be read"),
        (["CONFIG", "--host", "no.such.host.invalid"], "cannot listen on no.such.host.invalid"),
    ],
)
def test_what_cannot_be_served_is_said_in_one_line(tmp_path: Path, arguments: list[str], message: str) -> None:
    config = str(configured(tmp_path, "board", "127.0.0.1:1"))
    done = CliRunner().invoke(app, ["dashboard", *(config if each == "CONFIG" else each for each in arguments)])
    assert done.exit_code != 0
    assert message in done.output + str(done.exception)
