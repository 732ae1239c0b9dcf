"""Processor time of an event in a backlog, and the releases that one partition makes, one per contribution.

To compare two commits, run `python -m benchmarks.live --backlog` in a checkout of each, by turns.
"""

import asyncio
import sys
from collections.abc import Mapping
from typing import Any

from benchmarks.live.rows import EACH_CONTRIBUTION, HOURLY, USERS
from benchmarks.speed import summary
from benchmarks.speed.context import Context
from benchmarks.speed.summary import Spread
from benchmarks.workload import Workload, configure

PARTITIONS = 4
EVENTS = 3_000_000
ALGORITHMS = ("naive", "sharp")
ROUNDS = 2
RELEASES = 60_000
LIMIT = 300.0  # seconds


def measure(context: Context) -> dict[str, list[float]]:
    """Microseconds of a whole worker's processor time for each event, by algorithm; algorithms take turns."""
    asyncio.run(Workload(EVENTS, USERS).produce(context.brokers, "backlog", PARTITIONS))
    found: dict[str, list[float]] = {algorithm: [] for algorithm in ALGORITHMS}
    for number in range(ROUNDS):
        for algorithm in ALGORITHMS:
            run = _run(context, f"backlog-{algorithm}-{number}", "backlog", EVENTS, algorithm, HOURLY)
            found[algorithm].append(summary.cpu(run))
    return found


def releases_a_second(context: Context) -> float:
    """Releases that a worker makes of a backlog, all in one partition, until they are in the audit log."""
    asyncio.run(Workload(RELEASES, USERS).produce(context.brokers, "contributions", PARTITIONS))
    run = _run(context, "contributions", "contributions", RELEASES, "naive", EACH_CONTRIBUTION, "--audited")
    return summary.by_wall(run)


def lines(found: Mapping[str, list[float]]) -> list[str]:
    """A line for each algorithm.

    >>> lines({"naive": [0.75, 0.8]})
    ['`naive`: 0.78 (0.75–0.80) µs of processor time for each event of a backlog']
    """
    texts = {algorithm: summary.cell(Spread.of(values)) for algorithm, values in found.items()}
    return [f"`{name}`: {text} µs of processor time for each event of a backlog" for name, text in texts.items()]


def _run(context: Context, app: str, topic: str, events: int, algorithm: str, every: str, *options: str) -> Any:
    """A whole worker on a topic that was filled before."""
    config = configure(
        context.folder, app, brokers=context.brokers, topic=topic, users=USERS, algorithm=algorithm, every=every
    )
    command = [sys.executable, "-m", "benchmarks.speed.worker", str(config), str(events), *options]
    return context.watched.run(command, config.with_suffix(".log"), LIMIT)
