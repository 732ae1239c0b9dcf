"""What workers that are added add: events a second of 1, 2 and 4 of them, and the events and the CPU of each.

    python -m benchmarks.bench_workers [--quick]

The topic is filled beforehand. All workers of a run join first and hold the events back until each has its share; the
clock runs from then on, until the last transaction of the last of them. The broker is beside them on the same machine:
with more processes than cores, more workers cannot be faster.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import figures
from benchmarks.workload import Workload, configure
from shoal.agents.broker.process import Broker

PARTITIONS = 4
COUNTS = (1, 2, 4)
TOPIC = "events"
SETTLED = 3.0  # seconds without a transaction after the last event was committed
LIMIT = 900.0


class Process:
    """One worker, and what it said last."""

    def __init__(self, config: Path, go: Path, output: Path) -> None:
        self._output = output
        command = [sys.executable, "-m", "benchmarks.member", str(config), str(go)]
        with output.open("wb") as file:
            self._process = subprocess.Popen(command, cwd=figures.ROOT, stdout=file)

    def said(self) -> dict[str, Any]:
        """Its last whole line."""
        if self._process.poll() is not None:
            raise SystemExit(f"a worker ended with {self._process.returncode}")
        lines = [line for line in self._output.read_text().split("\n")[:-1] if line.startswith("{")]
        found: dict[str, Any] = json.loads(lines[-1]) if lines else {"partitions": 0, "events": 0, "at": 0, "cpu": 0}
        return found

    def stop(self) -> None:
        """Wait for its end."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait()


def measure(folder: Path, brokers: str, workload: Workload, count: int, number: int) -> dict[str, Any]:
    """One run of so many workers."""
    app = f"round{number}-{count}"
    go = folder / f"{app}.go"
    config = configure(folder, app, brokers=brokers, topic=TOPIC, users=workload.users, algorithm="naive", every="1h")
    # Nobody says idle while the clock runs: what it would wait for is not what is measured.
    config.write_text(config.read_text().replace("[audit]", 'idle_after = "1h"\n\n[audit]'))
    processes = [Process(config, go, folder / f"{app}-{one}.json") for one in range(count)]
    share = PARTITIONS // count
    wait(lambda: all(process.said()["partitions"] == share for process in processes))
    began = time.time()
    go.touch()
    wait(lambda: sum(process.said()["events"] for process in processes) >= workload.events)
    wait(lambda: time.time() > SETTLED + max(process.said()["at"] for process in processes))
    said = [process.said() for process in processes]
    for process in processes:
        process.stop()
    return {
        "workers": count,
        "seconds": max(one["at"] for one in said) - began,
        "events": [one["events"] for one in said],
        "cpu": [one["cpu"] for one in said],
    }


def wait(done: Any) -> None:
    """Until it is done."""
    deadline = time.monotonic() + LIMIT
    while not done():
        if time.monotonic() > deadline:
            raise SystemExit(f"the workers did not get there within {LIMIT:.0f} s")
        time.sleep(0.05)


def report(rounds: Sequence[Sequence[dict[str, Any]]], events: int) -> str:
    """The table."""
    rows = []
    for place, count in enumerate(COUNTS):
        runs = [one[place] for one in rounds]
        rates = [events / run["seconds"] for run in runs]
        gains = [one[0]["seconds"] / one[place]["seconds"] for one in rounds]
        last = runs[-1]
        rows.append(
            (
                count,
                figures.spread(rates, 1000, 1),
                figures.spread(gains, digits=2),
                ", ".join(f"{number / 1000:,.0f}" for number in last["events"]),
                ", ".join(f"{seconds:.1f}" for seconds in last["cpu"]),
            )
        )
    header = ("workers", "k events/s", "x one worker", "k events of each (last round)", "CPU seconds of each")
    return figures.table(header, rows)


def main() -> None:
    """Measure and publish."""
    quick = figures.is_quick(__doc__, "one round of 200,000 events")
    workload = Workload(200_000, 40_000) if quick else Workload(2_000_000, 200_000)
    with Broker() as broker, tempfile.TemporaryDirectory() as name:
        asyncio.run(workload.produce(broker.bootstrap, TOPIC, PARTITIONS))
        rounds = [
            [measure(Path(name), broker.bootstrap, workload, count, number) for count in COUNTS]
            for number in range(1 if quick else 3)
        ]
    title = f"Workers: {workload.events:,} events, {PARTITIONS} partitions, {os.cpu_count()} cores with the broker"
    figures.publish("workers", title, report(rounds, workload.events), {"rounds": rounds}, figures.place(quick=quick))


if __name__ == "__main__":
    main()
