"""What a worker costs while it is not behind, and how late its releases are, with bars that fail.

    python -m benchmarks.live [--quick | --backlog]

A worker reads events as they come from the embedded broker. Each row measures the producer alone first, so that the
worker's share of the broker's costs is known: processor time of 12 s, after 6 s that are not measured. The status is 1
if a bar is missed by more than a quarter. A full run (half an hour) keeps its figures in benchmarks/results/live.json
and writes the tables of the guide; other runs only print.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from benchmarks import figures
from benchmarks.live import backlog, measuring, page, streams
from benchmarks.live.bars import Result, is_disturbed, judged
from benchmarks.live.rows import FULL, QUICK, Row
from benchmarks.page import kept
from benchmarks.speed.context import Context
from benchmarks.speed.watching import FailedError
from shoal.agents.broker.process import Broker
from shoal.agents.process_settings import ending_in_order

FAILURES = (FailedError, OSError, subprocess.TimeoutExpired, psutil.Error)  # of one row; the others are still measured


def main() -> int:
    """Measure, print, and return the status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    some = parser.add_mutually_exclusive_group()
    some.add_argument(
        "--quick", action="store_true", help="four rows on 8 partitions, in some minutes; nothing is kept"
    )
    some.add_argument(
        "--backlog",
        action="store_true",
        help="only print the processor time of an event in a backlog, to compare commits",
    )
    options = parser.parse_args()
    with ending_in_order(), Broker() as broker, tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        context = Context(Path(folder), broker, options.quick)
        if options.backlog:
            print("\n".join(backlog.lines(backlog.measure(context))), flush=True)
            return 0
        more = {} if context.quick else _more(context)
        rows = [(row, _guarded(context, row, f"row-{place}")) for place, row in enumerate(_rows(context))]
    data = {"rows": page.to_json(rows), **more}
    _publish(data, keep=not context.quick)
    return _judge(rows)


def _rows(context: Context) -> tuple[Row, ...]:
    return QUICK if context.quick else FULL


def _guarded(context: Context, row: Row, name: str) -> Result:
    """What was found in a row, or why it failed."""
    try:
        found = measuring.measure(context, row, name)
    except FAILURES as error:
        found = {"failed": str(error)}
    said = found.get("failed") or f"worker {page.cores(found['worker'])}, broker {page.cores(found['beyond'])} cores"
    print(f"{row.label}: {said}", file=sys.stderr, flush=True)
    return found


def _more(context: Context) -> dict[str, Any]:
    """What only a full run measures."""
    return {
        "streams": streams.measure(context),
        "backlog": backlog.measure(context),
        "releases_a_second": backlog.releases_a_second(context),
    }


def _judge(rows: Sequence[tuple[Row, Result]]) -> int:
    """Print bars that are missed, and return the status."""
    failed = [one.sentence for one in judged(rows) if one.fails]
    if disturbed := sum(is_disturbed(result) for _, result in rows):
        print(f"{disturbed} of {len(rows)} rows cannot fail: other programs disturbed them", file=sys.stderr)
    for sentence in failed:
        print(sentence, file=sys.stderr)
    return 1 if failed else 0


def _publish(data: dict[str, Any], *, keep: bool) -> None:
    """Print the tables; of a full run, keep figures and write the guide."""
    figures.publish(page.NAME, page.TITLE, page.tables(data), data, figures.place(quick=not keep))
    if keep and (found := kept(page.NAME)):
        page.write(found)


if __name__ == "__main__":
    sys.exit(main())
