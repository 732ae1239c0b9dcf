"""Processes that do something to an audit log at the same moment."""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from shoal.agents.audit.ledger import Ledger
from shoal.models.errors import LedgerError
from tests.agents.audit.audit_examples import register, version
from tests.support import nursery
from tests.support.workers import wait_until

PATIENCE = 60.0  # seconds until each process has surely done its part, on a machine however busy


def race(folder: Path, url: str, racers: Sequence[Sequence[str]]) -> list[str]:
    """What processes say that are let go once all are ready: to "open" a log, or to "register" a metric of a name."""
    with ExitStack() as stack:
        outputs = [stack.enter_context(tempfile.TemporaryFile()) for _ in racers]
        running = [
            nursery.start(url, folder, *racer, output=output, module=__name__)
            for racer, output in zip(racers, outputs, strict=True)
        ]
        wait_until(
            lambda: len(list(folder.glob("ready-*"))) == len(racers), PATIENCE, lambda: "not all are ready", patience=1
        )
        (folder / "go").touch()
        ended = [process.wait(PATIENCE) for process in running]
        said = [os.pread(output.fileno(), os.fstat(output.fileno()).st_size, 0).decode().strip() for output in outputs]
    assert ended == [0] * len(racers), said
    return said


def main() -> int:
    """Be one of them."""
    _, url, folder, what, *names = sys.argv

    def ready() -> None:
        Path(folder, f"ready-{os.getpid()}").touch()
        while not Path(folder, "go").exists():
            time.sleep(0.001)

    RACES[what](url, ready, *names)
    return 0


def _open(url: str, ready: Callable[[], None]) -> None:
    ready()
    with Ledger.open(url, migrate=True) as ledger:
        print(ledger.log_id)


def _register(url: str, ready: Callable[[], None], name: str) -> None:
    with Ledger.open(url) as ledger:
        ready()
        try:
            print(len(register(ledger, version(name, epsilon="3")).charged))
        except LedgerError as error:
            print("refused", "more than the 1 left of 4" in str(error))


RACES: dict[str, Callable[..., None]] = {"open": _open, "register": _register}
