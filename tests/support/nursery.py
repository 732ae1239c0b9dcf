"""Processes of `shoal` that begin with its modules imported: the most of a start is paid once, not by each of them.

A nursery is a process with one thread that has imported everything and does nothing. It forks whoever is asked for;
from then on that is a process like any other, with its own arguments, folder, environment and outputs, which may be
killed, frozen and measured. What `shoal` itself does before its modules are there, other tests see.
"""

import functools
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from tests.support import coverage

ROOT = Path(__file__).parents[2]
SHOAL = "shoal.agents.cli.entry"
LENGTH, END = 1 << 20, b"\n"  # of a part of a request at most; of a request


class Process:
    """What tests use of `subprocess.Popen`."""

    def __init__(self, command: Sequence[str], connection: socket.socket, pid: int) -> None:
        self.args, self.pid = command, pid
        self.returncode: int | None = None
        self._connection = connection

    def poll(self) -> int | None:
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            with self._connection as connection:
                self.returncode = _number(connection)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def start(
    *arguments: object,
    output: IO[bytes],
    errors: IO[bytes] | None = None,
    cwd: Path | None = None,
    module: str = SHOAL,
) -> Process:
    """Start `shoal`, or the `main` of another module; both outputs go to one file unless there are two."""
    command = ["shoal", *map(str, arguments)]
    request = {"module": module, "argv": command, "cwd": str(cwd or Path.cwd()), "environment": dict(os.environ)}
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(_nursery().address)
    outputs = [output.fileno(), (errors or output).fileno()]
    socket.send_fds(connection, [json.dumps(request).encode() + END], outputs)
    return Process(command, connection, _number(connection))


def _number(connection: socket.socket) -> int:
    """The next thing that the nursery says of a process: its id, and later its status."""
    said = connection.recv(16)
    if not said:
        raise RuntimeError("the nursery of processes has ended; its last words are above")
    return int(said)


class Nursery:
    """The nursery of this process."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="shoal-nursery-")
        self.address = f"{self._folder.name}/socket"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self.address)
            listener.listen()
            command = [sys.executable, "-m", "tests.support.nursery", str(listener.fileno())]
            environment = os.environ | coverage.ENVIRONMENT
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, pass_fds=[listener.fileno()], cwd=ROOT, env=environment
            )

    def close(self) -> None:
        """End it, and wait until it has written down what it measured."""
        self._process.communicate()
        self._folder.cleanup()


@functools.cache
def _nursery() -> Nursery:
    return Nursery()


def close() -> None:
    """End the nursery of this process, if there is one."""
    if _nursery.cache_info().currsize:
        _nursery().close()
        _nursery.cache_clear()


# ---------------------------------------------------------------- in the nursery


def serve(listener: socket.socket) -> str:
    """Fork for everyone who asks, and tell how they ended. It returns in the child alone: its module."""
    living: dict[int, socket.socket] = {}
    bell, ringer = os.pipe()
    os.set_blocking(ringer, False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.set_wakeup_fd(ringer)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for pytest, which ends the nursery
    while True:
        ready, _, _ = select.select([listener, bell, sys.stdin], [], [])
        if sys.stdin in ready:
            sys.exit()
        if bell in ready:
            os.read(bell, 4096)
            _tell_who_ended(living)
        if listener in ready:
            connection, _ = listener.accept()
            text, outputs, _, _ = socket.recv_fds(connection, LENGTH, 2)
            while not text.endswith(END):
                text += connection.recv(LENGTH)
            pid = os.fork()
            if not pid:
                signal.set_wakeup_fd(-1)
                for number in (bell, ringer):
                    os.close(number)
                for each in (listener, connection, *living.values()):
                    each.close()
                return _become(json.loads(text), outputs)
            for output in outputs:
                os.close(output)
            living[pid] = connection
            connection.sendall(str(pid).encode())


def _tell_who_ended(living: dict[int, socket.socket]) -> None:
    while living:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        with living.pop(pid) as connection:
            connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())


def _become(request: dict[str, Any], outputs: Sequence[int]) -> str:
    """Give a child what the caller of a new process would have given it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, output in enumerate(outputs, 1):
        os.dup2(output, number)
        os.close(output)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = request["argv"]
    return str(request["module"])


if __name__ == "__main__":
    gc.disable()  # as in tests/conftest.py
    coverage.measure()
    for _module in pkgutil.walk_packages([str(ROOT / "shoal/agents/cli")], "shoal.agents.cli."):
        importlib.import_module(_module.name)  # the commands among them, which nothing else imports early
    gc.freeze()
    gc.enable()
    with socket.socket(fileno=int(sys.argv[1])) as _listener:
        _chosen = serve(_listener)
    sys.exit(importlib.import_module(_chosen).main())
