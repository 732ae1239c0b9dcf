"""How fast `shoal.read` reads releases, and how much memory `shoal export` takes of few and of many.

python -m benchmarks.reading [--releases 31000] [--many 1000000]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import orjson

import shoal
from tests.support.releases import release

GROUPS = 1_000
FEW = 10  # times fewer releases, for comparison
HOUR = 3_600


def write(path: Path, count: int) -> None:
    """A file of releases of many groups."""
    with path.open("wb") as file:
        for number in range(count):
            seq, group = divmod(number, GROUPS)
            value = 35.123456789 + number % 97
            one = release("visit", seq + 1, value, 2.345678, group=f"store-{group:04}", every=HOUR)
            file.write(orjson.dumps(one) + b"\n")


def took(what: Callable[[], object]) -> float:
    """Seconds of the second call; the first one may import."""
    what()
    began = time.perf_counter()
    what()
    return time.perf_counter() - began


def exported(path: Path, form: str) -> dict[str, float]:
    """Seconds and megabytes of a process that exports a file."""
    began = time.perf_counter()
    note = path.with_suffix(".peak")
    export = ["shoal", "export", "--input", str(path), "--format", form, "--output", os.devnull]
    subprocess.run([sys.executable, "-m", "benchmarks.peak", str(note), *export], check=True)
    return {"seconds": round(time.perf_counter() - began, 2), "megabytes": round(int(note.read_text()) / 1024)}


def main() -> None:
    """Measure, and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=31_000)
    parser.add_argument("--many", type=int, default=1_000_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        some = Path(folder) / "some.jsonl"
        write(some, asked.releases)
        releases = shoal.read(some)
        reading = took(lambda: shoal.read(some))
        found: dict[str, object] = {
            "releases": asked.releases,
            "read": {"seconds": round(reading, 3), "releases per second": round(asked.releases / reading)},
            "tables": {
                name: round(took(getattr(releases, name)), 3)
                for name in ("to_arrow", "to_polars", "to_pandas", "to_html")
            },
        }
        for count in (asked.many // FEW, asked.many):
            path = Path(folder) / "many.jsonl"
            write(path, count)
            found[f"export of {count:,}"] = {form: exported(path, form) for form in ("csv", "jsonl", "parquet")}
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
