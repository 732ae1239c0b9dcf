"""Releases into the audit log, on SQLite and PostgreSQL: processor time of this process, and of PostgreSQL's.

    python -m benchmarks.sql_log [--quick]

A tick of many groups with a release each, and a group with many releases, in batches as a worker has them of one fetch.
"""

import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import psycopg

from benchmarks import figures
from shoal.agents.audit.ledger import Ledger
from shoal.models.json_bytes import json_bytes
from shoal.models.records import release_id
from tests.agents.audit.audit_examples import APP, register, version
from tests.support.postgres import Postgres

BATCH = 1_700  # releases of one fetch of a megabyte


def release(group: str, seq: int) -> bytes:
    """A release of the usual length."""
    return json_bytes(
        {
            "id": release_id("basket", 1, group, seq), "metric": "basket", "group": group, "version": 1, "seq": seq,
            "at": "1997-01-01T00:00:00Z", "value": 31.25 + seq, "low": 29.1, "high": 33.2, "value_sd": 1.02,
            "count": 1000 + seq, "samples": 3000 + seq, "range": [0, 100], "epsilon": 1.0, "clipped": [0, 88.125],
            "algorithm": "sharp", "levels": [[0, 100], [1, 200], [2, 300]],
            "error": {"noise": 0.11, "sampling": 0.2, "clip": 0.0},
        }
    )  # fmt: skip


def measure(url: str, first: Sequence[bytes], rest: Sequence[bytes], server: int | None) -> tuple[float, float, float]:
    """Microseconds a release, after the first ones: of this process, of the server, and of the clock."""
    with Ledger.open(url, migrate=True) as ledger:
        register(ledger, version("basket"))
        for at in range(0, len(first), BATCH):
            ledger.of(APP).append(first[at : at + BATCH])
        before = time.process_time(), server_seconds(server), time.perf_counter()
        for at in range(0, len(rest), BATCH):
            ledger.of(APP).append(rest[at : at + BATCH])
        after = time.process_time(), server_seconds(server), time.perf_counter()
    cpu, other, wall = ((b - a) / len(rest) * 1e6 for a, b in zip(before, after, strict=True))
    return cpu, other, wall


def server_seconds(server: int | None) -> float:
    """Processor time of PostgreSQL's processes, those that ended included."""
    if server is None:
        return 0.0
    ticks, found = 0, [server, *map(int, Path(f"/proc/{server}/task/{server}/children").read_text().split())]
    for pid in found:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += sum(map(int, fields[11:15] if pid == server else fields[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def postmaster(url: str) -> int:
    """The server's first process."""
    with psycopg.connect(url) as connection:
        row = connection.execute("SHOW data_directory").fetchone()
    assert row is not None
    return int((Path(row[0]) / "postmaster.pid").read_text().split()[0])


def main() -> None:
    """Measure and publish."""
    quick = figures.is_quick(__doc__, "a tenth, once")
    groups, rounds = (1_000, 1) if quick else (10_000, 3)
    shapes = {
        f"{groups:,} groups, two ticks": [
            release(f"g{group:06d}", seq) for seq in (1, 2, 3) for group in range(groups)
        ],
        "one group": [release("g", seq) for seq in range(1, 3 * groups + 1)],
    }
    rows, data = [], {}
    with Postgres() as postgres:
        for name, releases in shapes.items():
            first, rest = releases[:groups], releases[groups:]
            runs: dict[str, list[tuple[float, float, float]]] = {"SQLite": [], "PostgreSQL": []}
            for _ in range(rounds):
                with tempfile.TemporaryDirectory() as folder:
                    runs["SQLite"].append(measure(f"sqlite:///{folder}/log.db", first, rest, None))
                with postgres.database() as url:
                    plain = url.replace("+psycopg", "")
                    runs["PostgreSQL"].append(measure(url, first, rest, postmaster(plain)))
            for database, found in runs.items():
                cpu, other, wall = (median(column) for column in zip(*found, strict=True))
                rows.append((name, database, f"{cpu:.1f}", f"{other:.1f}", f"{wall:.1f}"))
            data[name] = runs
    header = ("", "database", "us a release, CPU here", "CPU of the server", "wall")
    figures.publish(
        "sql-log", "Releases into the audit log", figures.table(header, rows), data, figures.place(quick=quick)
    )


if __name__ == "__main__":
    main()
