"""Measures a row: the producer alone first, then the producer with a worker behind it.

The difference of the broker's costs is the worker's share of them.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import figures
from benchmarks.live.costs import BESIDE, Processes, cores
from benchmarks.live.producing import WARM
from benchmarks.live.rows import EACH_SECOND, SECONDS, Row
from benchmarks.live.worker import Worker
from benchmarks.speed.context import Context
from benchmarks.speed.watching import FailedError
from benchmarks.workload import create_topic
from shoal.agents.broker.process import dies_with

LONGER = 1.0  # seconds for which events come after the measurement
PATIENCE = 60.0  # seconds for which a producer may end later


class Load(NamedTuple):
    """Events that a producer sends."""

    topic: str
    partitions: int
    rate: int
    seconds: float = SECONDS  # of the measurement, which begins when the producer is warm
    app: str = ""  # whose releases it times; none: it only sends

    def command(self, brokers: str) -> list[str]:
        """The program that sends the events."""
        seconds = WARM + self.seconds + LONGER
        given = [brokers, self.topic, str(self.partitions), str(self.rate), str(seconds)]
        return [sys.executable, "-m", "benchmarks.live.producing", *given, *([self.app] if self.app else [])]


def measure(context: Context, row: Row, name: str) -> dict[str, Any]:
    """Costs of one row, in cores; `name` is that of its topic, and of no other row's."""
    before = alone(context, Load(f"{name}-alone", row.partitions, row.rate))
    asyncio.run(create_topic(context.brokers, name, row.partitions))
    load = Load(name, row.partitions, row.rate, row.seconds, name if row.has_latency else "")
    with Worker(context.folder, name, row, context.brokers) as worker:
        found = beside(before, observe(context, load, {"worker": worker.pid}, worker.transactions))
    if row.every == EACH_SECOND and found["releases"] < row.seconds - 2:
        raise FailedError(f"only {found['releases']} releases in {row.seconds:.0f} s")
    if row.rate:
        found["bytes_an_event"] = contributions_bytes(context.broker.data, name) / found["sent"]
    return found


def alone(context: Context, load: Load) -> dict[str, Any]:
    """Costs of a producer that nobody listens to; its topic is new."""
    asyncio.run(create_topic(context.brokers, load.topic, load.partitions))
    return observe(context, load)


def beside(before: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """Costs of a row, with the broker's of the producer alone and beyond it.

    >>> beside({"broker": 0.25, "beside": 0.5}, {"broker": 0.375, "beside": 0.25, "worker": 0.03})
    {'broker': 0.375, 'beside': 0.5, 'worker': 0.03, 'alone': 0.25, 'beyond': 0.125}
    """
    broker, others = before["broker"], max(before[BESIDE], found[BESIDE])
    return {**found, "alone": broker, "beyond": found["broker"] - broker, BESIDE: others}


def observe(
    context: Context, load: Load, pids: Mapping[str, int] | None = None, count: Callable[[], float] | None = None
) -> dict[str, Any]:
    """Cores of the broker and of the processes `pids` while events come, with what the producer says at its end.

    `count` returns the number of transactions so far; those of a second are in `transactions`.
    """
    assert context.broker.pid is not None
    with producing(context, load) as producer:
        known = {"broker": context.broker.pid, "producer": producer.pid, "benchmark": os.getpid()}
        processes = Processes({**(pids or {}), **known})
        time.sleep(WARM)
        counted = [count()] if count else []
        before = processes.look(time.monotonic())
        time.sleep(load.seconds)
        after = processes.look(time.monotonic())
        counted += [count()] if count else []
        said, _ = producer.communicate(timeout=PATIENCE)
    if producer.returncode:
        raise FailedError(f"the producer ended with {producer.returncode}")
    transactions = {"transactions": (counted[1] - counted[0]) / load.seconds} if counted else {}
    return {**cores(before, after), **transactions, **json.loads(said)}


@contextmanager
def producing(context: Context, load: Load) -> Iterator[subprocess.Popen[str]]:
    """The producer of a load, once it sends; what it logs is in a file."""
    with (context.folder / f"{load.topic}-{load.rate}.producer.log").open("wb") as errors:
        process = subprocess.Popen(
            load.command(context.brokers), cwd=figures.ROOT, stdout=subprocess.PIPE, stderr=errors, text=True,
            preexec_fn=dies_with(os.getpid()),
        )  # fmt: skip
    assert process.stdout is not None
    try:
        if not process.stdout.readline():
            raise FailedError("the producer did not start")
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def contributions_bytes(data: Path, app: str) -> int:
    """Bytes on disk of an app's contributions."""
    return sum(file.stat().st_size for file in (data / "log").glob(f"{app}.contributions-*/*.log"))
