"""`python -m tests.mutants`: try the mutants and print the table of who caught them; status 1 if any survived."""

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import track
from rich.table import Table

from tests.mutants.catalogue import FAMILIES, MUTANTS
from tests.mutants.mutant import Misfit, Mutant
from tests.mutants.runner import BROKEN, CAUGHT, Verdict, build, copy_project, failing_anyway, try_mutant


def main(
    family: Annotated[str | None, typer.Option(help=f"One of: {', '.join(FAMILIES)}.")] = None,
    name: Annotated[str | None, typer.Option(help="Those whose name contains this.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A few of each family.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per mutant instead of the table.")] = False,
    jobs: Annotated[int, typer.Option(help="How many at once.")] = os.cpu_count() or 1,
) -> None:
    """Break copies of the package and see which tests notice. Those of the kernel are built, and tried only by name."""
    if family is not None and family not in FAMILIES:
        raise typer.BadParameter(f"one of {', '.join(FAMILIES)}", param_hint="--family")
    chosen = [
        mutant
        for mutant in MUTANTS
        if (mutant.family == family or family is None and not mutant.is_native)
        and (name or "") in mutant.name
        and (mutant.quick or not quick)
    ]
    started = time.monotonic()
    verdicts = misfits(chosen)
    fitting = [mutant for mutant in chosen if mutant not in [one.mutant for one in verdicts]]
    told = Console(stderr=True)
    verdicts += track(
        tried(fitting, jobs), "first without mutants, then", len(fitting), console=told, disable=not told.is_terminal
    )
    show(verdicts, time.monotonic() - started, as_json=as_json)
    sys.exit(any(verdict.outcome != CAUGHT for verdict in verdicts))


def misfits(mutants: Iterable[Mutant]) -> list[Verdict]:
    """Those that do not fit the code, or whose test is gone: the code moved on, and they must follow."""
    found = []
    for mutant in mutants:
        try:
            mutant.check()
        except Misfit as misfit:
            found.append(Verdict(mutant, BROKEN, str(misfit), 0.0))
    return found


def tried(mutants: list[Mutant], jobs: int) -> Iterator[Verdict]:
    """The verdicts, in order; the tests must pass without a mutant, or their failing says nothing."""
    with tempfile.TemporaryDirectory(prefix="shoal-mutants-") as folder:
        pristine = copy_project(Path(folder) / "pristine")
        if any(mutant.is_native for mutant in mutants):
            told = build(pristine)
            if told:
                raise SystemExit(f"the kernel does not build: {told}")
        failing = failing_anyway((test for mutant in mutants for test in mutant.tests), pristine, is_long=False)
        failing_long = failing_anyway((test for mutant in mutants for test in mutant.long), pristine, is_long=True)

        def verdict(number: int, mutant: Mutant) -> Verdict:
            for tests, errors in ((mutant.tests, failing), (mutant.long, failing_long)):
                for test in tests:
                    if test in errors:
                        return Verdict(mutant, BROKEN, f"{test} fails without any mutant: {errors[test]}", 0.0)
            return try_mutant(mutant, pristine, Path(folder) / str(number))

        with ThreadPoolExecutor(jobs) as pool:
            yield from pool.map(verdict, range(len(mutants)), mutants)


def show(verdicts: Iterable[Verdict], seconds: float, *, as_json: bool) -> None:
    """The table, or a line of JSON for each."""
    verdicts = list(verdicts)
    if as_json:
        for one in verdicts:
            told = {"mutant": one.mutant.name, "family": one.mutant.family, "file": str(one.mutant.source)}
            told |= {"breach": one.mutant.breach, "outcome": one.outcome, "by": one.by}
            print(json.dumps(told | {"seconds": round(one.seconds, 1)}))
        return
    table = Table("family", "mutant", title="Mutants of the mathematics of privacy")
    table.add_column("caught by", overflow="fold")
    table.add_column("seconds", justify="right")
    for one in verdicts:
        by = escape(one.by) if one.outcome == CAUGHT else f"[bold red]{one.outcome.upper()}[/]: {escape(one.by)}"
        table.add_row(one.mutant.family, one.mutant.name, by, f"{one.seconds:.1f}")
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(table)
    for one in verdicts:
        if one.outcome != CAUGHT:
            console.print(f"[bold red]{one.outcome}[/]: {one.mutant.name} ({one.mutant.source}): {one.mutant.breach}")
    caught = sum(one.outcome == CAUGHT for one in verdicts)
    console.print(f"{caught} of {len(verdicts)} caught, in {seconds:.0f} seconds")


if __name__ == "__main__":
    typer.run(main)
