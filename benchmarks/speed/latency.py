"""Latency: event in to release out at `every = "contribution"`, at 10, 50 and 90 % of what one worker sustains.

What it sustains is measured first: a backlog of events through the whole pipeline, until the last release is in the SQL
log.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

from benchmarks import figures
from benchmarks.speed import summary
from benchmarks.speed.context import Context
from benchmarks.speed.subjects import KERNEL_LANE, TWIN_LANE, environment_of
from benchmarks.speed.watching import FailedError
from benchmarks.workload import Workload, configure, create_topic

PARTITIONS = 4
USERS = 200_000
LOADS = (0.1, 0.5, 0.9)
ALGORITHMS = ("naive", "full")
OWNS = "owns"
START, LIMIT = 60.0, 300.0  # seconds


def measure(context: Context) -> dict[str, Any]:
    """Each algorithm, in the kernel's lane if there is one."""
    lane = KERNEL_LANE if context.has(KERNEL_LANE) else TWIN_LANE
    events, seconds = (20_000, 8.0) if context.quick else (100_000, 20.0)
    asyncio.run(Workload(events, USERS).produce(context.brokers, "backlog", PARTITIONS))
    runs: list[dict[str, Any]] = []
    for algorithm in ALGORITHMS:
        try:
            most = _sustained(context, lane, events, algorithm)
            for load in LOADS:
                found = _at(context, lane, algorithm, load, most, seconds)
                runs.append({"algorithm": algorithm, "load": load, "sustained": most} | found)
        except FailedError as error:
            runs.append({"algorithm": algorithm, "failed": str(error)})
    return {"lane": lane, "seconds": seconds, "runs": runs}


def _sustained(context: Context, lane: str, events: int, algorithm: str) -> float:
    """Events per second of a backlog, a release per contribution."""
    config = configure(
        context.folder, f"backlog-{algorithm}", brokers=context.brokers, topic="backlog", users=USERS,
        algorithm=algorithm, every="contribution",
    )  # fmt: skip
    command = [sys.executable, "-m", "benchmarks.speed.worker", str(config), str(events), "--audited"]
    run = context.watched.run(command, config.with_suffix(".log"), LIMIT, **environment_of(lane))
    return summary.by_wall(run)


def _at(context: Context, lane: str, algorithm: str, load: float, most: float, seconds: float) -> dict[str, Any]:
    """Percentiles at this load, with an ordinary `shoal worker`."""
    app = f"load{100 * load:.0f}-{algorithm}"
    topic = f"live-{app}"
    asyncio.run(create_topic(context.brokers, topic, PARTITIONS))
    config = configure(
        context.folder, app, brokers=context.brokers, topic=topic, users=USERS, algorithm=algorithm,
        every="contribution",
    )  # fmt: skip
    log = config.with_suffix(".log")
    with log.open("wb") as output:
        command = [sys.executable, "-m", "shoal", "worker", str(config)]
        worker = subprocess.Popen(
            command, cwd=figures.ROOT, stderr=output, stdout=subprocess.DEVNULL, env=os.environ | environment_of(lane)
        )
    try:
        deadline = time.monotonic() + START
        while OWNS not in log.read_text():
            if worker.poll() is not None or time.monotonic() > deadline:
                raise FailedError("\n".join(log.read_text().splitlines()[-1:]) or "the worker did not start")
            time.sleep(0.1)
        arguments = [context.brokers, topic, str(PARTITIONS), app, str(USERS), str(most * load), str(seconds)]
        found = figures.run("speed.sender", *arguments)
    finally:
        worker.terminate()
        worker.wait(30)
    print(f"{app}: {json.dumps(found)}", file=sys.stderr, flush=True)
    return found


def short(data: Mapping[str, Any]) -> list[str]:
    """Half load, in a line."""
    half = [run for run in data["runs"] if run.get("load") == 0.5]
    times = "; ".join(
        f"`{run['algorithm']}` at {run['rate']:,.0f} events/s {run['p50']:.2f} s (p50), {run['p99']:.2f} s (p99)"
        for run in half
    )
    return [f'With `every = "contribution"`, at half load, from event to release: {times}.'] if half else []


def tables(data: Mapping[str, Any]) -> str:
    """A line for each algorithm and load."""
    header = ("", "load", "sent/s", "p50 s", "p99 s", "max s", "releases")
    rows = []
    for run in data["runs"]:
        if "failed" in run:
            rows.append((f"`{run['algorithm']}`", f"failed: {run['failed']}", *["–"] * 5))
            continue
        times = [f"{run[name]:.3f}" for name in ("p50", "p99", "max")]
        load = f"{100 * run['load']:.0f} % of {run['sustained']:,.0f}/s"
        rows.append((f"`{run['algorithm']}`", load, f"{run['rate']:,.0f}", *times, f"{run['releases']:,}"))
    about = (
        f'`every = "contribution"`, {data["lane"]} lane: from the event\'s sending to a read_committed consumer, over '
        f"{data['seconds']:.0f} s, of which the first five do not count."
    )
    return f"{about}\n\n{figures.table(header, rows)}"
