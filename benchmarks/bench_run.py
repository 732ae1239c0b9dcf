"""`shoal run`: events per second on one core, file reading and the SQL log included, and memory against events.

    python -m benchmarks.bench_run [--quick]

Each run is a process; the rate is that of the further events of the longer file, so that start-up counts for nothing.
"""

import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import figures
from benchmarks.workload import Workload, configure

USERS = 200_000
SHOAL = figures.ROOT / ".venv" / "bin" / "shoal"


def run(config: Path, events: Path) -> dict[str, float]:
    """Wall and processor time in seconds, peak memory in MB, of one run from start to exit."""
    began = time.perf_counter()
    command = [str(SHOAL), "run", str(config), "--input", str(events), "--output", os.devnull]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} failed")
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "cpu": usage.ru_utime + usage.ru_stime, "peak_mb": usage.ru_maxrss / 1024}


def one(folder: Path, name: str, algorithm: str, files: dict[int, Path]) -> dict[str, Any]:
    """Both files through one algorithm."""
    found = {}
    for events, path in files.items():
        config = configure(folder, f"{name}-{events}", topic="events", users=USERS, algorithm=algorithm, every="1h")
        found[events] = run(config, path)
    (few, least), (many, most) = sorted(found.items())
    further = {f"rate_{kind}": (many - few) / (most[kind] - least[kind]) for kind in ("seconds", "cpu")}
    return further | {"runs": found, "least_mb": least["peak_mb"], "most_mb": most["peak_mb"]}


def main() -> None:
    """Measure and publish."""
    quick = figures.is_quick(__doc__, "smaller files, one repetition")
    sizes, repetitions = ((50_000, 250_000), 1) if quick else ((200_000, 2_000_000), 3)
    results: dict[str, list[dict[str, Any]]] = {"sharp": [], "naive": [], "full": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = {events: folder / f"{events}.jsonl" for events in sizes}
        for events, path in files.items():
            Workload(events, USERS).write(path)
        for number in range(repetitions):
            for algorithm, found in results.items():
                found.append(one(folder, f"{algorithm}{number}", algorithm, files))
    rows = [
        (
            algorithm,
            figures.spread([run["rate_seconds"] for run in found], 1000),
            figures.spread([run["rate_cpu"] for run in found], 1000),
            figures.spread([run["least_mb"] for run in found]),
            figures.spread([run["most_mb"] for run in found]),
        )
        for algorithm, found in results.items()
    ]
    few, many = (f"{events / 1e6:g} M" for events in sizes)
    header = ("`mean`, every 1h", "k events/s", "k events/CPU-s", f"peak MB, {few} events", f"peak MB, {many} events")
    title = f"shoal run: events of {USERS:,} users, one process"
    figures.publish("run", title, figures.table(header, rows), {"results": results}, figures.place(quick=quick))


if __name__ == "__main__":
    main()
