"""How long a slot takes to compute once it is over: one million samples, in a process of its own."""

import argparse
import json
import random
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import orjson

from benchmarks import figures
from benchmarks.places.inputs import SPEEDS, STEPS
from shoal.mechanisms.slot.statistic import Slotted
from shoal.mechanisms.statistic import Contribution
from shoal.models.config import forms
from shoal.models.records import Message, Row

USERS, CELLS, EACH = 50_000, 5_000, 20  # samples of each user, in up to 8 cells
MOST_CELLS = 4  # K, by chop-user
TARGET = 10.0  # seconds
MEANS = ("best", "baseline", "array-averaging", "levy", "fixed-quantile", "epsilon-quantile", "few-users")
SHARED, VECTORS = "best, spread_share", "best, two coordinates"
RUNS = (
    *(("mean", name) for name in (*MEANS, SHARED, VECTORS)),
    ("variance", "best"), ("distribution", "best"),
)  # fmt: skip
QUICK_RUNS = (("mean", "best"), ("distribution", "best"))
KEY = bytes(32)
TOGETHER = 200  # contributions in a message, about


@dataclass(frozen=True)
class Run:
    """One statistic and algorithm."""

    statistic: str
    algorithm: str
    cells: int  # released, or said not to be
    seconds: float  # of one core's time, until the last cell
    first: float  # until the first one: who is in which cells
    wall: float
    pause: float  # the longest between two yields, in milliseconds of one core's time
    before: float  # MiB, with all contributions in memory
    peak: float  # MiB


@dataclass(frozen=True)
class Transport:
    """What goes from bound to release for such a slot."""

    contributions: int
    samples: int
    bytes: int  # of the messages' records
    largest: int  # of one contribution


def rows_of(scale: int) -> list[Contribution]:
    """Everybody's path through neighbouring cells, some cells being busier; 1 / scale of users and cells."""
    rng, cells, rows = random.Random(1), CELLS // scale, []
    for _ in range(USERS // scale):
        start, length = int(cells * rng.random() ** 2), rng.randint(1, 8)
        found: dict[str, list[int]] = {}
        for _ in range(EACH):
            cell = f"88{(start + rng.randrange(length)) % cells:013x}"
            found.setdefault(cell, []).append(rng.randrange(STEPS))
        rows.append(Contribution(0, f"{rng.getrandbits(128):032x}", 1, 0, EACH, found))
    rows.sort(key=lambda row: row[:4])
    return rows


def run(statistic: str, algorithm: str, scale: int) -> Run:
    """The slot, in this process."""
    rows, few = rows_of(scale), algorithm == "few-users"
    more: dict[str, Any] = {"spread_share": Fraction(3, 10)} if algorithm == SHARED else {}
    if algorithm == VECTORS:
        more = {"axes": ((SPEEDS, None),) * 2}
        rows = [
            row._replace(total={cell: [[one, STEPS - one] for one in samples] for cell, samples in row.total.items()})
            for row in rows
        ]
    before = _peak()
    slotted = Slotted(
        statistic=forms.CELLS.statistics[statistic], algorithm=algorithm.partition(",")[0], grid=SPEEDS,
        epsilon=Fraction(1),
        delta=Fraction(1, 10**6) if few else Fraction(0), max_contributions=64, max_groups=MOST_CELLS,
        quantiles=(Fraction(1, 2),), **more,
    )  # fmt: skip
    wall, began = time.perf_counter(), time.process_time()
    last, pause, first, cells = began, 0.0, 0.0, 0
    for found in slotted.cells(KEY, 7, rows):
        now = time.process_time()
        pause, last = max(pause, now - last), now
        if found is not None:
            cells += 1
            first = first or now - began
    return Run(
        statistic, algorithm, cells, time.process_time() - began, first, time.perf_counter() - wall, 1000 * pause,
        before, _peak(),
    )  # fmt: skip


def transport(scale: int) -> Transport:
    """One contribution of every user, some hundred to a message."""
    rows, total = rows_of(scale), 0
    for first in range(0, len(rows), TOGETHER):
        sent: list[Row] = [tuple(row) for row in rows[first : first + TOGETHER]]
        total += len(Message("trips", 0, 1, 0, 0, contributions={"speed/1|": sent}).encode())
    return Transport(
        len(rows), sum(row.samples for row in rows), total, max(len(orjson.dumps(tuple(row))) for row in rows)
    )


def measure(*, quick: bool) -> tuple[list[Run], Transport]:
    """Each in a process of its own, one after the other."""
    scale = 50 if quick else 1
    found = []
    for statistic, algorithm in QUICK_RUNS if quick else RUNS:
        row = Run(**figures.run("places.speed", statistic, algorithm, str(scale)))
        print(f"{statistic}, {algorithm}: {row.seconds:.1f} s", file=sys.stderr, flush=True)
        found.append(row)
    return found, transport(scale)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(arguments: Sequence[str] | None = None) -> None:
    """One run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("statistic")
    parser.add_argument("algorithm")
    parser.add_argument("scale", type=int)
    chosen = parser.parse_args(arguments)
    print(json.dumps(asdict(run(chosen.statistic, chosen.algorithm, chosen.scale))))


if __name__ == "__main__":
    main()
