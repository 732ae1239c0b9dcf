"""`shoal audit replay`: events per second, from the contributions and from the events in both lanes, and memory.

A worker processes the events with each algorithm, releases and SQL log included, and then the app is replayed. Each
replay is a process that must confirm every release. The start-up time, measured in the same round on an app with few
events and hardly any releases, is subtracted; the time to make releases is not. A replay that takes hardly longer than
start-up gets no rate.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import figures
from benchmarks.speed.context import Context
from benchmarks.speed.subjects import ALGORITHMS, KERNEL_LANE, PARTITIONS, TWIN_LANE, environment_of
from benchmarks.speed.summary import Spread, cell
from benchmarks.speed.watching import FailedError
from benchmarks.workload import Workload, configure

USERS = 200_000
FEW = 1_000  # events of the app that shows the start-up
LIMIT = 300.0  # seconds for a worker
LEAST = 0.1  # of the start; what takes less beside it cannot be told from it
WAYS = {  # arguments of the command, and the lane without which it is left out
    "contributions": ((), TWIN_LANE),
    "events, twin": (("--from", "events"), TWIN_LANE),
    "events, kernel": (("--from", "events", "--lane", "kernel"), KERNEL_LANE),
}


def measure(context: Context) -> dict[str, Any]:
    """Every algorithm from all that it can be replayed from, in rounds."""
    events, rounds = (200_000, 1) if context.quick else (context.events or 2_000_000, context.rounds or 3)
    for count in (FEW, events):
        asyncio.run(Workload(count, USERS).produce(context.brokers, f"events-{count}", PARTITIONS))
    few = _worked(context, "naive", FEW, "5d")
    many = {algorithm: _worked(context, algorithm, events, "1h") for algorithm in ALGORITHMS}
    ways = {way: arguments for way, (arguments, lane) in WAYS.items() if context.has(lane)}
    starts: dict[str, list[Any]] = {way: [] for way in ways}
    found: dict[str, list[Any]] = {f"{way}, `{algorithm}`": [] for way in ways for algorithm in ALGORITHMS}
    for _ in range(rounds):
        for way, arguments in ways.items():
            start = _replay(few, *arguments)
            starts[way].append(start)
            for algorithm, config in many.items():
                rates = without(start, _replay(config, *arguments), events)
                found[f"{way}, `{algorithm}`"].append(rates)
                print(f"from {way}, {algorithm}: {rates['cpu']:.1f} CPU-s", file=sys.stderr, flush=True)
    return {"events": events, "users": USERS, "partitions": PARTITIONS, "starts": starts, "found": found}


def _worked(context: Context, algorithm: str, events: int, every: str) -> Path:
    """The configuration of an app whose worker has processed all events, with every release in the audit log."""
    name = f"{algorithm}-{events}"
    config = configure(
        context.folder, name, brokers=context.brokers, topic=f"events-{events}", users=USERS, algorithm=algorithm,
        every=every,
    )  # fmt: skip
    lane = KERNEL_LANE if context.has(KERNEL_LANE) else TWIN_LANE
    command = [sys.executable, "-m", "benchmarks.speed.worker", str(config), str(events), "--audited"]
    context.watched.run(command, context.folder / f"{name}.log", LIMIT, **environment_of(lane))
    return config


def _replay(config: Path, *arguments: str) -> dict[str, float]:
    """Wall and processor time in seconds, and peak memory in MB, of one replay from start to exit.

    Raises:
        FailedError: it did not confirm every release.
    """
    began, note = time.perf_counter(), config.with_suffix(".peak")
    command = ["shoal", "audit", "replay", str(config), "--json", *arguments]
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.peak", str(note), *command],
        cwd=figures.ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    report = json.loads(said or b"{}")
    if status or not report["releases"] or report["confirmed"] != report["releases"]:
        raise FailedError(f"{' '.join(command)}: {said.decode()[:300]}")
    return {"seconds": seconds, "cpu": usage.ru_utime + usage.ru_stime, "peak_mb": int(note.read_text()) / 1024}


def without(start: Mapping[str, float], run: Mapping[str, float], events: int) -> dict[str, float | None]:
    """What a replay of so many events takes beside its start.

    >>> without({"seconds": 1.0, "cpu": 0.5}, {"seconds": 5.0, "cpu": 0.51, "peak_mb": 90.0}, 1000)
    {'by_wall': 250.0, 'by_cpu': None, 'cpu': 0.51, 'seconds': 5.0, 'peak_mb': 90.0}
    """
    by_wall, by_cpu = (
        None if run[kind] - start[kind] < LEAST * start[kind] else events / (run[kind] - start[kind])
        for kind in ("seconds", "cpu")
    )
    return {
        "by_wall": by_wall,
        "by_cpu": by_cpu,
        "cpu": run["cpu"],
        "seconds": run["seconds"],
        "peak_mb": run["peak_mb"],
    }


def short(data: Mapping[str, Any]) -> list[str]:
    """Thousands of events per second of processor time, in a line for each way."""
    lines = []
    for way in data["starts"]:
        rates = [
            f"{name.removeprefix(f'{way}, ')} {_spread(runs, 'by_cpu', 1000)}"
            for name, runs in data["found"].items()
            if name.startswith(f"{way}, `") and _all(runs, "by_cpu")
        ]
        if rates:
            lines.append(f"`shoal audit replay` from {way}, k events/CPU-s: {'; '.join(rates)}.")
    return lines


def tables(data: Mapping[str, Any]) -> str:
    """A line for each algorithm and all that it was replayed from, and what it took to start."""
    header = ("from", "k events/s", "k events/CPU-s", "s, start included", "CPU-s, start included", "peak MB")
    rows = []
    for way, starts in data["starts"].items():
        rows.append((f"{way}: start alone", "–", "–", *_costs(starts)))
        rows += [
            (name, _spread(runs, "by_wall", 1000), _spread(runs, "by_cpu", 1000), *_costs(runs))
            for name, runs in data["found"].items()
            if name.startswith(f"{way}, `")
        ]
    about = (
        f"`shoal audit replay` of means, every 1h, {data['events']:,} events of {data['users']:,} users, "
        f"{data['partitions']} partitions; every release was confirmed. The start is taken off the rates, and is in "
        "what stands behind them."
    )
    return f"{about}\n\n{figures.table(header, rows)}"


def _costs(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    return [_spread(runs, kind) for kind in ("seconds", "cpu", "peak_mb")]


def _spread(runs: Sequence[Mapping[str, Any]], kind: str, scale: float = 1.0) -> str:
    return cell(Spread.of(_all(runs, kind)), scale)


def _all(runs: Sequence[Mapping[str, Any]], kind: str) -> list[float]:
    return [run[kind] for run in runs if run[kind] is not None]
