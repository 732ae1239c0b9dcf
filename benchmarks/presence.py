"""What protecting presence costs: noise of mean, sum and count beside relation values and beside other mechanisms.

    python -m benchmarks.presence [--quick] [--out DIR]

Prints tables; a full run writes benchmarks/results/presence.json and presence.md.
"""

import argparse
import csv
import gzip
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import figures
from benchmarks.gaussian_yardsticks import DELTA, EPSILON, Floats, each_day, gaussian_trees
from benchmarks.page import Page, number, verdict
from shoal.agents.demo.shop.purchases import FILE as PURCHASES
from shoal.mechanisms.accounts import Site
from shoal.mechanisms.kinds import kind_of
from shoal.mechanisms.statistic import Block, Contribution
from shoal.models.config.file import Config
from shoal.models.config.metric import MetricSection
from shoal.models.times import time_of_text

STEPS = 1 << 20
DAY = 86_400_000_000
BURN = 30  # days before the first that is compared
KEYS = 1000  # of noise
LEAST = 5  # deviations of the count from which on intervals are looked at
# A year like that of an airport's flights: the planes' numbers of flights, and what they fly.
PLANES, FLIGHTS, CARRIERS, YEAR = 4000, 82.0, 16, 365
TITLE = "What protecting presence costs"
RULES = f"""\
Measured with `make bench-presence`; the figures are those of [presence.json](presence.json). Noise is the root of the
mean squared difference between a release and the exact statistic of the samples that count, over all days from the
{BURN}th on, of keys with 200 samples, or 5,000 flights. *Values* is the running mean of relation values, by the same
counter; *presence* is relation add-remove; epsilon is {EPSILON:g} in both, and both are releases of the product.

*Gaussian trees* is a stand-in for DP-SQLP (Zhang et al., 2024): a binary tree of Gaussian nodes each for sum and for
count, its prefixes by Honaker's estimate. *Each day anew* adds Gaussian noise to sum and count of every day's release.
Both have delta {DELTA:g}, and noise calibrated analytically (Balle and Wang, 2018) for all nodes, or days, of both
together, and a unit's m samples in one step.

Purchases are those of the demo. Flights are simulated: {PLANES:,} planes with a number of flights that is exponential
with mean {FLIGHTS:g}, spread evenly over {YEAR} days and, by carrier, with {CARRIERS} carriers of sizes 1, 1/2, 1/3 and
so on. A plane's distances are log-normal (sigma 0.45) around its own usual one (log-normal, mu 6.7, sigma 0.5), clipped
to 0..3000; delays are -12 plus an exponential of mean 25, clipped to -30..120.
"""


class Workload(NamedTuple):
    """Samples in the order of time."""

    name: str
    ends: tuple[int, int]
    days: int
    units: Sequence[int]
    keys: Sequence[int]
    at: Sequence[int]  # day, from 0
    values: Sequence[float]
    fewest: int = 200  # samples of a key from which on it is compared


def purchases() -> Workload:
    """The purchases that the demo streams."""
    with gzip.open(PURCHASES, "rt") as file:
        rows = [
            (time_of_text(row["at"]) or 0, int(row["customer"]), float(row["amount"])) for row in csv.DictReader(file)
        ]
    rows.sort(key=lambda row: row[0])
    first, (at, units, values) = rows[0][0], zip(*rows, strict=True)
    days = [(time - first) // DAY for time in at]
    return Workload("purchases", (0, 200), days[-1] + 1, units, [0] * len(units), days, values)


def flights(what: str, *, by_carrier: bool = False) -> Workload:
    """A simulated year."""
    random = np.random.default_rng(5)
    each = 1 + random.exponential(FLIGHTS - 1, PLANES).astype(int)
    units = np.repeat(np.arange(PLANES), each)
    at = random.integers(0, YEAR, len(units))
    if what == "distance":
        usual = np.exp(random.normal(6.7, 0.5, PLANES))
        values = np.clip(usual[units] * np.exp(random.normal(0, 0.45, len(units))), 0, 3000)
    else:
        values = np.clip(random.exponential(25, len(units)) - 12, -30, 120)
    sizes = 1 / np.arange(1, CARRIERS + 1)
    keys = random.choice(CARRIERS, PLANES, p=sizes / sizes.sum())[units] if by_carrier else np.zeros(len(units), int)
    order = np.argsort(at, kind="stable")
    units, keys, at, values = (column[order] for column in (units, keys, at, values))
    ends = (0, 3000) if what == "distance" else (-30, 120)
    name = f"flights, {what}{' by carrier' if by_carrier else ''}"
    return Workload(name, ends, YEAR, units.tolist(), keys.tolist(), at.tolist(), values.tolist(), 5000)


# -------------------------------------------------------------------- the product


def section(work: Workload, relation: str, statistic: str, m: int, epsilon: float) -> MetricSection:
    """A metric of the workload."""
    given: dict[str, Any] = {
        "name": "m", "topic": "t", "user": "u", "time": "at", "statistic": statistic, "relation": relation,
        "every": "1d", "epsilon": str(epsilon), "max_contributions": m, "group": "g", "max_groups": m,
    }  # fmt: skip
    given |= {"value": "x", "range": work.ends, "grid": STEPS} if statistic != "count" else {}
    if relation == "values":
        given |= {"life": f"{work.days}d", "decay": {"kind": "none"}}
    else:
        day = np.datetime64("1970-01-01") + work.days
        given |= {"start": "1970-01-01", "end": str(day), "groups": sorted({str(key) for key in work.keys})}
    (made,) = Config.model_validate({"privacy": {"epsilon": 99}, "metric": [given]}).metric
    return made


class Series(NamedTuple):
    """What counts of one key, day by day: numbers of samples and sums of grid indices."""

    samples: list[int]
    totals: list[int]


def counted(work: Workload, of: Any, metric: MetricSection) -> list[Series]:
    """What counts of each key, by the accounts of the product."""
    series = [Series([0] * work.days, [0] * work.days) for _ in range(max(work.keys) + 1)]

    def send(group: str | None, effective: int, user: bytes, block: Block) -> None:
        found = series[int(group or 0)]
        found.samples[effective // DAY] += block.samples
        found.totals[effective // DAY] += block.total

    accounts = kind_of(metric.parts).accounts(
        metric.parts, of.bounder(), Site("m", send, lambda user: True, durable=False)
    )
    for unit, key, day, value in zip(work.units, work.keys, work.at, work.values, strict=True):
        accounts.add(b"%d" % unit, str(key), of.quantize([value]), day * DAY, day * DAY)
    return series


class Released(NamedTuple):
    """All releases of a key: a row for each key of noise, a column for each day."""

    values: Floats  # nan where there is none
    low: Floats
    high: Floats
    counts: Floats
    count_sd: Floats


def released(of: Any, series: Series, key: int, runs: int) -> Released:
    """The releases of a key of the metric under so many keys of noise."""
    days = len(series.samples)
    found = Released(*(np.full((runs, days), np.nan) for _ in Released._fields))
    for run in range(runs):
        releaser = of.releaser(run.to_bytes(32, "big"), b"%d" % key)
        for day, (samples, total) in enumerate(zip(series.samples, series.totals, strict=True)):
            releaser.add(Contribution(0, "", 0, 0, samples, total))
            releaser.close()
            made = releaser.estimate()
            row = (made.value, made.low, made.high, made.counts.get("count"), made.counts.get("count_sd"))
            for column, value in zip(found, row, strict=True):
                if value is not None:
                    column[run, day] = value
    return found


# -------------------------------------------------------------------- measured


@dataclass(frozen=True)
class Row:
    """One workload under one cap."""

    name: str
    ends: tuple[int, int]
    m: int
    units: int
    samples: int
    kept: float
    place: float  # of the mean in the range
    values: float  # noise of the mean, under relation values
    presence: float
    trees: float
    anew: float
    sums: float | None  # noise of the sum, presence over values
    counts: float  # noise of the count, over what is stated


@dataclass(frozen=True)
class Covered:
    """Intervals of means whose exact count is so many of its deviations."""

    name: str
    least: float
    most: float | None
    releases: int
    inside: float


@dataclass(frozen=True)
class Report:
    """All parts."""

    rows: Sequence[Row]
    covered: Sequence[Covered]
    keys: int
    seconds: float


def measure(work: Workload, m: int, runs: int, *, with_sums: bool = False) -> Row:
    """The noise of all mechanisms."""
    squares: dict[str, list[Floats]] = {}
    metrics = {
        name: (made := section(work, relation, statistic, m, EPSILON), kind_of(made.parts).of(made.parts))
        for name, relation, statistic in (
            ("values", "values", "mean"), ("presence", "add-remove", "mean"),
            ("sum", "values", "sum"), ("side", "add-remove", "sum"),
        )
    }  # fmt: skip
    series = counted(work, metrics["presence"][1], metrics["presence"][0])
    low, width, random = work.ends[0], work.ends[1] - work.ends[0], np.random.default_rng(11)
    for key, one in enumerate(series):
        n, total = np.cumsum(one.samples), np.cumsum(np.array(one.totals, dtype=object)).astype(float) / STEPS
        looked = np.flatnonzero((np.arange(work.days) >= BURN) & (n >= work.fewest))
        exact = low + width * total[looked] / n[looked]

        def add(name: str, off: Floats) -> None:
            squares.setdefault(name, []).append((off**2).ravel())

        for name in ("values", "presence"):
            found = released(metrics[name][1], one, key, runs)
            add(name, found.values[:, looked] - exact)
            if name == "presence":
                add("counts", ((found.counts - n) / found.count_sd)[:, looked])
        if with_sums:
            for name in ("sum", "side"):
                off = released(metrics[name][1], one, key, runs).values - width * total
                add(name, off[:, looked])
        for name, noise in (("trees", gaussian_trees), ("anew", each_day)):
            p, c = (noise(random, runs, work.days, m) for _ in range(2))
            place = np.clip((total + p) / np.maximum(n + c, 1), 0, 1)
            add(name, low + width * place[:, looked] - exact)
    rms = {name: float(np.sqrt(np.nanmean(np.concatenate(parts)))) for name, parts in squares.items()}
    kept = sum(sum(one.samples) for one in series)
    return Row(
        work.name, work.ends, m, len(set(work.units)), len(work.units), kept / len(work.units),
        sum(sum(one.totals) for one in series) / STEPS / kept,
        rms["values"], rms["presence"], rms["trees"], rms["anew"],
        rms["side"] / rms["sum"] if "sum" in rms else None, rms["counts"],
    )  # fmt: skip


BANDS = ((3, 5), (5, 10), (10, 20), (20, None))


def coverage(work: Workload, m: int, epsilon: float, runs: int) -> Iterator[Covered]:
    """Intervals of 95 % of a mean, by how large its count is."""
    metric = section(work, "add-remove", "mean", m, epsilon)
    of = kind_of(metric.parts).of(metric.parts)
    (one,) = counted(work, of, metric)
    n, total = np.cumsum(one.samples), np.cumsum(np.array(one.totals, dtype=object)).astype(float) / STEPS
    made = released(of, one, 0, runs)
    exact = work.ends[0] + (work.ends[1] - work.ends[0]) * total / n
    inside = (made.low <= exact) & (exact <= made.high)
    for least, most in BANDS:
        looked = (n >= least * made.count_sd) & (n < (most or math.inf) * made.count_sd)
        if looked.any():
            name = f"{work.name}, m = {m}, epsilon {epsilon:g}"
            yield Covered(name, least, most, int(looked.sum()), float(inside[looked].mean()))


def run(*, quick: bool) -> Report:
    """Measure everything."""
    begin, runs = time.process_time(), 3 if quick else KEYS
    few = max(runs // 20, 2)
    rows = [measure(purchases(), m, runs if m == 16 else 4 * few, with_sums=m == 16) for m in (4, 16, 64)]
    rows += [measure(flights(what), 64, runs) for what in ("distance", "delay")]
    rows += [measure(flights(what, by_carrier=True), 64, few) for what in ("distance", "delay")]
    covered = [
        *coverage(purchases(), 16, 0.1, runs),
        *coverage(flights("distance"), 64, 0.1, 4 * few),
        *coverage(flights("delay"), 64, 0.02, 4 * few),
    ]
    return Report(rows, covered, runs, time.process_time() - begin)


# -------------------------------------------------------------------- what is told


def _targets(report: Report) -> Iterator[tuple[str, str, str, str]]:
    def worst(of: Callable[[Row], float], rows: Sequence[Row]) -> float:
        return max(map(of, rows), default=math.nan)

    whole = [row for row in report.rows if row.name == "purchases" and row.m == 16]
    year = [row for row in report.rows if row.name in ("flights, distance", "flights, delay")]
    for name, rows, most in (
        ("noise of the mean: purchases, m = 16", whole, 0.9),
        ("noise of the mean: flights", year, 0.8),
    ):
        found = worst(lambda row: row.presence / row.values, rows)
        yield name, f"at most {most} of that of values", f"{found:.3f}", verdict(found <= most)
    found = worst(lambda row: abs((row.sums or 0) - 1), whole)
    yield "noise of the sum", "1.00 ± 0.03 of that of values", f"± {found:.3f}", verdict(found <= 0.03)
    found = worst(lambda row: abs(row.counts - 1), whole)
    yield "noise of the count", "as stated ± 0.03", f"± {found:.3f}", verdict(found <= 0.03)
    for name, least, of in (
        ("beside Gaussian trees", 4.3, lambda row: row.presence / row.trees),
        ("beside each day anew", 7.0, lambda row: row.presence / row.anew),
    ):
        found = 1 / worst(of, report.rows)
        yield name, f"at least {least} times better", f"{found:.1f} times", verdict(found >= least)
    least_covered = min(_covered(report), default=math.nan)
    yield (
        "intervals of 95 %", f"0.94 from a count of {LEAST} deviations on", f"{least_covered:.3f}",
        verdict(least_covered >= 0.94),
    )  # fmt: skip


def _covered(report: Report) -> Iterator[float]:
    """Of each workload the part of intervals that cover, over all releases whose count is large enough."""
    for name in dict.fromkeys(one.name for one in report.covered):
        enough = [one for one in report.covered if one.name == name and one.least >= LEAST]
        if enough:
            yield sum(one.inside * one.releases for one in enough) / sum(one.releases for one in enough)


def from_json(known: dict[str, Any]) -> Report:
    """What a run kept."""
    rows = [Row(**row | {"ends": tuple(row["ends"])}) for row in known["rows"]]
    return Report(rows, [Covered(**one) for one in known["covered"]], known["keys"], known["seconds"])


def tables(report: Report) -> str:
    """All of them."""
    rows = [
        (row.name, f"{row.ends[0]}..{row.ends[1]}", row.m, f"{row.units:,}", f"{row.samples:,}", f"{row.kept:.2f}",
         f"{row.place:.2f}", number(row.values), number(row.presence), f"{row.presence / row.values:.2f}",
         number(row.trees), f"{row.trees / row.presence:.1f}", number(row.anew), f"{row.anew / row.presence:.1f}")
        for row in report.rows
    ]  # fmt: skip
    header = ("workload", "range", "m", "units", "samples", "counted", "place of the mean", "values", "presence",
              "ratio", "Gaussian trees", "times", "each day anew", "times")  # fmt: skip
    inside = [
        (one.name, f"{one.least}..{one.most or ''}", f"{one.releases:,}", f"{one.inside:.3f}") for one in report.covered
    ]
    parts = [
        figures.table(("what", "target", "found", ""), list(_targets(report))),
        f"## Noise of the mean\n\nUp to {report.keys} keys of noise.",
        figures.table(header, rows),
        "## Intervals\n\nOf 95 %, by the exact count in standard deviations of its noise.",
        figures.table(("workload", "count", "releases", "with the exact mean inside"), inside),
    ]
    return "\n\n".join(parts)


def page(report: Report) -> Page:
    """The page; it has no picture."""
    effort = f"{report.seconds:.0f} s of processor time"
    return Page("presence", TITLE, RULES, tables(report), effort, asdict(report), lambda folder: None)


def main(given: Sequence[str] | None = None) -> None:
    """Measure and publish."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few keys of noise; nothing is kept without --out")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write JSON and Markdown into this folder")
    chosen = parser.parse_args(given)
    page(run(quick=chosen.quick)).publish(chosen.out, keep=not chosen.quick)


if __name__ == "__main__":
    main()
