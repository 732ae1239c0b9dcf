"""The demo's other processes: a worker and two auditors, which never outlive it.

In come command lines of `shoal`; out come their exit statuses and what they said. On Ctrl-C they wait for our word,
so that the worker ends before its broker does; if the demo itself is killed, they are killed with it (on Linux).
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import orjson

from shoal.agents.broker.process import Broker, dies_with
from shoal.models.errors import KafkaError

STOP_LIMIT = 8.0  # seconds; a stop takes less than one. After that SIGKILL, which a worker survives without loss
READY = b'"event": "owns"'  # the worker's log line once its partitions are restored


def start(*words: str, stdout: int | IO[bytes], stderr: int | IO[bytes]) -> subprocess.Popen[bytes]:
    """Start `shoal WORDS` with this interpreter; no file of the current folder is imported (-P)."""
    return subprocess.Popen(  # noqa: S603  # our own command
        [sys.executable, "-P", "-m", "shoal", *words],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        preexec_fn=dies_with(os.getpid()),
    )


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ask it to end; after a while make it."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class WorkerProcess:
    """A running `shoal worker`, and the broker that it needs."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path, broker: Broker) -> None:
        self._process, self._log, self._broker = process, log, broker

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ready(self) -> bool:
        """Whether it owns its partitions."""
        return READY in self._log.read_bytes()

    def check(self) -> None:
        """Check that both still run.

        Raises:
            KafkaError: one has ended; with what its log says of it.
        """
        self._broker.check()
        if self._process.poll() is not None:
            last = _last_line(self._log.read_bytes()) or f"see {self._log}"
            raise KafkaError(f"the worker ended with status {self._process.returncode}: {last}")


@contextmanager
def worker(config: Path, log: Path, broker: Broker) -> Iterator[WorkerProcess]:
    """Run a worker as long as the context lasts; its log goes to a file."""
    with log.open("wb") as output:
        process = start("worker", str(config), stdout=output, stderr=output)
    try:
        yield WorkerProcess(process, log, broker)
    finally:
        stop(process)


@dataclass(frozen=True)
class Audited:
    """The verdict of two auditors that know nothing of the demo."""

    ok: bool  # whether both confirm everything, and as many releases as there are
    complaint: str  # "" if there is none


def audit(config: Path, releases: int) -> Audited:
    """Have the log checked, and every release computed again from events and key, all at once."""
    commands = (("replay", "--from", "events"), ("verify",))
    processes = [_audit(*command, config=config) for command in commands]
    complaints = []
    try:
        for (name, *_), process in zip(commands, processes, strict=True):
            out, errors = process.communicate()
            report = _last_object(out)
            sound = process.returncode == 0 and report.get("ok") is True
            if not sound or report.get("confirmed", releases) != releases:
                complaints.append(f"audit {name}: {_last_line(errors) or _first_finding(report)}")
    finally:
        for process in processes:
            stop(process)
    return Audited(not complaints, "; ".join(complaints))


def _audit(name: str, *options: str, config: Path) -> subprocess.Popen[bytes]:
    return start("audit", name, str(config), *options, "--json", stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def _last_line(output: bytes) -> str:
    return output.decode("utf-8", "replace").strip().rpartition("\n")[2].removeprefix("shoal: ")


def _first_finding(report: dict[str, Any]) -> str:
    for finding in report.get("findings", ()):
        return f"{finding['where']}: {finding['message']}"
    return f"{report.get('confirmed', 0)} releases confirmed"


def _last_object(out: bytes) -> dict[str, Any]:
    try:
        report = orjson.loads(out.strip().rpartition(b"\n")[2])
    except orjson.JSONDecodeError:
        return {}
    return report if isinstance(report, dict) else {}
