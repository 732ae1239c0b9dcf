"""Steps of `make test` on the terminal, each with its duration in the last complete run on this machine.

    python -m tests.support.progress start          begin a run
    python -m tests.support.progress install|...    end the step before, and begin this one
    python -m tests.support.progress end            end the last step, and keep the durations

It is run by the Python of the system before there is an environment, so it imports the standard library only.
"""

import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from distribution.cache import cache

STEPS = {
    "install": "install what is missing: packages, Kafka, the kernel, programs of the system",
    "style": "format and lint",
    "tests": 'types, tests with a broker ("brokers:"), all other tests ("others:"), tests of the kernel ("kernel:")',
    "coverage": "add up the coverage of all processes",
}
RUNNING = Path(__file__).parents[2] / ".make-test.json"
FIRST = "this is the first run on this machine; it takes 6 to 24 minutes on two cores"


def kept() -> Path:
    """File with the durations of the last complete run on this machine."""
    return cache() / "make-test.json"


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
        return found if isinstance(found, dict) else {}
    except (OSError, ValueError):  # absent, or cut off by a full disk
        return {}


def in_words(seconds: float) -> str:
    """Duration in minutes and seconds.

    >>> in_words(692.4), in_words(8)
    ('11 min 32 s', '8 s')
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def advance(name: str, now: float) -> list[str]:
    """Enter a step at time `now`, in seconds, and return the lines to print."""
    last = _read(kept())
    before: dict[str, float] = last.get("seconds", {})
    if name == "start":
        RUNNING.write_text("{}")
        total = in_words(sum(before.values()))
        return [f"make test: {len(STEPS)} steps; " + (f"{total} on {last['date']}, the last run" if before else FIRST)]
    running = _read(RUNNING)
    seconds: dict[str, float] = running.get("seconds", {})
    if "step" in running:
        seconds[running["step"]] = now - running["since"]
    if name == "end":
        kept().parent.mkdir(parents=True, exist_ok=True)
        kept().write_text(json.dumps({"date": datetime.now(UTC).date().isoformat(), "seconds": seconds}))
        RUNNING.unlink(missing_ok=True)
        return [f"make test: passed in {in_words(sum(seconds.values()))}"]
    RUNNING.write_text(json.dumps({"step": name, "since": now, "seconds": seconds}))
    took = f" ({in_words(before[name])} in the last run)" if name in before else ""
    return [f"make test: step {list(STEPS).index(name) + 1} of {len(STEPS)}: {STEPS[name]}{took}"]


if __name__ == "__main__":
    for _line in advance(sys.argv[1], time.time()):
        print(_line, flush=True)
