"""`shoal` for scripts of pages: a program that asks a process with all commands imported to fork for each call.

A call has the arguments, folder, environment, input and outputs of its caller, as any process has. Importing a command
takes longer than most commands of a page.
"""

import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENTRY = "shoal.agents.cli.entry"
END = b"\n"  # of a request
PROGRAM = """#!{python} -SE
import json, os, socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect({address!r})
request = {{"argv": ["shoal", *sys.argv[1:]], "cwd": os.getcwd(), "environment": dict(os.environ)}}
socket.send_fds(connection, [json.dumps(request).encode() + b"\\n"], [0, 1, 2])
sys.exit(int(connection.recv(16)))
"""


@contextmanager
def forked(folder: Path) -> Iterator[str]:
    """Text of a program that does what `shoal` does, as long as the block lasts."""
    address = str(folder / "socket")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        command = [sys.executable, "-m", "tests.docs.forked", str(listener.fileno())]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=[listener.fileno()], cwd=ROOT
        )
    try:
        yield PROGRAM.format(python=sys.executable, address=address)
    finally:
        process.terminate()
        process.wait()


def serve(listener: socket.socket) -> None:
    """Fork for each request; return in the child that is to run a command."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that answer
    while True:
        connection, _ = listener.accept()
        if os.fork():
            connection.close()
            continue
        listener.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        text, files, _, _ = socket.recv_fds(connection, 1 << 20, 3)
        while not text.endswith(END):
            text += connection.recv(1 << 20)
        if pid := os.fork():
            _, status = os.waitpid(pid, 0)
            connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())
            os._exit(0)
        connection.close()
        return _become(json.loads(text), files)


def _become(request: dict[str, object], files: list[int]) -> None:
    """Give this process what its caller has."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(str(request["cwd"]))
    os.environ.clear()
    os.environ.update(request["environment"])  # type: ignore[call-overload]
    sys.argv = list(request["argv"])  # type: ignore[call-overload]


if __name__ == "__main__":
    gc.disable()
    for _module in pkgutil.walk_packages([str(ROOT / "shoal/agents/cli")], "shoal.agents.cli."):
        importlib.import_module(_module.name)
    gc.freeze()
    gc.enable()
    with socket.socket(fileno=int(sys.argv[1])) as _listener:
        serve(_listener)
    importlib.import_module(ENTRY).main()
