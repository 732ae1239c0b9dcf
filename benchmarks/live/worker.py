"""`shoal worker` as a row of the benchmark has it: its configuration, its process, and what `/metrics` shows of it."""

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Self

from prometheus_client.parser import text_string_to_metric_families

from benchmarks import figures
from benchmarks.live.rows import USERS, Row
from benchmarks.speed.watching import FailedError
from benchmarks.workload import MEAN, METRIC
from shoal.agents.audit import key_file
from shoal.agents.broker.process import dies_with, free_port

HOMES = 8  # partitions of contributions and releases
START, STOP = 120.0, 60.0  # seconds
LOOK = 0.2  # seconds between two looks at a worker that starts

CONFIG = """\
[kafka]
brokers = "{brokers}"
app = "{app}"
partitions = {homes}
latency = "{latency}"

[web]
port = {port}

[audit]
url = "sqlite:///{app}.db"

[privacy]
key_file = "{app}.key"
"""


def configure(folder: Path, app: str, row: Row, brokers: str, port: int) -> Path:
    """A configuration of the row's metric on the topic `app`, with a key and an audit log of its own."""
    path = folder / f"{app}.toml"
    text = (CONFIG + METRIC + MEAN).format(
        brokers=brokers, app=app, homes=HOMES, latency=row.latency, port=port, topic=app, users=USERS,
        algorithm=row.algorithm, every=row.every,
    )  # fmt: skip
    path.write_text(text)
    key_file.new(folder / f"{app}.key")
    return path


class Worker:
    """A worker; as a context manager it is ready on entry, and stopped on exit."""

    def __init__(self, folder: Path, app: str, row: Row, brokers: str) -> None:
        self._port, self._partitions = free_port(), row.partitions + HOMES
        config = configure(folder, app, row, brokers, self._port)
        self._log = config.with_suffix(".log")
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "shoal", "worker", str(config)],
                cwd=figures.ROOT, stdout=output, stderr=output, preexec_fn=dies_with(os.getpid()),
            )  # fmt: skip

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def transactions(self) -> float:
        """The number of transactions that were committed or given up so far."""
        return total(self._metrics(), "shoal_transactions_total")

    def __enter__(self) -> Self:
        try:
            self._wait_until_ready()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop()

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise FailedError("\n".join(self._log.read_text().splitlines()[-1:]) or "the worker did not start")
            time.sleep(LOOK)

    def _is_ready(self) -> bool:
        """Whether the worker does its work and owns every partition."""
        try:
            text = self._metrics()
        except urllib.error.URLError:
            return False
        return total(text, "shoal_ready") > 0 and total(text, "shoal_owned_partitions") == self._partitions

    def _metrics(self) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=10) as answer:
            text: str = answer.read().decode()
        return text

    def _stop(self) -> None:
        """Let it commit and end."""
        self._process.terminate()
        try:
            self._process.wait(STOP)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def total(text: str, name: str) -> float:
    r"""Sum of a metric over its labels, in the text of `/metrics`.

    >>> total('a_total{stage="x"} 2.0\na_total{stage="y"} 3.0\nb 7.0\n', "a_total")
    5.0
    """
    families = text_string_to_metric_families(text)
    return sum(sample.value for family in families for sample in family.samples if sample.name == name)
