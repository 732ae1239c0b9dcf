"""What a `sigma` saves: the error of `sharp` with one, beside `sharp` without and beside blocks around the true mean.

    python -m benchmarks.accuracy.scatter [--quick] [--out DIR]

Prints a table; a full run writes benchmarks/results/scatter.json and scatter.md.
"""

import argparse
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy.inputs import Floats
from benchmarks.page import Page, number
from shoal.mechanisms.continual_mean.mean import MeanParameters
from shoal.mechanisms.continual_mean.multi_tree import MultiTree
from shoal.mechanisms.continual_mean.sharp import Sharp
from shoal.mechanisms.continual_mean.subgaussian import Subgaussian
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.noise.keyed import derive
from shoal.mechanisms.statistic import Contribution

HIGH, TRUTH = 100, 40.0
TICKS = 100
GRID = Grid(Fraction(0), Fraction(HIGH), 1 << 20)
SIZES = ((2000, 4), (500, 256), (5000, 64), (300, 100), (20_000, 1), (100, 64))
RUNS = 40
Draw = Callable[[np.random.Generator, tuple[int, int]], Floats]
LAWS: dict[str, Draw] = {
    "normal": lambda draw, shape: draw.normal(TRUTH, 1, shape),
    "exponential": lambda draw, shape: TRUTH - 1 + draw.exponential(1, shape),
    "users differ": lambda draw, shape: draw.normal(TRUTH, 1, shape) + draw.normal(0, 1, (shape[0], 1)),
}
TITLE = "What a sigma saves a mean"
RULES = """\
Measured with `python -m benchmarks.accuracy.scatter`; the figures are those of [scatter.json](scatter.json). Epsilon
is 1. Samples scatter around 40 with standard deviation 1, in a range of 0 to 100, and come in random order, over 100
releases. The error is the root of the mean square of the last release's distance from the mean of all samples, over
runs with a key each. *With sigma* it is that of `sharp` with `sigma = 1`, *without* that of `sharp` with the range
alone, *around 40* that of `multi-tree` with `sigma = 1` and a prior of 40. Where users differ their means have standard
deviation 1 too, which is more than `sigma` allows for.
"""


@dataclass(frozen=True)
class Row:
    """One input."""

    law: str
    users: int
    samples: int  # of each
    without: float
    around: float
    error: float
    noise_sd: float  # that the last release states, with sigma
    middle: float  # error of the release when a quarter of the time is over


@dataclass(frozen=True)
class Report:
    """All inputs."""

    runs: int
    rows: Sequence[Row]
    seconds: float


def run(sizes: Sequence[tuple[int, int]], runs: int) -> Report:
    """Measure."""
    begin = time.process_time()
    cases = [("normal", *size) for size in sizes] + [
        (law, *size) for law in LAWS if law != "normal" for size in sizes[:2]
    ]
    rows = [measured(law, users, samples, runs) for law, users, samples in cases]
    return Report(runs, rows, time.process_time() - begin)


def measured(law: str, users: int, samples: int, runs: int) -> Row:
    """Of one input, by the three algorithms."""
    draw = np.random.default_rng([users, samples, len(law)])
    values = LAWS[law](draw, (users, samples))
    order = np.repeat(np.arange(users), samples)
    draw.shuffle(order)
    of = partial(_errors, values, order, runs)
    shape: dict[str, Any] = {"grid": GRID, "epsilon": Fraction(1), "max_contributions": samples, "users": users}
    tuned = shape | {"horizon": TICKS, "clamps": True}
    sigma: dict[str, Any] = {"sigma": Fraction(1)}
    _, without, _ = of(Sharp(**tuned))
    _, around, _ = of(MultiTree(**shape, **sigma, prior=Fraction(40)))
    middle, error, noise_sd = of(Subgaussian(**tuned, **sigma))
    return Row(law, users, samples, without, around, error, noise_sd, middle)


def _errors(values: Floats, order: Any, runs: int, mean: MeanParameters) -> tuple[float, float, float]:
    """(error after a quarter of the time, at the end, stated noise at the end)."""
    truth, ticks = float(values.mean()), _ticks(values, order.tolist(), mean)
    found = []
    for number_ in range(runs):
        releaser = mean.releaser(derive(bytes(32), "scatter", *values.shape, number_), b"")
        for tick, rows in enumerate(ticks):
            for row in rows:
                releaser.add(row)
            releaser.close()
            if tick in (TICKS // 4, TICKS - 1):
                made = releaser.estimate()
                found.append((HIGH / 2, math.nan) if made is None else (made.value, made.noise_sd))
    off = [value - truth for value, _ in found]
    early, late = (math.sqrt(sum(one * one for one in part) / runs) for part in (off[::2], off[1::2]))
    return early, late, found[-1][1]


def _ticks(values: Floats, order: Sequence[int], mean: MeanParameters) -> list[list[Contribution]]:
    """What users send, by tick."""
    bounder, grid = mean.bounder(), mean.sample_grid
    accounts, given = [0] * len(values), [0] * len(values)
    ticks: list[list[Contribution]] = [[] for _ in range(TICKS)]
    for index, user in enumerate(order):
        accounts[user], block = bounder.add(accounts[user], grid.clip(float(values[user, given[user]])))
        given[user] += 1
        if block is not None:
            tick = index * TICKS // len(order)
            ticks[tick].append(Contribution(tick, f"{user:032x}", *block[:4]))
    return ticks


def tables(report: Report) -> str:
    """One table, in Markdown."""
    head = ("law", "users", "samples", "without", "around 40", "with sigma", "noise", "after a quarter", "saved")
    return "\n".join(_lines(head, report.rows))


def _lines(head: Sequence[str], rows: Sequence[Row]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    for row in rows:
        errors = row.without, row.around, row.error, row.noise_sd, row.middle
        cells = (
            row.law,
            f"{row.users:,}",
            str(row.samples),
            *map(number, errors),
            f"x {number(row.without / row.error)}",
        )
        yield f"| {' | '.join(cells)} |"


def from_json(data: Mapping[str, Any]) -> Report:
    """The report of which the page was written."""
    return Report(data["runs"], [Row(**row) for row in data["rows"]], data["seconds"])


def page(report: Report) -> Page:
    """The page; it has no picture."""
    effort = f"{report.runs} runs, {report.seconds:.0f} s of processor time"
    return Page("scatter", TITLE, RULES, tables(report), effort, asdict(report), lambda folder: None)


def main(given: Sequence[str] | None = None) -> None:
    """Measure and publish."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small inputs, few runs; nothing is kept without --out")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write JSON and Markdown into this folder")
    chosen = parser.parse_args(given)
    sizes, runs = (((400, 2), (300, 8)), 3) if chosen.quick else (SIZES, RUNS)
    page(run(sizes, runs)).publish(chosen.out, keep=not chosen.quick)


if __name__ == "__main__":
    main()
