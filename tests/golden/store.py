"""The stored answers.

digests.json      of every case and kind: how many entries, and SHA-256 of all of them
parameters.json   of every metric the text whose digest names its noise
summaries.json    of every case the counters of its file run, and the verdict of its replay
bytes/            of some cases all releases and messages, one a line
cli/              what commands print with --json
"""

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from tests.golden.case import Case

FOLDER = Path(__file__).parent


def slug(name: str) -> str:
    """A case's name in names of files and tests."""
    return "-".join(name.replace(",", " ").split())


@cache
def read(name: str) -> Any:
    """A stored JSON file; it is there all the same while this runs."""
    return json.loads((FOLDER / name).read_text("utf-8"))


def write(name: str, value: Any, *, sort: bool = False) -> None:
    """Store a JSON file, one value a line."""
    path = FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1, sort_keys=sort, ensure_ascii=False) + "\n", "utf-8")


def lines_of(case: Case, kind: str) -> Path:
    """The file with all entries of a kind."""
    return FOLDER / "bytes" / slug(case.name) / f"{kind}.jsonl"


def as_lines(entries: Iterable[tuple[bytes | None, ...]]) -> list[str]:
    """Entries as text, their parts after one another; what they hold is text."""
    return [" ".join("-" if part is None else part.decode() for part in entry) for entry in entries]
