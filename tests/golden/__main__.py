"""`python -m tests.golden`: what differs from the stored answers; status 1 if anything does.

The twin makes them, whatever is installed; with `--lane kernel` the kernel does.

`--write` stores the answers of this version (`make golden`). `--dump FOLDER` writes everything as text, for diff with
another checkout's.
"""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from tests.golden import commands, store
from tests.golden.compare import differences
from tests.golden.configurations import CASES
from tests.golden.corpus import IN_FULL, digest, outcome_of
from tests.golden.driver import TWIN, Lane, parameters


def main(
    write: Annotated[bool, typer.Option("--write", help="Store the answers of this version.")] = False,
    lane: Annotated[Lane, typer.Option(help="Who makes what is compared.")] = TWIN,
    dump: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Write all entries as text.")] = None,
) -> None:
    """Compare, or store."""
    if write:
        _write()
    if dump is not None:
        _dump(dump)
    if not write and dump is None:
        found = list(differences(lane))
        print("\n".join(found) if found else "every byte is as stored")
        sys.exit(bool(found))


def _write() -> None:
    digests: dict[str, dict[str, str]] = {}
    for case in CASES:
        outcome = outcome_of(case)
        digests[case.name] = {kind: digest(entries) for kind, entries in outcome.entries.items()}
        for kind in IN_FULL if case.in_full else ():
            path = store.lines_of(case, kind)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"{line}\n" for line in store.as_lines(outcome.entries[kind])), "utf-8")
    store.write("digests.json", digests, sort=True)
    store.write("parameters.json", {case.name: parameters(case) for case in CASES})
    store.write("summaries.json", {case.name: _summary(outcome_of(case)) for case in CASES})
    for name, answer in commands.answers().items():
        store.write(f"cli/{name}.json", answer)


def _summary(outcome: Any) -> dict[str, Any]:
    return {"counters": outcome.counters, "replay": outcome.verdict}


def _dump(folder: Path) -> None:
    for case in CASES:
        for kind, entries in outcome_of(case).entries.items():
            path = folder / store.slug(case.name) / f"{kind}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"{' '.join(map(repr, entry))}\n" for entry in entries), "utf-8")


if __name__ == "__main__":
    typer.run(main)
