"""Cost per event as events grow, memory per user, and how fast a partition's state comes back.

    python -m benchmarks.bench_scaling [--quick]

Cost: one worker, whole pipeline, one long run cut into stretches. Memory: bound's slope between two numbers of users,
so that what every worker needs counts for nothing; release keeps no users once its top level is active. Restore: the
changelog of the larger one, partition by partition.
"""

import asyncio
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks import figures
from benchmarks.workload import Workload, configure
from shoal.agents.broker.process import Broker

PARTITIONS = 4
EVERY = 100_000
BOUND, WHOLE = "bound alone", "whole pipeline, full"


def cost(folder: Path, brokers: str, workload: Workload, cuts: list[int]) -> list[dict[str, float]]:
    """Microseconds per event in each stretch between two cuts."""
    asyncio.run(workload.produce(brokers, "long", PARTITIONS))
    config = configure(
        folder, "long", brokers=brokers, topic="long", users=workload.users, algorithm="full", every="1h"
    )
    windows = figures.run("worker", str(config), str(workload.events), "--every", str(EVERY))["windows"]
    start = {"events": 0, "seconds": 0.0, "cpu": 0.0}
    marks = [start] + [next(window for window in windows if window["events"] >= cut) for cut in cuts]
    return [
        {"from": first["events"], "to": last["events"]}
        | {kind: 1e6 * (last[kind] - first[kind]) / (last["events"] - first["events"]) for kind in ("seconds", "cpu")}
        for first, last in pairwise(marks)
    ]


def memory(folder: Path, brokers: str, users: int) -> dict[str, float]:
    """Resident MB of a worker that has seen one event of each of so many users."""
    topic = f"users{users}"
    asyncio.run(Workload(users, users, skewed=False).produce(brokers, topic, PARTITIONS))
    found = {}
    for name, options in ((BOUND, ["--only-bound"]), (WHOLE, [])):
        app = f"{topic}-{name.split()[0]}"
        config = configure(folder, app, brokers=brokers, topic=topic, users=users, algorithm="full", every="1h")
        result = figures.run("worker", str(config), str(users), *options)
        found[name] = result["mb"]
    return found


def report(data: dict[str, Any], few: int, many: int) -> str:
    """The tables."""
    stretches = [
        (f"{one['from'] / 1e6:.1f}–{one['to'] / 1e6:.1f} M", f"{one['seconds']:.1f}", f"{one['cpu']:.1f}")
        for one in data["cost"]
    ]
    memory = [
        (name, f"{data['memory'][few][name]:.0f}", f"{data['memory'][many][name]:.0f}") for name in (BOUND, WHOLE)
    ]
    rates = [one["accounts"] / (one["load"] + one["restore"]) for one in data["restore"]]
    by_cpu = [one["accounts"] / one["cpu"] for one in data["restore"]]
    return "\n\n".join(
        [
            figures.table(("events", "µs per event", "CPU µs per event"), stretches),
            figures.table(("", f"MB at {few:,} users", f"MB at {many:,}"), memory),
            f"Bound: {data['bytes_per_user']:.0f} bytes per user.",
            f"Restoring a partition, changelog read included: {figures.spread(rates)} user states per second, "
            f"{figures.spread(by_cpu)} per CPU-second.",
        ]
    )


def main() -> None:
    """Measure and publish."""
    quick = figures.is_quick(__doc__, "a tenth of everything")
    few, many = (20_000, 200_000) if quick else (100_000, 1_000_000)
    cuts = [100_000, 300_000, 500_000] if quick else [100_000, *(million * 1_000_000 for million in range(1, 6))]
    with Broker() as broker, tempfile.TemporaryDirectory() as name:
        folder, brokers = Path(name), broker.bootstrap
        data: dict[str, Any] = {"cost": cost(folder, brokers, Workload(cuts[-1], 200_000), cuts)}
        data["memory"] = {users: memory(folder, brokers, users) for users in (few, many)}
        config = folder / f"users{many}-bound.toml"
        data["restore"] = figures.run("restore", str(config), f"users{many}", str(PARTITIONS))["partitions"]
    grown = data["memory"][many][BOUND] - data["memory"][few][BOUND]
    data["bytes_per_user"] = 2**20 * grown / (many - few)
    figures.publish("scaling", "Scaling", report(data, few, many), data, figures.place(quick=quick))


if __name__ == "__main__":
    main()
