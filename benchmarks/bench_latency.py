"""Latency: event in to release out at `every = "contribution"`, at half of what one worker sustains.

    python -m benchmarks.bench_latency [--quick]

What it sustains is measured first, in the same run: a backlog of events through the whole pipeline, until the last
release is in the SQL log; the lesser of two runs, for the machine's speed drifts.
"""

import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import figures
from benchmarks.workload import Workload, configure, create_topic
from shoal.agents.broker.process import Broker

PARTITIONS = 4
USERS = 200_000
OWNS = "owns"


def sustained(folder: Path, brokers: str, events: int, algorithm: str) -> float:
    """Events per second of a backlog, a release per contribution."""
    rates = []
    for app in (f"first-{algorithm}", f"second-{algorithm}"):
        config = configure(
            folder, app, brokers=brokers, topic="backlog", users=USERS, algorithm=algorithm, every="contribution"
        )
        result = figures.run("worker", str(config), str(events), "--audited")
        rates.append(result["events"] / result["seconds"])
    return float(min(rates))


def latency(folder: Path, brokers: str, algorithm: str, rate: float, seconds: float) -> dict[str, Any]:
    """Percentiles at this rate, with an ordinary `shoal worker`."""
    app, topic = f"half-load-{algorithm}", f"live-{algorithm}"
    asyncio.run(create_topic(brokers, topic, PARTITIONS))
    config = configure(
        folder, app, brokers=brokers, topic=topic, users=USERS, algorithm=algorithm, every="contribution"
    )
    log = folder / f"{app}.log"
    with log.open("wb") as output:
        command = [sys.executable, "-m", "shoal", "worker", str(config)]
        worker = subprocess.Popen(command, stderr=output)
    try:
        while OWNS not in log.read_text():
            if worker.poll() is not None:
                raise SystemExit(log.read_text())
            time.sleep(0.1)
        return figures.run("latency", brokers, topic, str(PARTITIONS), app, str(USERS), str(rate), str(seconds))
    finally:
        worker.terminate()
        worker.wait(30)


def main() -> None:
    """Measure and publish."""
    quick = figures.is_quick(__doc__, "shorter")
    events, seconds = (20_000, 12.0) if quick else (100_000, 40.0)
    rows, data = [], {}
    with Broker() as broker, tempfile.TemporaryDirectory() as name:
        asyncio.run(Workload(events, USERS).produce(broker.bootstrap, "backlog", PARTITIONS))
        for algorithm in ("full", "naive"):
            most = sustained(Path(name), broker.bootstrap, events, algorithm)
            found = latency(Path(name), broker.bootstrap, algorithm, most / 2, seconds)
            data[algorithm] = {"sustained": most, **found}
            percentiles = [f"{found[key]:.3f}" for key in ("p50", "p99", "max")]
            rows.append((algorithm, f"{most:,.0f}", f"{found['rate']:,.0f}", *percentiles, f"{found['releases']:,}"))
    header = ('`every = "contribution"`', "sustained events/s", "sent/s", "p50 s", "p99 s", "max s", "releases")
    figures.publish("latency", "Event in to release out", figures.table(header, rows), data, figures.place(quick=quick))


if __name__ == "__main__":
    main()
