"""The tables of windows and decays, and the page that they make."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

from benchmarks import figures
from benchmarks.decay import picture, textbook
from benchmarks.decay.contenders import (
    ALL,
    DELTAS,
    EXPONENTIAL,
    POLYNOMIAL,
    WIDTH,
    WINDOW,
)
from benchmarks.decay.report import Report, Row, as_json, verdicts
from benchmarks.decay.speed import FAR
from benchmarks.decay.variances import LOOKS, SAMPLES, Spread
from benchmarks.page import Page, number, verdict

TITLE = "Windows and decays"
RULES = f"""\
Measured with `make bench-decay`; the figures are those of [decay.json](decay.json), and a short account is
[windows and decays](../../docs/explanation/decay.md). Epsilon is 1 for all releases together; a unit is an event
with a value in [0, 1].

## What is measured

* **Variance** of one release's noise, in squares of the range, which has {WIDTH:,} grid steps: noise is then as good as
  continuous. `formula` is the mechanism's closed form, `variance(t)`, as a mean over all places of a release in the
  blocks, long after the beginning; `most` is the largest of them. Of `hats` it is near the truth to a few per cent.
* **Measured**: releases of the summer that a worker has, with real keyed draws and steps that hold 0; squared, over
  `variance(t)` of the same steps, and that ratio times `formula`. Steps between looks are skipped where the noise
  depends on key and step alone; exponentially decayed noise per step is computed from its draws in blocks. ± is one
  standard error of the ratio, from how independent keys differ. There are as many keys as fit into a fixed budget, or
  fewer if ± is below 1 %: it is larger where a release rests on many draws, or hardly differs from the next one.
* **Agrees**: the ratio is within 5 % of 1, or within 3 standard errors. Keys are fixed: only times differ from run to
  run.
* **Mechanisms** are called as releases call them: `per-step` noise, the `patent` of Bolot et al. (2013), `blue` trees
  of blocks, `hats`, and, (epsilon, delta)-DP with delta = 1e-6, `square-root`. *sharp* marks the one that
  `algorithm = "sharp"` takes without a delta. `blue` and `hats` have about the best shape for each row, also where
  they are not taken. Of the `square-root` with W ≥ 2^14, windows within one epoch are looked at.
"""


def tables(report: Report) -> str:
    """All tables."""
    parts = [*_targets(report.rows), *_agreement(report.rows)]
    titles = (
        (WINDOW, "Windows of W steps", "W"),
        (EXPONENTIAL, "Exponential decay", "alpha"),
        (POLYNOMIAL, "Polynomial decay", "exponent"),
        (ALL, "Any window, told afterwards", "end; length"),
    )
    for family, title, column in titles:
        parts += _family([row for row in report.rows if row.family == family], title, column)
    return "\n\n".join([*parts, *_gaussian(report), *_variances(report.variances), *_speeds(report), *_long(report)])


def _targets(rows: Sequence[Row]) -> Iterator[str]:
    found = list(verdicts(rows))
    met = sum(done for *_, done in found)
    yield "## What is to be reached, and is"
    yield (
        f"Mean variance of the sharp mechanism, by formula: at most {textbook.SLACK} times the target for windows and "
        "exponential decay, never above the patent or per-step noise, and at the bound 2 Σ g² of per-step noise for "
        f"polynomial decay, which weights with a relative error of 1e-6 meet to a few parts in a million. "
        f"**{met} of {len(found)} met.**"
    )
    cells = [
        (decay, at, number(target), number(allowed), f"{row.found.mean:,.2f}", row.mechanism, verdict(done))
        for decay, at, target, allowed, row, done in found
    ]
    yield figures.table(("decay", "at", "target", "allowed", "sharp", "by", ""), cells)
    for decay, at, target, allowed, row, done in found:
        if not done:
            yield (
                f"**Missed**: {decay} at {at} comes to {row.found.mean:.2f}, which is "
                f"{row.found.mean / target:.3f} times the target; {allowed:.1f} are allowed."
                + _instead(rows, row)
            )  # fmt: skip


def _instead(rows: Sequence[Row], row: Row) -> str:
    """The next best of the same decay."""
    others = [one for one in rows if (one.family, one.at) == (row.family, row.at) and one != row]
    best = min(others, key=lambda one: one.found.mean)
    return f" The best of the other mechanisms here, {best.mechanism}, comes to {best.found.mean:.1f}."


def _agreement(rows: Sequence[Row]) -> Iterator[str]:
    near = sum(row.found.agrees and abs(row.found.ratio - 1) <= 0.05 for row in rows)
    agree = sum(row.found.agrees for row in rows)
    worst = max(rows, key=lambda row: abs(row.found.ratio - 1) / row.found.error)
    books = [abs(row.found.mean / row.textbook - 1) for row in rows if row.textbook]
    yield "## Measured variance and formula"
    said = f"**{agree} of {len(rows)} rows agree**, {near} of them within 5 %. "
    said += f"Furthest away in standard errors is {_called(worst)}: {worst.found.ratio:.3f} ± {worst.found.error:.3f}."
    errors = sorted(row.found.error for row in rows)
    said += (
        f" The standard errors are {100 * errors[0]:.1f} to {100 * errors[-1]:.1f} %, "
        f"{100 * errors[len(errors) // 2]:.1f} % in the middle."
    )
    if books:
        said += (
            f" Where a paper gives the mean variance in closed form ({len(books)} rows), `variance(t)` differs from it "
            f"by {100 * max(books):.2g} % at most."
        )
    yield said


def _called(row: Row) -> str:
    return f"{row.family} {row.at}, {row.mechanism}"


def _family(rows: Sequence[Row], title: str, column: str) -> Iterator[str]:
    cells = []
    for row in rows:
        found = row.found
        measured = f"{found.ratio:.3f} ± {found.error:.3f}"
        cells.append((
            row.at, row.mechanism, row.detail, number(found.mean), number(found.most), number(found.measured), measured,
            f"{found.keys:,}; {found.looks:,}", "yes" if found.agrees else "**no**", f"*{row.sharp}*" * bool(row.sharp),
        ))  # fmt: skip
    yield f"## {title}"
    header = (column, "mechanism", "shape", "formula", "most", "measured", "ratio", "keys; looks", "agrees", "")
    yield figures.table(header, cells)


def _gaussian(report: Report) -> Iterator[str]:
    yield "## Windows with a delta"
    yield (
        "Mean variance of `square-root` by formula, and what `sharp` takes when it is given that delta. A draw has "
        "variance σ² = 1 / (2 ρ) times the squared sensitivity, ρ being the most zCDP that epsilon = 1 and delta "
        "allow: "
        + ", ".join(
            f"σ² = {sigma:.1f} for {_power(delta)}"
            for delta, (sigma, _, _) in zip(DELTAS, next(iter(report.gaussian.values())), strict=True)
        )
        + ". In brackets, the variance over σ²."
    )
    cells = [
        (
            f"2^{length.bit_length() - 1}",
            *(f"{number(mean)} ({mean / sigma:.1f}): {taken}" for sigma, mean, taken in of),
        )
        for length, of in report.gaussian.items()
    ]
    yield figures.table(("W", *map(_power, DELTAS)), cells)


def _variances(spreads: Sequence[Spread]) -> Iterator[str]:
    if not spreads:
        return
    agree = sum(spread.agrees for spread in spreads)
    yield "## The variance of samples"
    yield (
        'Releases of `statistic = "variance"`, not clamped: those of the releaser that a worker has, with real keyed '
        f"draws and {SAMPLES} samples in every step, {LOOKS} releases a key. Half of the samples lie at 0, the others "
        "as far beyond their mean, which is in the middle of the range, half way to its end, or at the end. `stated` "
        "is the root of the mean square of `noise_sd`, in units of the squared range; `ratio` the mean square of the "
        "errors over that of `noise_sd`; `covered` the share of the releases whose `low` to `high` holds the variance "
        "without noise. `halves`: how much larger the standard deviation would be, by formula, if each of the two sums "
        f"had half of epsilon. **{agree} of {len(spreads)} rows agree**: the ratio as above, and 94 % covered or more."
    )
    cells = [
        (one.decay, one.mean, one.mechanism, f"{one.samples:,.0f}", number(one.stated),
         f"{one.ratio:.3f} ± {one.error:.3f}", f"{100 * one.covered:.1f} %", f"{one.halves:.2f}",
         "yes" if one.agrees else "**no**")
        for one in spreads
    ]  # fmt: skip
    header = ("decay", "mean", "mechanism", "samples", "stated", "ratio", "covered", "halves", "agrees")
    yield figures.table(header, cells)


def _power(delta: Fraction) -> str:
    return f"delta = {float(delta):.0e}"


def _speeds(report: Report) -> Iterator[str]:
    yield "## Speed and state"
    yield (
        f"Microseconds of processor time per step, noise included, of one summer with something in every step: over "
        f"the first steps, and over the last ones before step {FAR:,}, a silence being skipped between. State: bytes "
        "of the head (JSON) and exact sums of steps that are kept besides, one per step of a window."
    )
    cells = []
    for one in report.speeds:
        early, late = one.states
        cells.append((one.decay, one.mechanism, number(early.microseconds), number(late.microseconds),
                      f"{early.head}; {early.kept:,}", f"{late.head}; {late.kept:,}"))  # fmt: skip
    steps = report.speeds[0].states[0].steps
    header = ("decay", "mechanism", f"µs, first {steps:,}", f"µs, last {steps:,}", f"state at {steps:,}",
              f"state at {FAR:,}")  # fmt: skip
    yield figures.table(header, cells)


def _long(report: Report) -> Iterator[str]:
    shown = report.longest or report.long
    most = max(one.states[-1].steps for one in shown)
    yield "## Without end"
    yield (
        f"{most:,} steps of the sharp sums, none skipped, in one process"
        + (" (`--long`, a run of its own). " if report.longest else "; `--long` takes 10,000,000. ")
        + "Microseconds and memory are those of the steps since the row before, and the largest that the process had."
    )
    cells = [
        (one.decay, one.mechanism, f"{state.steps:,}", f"{state.microseconds:.1f}",
         f"{state.head}; {state.kept:,}", f"{state.peak:.1f}")
        for one in shown for state in one.states
    ]  # fmt: skip
    yield figures.table(("decay", "mechanism", "until step", "µs per step", "state", "memory, MiB"), cells)


def page(report: Report) -> Page:
    """All that is shown of a run."""
    effort = f"{report.seconds / 60:.0f} minutes of one core's time"

    def draw(folder: Path) -> None:
        picture.draw(report.rows, folder / "decay.png")

    return Page("decay", TITLE, RULES, tables(report), effort, as_json(report), draw)
