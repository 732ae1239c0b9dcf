r"""Releases as CSV: UTF-8, a header, lines that end with \n, and nothing that a spreadsheet would run.

Names of groups come from events, and whoever sends events may name one `=HYPERLINK(...)`. A spreadsheet runs what
begins with = + - or @, and some what comes behind a tab or a line break. Such a text gets an apostrophe before it, and
so does one that begins with an apostrophe, so that taking one away gives back every text. Columns of numbers hold
numbers alone, which nothing is put before.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from shoal.agents.reading.table import COLUMNS, Row, rows_of
from shoal.models.releases.record import Release
from shoal.models.times import iso_of

DANGEROUS = ("=", "+", "-", "@", "\t", "\r", "\n", "\0", "＝", "＋", "－", "＠", "'")
QUOTED = frozenset(',;\t"\r\n')  # what some programs divide cells at, too: what follows would begin one
AT_ONCE = 1_000  # rows that are written together


def csv_chunks(releases: Iterable[Release], *, guarded: bool = True) -> Iterator[bytes]:
    """The table, some rows at a time, so that it need not fit into memory."""
    lines = [",".join(COLUMNS)]
    for release in releases:
        lines += [csv_line(row, guarded=guarded) for row in rows_of(release)]
        if len(lines) >= AT_ONCE:
            yield _joined(lines)
            lines = []
    if lines:
        yield _joined(lines)


def csv_line(row: Row, *, guarded: bool = True) -> str:
    """One row.

    >>> print(csv_line(("a", 1, "=1+1, 2", None, -2.5)))
    a,1,"'=1+1, 2",,-2.5
    """
    return ",".join([_cell(each, guarded) for each in row])


def guard(text: str) -> str:
    """A text that a spreadsheet shows, whatever it is.

    >>> guard("=1+1"), guard("'=1+1"), guard("north"), unguard(guard("=1+1"))
    ("'=1+1", "''=1+1", 'north', '=1+1')
    """
    return f"'{text}" if text.startswith(DANGEROUS) else text


def unguard(text: str) -> str:
    """The text that `guard` was given."""
    return text.removeprefix("'")


def _cell(each: Any, guarded: bool) -> str:
    if each is None:
        return ""
    if isinstance(each, str):
        text = guard(each) if guarded else each
        return '"' + text.replace('"', '""') + '"' if QUOTED.intersection(text) else text
    return iso_of(each) if isinstance(each, datetime) else repr(each)


def _joined(lines: list[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode()
