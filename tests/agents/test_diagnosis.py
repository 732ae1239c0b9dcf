"""What `shoal check --workers` makes of the answers of several workers, each over a real connection."""

import http.server
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from shoal.agents import diagnosis
from shoal.agents.diagnosis import NotWell, ask_workers, diagnose, refuse_what_is_not_well, told
from shoal.agents.worker.conditions import report
from shoal.models.errors import ConfigError
from shoal.stream.machine import StagePartition
from tests.agents.worker.test_watch import Stage, speaking
from tests.agents.worker.test_web import free_port


@contextmanager
def answering(*bodies: bytes) -> Iterator[str]:
    """Servers that answer so, as one text of addresses."""
    servers = []
    for body in bodies:

        class Handler(http.server.BaseHTTPRequestHandler):
            said = body

            def do_GET(self) -> None:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(self.said)

            def log_message(self, *_: Any) -> None:
                pass

        servers.append(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler))
    for server in servers:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield ",".join(f"127.0.0.1:{server.server_address[1]}" for server in servers)
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()


def waiting_worker(seconds: float = 100) -> Stage:
    """It has the release stage; its tick has waited for events[1] for so long."""
    stage = Stage()
    stage.owns(speaking(45, 5, 25))
    stage.readiness.wall = lambda: 1_000_000
    stage.readiness._now = lambda: 0
    stage.readiness.look()
    stage.readiness._now = lambda: seconds
    return stage


def owner(behind: int) -> Stage:
    """It has the source partition that the other waits for."""
    stage = Stage()
    stage.host.partitions = {StagePartition("bound", "events", 1): SimpleNamespace(machine=None, processed=3)}
    stage.host.app._consumer._thread.ends = lambda: {("events", 1): 3 + behind}
    return stage


def found(*stages: Stage) -> dict[str, Any]:
    with answering(*(orjson.dumps(report(stage.readiness)) for stage in stages)) as names:
        answers = ask_workers(names)
        known = {answer.worker: f"worker {number}" for number, answer in enumerate(answers)}
        text = orjson.dumps(diagnose(answers)).decode()
    for name, short in known.items():
        text = text.replace(name, short)
    result: dict[str, Any] = orjson.loads(text)
    return result


def cause(*stages: Stage) -> str:
    (waiting,) = found(*stages)["waiting_for"]
    return f"{waiting['owner']}: {waiting['cause']}"


def test_it_is_said_who_holds_a_tick_up_and_why() -> None:
    waiting, busy = waiting_worker(), owner(behind=1234)
    assert cause(waiting) == "None: none of the workers that were asked owns it: start one, or name all of them"
    assert cause(waiting, busy) == (
        "worker 1: worker 1 owns it and is 1234 records behind there: wait, or start more workers"
    )
    assert cause(waiting, owner(behind=0)) == (
        "worker 1: worker 1 has read all of it: its last event is older than that of others; see to its producers"
    )
    busy.domain.discreet = True
    assert cause(waiting, busy) == (
        "worker 1: worker 1 owns it: run `shoal beat`; if it runs, see how far behind the consumer group is"
    )
    busy.host.reach.away = True
    assert cause(waiting, busy) == "worker 1: worker 1 owns it and is not ready"


def test_several_workers_that_wait_for_one_partition_are_told_once_since_the_earliest() -> None:
    for waiting in ((waiting_worker(10), waiting_worker(100)), (waiting_worker(100), waiting_worker(10))):
        (one,) = found(*waiting)["waiting_for"]
        assert (one["metric"], one["topic"], one["partition"], one["stuck"]) == ("m0", "events", 1, True)
        assert one["since"] == "1970-01-12T13:45:00Z"


def test_workers_that_are_well_are_told_in_a_line_each() -> None:
    first, second = owner(behind=0), owner(behind=0)
    what = found(first, second)
    assert list(told(what)) == [
        "running workers",
        "  worker 0: ready, 1 partitions",
        "  worker 1: ready, 1 partitions",
    ]
    refuse_what_is_not_well(what)


def test_a_person_reads_all_reasons_and_a_script_a_status() -> None:
    waiting, away = waiting_worker(), owner(behind=0)
    away.host.reach.away = True
    away.domain.health.alarm("policy", "topic app.releases: retention.ms is 1")
    what = found(waiting, away)
    assert list(told(what)) == [
        "running workers",
        "  worker 0: ready, 1 partitions",
        "  worker 1: not ready",
        "    brokers: no broker of somewhere:9092 answers",
        "    alarm policy: topic app.releases: retention.ms is 1",
        "what ticks wait for",
        "  metric m0 waits since 1970-01-12T13:45:00Z for events[1] (stuck): worker 1 owns it and is not ready",
    ]
    with pytest.raises(NotWell) as refused:
        refuse_what_is_not_well(what)
    assert str(refused.value) == (
        "workers not ready: worker 1; ticks are stuck and wait for events[1]; the answer on stdout says why"
    )


def test_partitions_without_beats_are_stuck() -> None:
    said = report(owner(behind=0).readiness) | {"without_beats": [{"topic": "events", "partition": 2}]}
    with answering(orjson.dumps(said)) as names:
        what = diagnose(ask_workers(names))
    assert list(told(what))[-1] == (
        "  events[2] (stuck): it had no beat yet, and no tick of its topic closes before: run `shoal beat`"
    )
    with pytest.raises(NotWell, match=r"wait for events\[2\]"):
        refuse_what_is_not_well(what)


def test_workers_that_do_not_answer_are_named_with_what_is_the_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting, nobody = waiting_worker(), free_port()
    bodies = [orjson.dumps(report(waiting.readiness)), b"404: Not Found", b'{"ready": true}']
    with answering(*bodies) as names, socket.create_server(("127.0.0.1", 0)) as frozen:
        answers = ask_workers(f"{names},127.0.0.1:{nobody}")
        monkeypatch.setattr(diagnosis, "LIMIT", 0.2)
        answers += ask_workers(f"127.0.0.1:{nobody}, http://127.0.0.1:{frozen.getsockname()[1]}/")[1:]
    assert [answer.failure for answer in answers] == [
        "",
        "no answer to /readyz: it is no worker, or one of an older version",
        "no answer to /readyz: it is no worker, or one of an older version",
        "no answer (Connection refused)",
        "no answer within 0 s: it is stopped, or its event loop stands still",
    ]
    (one,) = diagnose(answers)["waiting_for"]
    assert one["cause"].startswith("none of the workers that answered owns it, and 127.0.0.1:")


@pytest.mark.parametrize("names", ["worker", "worker:", "worker:many", "[::1:9100"])
def test_what_is_no_address_is_refused(names: str) -> None:
    with pytest.raises(ConfigError, match="is not HOST:PORT"):
        ask_workers(f"127.0.0.1:1,{names}")


def test_no_address_at_all_is_refused() -> None:
    with pytest.raises(ConfigError, match="name them as HOST:PORT,HOST:PORT"):
        ask_workers(" , ")


def test_a_name_that_does_not_resolve_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", refused)
    (answer,) = ask_workers("no.such.host:9100")
    assert (answer.worker, answer.failure) == ("no.such.host:9100", "no answer (Name or service not known)")
