"""Places and slots: errors per cell, caps, users in many cells, scaling laws, few users, vectors, speed, in one run.

    python -m benchmarks.places [--quick] [--out DIR]
    python -m benchmarks.places --page

Prints tables. A full run writes benchmarks/results/places.json and places.md, and two pictures in docs/images; with
--out, any run writes all of them into a folder. --page writes page and pictures anew from what was found.
"""

import argparse
import resource
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from benchmarks.places import capping, errors, few, inputs, scaling, sharing, speed, vectors
from benchmarks.places.page import page
from benchmarks.places.report import Report, kept


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """Of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few cells, few draws; nothing is kept without --out")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write JSON, Markdown and pictures into this folder")
    parser.add_argument("--page", action="store_true", help="measure nothing")
    return parser.parse_args(given)


def cells(*, quick: bool) -> list[inputs.Cell]:
    """Synthetic ones and those of trips."""
    found = inputs.synthetic_cells(quick=quick)
    if quick:
        return found + inputs.trip_cells(inputs.trips(600, 7, 1), 2, "600 buses")
    small, large = inputs.trips(600, 7, 1), inputs.trips(4000, 7, 1)
    return found + inputs.trip_cells(small, 12, "600 buses") + inputs.trip_cells(large, 16, "4,000 buses")


def run(*, quick: bool) -> Report:
    """Measure everything; speed comes first, in processes of its own."""
    said = ("speed", "errors", "caps", "many cells", "scaling", "few users", "velocities")
    steps = iter(said)

    def note() -> None:
        print(f"{next(steps)}: {_seconds():.0f} s so far", file=sys.stderr, flush=True)

    speeds, transport = speed.measure(quick=quick)
    note()
    epsilons = errors.EPSILONS[1:3] if quick else errors.EPSILONS
    chosen = cells(quick=quick)
    rows, check = errors.measure(chosen, 6 if quick else 100, epsilons)
    note()
    number = 60 if quick else 2000
    caps = capping.measure(number, [Fraction(1, 2), *map(Fraction, (1, 2, 5))], [cell.counts for cell in chosen])
    sharpest = capping.sharpest(number)
    note()
    slots = list(sharing.scenarios(quick=quick))
    note()
    lines = scaling.measure(quick=quick)
    note()
    by_few, audit = few.measure(20 if quick else 2000), few.audit(100 if quick else 5000)
    note()
    velocities = vectors.measure(quick=quick)
    note()
    return Report(rows, check, caps, sharpest, slots, lines, by_few, audit, velocities, speeds, transport, _seconds())


def _seconds() -> float:
    """Processor time of this process and of those that it started."""
    return sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def main(given: Sequence[str] | None = None) -> None:
    """Measure and publish."""
    chosen = arguments(given)
    if not chosen.page:
        page(run(quick=chosen.quick)).publish(chosen.out, keep=not chosen.quick)
        return
    found = kept()
    if found is None:
        raise SystemExit("there is no benchmarks/results/places.json yet: run without --page first")
    page(found).show()


if __name__ == "__main__":
    main()
