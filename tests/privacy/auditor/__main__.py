"""`python -m tests.privacy.auditor`: audit many random configurations; status 1 if any is over its epsilon."""

import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from math import inf
from typing import Annotated

import typer

from tests.privacy.auditor.families import FAMILIES
from tests.privacy.auditor.program import solver
from tests.privacy.auditor.tally import Tally, audited

BATCH = 120  # between two lines that say how far it is


def main(
    configurations: Annotated[int, typer.Option(min=1, help="How many in all, spread over the families.")] = 5000,
    seed: Annotated[int, typer.Option(help="Of the first one; the same seeds give the same configurations.")] = 0,
    family: Annotated[str | None, typer.Option(help=f"Only one of: {', '.join(FAMILIES)}.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="How many at once.")] = 1,
    seconds: Annotated[float, typer.Option(help="End after so long, with what was done by then.")] = inf,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Audit random configurations of every family, one of each in turn."""
    if family is not None and family not in FAMILIES:
        raise typer.BadParameter(f"one of {', '.join(FAMILIES)}", param_hint="--family")
    solver()
    chosen = [family] if family else list(FAMILIES)
    tally, began = Tally(chosen), time.monotonic()
    with ProcessPoolExecutor(jobs) if jobs > 1 else nullcontext() as pool:
        run = pool.map if pool else map
        while tally.done < configurations and time.monotonic() - began < seconds:
            numbers = range(tally.tried, tally.tried + min(BATCH, configurations - tally.done))
            families = [chosen[number % len(chosen)] for number in numbers]
            for found in run(audited, families, [seed + number // len(chosen) for number in numbers]):
                tally.add(*found)
            print(f"{tally.done} of {configurations}, {tally.over} over epsilon", file=sys.stderr, flush=True)
    result = tally.told() | {"seed": seed, "seconds": round(time.monotonic() - began)}
    print(json.dumps(result, indent=1) if as_json else tally.table())
    sys.exit(tally.over > 0)


if __name__ == "__main__":
    typer.run(main)
