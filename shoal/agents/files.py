"""Files of events: JSON lines or CSV with a header, plain or gzipped, as records in line order.

A CSV row becomes the JSON event that `shoal produce` would send: every cell a text, but the cells of value and time
fields that are written as numbers, which stay those numbers, digit by digit: `.5`, `+5`, `007` and blanks around them
too, for whether a program writes 0.5 as `.5` or pads 5 to the width of 100 depends on the value, and whether a record
is accepted must not. An empty cell is a missing field; a row with more cells than the header is no event.
"""

import csv
import gzip
import io
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

import orjson

from shoal.models.config import Config
from shoal.models.errors import InputError
from shoal.stream.runner import Line

JSON_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
NUMBER = re.compile(r"\s*([+-]?)0*(\d*)(?:\.(\d*))?([eE][+-]?\d+)?\s*", re.ASCII)
MAX_CELL = 1 << 24
CHUNK = 1_000  # events that are read, and hashed, at once


class EventFile:
    """One input: iterate `lines` once; `digest` covers every event read so far."""

    def __init__(self, path: str, config: Config, topic: str) -> None:
        self.path = path
        self._names = _format(path)
        metrics = config.metrics_of(topic)
        self._numeric = {path for metric in metrics for path in (*metric.values, metric.time) if path}
        self._hash = sha256()
        self.count = 0

    @property
    def digest(self) -> str:
        """SHA-256 of the events, one per line, hex."""
        return self._hash.hexdigest()

    def lines(self, on_bytes: Callable[[int], None] = lambda _: None) -> Iterator[Line]:
        """The events as records; blank lines are not events.

        Raises:
            InputError: the file cannot be read.
        """
        try:
            with opened(self.path) as (raw, file):
                events = self._events(file)
                while chunk := list(islice(events, CHUNK)):
                    self._hash.update(b"\n".join(chunk) + b"\n")
                    first, self.count = self.count, self.count + len(chunk)
                    yield from map(Line, range(first, self.count), chunk)
                    on_bytes(raw.tell() if raw.seekable() else 0)
        except (OSError, EOFError, zlib.error) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InputError(f"{self.path}: cannot be read ({reason}); name an existing .jsonl or .csv file") from None

    def _events(self, file: BinaryIO) -> Iterator[bytes]:
        if self._names == "csv":
            yield from self._rows(file)
            return
        for line in file:
            event = line.rstrip(b"\r\n")
            if event.strip():
                yield event

    def _rows(self, file: BinaryIO) -> Iterator[bytes]:
        csv.field_size_limit(MAX_CELL)
        text = io.TextIOWrapper(file, "utf-8-sig", errors="replace", newline="")
        rows = csv.reader(text)
        try:
            header = next(rows, None)
            if header is None:
                return
            if len(set(header)) != len(header):
                raise InputError(f"{self.path}: the header names a column twice; rename one")
            names = [(b"%s:" % orjson.dumps(name), name in self._numeric) for name in header]
            for row in rows:
                if row:
                    yield self._event(names, row)
        except csv.Error as error:
            raise InputError(f"{self.path}: row {rows.line_num} is not CSV ({error}); mend the file") from None
        finally:
            text.detach()  # who opened the file closes it

    def _event(self, names: list[tuple[bytes, bool]], row: list[str]) -> bytes:
        if any(row[len(names) :]):
            return orjson.dumps(row)  # whose cells are shifted, say by a decimal comma: bound refuses a list
        cells = []
        for (name, numeric), cell in zip(names, row, strict=False):
            if cell != "":
                number = json_number(cell) if numeric else None
                cells.append(name + (orjson.dumps(cell) if number is None else number.encode()))
        return b"{%s}" % b",".join(cells)


def json_number(cell: str) -> str | None:
    """The number that a cell is, as JSON writes it; None if it is none.

    >>> [json_number(cell) for cell in ("5", "-.5", "+05.", " 0 ", "1E400", "0.50", ".", "", "5,0", "inf", "--5")]
    ['5', '-0.5', '5', '0', '1E400', '0.50', None, None, None, None, None]
    """
    if JSON_NUMBER.fullmatch(cell):
        return cell
    found = NUMBER.fullmatch(cell)
    if found is None or not any(one in "0123456789" for one in cell.lower().partition("e")[0]):
        return None
    sign, whole, part, exponent = found.groups("")
    return f"{'-' if sign == '-' else ''}{whole or 0}{'.' if part else ''}{part}{exponent}"


def _format(path: str) -> str:
    name = path.removesuffix(".gz")
    if path == "-" or name.endswith((".jsonl", ".ndjson", ".json")):
        return "jsonl"
    if name.endswith(".csv"):
        return "csv"
    raise InputError(f"{path}: unknown kind of file; name a .jsonl or .csv file, or - for JSON lines on standard input")


@contextmanager
def opened(path: str) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """The file underneath, whose position tells progress, and what is in it, unpacked."""
    if path == "-":
        yield sys.stdin.buffer, sys.stdin.buffer
        return
    with Path(path).open("rb") as raw:
        if path.endswith(".gz"):
            with gzip.open(raw) as unpacked:
                yield raw, cast(BinaryIO, unpacked)
        else:
            yield raw, raw


def size_of(path: str) -> int | None:
    """Bytes of the file, for a progress bar."""
    return Path(path).stat().st_size if path != "-" and Path(path).is_file() else None
