"""Kafka Streams, warm, under the loads of the rows: exactly-once v2 with its defaults, a commit every 100 ms."""

import asyncio
import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from benchmarks import figures
from benchmarks.live.measuring import Load, alone, beside, observe
from benchmarks.live.rows import USERS
from benchmarks.speed.context import Context
from benchmarks.speed.environments import MissingError, java_of_streams
from benchmarks.speed.watching import FailedError
from benchmarks.workload import Workload
from shoal.agents.broker.process import dies_with

TOPIC = "streams"
PARTITIONS = 8
RATES = (100, 1_000, 10_000)
WARMING = 400_000  # events after which Java has compiled what it will
MARKS = 4  # the program says after each fourth of its events how many it has read
START = 120.0  # seconds


def measure(context: Context) -> dict[str, Any]:
    """A row for each rate, or why there is none."""
    try:
        java = java_of_streams()
        before = [alone(context, Load(f"{TOPIC}-{rate}-alone", PARTITIONS, rate)) for rate in RATES]
        asyncio.run(Workload(WARMING, USERS).produce(context.brokers, TOPIC, PARTITIONS))
        with warmed(context, java) as pid:
            found = [observe(context, Load(TOPIC, PARTITIONS, rate), {"worker": pid}) for rate in RATES]
    except (MissingError, FailedError) as error:
        return {"missing": str(error)}
    about = [{"partitions": PARTITIONS, "rate": rate} for rate in RATES]
    return {"rows": [{**one, **beside(*both)} for one, *both in zip(about, before, found, strict=True)]}


@contextmanager
def warmed(context: Context, java: list[str]) -> Iterator[int]:
    """The process of Kafka Streams, once it has read what warms it."""
    arguments = [context.brokers, TOPIC, str(PARTITIONS), str(MARKS * WARMING), mkdtemp(dir=context.folder)]
    output = context.folder / "streams.jsonl"
    with output.open("wb") as file:
        process = subprocess.Popen(
            [*java, *arguments], cwd=figures.ROOT, stdout=file, stderr=subprocess.DEVNULL,
            preexec_fn=dies_with(os.getpid()),
        )  # fmt: skip
    try:
        deadline = time.monotonic() + START
        while events_read(output) < WARMING:
            if process.poll() is not None or time.monotonic() > deadline:
                raise FailedError("Kafka Streams did not read the events that warm it")
            time.sleep(0.2)
        yield process.pid
    finally:
        process.kill()
        process.wait()


def events_read(output: Path) -> int:
    """The number of events of the last mark that the program has written."""
    lines = [line for line in output.read_text().split("\n")[:-1] if line.startswith("{")]
    return int(json.loads(lines[-1])["events"]) if lines else 0
