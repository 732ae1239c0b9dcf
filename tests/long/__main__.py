"""`make test-long`: all that takes long, one part after the other, and a line for each; status 1 if any failed.

What a part said is in `.test-long/PART.log`. A part that has not ended when its time is over has failed.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.support.effort import LONG, VARIABLE

LOGS = Path(__file__).parents[2] / ".test-long"
PYTEST = ("pytest", "-q", "--dist=loadfile")
# Of tests/kafka: stories of workers that are killed.
KILLS = ("equality", "trimming", "event_time", "units", "worker_outages")
KERNEL, LANES = "SHOAL_KERNEL", {"kernel": "on", "twin": "off"}


class Part(NamedTuple):
    """A module to run, and how much time it has."""

    name: str
    command: Sequence[str]
    minutes: int
    effort: float = 1  # of what is in this folder: it says itself how much it tries
    lane: str = ""  # backend of all workers and file runs; by default each test chooses


PARTS = (
    Part("laws", (*PYTEST, "-n2", "-m", "not kafka", "tests"), 90, LONG),
    Part("stories", (*PYTEST, "-n3", "-m", "kafka", "tests"), 60, LONG),
    Part("mutants", ("tests.mutants",), 60),
    Part("kernel", ("tests.mutants", "--family", "kernel"), 60),
    Part("types", ("mypy", "--cache-dir=/dev/null"), 15),
    Part("imports", (*PYTEST, "-n2", "--dist=load", "tests/long/imports.py"), 90, 0.1),
    Part("properties", ("distribution.kernel", "test", "--again"), 30),
    Part("lanes", ("tests.long.lanes",), 60),
    Part("fuzz", ("tests.long.fuzz",), 60),
    Part("miri", ("tests.long.miri",), 60),
    Part("privacy", ("tests.privacy.auditor", "--configurations", "300", "--jobs", "2"), 30),
    *(
        Part(f"kills-{lane}", (*PYTEST, "-n2", *(f"tests/kafka/test_{name}.py" for name in KILLS)), 30, lane=lane)
        for lane in LANES
    ),
    *(Part(f"orders-{lane}", (*PYTEST, "tests/long/orders.py"), 30, lane=lane) for lane in LANES),
    Part("deploys", (*PYTEST, "-n2", "tests/long/deploys.py", "tests/long/workers.py"), 45),
    Part("operators", (*PYTEST, "tests/long/operators.py"), 30),
    Part("recipes", (*PYTEST, "tests/long/recipes.py"), 30),
    Part("cluster", (*PYTEST, *sorted(map(str, Path("tests/long").glob("cluster_*.py")))), 60),
)


def main() -> None:
    """Run the parts that are named, or all."""
    unknown = set(sys.argv[1:]) - {part.name for part in PARTS}
    if unknown:
        sys.exit(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(part.name for part in PARTS)}")
    LOGS.mkdir(exist_ok=True)
    failed = [part.name for part in PARTS if part.name in (sys.argv[1:] or part.name) and not passes(part)]
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


def passes(part: Part) -> bool:
    """Run a part to its end, or to that of its time, and say in a line what became of it."""
    log, began = LOGS / f"{part.name}.log", time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *part.command], stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            env=os.environ | {VARIABLE: str(part.effort)} | ({KERNEL: LANES[part.lane]} if part.lane else {}),
        )  # fmt: skip
        try:
            outcome = "failed" if process.wait(part.minutes * 60) else "passed"
        except (subprocess.TimeoutExpired, KeyboardInterrupt) as interruption:
            os.killpg(process.pid, signal.SIGKILL)
            if isinstance(interruption, KeyboardInterrupt):
                raise
            outcome = f"no end within {part.minutes} minutes"
    last = log.read_text("utf-8", "replace").rstrip("\n").rpartition("\n")[2]
    print(f"{part.name:13} {outcome}, {time.monotonic() - began:.0f} s: {last}", flush=True)
    return outcome == "passed"


if __name__ == "__main__":
    main()
