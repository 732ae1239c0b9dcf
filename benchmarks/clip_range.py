"""Clip ranges that are chosen in private: the error of a mean whose range is wide for a few values.

    python -m benchmarks.clip_range [--quick] [--out DIR]

Prints tables; a full run writes benchmarks/results/clip-range.json and clip-range.md.
"""

import argparse
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import figures
from benchmarks.gaussian_yardsticks import Floats
from benchmarks.page import Page, number, verdict
from benchmarks.presence import DAY, STEPS, YEAR, Workload, flights, purchases
from shoal.mechanisms.accounts import Site
from shoal.mechanisms.kinds import kind_of
from shoal.mechanisms.linear.statistic import LinearStatistic
from shoal.mechanisms.statistic import Block, Contribution
from shoal.models.config.file import Config

KEYS = 40  # of noise
LATE = 4  # errors are those from a quarter of the days on
TITLE = "Clip ranges that are chosen in private"
RULES = f"""\
Measured with `python -m benchmarks.clip_range`; the figures are those of [clip-range.json](clip-range.json). All are
releases of the product: a daily running mean of relation add-remove, epsilon 1, {KEYS} keys of noise. The error is the
root of the mean squared difference between a release and the mean of *all* records, unclipped and whether they count
or not: from a quarter of the days on (*late*), and of the last release (*last*). Noise, clipping and cap add up.

*Given* clips to the stated range. *Chosen* has `clip = "auto"` and declares `users`; *unknown* does not, and goes by
the defaults for that. A day without a release is left out, and *from* says on which day the first was. *Bias* is what
clipping to the median of the chosen ranges alone would do to the last mean.

The defaults were settled on the workloads of the first part, and on two like them with 100,000 and 200,000 users, which
differ in tail, number of users and width of the range. Of each the law of the choice was summed up, with the bias and
the noise of each rung, for an epsilon of 0.1 to 0.3 for the choice, a half, a third and a quarter of the users to wait
for, and 13 to 30 for the constant of `needed`. The second part took no part in that: two laws that were not tried
before, and purchases, on which other values had been found before (0.13, and 10,000 users).
"""


@dataclass(frozen=True)
class Row:
    """One workload."""

    name: str
    top: float
    m: int
    users: int
    is_held_out: bool
    true: float  # mean of all records, at the end
    given: tuple[float, float]  # late, last
    chosen: tuple[float, float]
    unknown: tuple[float, float] | None  # None: not all keys of noise came to a range
    first: float  # day of the first release
    high: float  # median of the chosen ends
    bias: float


@dataclass(frozen=True)
class Report:
    """All parts."""

    rows: Sequence[Row]
    keys: int
    seconds: float


Draw = Callable[[Any, Any, int], Any]  # a generator, the units of the samples, the number of units -> values


def drawn(name: str, users: int, each: float, top: int, draw: Draw, seed: int) -> Workload:
    """A year of people with an exponential number of samples, spread evenly."""
    random = np.random.default_rng(seed)
    units = np.repeat(np.arange(users), 1 + random.exponential(each - 1, users).astype(int))
    at = random.integers(0, YEAR, len(units))
    values = np.maximum(draw(random, units, users), 0)
    order = np.argsort(at, kind="stable")
    columns = (units[order].tolist(), [0] * len(units), at[order].tolist(), values[order].tolist())
    return Workload(name, (0, top), YEAR, *columns)


def settled() -> Iterator[tuple[Workload, int]]:
    """Workloads that the defaults were settled on, and their caps."""
    year = flights("distance")
    yield year._replace(name="flights, distance", ends=(0, 20_000)), 64
    for name, users, each, top, m, draw in (
        ("log-normal, sigma 1", 20_000, 4.0, 5000, 8, lambda r, u, k: np.exp(r.normal(3, 1, len(u)))),
        ("log-normal, sigma 1.5", 20_000, 4.0, 20_000, 8, lambda r, u, k: np.exp(r.normal(3, 1.5, len(u)))),
        ("Pareto, 2.5", 50_000, 3.0, 2000, 8, lambda r, u, k: 10 * (1 + r.pareto(2.5, len(u)))),
        ("exponential, 25", 10_000, 10.0, 2000, 16, lambda r, u, k: r.exponential(25, len(u))),
        ("normal, 50 ± 10: the range fits", 20_000, 4.0, 100, 8, lambda r, u, k: r.normal(50, 10, len(u))),
        ("normal, 50 ± 10: few users", 3000, 8.0, 5000, 16, lambda r, u, k: r.normal(50, 10, len(u))),
    ):
        yield drawn(name, users, each, top, draw, 7), m


def held_out() -> Iterator[tuple[Workload, int]]:
    """Workloads that took no part in settling them."""

    def of_people(random: Any, units: Any, users: int) -> Any:
        return random.gamma(0.5, 40, users)[units] * random.weibull(0.7, len(units))

    yield drawn("gamma by person, times Weibull", 30_000, 5.0, 10_000, of_people, 21), 16
    yield drawn("log-logistic, 2", 12_000, 6.0, 3000, lambda r, u, k: 20 * np.exp(r.logistic(0, 0.5, len(u))), 22), 16
    shop = purchases()
    for top, m in ((1500, 64), (1500, 16), (200, 64)):
        yield shop._replace(ends=(0, top)), m


def metric(work: Workload, m: int, **more: Any) -> Any:
    """A metric of the workload."""
    given = {
        "name": "m", "topic": "t", "user": "u", "time": "at", "statistic": "mean", "relation": "add-remove",
        "value": "x", "range": work.ends, "grid": STEPS, "every": "1d", "epsilon": 1, "max_contributions": m,
        "start": "1970-01-01", "end": str(np.datetime64("1970-01-01") + work.days), **more,
    }  # fmt: skip
    (made,) = Config.model_validate({"privacy": {"epsilon": 99}, "metric": [given]}).metric
    return made


def sent(work: Workload, section: Any, of: Any) -> list[list[Contribution]]:
    """What bound sends on every day, by the accounts of the product."""
    days: list[dict[int, list[int]]] = [{} for _ in range(work.days)]

    def send(group: str | None, effective: int, user: bytes, block: Block) -> None:
        cell = days[effective // DAY].setdefault(block.part or 0, [0, 0])
        cell[0] += block.samples
        cell[1] += block.total

    accounts = kind_of(section.parts).accounts(
        section.parts, of.bounder(), Site("m", send, lambda user: True, durable=False)
    )
    for unit, day, value in zip(work.units, work.at, work.values, strict=True):
        accounts.add(b"%d" % unit, None, of.quantize([value]), day * DAY, day * DAY)
    return [[Contribution(0, "", part, 0, *cells[part]) for part in sorted(cells)] for cells in days]


def released(work: Workload, section: Any, runs: int) -> tuple[Floats, list[float]]:
    """The values of all releases, a row for each key of noise, and the ends that were chosen."""
    of = LinearStatistic.of(section.parts)
    days, values, ends = sent(work, section, of), np.full((runs, work.days), np.nan), []
    for run in range(runs):
        releaser = of.releaser(run.to_bytes(32, "big"), b"")
        for day, rows in enumerate(days):
            for row in rows:
                releaser.add(row)
            ends += [activation.prior for activation in releaser.close()]
            if (value := releaser.estimate().value) is not None:
                values[run, day] = value
    return values, ends


def measure(work: Workload, m: int, runs: int, *, is_held_out: bool) -> Row:
    """The errors of all three."""
    users, values = len(set(work.units)), np.array(work.values)
    n = np.bincount(work.at, minlength=work.days).cumsum()
    true = np.bincount(work.at, weights=values, minlength=work.days).cumsum() / np.maximum(n, 1)

    def errors(found: Floats) -> tuple[float, float]:
        squares = (found - true) ** 2
        return math.sqrt(np.nanmean(squares[:, work.days // LATE :])), math.sqrt(np.nanmean(squares[:, -1]))

    given, _ = released(work, metric(work, m), runs)
    chosen, ends = released(work, metric(work, m, clip="auto", users=users), runs)
    unknown, others = released(work, metric(work, m, clip="auto"), runs)
    high = float(np.median(ends))
    return Row(
        work.name, work.ends[1], m, users, is_held_out, float(true[-1]), errors(given), errors(chosen),
        errors(unknown) if len(others) == runs else None, float(np.mean(np.isnan(chosen).sum(axis=1))), high,
        float(np.minimum(values, high).mean() - true[-1]),
    )  # fmt: skip


def run(*, quick: bool) -> Report:
    """Measure everything."""
    begin, runs = time.process_time(), 2 if quick else KEYS
    rows = [
        measure(work, m, runs, is_held_out=is_held_out)
        for is_held_out, works in ((False, settled()), (True, held_out()))
        for work, m in works
    ]
    return Report(rows, runs, time.process_time() - begin)


def _targets(report: Report) -> Iterator[tuple[str, str, str, str]]:
    shop = {(row.top, row.m): row for row in report.rows if row.name == "purchases"}
    for m, most in ((64, 3.0), (16, 1.4)):
        found = shop[1500, m].chosen[0]
        yield f"purchases, 0..1500, m = {m}: late", f"at most {most}", number(found), verdict(found <= most)
    wide = [row for row in report.rows if row.is_held_out and row.name != "purchases"]
    found = max(row.chosen[0] / row.given[0] for row in wide)
    yield "other laws: late, of that of the given range", "at most 0.5", f"{found:.2f}", verdict(found <= 0.5)


def tables(report: Report) -> str:
    """All of them."""
    header = ("workload", "range", "m", "users", "mean", "given: late", "last", "chosen: late", "last", "unknown: late",
              "last", "from", "chosen end", "bias")  # fmt: skip

    def lines(*, is_held_out: bool) -> list[tuple[str, ...]]:
        return [
            (row.name, f"0..{row.top:,.0f}", str(row.m), f"{row.users:,}", number(row.true), *map(number, row.given),
             *map(number, row.chosen), *map(number, row.unknown or (None, None)), f"{row.first:.0f}", number(row.high),
             number(row.bias))
            for row in report.rows if row.is_held_out == is_held_out
        ]  # fmt: skip

    parts = [
        figures.table(("what", "target", "found", ""), list(_targets(report))),
        "## What the defaults were settled on",
        figures.table(header, lines(is_held_out=False)),
        "## What they were not settled on",
        figures.table(header, lines(is_held_out=True)),
    ]
    return "\n\n".join(parts)


def from_json(known: dict[str, Any]) -> Report:
    """What a run kept."""
    pairs = ("given", "chosen", "unknown")
    rows = [Row(**row | {pair: row[pair] and tuple(row[pair]) for pair in pairs}) for row in known["rows"]]
    return Report(rows, known["keys"], known["seconds"])


def page(report: Report) -> Page:
    """The page; it has no picture."""
    effort = f"{report.seconds:.0f} s of processor time"
    return Page("clip-range", TITLE, RULES, tables(report), effort, asdict(report), lambda folder: None)


def main(given: Sequence[str] | None = None) -> None:
    """Measure and publish."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few keys of noise; nothing is kept without --out")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write JSON and Markdown into this folder")
    chosen = parser.parse_args(given)
    page(run(quick=chosen.quick)).publish(chosen.out, keep=not chosen.quick)


if __name__ == "__main__":
    main()
