"""What additional workers gain: events a second of 1, 2 and 4 of them, and the events and the CPU of each.

The topic is filled beforehand. All workers of a run join first and hold the events back until each has its share; the
clock runs from then on, until the last transaction of the last of them. The broker is beside them on the same machine:
with more processes than cores, more workers cannot be faster.
"""

import asyncio
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks import figures
from benchmarks.speed.context import Context
from benchmarks.speed.subjects import KERNEL_LANE, TWIN_LANE, environment_of
from benchmarks.speed.summary import Spread, cell
from benchmarks.speed.watching import FailedError
from benchmarks.workload import Workload, configure
from shoal.agents.broker.process import dies_with

PARTITIONS = 4
COUNTS = (1, 2, 4)
EVENTS = {KERNEL_LANE: 4_000_000, TWIN_LANE: 1_000_000}
SETTLED = 3.0  # seconds without a transaction after the last event was committed
LIMIT, PATIENCE = 180.0, 30.0


class Process:
    """One worker, and what it said last."""

    def __init__(self, config: Path, go: Path, output: Path, lane: str) -> None:
        self._output = output
        command = [sys.executable, "-m", "benchmarks.speed.member", str(config), str(go)]
        with output.open("wb") as file:
            environment = os.environ | environment_of(lane)
            self._process = subprocess.Popen(
                command, cwd=figures.ROOT, stdout=file, env=environment, preexec_fn=dies_with(os.getpid())
            )

    def said(self) -> dict[str, Any]:
        """Its last whole line."""
        if self._process.poll() is not None:
            raise FailedError(f"a worker ended with {self._process.returncode}")
        lines = [line for line in self._output.read_text().split("\n")[:-1] if line.startswith("{")]
        found: dict[str, Any] = json.loads(lines[-1]) if lines else {"partitions": 0, "events": 0, "at": 0, "cpu": 0}
        return found

    def stop(self) -> None:
        """Wait for its end."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def measure(context: Context) -> dict[str, Any]:
    """Every lane with each number of workers, in rounds."""
    if context.quick:
        rounds, events, workload = 1, {KERNEL_LANE: 200_000, TWIN_LANE: 200_000}, Workload(200_000, 40_000)
    else:
        rounds, events = context.rounds or 3, EVENTS
        workload = Workload(max(EVENTS.values()), 200_000)
    found: list[list[dict[str, Any]]] = []
    for lane in (KERNEL_LANE, TWIN_LANE):
        if context.has(lane):
            topic = f"events-{lane}"
            load = dataclasses.replace(workload, events=events[lane])
            asyncio.run(load.produce(context.brokers, topic, PARTITIONS))
            for number in range(rounds):
                found.append([_guarded(context, lane, topic, load, count, number) for count in COUNTS])
    return {"partitions": PARTITIONS, "cores": os.cpu_count(), "rounds": found}


def _guarded(context: Context, lane: str, topic: str, workload: Workload, count: int, number: int) -> dict[str, Any]:
    about = {"lane": lane, "workers": count, "total": workload.events}
    try:
        run = _one(context, lane, topic, workload, count, number)
    except FailedError as error:
        run = {"failed": str(error)}
    print(f"{lane}, {count} workers: {run.get('failed') or run['seconds']}", file=sys.stderr, flush=True)
    return about | run


def _one(context: Context, lane: str, topic: str, workload: Workload, count: int, number: int) -> dict[str, Any]:
    """One run of so many workers."""
    app, folder = f"round{number}-{lane}-{count}", context.folder
    go = folder / f"{app}.go"
    config = configure(
        folder, app, brokers=context.brokers, topic=topic, users=workload.users, algorithm="naive", every="1h"
    )
    # Nobody says idle while the clock runs: what it would wait for is not what is measured.
    config.write_text(config.read_text().replace("[audit]", 'idle_after = "1h"\n\n[audit]'))
    processes = [Process(config, go, folder / f"{app}-{one}.json", lane) for one in range(count)]
    try:
        share = PARTITIONS // count
        wait(lambda: all(process.said()["partitions"] == share for process in processes))
        began, broker = time.time(), context.watched.cost()["broker"]
        go.touch()
        wait(lambda: sum(process.said()["events"] for process in processes) >= workload.events)
        broker = context.watched.cost()["broker"] - broker
        wait(lambda: time.time() > SETTLED + max(process.said()["at"] for process in processes))
        said = [process.said() for process in processes]
    finally:
        for process in processes:
            process.stop()
    return {
        "seconds": max(one["at"] for one in said) - began,
        "events": [one["events"] for one in said],
        "cpu": [one["cpu"] for one in said],
        "broker_cpu": broker,
    }


def wait(done: Callable[[], bool]) -> None:
    """Until it is done."""
    deadline = time.monotonic() + LIMIT
    while not done():
        if time.monotonic() > deadline:
            raise FailedError(f"the workers did not get there within {LIMIT:.0f} s")
        time.sleep(0.05)


def short(data: Mapping[str, Any]) -> list[str]:
    """What the second worker adds, in a line for each lane."""
    lines = []
    for lane in dict.fromkeys(one["lane"] for runs in data["rounds"] for one in runs):
        rounds = [runs for runs in data["rounds"] if runs[0]["lane"] == lane and "failed" not in runs[0] | runs[1]]
        if rounds:
            gain = cell(Spread.of([runs[0]["seconds"] / runs[1]["seconds"] for runs in rounds]))
            lines.append(f"Two workers on {data['cores']} cores, broker included, {lane}: {gain} times one (`naive`).")
    return lines


def tables(data: Mapping[str, Any]) -> str:
    """A line for each lane and number of workers; gains are within a round."""
    header = ("", "workers", "k events/s", "× one worker", "k events of each (last round)", "CPU-s of each", "broker")
    rows = []
    for lane in dict.fromkeys(one["lane"] for runs in data["rounds"] for one in runs):
        rounds = [runs for runs in data["rounds"] if runs[0]["lane"] == lane]
        for place, first in enumerate(rounds[0]):
            good = [(runs[0], runs[place]) for runs in rounds if "failed" not in runs[0] | runs[place]]
            if not good:
                rows.append((lane, first["workers"], f"failed: {rounds[-1][place].get('failed')}", *["–"] * 4))
                continue
            last = good[-1][1]
            rows.append(
                (
                    lane,
                    first["workers"],
                    cell(Spread.of([run["total"] / run["seconds"] for _, run in good]), 1000),
                    cell(Spread.of([alone["seconds"] / run["seconds"] for alone, run in good])),
                    ", ".join(f"{number / 1000:,.0f}" for number in last["events"]),
                    ", ".join(f"{seconds:.1f}" for seconds in last["cpu"]),
                    f"{last['broker_cpu']:.1f}",
                )
            )
    about = f"`naive`, {data['partitions']} partitions, {data['cores']} cores that broker and workers share."
    return f"{about}\n\n{figures.table(header, rows)}"
