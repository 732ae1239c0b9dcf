"""`shoal run`: events per second on one core, file reading and the SQL log included, and memory against events.

Each run is a process; the rate is that of the further events of the longer file, so that start-up counts for nothing.
Where these take hardly any time beside the shorter run there is none, for starts differ by as much.
"""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import figures
from benchmarks.speed.context import Context
from benchmarks.speed.subjects import ALGORITHMS, KERNEL_LANE, TWIN_LANE, environment_of
from benchmarks.speed.summary import Spread, cell
from benchmarks.workload import Workload, configure

USERS = 200_000
SIZES = {KERNEL_LANE: (1_000_000, 10_000_000), TWIN_LANE: (200_000, 2_000_000)}  # events of the two files
QUICK = {KERNEL_LANE: (200_000, 2_000_000), TWIN_LANE: (50_000, 250_000)}
LEAST = 0.2  # of the shorter run; less than that cannot be told from how starts differ


def measure(context: Context) -> dict[str, Any]:
    """Every algorithm in every lane, in rounds."""
    sizes = {lane: pair for lane, pair in (QUICK if context.quick else SIZES).items() if context.has(lane)}
    rounds = 1 if context.quick else context.rounds or 3
    files = {events: context.folder / f"{events}.jsonl" for pair in sizes.values() for events in pair}
    for events, path in files.items():
        Workload(events, USERS).write(path)
    found: dict[str, list[Any]] = {f"{lane}, `{algorithm}`": [] for lane in sizes for algorithm in ALGORITHMS}
    for number in range(rounds):
        for lane, pair in sizes.items():
            for algorithm in ALGORITHMS:
                two = {events: files[events] for events in pair}
                run = _one(context.folder, f"{lane}-{algorithm}{number}", lane, algorithm, two)
                found[f"{lane}, `{algorithm}`"].append(run)
                rate = cell(_spread([run], "by_wall"))
                print(f"shoal run, {lane}, {algorithm}: {rate}/s", file=sys.stderr, flush=True)
    return {"sizes": sizes, "users": USERS, "found": found}


def _run(config: Path, events: Path, lane: str) -> dict[str, float]:
    """Wall and processor time in seconds, peak memory in MB, of one run from start to exit."""
    began, note = time.perf_counter(), config.with_suffix(".peak")
    run = ["shoal", "run", str(config), "--input", str(events), "--output", os.devnull]
    command = [sys.executable, "-m", "benchmarks.peak", str(note), *run]
    process = subprocess.Popen(
        command, cwd=figures.ROOT, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        env=os.environ | environment_of(lane),
    )  # fmt: skip
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} failed")
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "cpu": usage.ru_utime + usage.ru_stime, "peak_mb": int(note.read_text()) / 1024}


def _one(folder: Path, name: str, lane: str, algorithm: str, files: Mapping[int, Path]) -> dict[str, Any]:
    """Both files through one algorithm."""
    found = {}
    for events, path in files.items():
        config = configure(folder, f"{name}-{events}", topic="events", users=USERS, algorithm=algorithm, every="1h")
        found[events] = _run(config, path, lane)
    (few, least), (many, most) = sorted(found.items())
    return {
        "by_wall": rate_of(many - few, least["seconds"], most["seconds"]),
        "by_cpu": rate_of(many - few, least["cpu"], most["cpu"]),
        "seconds": most["seconds"],
        "least_mb": least["peak_mb"],
        "most_mb": most["peak_mb"],
    }


def rate_of(further: int, shorter: float, longer: float) -> float | None:
    """Events per second, of those that the longer run has more; None if the times differ as starts do.

    >>> rate_of(1000, 1.0, 3.0), rate_of(1000, 1.0, 1.1), rate_of(1000, 1.0, 0.9)
    (500.0, None, None)
    """
    return None if longer - shorter < LEAST * shorter else further / (longer - shorter)


def short(data: Mapping[str, Any]) -> list[str]:
    """Thousands of events a second, in a line."""
    rates = ((name, _spread(runs, "by_wall")) for name, runs in data["found"].items())
    return [f"`shoal run`, k events/s: {'; '.join(f'{name} {cell(rate, 1000)}' for name, rate in rates)}."]


def tables(data: Mapping[str, Any]) -> str:
    """A line for each lane and algorithm."""
    header = ("`mean`, every 1h", "M events", "k events/s", "k events/CPU-s", "s, start included", "peak MB")

    def spread(runs: Sequence[Mapping[str, Any]], name: str, scale: float = 1.0) -> str:
        return cell(_spread(runs, name), scale)

    rows = []
    for name, runs in data["found"].items():
        few, many = (f"{events / 1e6:g}" for events in data["sizes"][name.partition(",")[0]])
        rates = spread(runs, "by_wall", 1000), spread(runs, "by_cpu", 1000)
        rows += [
            (name, few, "–", "–", "–", spread(runs, "least_mb")),
            (name, many, *rates, spread(runs, "seconds"), spread(runs, "most_mb")),
        ]
    return f"`shoal run`, {data['users']:,} users, one process.\n\n{figures.table(header, rows)}"


def _spread(runs: Sequence[Mapping[str, Any]], name: str) -> Spread | None:
    return Spread.of([run[name] for run in runs if run[name] is not None])
