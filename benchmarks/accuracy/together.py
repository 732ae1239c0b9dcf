"""How often q releases stay within their noise intervals together: with `simultaneous = q`, and without.

    python -m benchmarks.accuracy.together [--quick] [--out DIR]

Prints a table; a full run writes benchmarks/results/together.json and together.md.
"""

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.page import Page
from shoal.mechanisms.continual_mean.mean import MeanParameters
from shoal.mechanisms.continual_mean.naive import Naive
from shoal.mechanisms.continual_mean.sharp import Sharp
from shoal.mechanisms.error_bars import coverage_of
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.noise.keyed import derive
from shoal.mechanisms.slot.cell import CellParameters, Draws
from shoal.mechanisms.slot.means.linear import BASELINE
from shoal.mechanisms.statistic import Contribution
from shoal.mechanisms.sums.decays import Decay, Exponential, Polynomial, Undecayed, Window

UNIT = Grid(Fraction(0), Fraction(1), 1 << 16)
DECAYS: dict[str, Decay] = {
    "sum since the beginning": Undecayed(),
    "window of 8 steps": Window(8),
    "window of 4,096 steps": Window(4096),
    "exponential, alpha 0.5": Exponential(Fraction(1, 2)),
    "exponential, alpha 0.99": Exponential(Fraction(99, 100)),
    "polynomial, exponent 1.5": Polynomial(Fraction(3, 2)),
}
MEANS = (Naive, Sharp)
RELEASES, RUNS = 100, 400
TITLE = "Releases that stay within their noise intervals together"
RULES = """\
Measured with `python -m benchmarks.accuracy.together`; the figures are those of [together.json](together.json). Epsilon
is 1. Values are all at one end of the range, so that whatever is off is noise; a mean gets 20 new users at each
release. Every run has a key of its own. The table says how many runs had all releases within their intervals, and how
much wider the last interval is with `simultaneous` than without.
"""


@dataclass(frozen=True)
class Coverage:
    """Of one statistic: the runs whose releases were all within their intervals."""

    name: str
    together: float  # with `simultaneous`
    alone: float  # with the usual intervals
    wider: float  # the last interval with `simultaneous`, in usual ones


def measured(q: int, runs: int) -> Iterator[Coverage]:
    """The coverage of q releases of each statistic."""
    for name, decay in DECAYS.items():
        yield _of_sum(name, decay, q, runs)
    for cls in MEANS:
        yield _of_mean(cls, q, runs)
    yield _of_slots(q, runs)


@dataclass(frozen=True)
class Report:
    """All statistics."""

    releases: int
    runs: int
    rows: Sequence[Coverage]
    seconds: float


def run(releases: int, runs: int) -> Report:
    """Measure."""
    begin = time.process_time()
    return Report(releases, runs, list(measured(releases, runs)), time.process_time() - begin)


def tables(report: Report) -> str:
    """One table, in Markdown."""
    q = report.releases
    head = (
        f"| statistic | {q} releases within, `simultaneous = {q}` | without | interval |\n| --- | --- | --- | --- |\n"
    )
    rows = (
        f"| {of.name} | {100 * of.together:.1f} % | {100 * of.alone:.1f} % | x {of.wider:.2f} |" for of in report.rows
    )
    return head + "\n".join(rows)


def from_json(data: Mapping[str, Any]) -> Report:
    """The report of which the page was written."""
    rows = [Coverage(**row) for row in data["rows"]]
    return Report(data["releases"], data["runs"], rows, data["seconds"])


def page(report: Report) -> Page:
    """The page; it has no picture."""
    effort = f"{report.runs} runs, {report.seconds:.0f} s of processor time"
    return Page("together", TITLE, RULES, tables(report), effort, asdict(report), lambda folder: None)


def _of_sum(name: str, decay: Decay, q: int, runs: int) -> Coverage:
    sums, coverage = decay.sharp(UNIT.steps, Fraction(1)), coverage_of(q)
    halves = [(sums.noise_quantile(t, coverage), sums.noise_quantile(t)) for t in range(1, q + 1)]
    together = alone = 0
    for run in range(runs):
        summer = sums.summer(partial(derive, bytes(32), "coverage", run))
        noise = [abs(summer.add(0)) / sums.denominator for _ in range(q)]
        together += all(size <= half for size, (half, _) in zip(noise, halves, strict=True))
        alone += all(size <= half for size, (_, half) in zip(noise, halves, strict=True))
    return Coverage(f"{name} ({sums.mechanism})", together / runs, alone / runs, halves[-1][0] / halves[-1][1])


def _of_mean(cls: type[MeanParameters], q: int, runs: int) -> Coverage:
    """Of a mean with 20 new users at every release."""
    usual = cls(grid=UNIT, epsilon=Fraction(1), max_contributions=1, users=20 * q)
    parameters = cls(
        grid=UNIT, epsilon=Fraction(1), max_contributions=1, users=20 * q, coverage=coverage_of(q)
    )  # fmt: skip
    together = alone = 0
    wider = 0.0
    for run in range(runs):
        key = derive(bytes(32), "coverage", run)
        releasers, within, inside = [of.releaser(key, b"") for of in (parameters, usual)], True, True
        for tick in range(q):
            for releaser in releasers:
                releaser.add(Contribution(tick, "", 0, 0, 20, 0))
                releaser.close()
            wide, narrow = (releaser.estimate() for releaser in releasers)
            if wide is not None and narrow is not None:
                within, inside = within and wide.low <= 0 <= wide.high, inside and narrow.low <= 0 <= narrow.high
                wider = (wide.high - wide.low) / (narrow.high - narrow.low)
        together, alone = together + within, alone + inside
    return Coverage(f"mean ({cls.name})", together / runs, alone / runs, wider)


def _of_slots(q: int, runs: int) -> Coverage:
    """Of a mean per slot by `baseline`, with a draw of its own in each slot."""
    usual = CellParameters(grid=UNIT, epsilon=Fraction(1), clamps=False)
    parameters = CellParameters(grid=UNIT, epsilon=Fraction(1), clamps=False, coverage=coverage_of(q))
    users, together, alone, wider = [[0]] * 20, 0, 0, 0.0
    for run in range(runs):
        draws = [Draws(derive(bytes(32), "coverage", run), b"", slot) for slot in range(q)]
        wide, narrow = ([BASELINE.release(users, of, draw) for draw in draws] for of in (parameters, usual))
        together += all(release.low <= 0 <= release.high for release in wide)
        alone += all(release.low <= 0 <= release.high for release in narrow)
        wider = (wide[-1].high - wide[-1].low) / (narrow[-1].high - narrow[-1].low)
    return Coverage("mean per slot (baseline)", together / runs, alone / runs, wider)


def main(given: Sequence[str] | None = None) -> None:
    """Measure and publish."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few runs; nothing is kept without --out")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write JSON and Markdown into this folder")
    chosen = parser.parse_args(given)
    page(run(RELEASES, RUNS // 20 if chosen.quick else RUNS)).publish(chosen.out, keep=not chosen.quick)


if __name__ == "__main__":
    main()
