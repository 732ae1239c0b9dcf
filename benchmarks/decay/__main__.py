"""Every mechanism for windows and decays against its formula: variance, speed and state, in one run.

    python -m benchmarks.decay [--quick] [--seconds N] [--out DIR]
    python -m benchmarks.decay --variances [--quick] | --long | --page

Prints tables. A full run writes benchmarks/results/decay.json and decay.md, and docs/images/decay.png; with --out,
any run writes the three into a folder. --variances measures `statistic = "variance"` alone, beside what the last full
run found. --long adds ten million steps of the sharp sums to that, where later runs leave them; --page writes page and
picture anew from what was found.
"""

import argparse
import sys
import time as clock
from dataclasses import replace
from pathlib import Path

from benchmarks.decay import speed, variances
from benchmarks.decay.contenders import LENGTHS, contenders, with_deltas
from benchmarks.decay.measuring import measure
from benchmarks.decay.page import page
from benchmarks.decay.report import Report, Row, kept

ENOUGH = 0.01  # standard error of a ratio
LONG, SHORT, QUICK = 10_000_000, 1_000_000, 20_000  # steps


def arguments() -> argparse.Namespace:
    """Of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rows, few keys; nothing is kept without --out")
    parser.add_argument("--seconds", type=float, default=4.0, metavar="N", help="about so long per row (4)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write JSON, Markdown and picture into this folder")
    parser.add_argument("--long", action="store_true", help="ten million steps of the sharp sums, and nothing else")
    parser.add_argument("--variances", action="store_true", help="the variance of samples, and nothing else")
    parser.add_argument("--page", action="store_true", help="measure nothing")
    return parser.parse_args()


def run(*, quick: bool, seconds: float) -> Report:
    """Measure everything; the long runs come first, while the process is small."""
    began = clock.process_time()
    long, speeds = speed.long_runs(QUICK if quick else SHORT), speed.speeds(quick=quick)
    print(f"speed and state: {clock.process_time() - began:.0f} s", file=sys.stderr, flush=True)
    rows = []
    for one in contenders(quick=quick):
        start = clock.process_time()
        found = measure(one.name, one.sums, one.looking, seconds, ENOUGH)
        rows.append(Row.of(one, found))
        spent = clock.process_time() - start
        print(f"{one.name}: {found.ratio:.3f} ± {found.error:.3f}, {spent:.1f} s", file=sys.stderr, flush=True)
    gaussian = {length: with_deltas(length) for length in (LENGTHS[:2] if quick else LENGTHS)}
    spreads = variances.spreads(quick=quick)
    return Report(rows, gaussian, speeds, long, clock.process_time() - began, variances=spreads)


def main() -> None:
    """Measure and publish."""
    chosen = arguments()
    if (chosen.page or chosen.long or chosen.variances) and kept() is None:
        raise SystemExit("there is no benchmarks/results/decay.json yet: run without --page, --long, --variances first")
    found = longest = spreads = None
    if chosen.long:
        longest = speed.long_runs(LONG)
    elif chosen.variances:
        spreads = variances.spreads(quick=chosen.quick)
    elif not chosen.page:
        found = run(quick=chosen.quick, seconds=0.3 if chosen.quick else chosen.seconds)
    before = kept()  # another run may have ended meanwhile
    found = found or before
    assert found is not None
    found = replace(found, longest=longest or (before.longest if before else ()), variances=spreads or found.variances)
    if chosen.page:
        page(found).show()
    else:
        page(found).publish(chosen.out, keep=not chosen.quick)


if __name__ == "__main__":
    main()
