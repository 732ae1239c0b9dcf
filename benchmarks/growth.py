"""Growth: what an event and a user cost as users become more, in both lanes, beside the machine's own price.

python -m benchmarks.growth [--quick]

Of accounts alone, in Rust: processor time to find and change the account of a random user, bytes of a user, and at the
peak of a restore; beside it one random read and write in as many bytes, in the same process. Of bound, without a
broker: processor time of an event of a random user, and bytes of a user. Each line is a process of its own.
"""

import argparse
import gc
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.kernel import STATISTICS, new_bound
from benchmarks.workload import plan_alone
from shoal.stream.bound import BoundPartition
from shoal.stream.file_run import Line

KERNEL = Path(__file__).parents[1] / "kernel"
SIZES = (100_000, 1_000_000, 10_000_000)
EVENTS = 400_000
TWIN = 1_000_000  # users; with more, the twin takes gigabytes
SLICE, TRANSACTION = 2_000, 20_000  # records
START = 1_700_000_000_000  # milliseconds
SPREAD = 3_500_000  # milliseconds: all events are of one hour


def main() -> None:
    """Print both tables; with `--lane LANE USERS`, measure one line of the second."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="not of ten million users")
    parser.add_argument("--lane", nargs=2, help=argparse.SUPPRESS)
    said = parser.parse_args()
    if said.lane:
        lane, users = said.lane
        print(json.dumps(_bound(int(users), kernel=lane == "kernel")))
        return
    sizes = SIZES[:2] if said.quick else SIZES
    print("accounts alone: nanoseconds of an account, and of a random read and write; bytes of a user")
    print(f"{'users':>12}{'account':>10}{'floor':>8}{'ratio':>8}{'overlapping':>13}{'bytes':>8}{'at a restore':>14}")
    for users in sizes:
        one = _said("cargo", "run", "--quiet", "--release", "--example", "growth", "--", str(users), folder=KERNEL)
        ratio = one["account"] / one["floor"]
        print(
            f"{users:12,}{one['account']:10.0f}{one['floor']:8.0f}{ratio:8.2f}{one['overlapping']:13.1f}"
            f"{one['bytes']:8.1f}{one['peak']:14.1f}"
        )
    print(f"bound: microseconds of each of {EVENTS:,} events of random users, and bytes of a user")
    print(f"{'users':>12}{'twin':>8}{'bytes':>8}{'kernel':>8}{'bytes':>8}")
    for users in sizes:
        lanes = [_lane("twin", users) if users <= TWIN else None, _lane("kernel", users)]
        print(f"{users:12,}" + "".join(f"{one['us']:8.2f}{one['bytes']:8.0f}" if one else " " * 16 for one in lanes))


def _said(*command: str, folder: Path) -> dict[str, float]:
    found: dict[str, float] = json.loads(subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, check=True).stdout)
    return found


def _lane(lane: str, users: int) -> dict[str, float]:
    return _said(sys.executable, "-m", "benchmarks.growth", "--lane", lane, str(users), folder=KERNEL.parent)


def _bound(users: int, *, kernel: bool) -> dict[str, float]:
    """One event of every user, then events of random ones."""
    bound = new_bound(plan_alone(STATISTICS["naive"].format(users=users)), kernel=kernel)
    _feed(bound, np.arange(2 * SLICE))  # whatever is made once is there
    gc.collect()
    before = _memory()
    for first in range(0, users, TRANSACTION):
        _feed(bound, np.arange(first, min(first + TRANSACTION, users)))
    gc.collect()
    bytes_of_all = _memory() - before
    whom = np.random.default_rng(1).integers(0, users, EVENTS)
    spent = sum(_feed(bound, whom[first : first + TRANSACTION]) for first in range(0, EVENTS, TRANSACTION))
    return {"us": spent * 1e6 / EVENTS, "bytes": bytes_of_all / users}


def _memory() -> int:
    """Bytes that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _feed(bound: BoundPartition, users: np.ndarray) -> float:
    """Seconds of processor time for an event of each, in one transaction."""
    first = bound.next_offset or 0
    lines = []
    for number, user in enumerate(users.tolist()):
        at = START + number * SPREAD // TRANSACTION
        lines.append(Line(first + number, b'{"user":"user-%d","value":33.2,"at":%d}' % (user, at), timestamp=START))
    began = time.process_time()
    for at in range(0, len(lines), SLICE):
        part = lines[at : at + SLICE]
        bound.process(part, part[-1].offset + 1)
    bound.take(0)
    return time.process_time() - began


if __name__ == "__main__":
    main()
