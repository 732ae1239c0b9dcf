"""Accuracy of all algorithms and of what else one might use, on the same inputs in one run.

    python -m benchmarks.accuracy [--quick] [--seeds N] [--algorithms NAME ...] [--out DIR]
    python -m benchmarks.accuracy --csv FILE --user COLUMN --value COLUMN --time COLUMN [--range LOW HIGH]

Prints tables; a full run writes benchmarks/results/accuracy.json and accuracy.md, and docs/images/accuracy.png; with
--out, any run writes the three into a folder.
"""

import argparse
import sys
import time as clock
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.accuracy import comparators, inputs, picture
from benchmarks.accuracy.driving import Bounded, looks, parameters
from benchmarks.accuracy.inputs import Cadence, Input
from benchmarks.accuracy.page import Found, page
from benchmarks.accuracy.scoring import Curve, of_runs, score
from shoal.mechanisms.continual_mean.statistic import ALGORITHMS

FIRST = ("naive", "full", "wishful", "single-tree", "multi-tree", "sharp")  # in this order, then all others


def algorithms() -> list[str]:
    """Every algorithm that a configuration may name."""
    return sorted(ALGORITHMS, key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name))


def compared(bounded: Bounded, cadence: Cadence, keys: int) -> Iterator[Curve]:
    """What else one might use, over the samples that the cap leaves."""
    data, at = bounded.data, looks(bounded.data, cadence)
    kept = bounded.of(parameters("naive", data, 1))
    yield comparators.blue(data, kept, at, None)
    if cadence.every is not None:
        yield comparators.blue(data, kept, at, np.arange(1, len(at) + 1))
    yield comparators.opendp(data, kept, at, kept.count if cadence.every is None else len(at), keys)
    for name in (comparators.TOEPLITZ, comparators.ROOT):
        yield comparators.factorisation(name, data, at)


def curves(data: Input, names: Sequence[str], keys: int) -> dict[str, list[Curve]]:
    """By cadence. Algorithms take turns, for each bounds the whole input once."""
    bounded = Bounded(data)
    found: dict[str, list[Curve]] = {cadence.name: [] for cadence in data.cadences}
    for name in names:
        for cadence in data.cadences:
            runs = bounded.run(name, cadence, keys)
            found[cadence.name].append(of_runs(runs, data, looks(data, cadence)))
    for cadence in data.cadences:
        found[cadence.name] += compared(bounded, cadence, keys)
    return found


def measure(data: Input, names: Sequence[str], keys: int) -> Found:
    """Everything about one input."""
    began = clock.perf_counter()
    drawn = curves(data, names, keys)
    scores = {cadence: [score(curve, data) for curve in found] for cadence, found in drawn.items()}
    print(f"{data.name}: {clock.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    bound = comparators.lower_bound(data) if data.mean is not None else None
    shown = {cadence: [picture.thin(curve, data) for curve in found] for cadence, found in drawn.items()}
    return Found(data.name, data.about, data.users, data.cap, data.count, bound, scores, shown)


def arguments() -> argparse.Namespace:
    """Of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small inputs, few keys; nothing is kept without --out")
    parser.add_argument("--seeds", type=int, metavar="N", help="keys per input and cadence (24; quick: 8)")
    parser.add_argument(
        "--algorithms", nargs="+", choices=algorithms(), metavar="NAME", help="these and the comparators"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="write JSON, Markdown and picture into this folder")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="measure on this file alone: a header, .gz if it is")
    parser.add_argument("--user", metavar="COLUMN", default="user")
    parser.add_argument("--value", metavar="COLUMN", default="value")
    parser.add_argument("--time", metavar="COLUMN", default="time", help="ISO 8601, or seconds or milliseconds")
    parser.add_argument("--range", nargs=2, metavar=("LOW", "HIGH"), help="the public range of the values")
    parser.add_argument("--max-contributions", type=int, default=64, metavar="M", help="of a user in --csv (64)")
    return parser.parse_args()


def main() -> None:
    """Measure and publish."""
    chosen = arguments()
    keys = chosen.seeds or (8 if chosen.quick else 24)
    if chosen.csv:
        columns = chosen.user, chosen.value, chosen.time
        given = iter([inputs.of_csv(chosen.csv, *columns, chosen.range, chosen.max_contributions)])
    else:
        given = inputs.standard(quick=chosen.quick)
    began = clock.perf_counter()
    found = [measure(data, chosen.algorithms or algorithms(), keys) for data in given]
    seconds = clock.perf_counter() - began
    page(found, seconds, keys).publish(chosen.out, keep=not (chosen.quick or chosen.csv or chosen.algorithms))


if __name__ == "__main__":
    main()
