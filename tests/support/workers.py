"""`shoal worker` as a process that tests kill, freeze and stop; what it says is kept for the failure message."""

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.support import nursery

LEAVES_WITHIN = 20.0  # seconds from SIGTERM to exit, as promised, on a machine that has time for it
PATIENCE = 5.0  # factor for a machine that is slow, and busy with other tests


def shoal(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, as a script would."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = nursery.start(*arguments, output=output, errors=errors, cwd=cwd)
        try:
            process.wait(120 * PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        said = [os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode() for file in (output, errors)]
    return subprocess.CompletedProcess(process.args, process.wait(), *said)


def wait_until(
    done: Callable[[], Any], limit: float, else_say: Callable[[], str], every: float = 0.05, patience: float = PATIENCE
) -> None:
    """Wait until `done` is true, looking every `every` seconds.

    Raises:
        AssertionError: it was false for `limit` seconds times `patience`; the text is what `else_say` returns.
    """
    end = time.monotonic() + limit * patience
    while not done():
        assert time.monotonic() < end, f"not within {limit * patience:.0f} s: {else_say()}"
        time.sleep(every)


class Worker:
    """One worker process, from its start to whatever end it comes to."""

    def __init__(self, config: Path, log: Path, instance: str | None = None) -> None:
        self.log, self.instance = log, instance
        name = [] if instance is None else ["--instance", instance]
        with log.open("ab") as output:
            self.process = nursery.start("worker", config, *name, output=output)

    # -- what it says

    @property
    def text(self) -> str:
        return self.log.read_text("utf-8", "replace")

    def said(self, event: str) -> list[dict[str, Any]]:
        """Its log lines about one kind of event."""
        lines = [json.loads(line) for line in self.text.splitlines() if line.startswith("{") and line.endswith("}")]
        return [line for line in lines if line["event"] == event]

    @property
    def owned(self) -> int:
        """Partitions it works on: of sources and of contributions."""
        owns = self.said("owns")
        return int(owns[-1]["all"]) if owns else 0

    def partitions(self, stage: str) -> set[int]:
        """Partitions of a stage that it works on."""
        owned: set[str] = set()
        for owns in self.said("owns"):
            owned = (owned - set(owns["gone"])) | set(owns["new"])
        return {int(name.rpartition("[")[2].rstrip("]")) for name in owned if name.startswith(f"{stage} of")}

    @property
    def last_word(self) -> str:
        """The line for people with which it ended."""
        return self.text.rstrip("\n").rpartition("\n")[2]

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    # -- what is done to it

    def wait_says(self, event: str, limit: float = 90.0) -> None:
        self.wait(lambda: self.said(event), limit)

    def wait_owns(self, count: int = 1, limit: float = 90.0) -> None:
        self.wait(lambda: self.owned >= count, limit)

    def wait(self, done: Callable[[], Any], limit: float = 90.0) -> None:
        """Until something is so; a worker that ends meanwhile is a failure."""

        def look() -> bool:
            assert self.alive or done(), f"the worker ended with {self.process.returncode}: {self.text[-3000:]}"
            return bool(done())

        wait_until(look, limit, lambda: self.text[-3000:])

    def kill(self) -> None:
        """SIGKILL: no handler runs, nothing is flushed."""
        self.process.kill()
        self.process.wait()

    def freeze(self) -> None:
        """SIGSTOP: it does nothing, and knows nothing of it afterwards."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def tell_to_stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def stop(self) -> None:
        """SIGTERM; it has to commit, leave and exit with 0 in good time."""
        self.tell_to_stop()
        self.ends_well()

    def ends_well(self) -> None:
        status = self.exit_status(LEAVES_WITHIN * PATIENCE)
        assert status == 0, f"exit {status}: {self.text[-3000:]}"

    def exit_status(self, limit: float = 60.0 * PATIENCE) -> int:
        """Wait for its end."""
        try:
            return self.process.wait(limit)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {limit:.0f} s: {self.text[-3000:]}") from None

    def end(self) -> None:
        """Leave nothing behind, whatever the test did."""
        if self.alive:
            self.kill()


def tails(workers: Sequence[Worker]) -> str:
    """The last words of all workers."""
    return "\n".join(f"-- {worker.log.name} ({worker.process.poll()})\n{worker.text[-1500:]}" for worker in workers)


def wait_shared(workers: Sequence[Worker], each: set[int]) -> None:
    """Until each works on so many partitions of the sources and as many of the contributions."""

    def shared() -> bool:
        assert all(worker.alive for worker in workers), tails(workers)
        return all(len(worker.partitions(stage)) in each for worker in workers for stage in ("bound", "release"))

    wait_until(shared, 90, lambda: tails(workers))
