"""What grows with users: the cost of an event, the memory of a user, and how fast the state comes back.

Each number of users has a topic: first every user once, then events of users drawn evenly, which is the worst case for
the processor's caches. Bound alone reads it (`full`), and then its state is restored from Kafka, as after a takeover.
"""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks import figures
from benchmarks.speed import summary
from benchmarks.speed.context import Context
from benchmarks.speed.subjects import KERNEL_LANE, TWIN_LANE, environment_of
from benchmarks.speed.watching import MB, FailedError
from benchmarks.workload import Workload, configure

PARTITIONS = 4
USERS = {KERNEL_LANE: (100_000, 1_000_000, 10_000_000), TWIN_LANE: (100_000, 1_000_000)}
QUICK = {KERNEL_LANE: (20_000, 200_000), TWIN_LANE: (20_000, 200_000)}
AGAIN = 1_000_000  # events after the first of each user
LIMIT = 600.0


def measure(context: Context) -> dict[str, Any]:
    """Every lane at every number of users."""
    found: list[dict[str, Any]] = []
    most = context.users or max(USERS[KERNEL_LANE])
    sizes = {
        lane: [users for users in counts if users <= most]
        for lane, counts in (QUICK if context.quick else USERS).items()
    }
    again = AGAIN // 10 if context.quick else AGAIN
    lanes = [lane for lane in (KERNEL_LANE, TWIN_LANE) if context.has(lane)]
    for users in sorted({users for lane in lanes for users in sizes[lane]}):
        topic = f"users{users}"
        workload = Workload(users + again, users, skewed=False)
        asyncio.run(workload.produce(context.brokers, topic, PARTITIONS))
        for lane in lanes:
            if users in sizes[lane]:
                found.append({"lane": lane, "users": users} | _one(context, lane, topic, workload))
    return {"runs": found, "again": again}


def _one(context: Context, lane: str, topic: str, workload: Workload) -> dict[str, Any]:
    """A worker, and a restore of what it left."""
    config = configure(
        context.folder, f"{topic}-{lane}", brokers=context.brokers, topic=topic, users=workload.users,
        algorithm="full", every="1h",
    )  # fmt: skip
    worker = [str(config), str(workload.events), "--only-bound", "--every", str(workload.users)]
    try:
        ran = _run(context, config, lane, "worker", *worker)
        restored = _run(context, config, lane, "restore", str(config))
    except FailedError as error:
        return {"failed": str(error)}
    print(f"{lane}, {workload.users:,} users: restored in {restored['seconds']:.1f} s", file=sys.stderr, flush=True)
    return {"worker": ran, "restored": restored}


def _run(context: Context, config: Path, lane: str, module: str, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", f"benchmarks.speed.{module}", *arguments]
    log = config.with_suffix(f".{module}.log")
    return context.watched.run(command, log, LIMIT, **environment_of(lane))


def tables(data: Mapping[str, Any]) -> str:
    """A line for each lane and number of users."""
    header = (
        "", "users", "CPU µs of a user's first event", "CPU µs of an event at random", "k users/s restored",
        "k users/CPU-s restored", "bytes a user at rest", "bytes a user, peak of the restore",
    )  # fmt: skip
    rows = []
    for run in data["runs"]:
        if "failed" in run:
            rows.append((run["lane"], f"{run['users']:,}", f"failed: {run['failed']}", *["–"] * 5))
            continue
        restored, users = run["restored"], run["users"]
        first, *later = run["worker"]["stretches"]
        rows.append(
            (
                run["lane"],
                f"{users:,}",
                summary.short(cost(first)),
                summary.short(cost(*later)) if later else "–",
                summary.short(restored["events"] / restored["seconds"] / 1000),
                summary.short(restored["events"] / restored["cpu"] / 1000),
                summary.short(MB * (restored["last_mb"] - restored["first_mb"]) / users),
                summary.short(MB * (restored["peak_mb"] - restored["first_mb"]) / users),
            )
        )
    about = (
        f"Bound alone, `full`: every user once, then {data['again']:,} events of users drawn evenly. The restore is "
        "that of a takeover of all partitions, changelogs read from Kafka; memory is that of the process after it, and "
        "at most, less what it had before."
    )
    return f"{about}\n\n{figures.table(header, rows)}"


def short(data: Mapping[str, Any]) -> list[str]:
    """The largest number of users of each lane, in a line."""
    lines = []
    for lane in (KERNEL_LANE, TWIN_LANE):
        runs = [run for run in data["runs"] if run["lane"] == lane and "failed" not in run]
        if runs:
            last = max(runs, key=lambda run: int(run["users"]))
            restored, users = last["restored"], last["users"]
            rate = summary.short(summary.by_wall(restored) / 1000)
            size = summary.short(MB * (restored["last_mb"] - restored["first_mb"]) / users)
            lines.append(
                f"With {users:,} users, {lane}: {rate} thousand users a second restored, {size} bytes a user in memory."
            )
    return lines


def cost(*stretches: Mapping[str, Any]) -> float:
    """Processor microseconds of an event in all stretches.

    >>> cost({"events": 10, "cpu": 1e-6}, {"events": 10, "cpu": 3e-6})
    0.2
    """
    return float(1e6 * sum(one["cpu"] for one in stretches) / sum(one["events"] for one in stretches))
