"""Throughput of one worker process on a real Kafka, beside a raw loop and stock Faust, all in one run.

    python -m benchmarks.bench_throughput [--quick]

The broker shares the machine, so compare ratios: each is taken within one round, in which everything runs once.
"""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import figures
from benchmarks.workload import WINDOW, Workload, configure
from shoal.agents.broker.process import Broker

PARTITIONS = 4
TOPIC = "events"
SUBJECTS = {  # name -> (algorithm, only bound)
    "bound alone (full)": ("full", True),
    "whole pipeline, full": ("full", False),
    "whole pipeline, naive": ("naive", False),
    "whole pipeline, sharp": ("sharp", False),
    "whole pipeline, sums over a week": (WINDOW, False),
}
RAW, STOCK = "raw loop: getmany, loads, dict", "stock Faust with a table"


def one_round(number: int, folder: Path, brokers: str, workload: Workload, stock: int) -> dict[str, dict[str, Any]]:
    """Everything once; the raw loop at both ends, for the machine's speed drifts."""
    arguments = (brokers, TOPIC, str(PARTITIONS))
    before = figures.run("raw", *arguments, str(workload.events))
    results = {}
    for place, (name, (algorithm, only_bound)) in enumerate(SUBJECTS.items()):
        app = f"round{number}-{place}"
        config = configure(
            folder, app, brokers=brokers, topic=TOPIC, users=workload.users, algorithm=algorithm, every="1h"
        )
        options = ["--only-bound"] if only_bound else []
        results[name] = figures.run("worker", str(config), str(workload.events), *options)
    after = figures.run("raw", *arguments, str(workload.events))
    results[RAW] = {name: (before[name] + after[name]) / 2 for name in before}
    results[STOCK] = figures.run("stock", *arguments, str(stock))
    return results


def summary(rounds: list[dict[str, dict[str, Any]]]) -> str:
    """The table."""
    rows = []
    for name in (RAW, *SUBJECTS, STOCK):
        wall = [one[name]["events"] / one[name]["seconds"] for one in rounds]
        cpu = [one[name]["events"] / one[name]["cpu"] for one in rounds]
        raw = [one[RAW]["events"] / one[RAW]["seconds"] for one in rounds]
        raw_cpu = [one[RAW]["events"] / one[RAW]["cpu"] for one in rounds]
        faust = [one[STOCK]["events"] / one[STOCK]["seconds"] for one in rounds]
        ratios = [[a / b for a, b in zip(*pair, strict=True)] for pair in ((wall, raw), (cpu, raw_cpu), (wall, faust))]
        texts = [figures.spread(values, digits=digits) for values, digits in zip(ratios, (3, 3, 0), strict=True)]
        rows.append((name, figures.spread(wall, 1000, 1), figures.spread(cpu, 1000, 1), *texts))
    header = ("", "k events/s", "k events/CPU-s", "of raw", "of raw, by CPU", "× stock Faust")
    return figures.table(header, rows)


def main() -> None:
    """Measure and publish."""
    quick = figures.is_quick(__doc__, "one round of 200,000 events")
    workload = Workload(200_000, 40_000) if quick else Workload(1_000_000, 200_000)
    count, stock = (1, 10_000) if quick else (3, 30_000)
    with Broker() as broker, tempfile.TemporaryDirectory() as name:
        asyncio.run(workload.produce(broker.bootstrap, TOPIC, PARTITIONS))
        rounds = [one_round(number, Path(name), broker.bootstrap, workload, stock) for number in range(count)]
    title = f"Throughput: {workload.events:,} events of {workload.users:,} users, {PARTITIONS} partitions, one process"
    figures.publish("throughput", title, summary(rounds), {"rounds": rounds}, figures.place(quick=quick))


if __name__ == "__main__":
    main()
