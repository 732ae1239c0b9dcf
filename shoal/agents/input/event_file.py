"""Files of events: JSON lines, a JSON list, a table (CSV) or a transit feed; plain or gzipped, recognised by content.

A row of a table becomes the JSON event that `shoal produce` would send. Every cell becomes a text, except cells of
value and time fields that are written as numbers; these remain the same numbers, digit by digit. `.5`, `+5`, `007` and
blanks around a number are accepted, too: whether a program writes 0.5 as `.5`, or pads 5 to the width of 100, depends
on the value, and whether a record is accepted must not. So a cell of a value or time field may be as long as a row.
An empty cell is a missing field; a row with more cells than the header is no event.
"""

import csv
import gzip
import io
import json
import sys
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from hashlib import sha256
from itertools import chain, starmap
from pathlib import Path
from typing import Any, BinaryIO, cast

import orjson

from shoal.agents.input.content import GZIP, LOOKED_AT, FileForm, delimiter_of, form_of, missing_columns
from shoal.agents.input.json_values import JsonValues
from shoal.agents.input.long_lines import LONGEST, RowTooLong, TableLines, blocks_of, lines_of
from shoal.mechanisms.parts.metric import Metric
from shoal.models.config.file import Config
from shoal.models.errors import InputError
from shoal.models.extras import require
from shoal.models.numerals import json_number
from shoal.stream.file_run import Line, chunked, has_beat, line_of
from shoal.stream.machine import Record

MAX_CELL = 1 << 24  # of other fields than value and time: a quote that is never closed would swallow the file
LONGEST_CELL = 2**31 - 1  # the largest limit that the csv module takes on every platform
AFTER_LAST = "end"  # a line that is added after the last one: it becomes a row of its own, unless a quote is not closed
CHUNK = 1_000  # events that are read and hashed at a time
LINES_NAMES = (".jsonl", ".ndjson", "-")
JSON_NAMES = (".jsonl", ".ndjson", ".json")
FEED_NAMES = (".pb", ".pbf", ".protobuf", ".bin")
TABLE_NAMES = {".csv": ",", ".tsv": "\t"}
Advance = Callable[[int], None]


def ignore(_: int) -> None:
    """Report progress to nobody."""


class EventFile:
    """One input; `digest` covers every event that `lines` has handed out so far."""

    def __init__(
        self, path: str, config: Config | None, topic: str = "", *, content: str | None = None, is_lines: bool = False
    ) -> None:
        """`content` is the path of the bytes, if they are not at `path`.

        config: None if there is none yet; every cell of a table is then a text.
        is_lines: every line is a record, whatever it contains, and the name alone says whether the file is gzipped. So
        the form does not depend on the events, and one record cannot change how the others are read.

        Raises:
            InputError: the name belongs to no known form, or must be that of lines and is not.
        """
        self.path = path
        self.source = content or path
        self._is_lines = is_lines
        if is_lines and not path.lower().removesuffix(".gz").endswith(LINES_NAMES):
            raise InputError(
                f"{path}: with relation add-remove an input has a JSON object in every line, for what one record holds "
                "must not change how others are read; write it as .jsonl (or .jsonl.gz)"
            )
        self._named, self._delimiter = _named(path)
        self._metrics = () if config is None else config.metrics_of(topic)
        self._has_beats = config is not None and config.protects_presence
        self._numeric = {path for metric in self._metrics for path in (*metric.numeric, metric.source.time) if path}
        self._hash = sha256()
        self.count = 0
        self.places = "line"  # what the numbers of `chunks` count: lines or records
        self.form: FileForm | None = None  # known once reading has begun
        self.header: list[str] | None = None  # that of a table; likewise
        self.is_table = False  # likewise
        self.fault: str | None = None  # why no metric can use a row of this table, as its header shows

    @property
    def digest(self) -> str:
        """SHA-256 of the events, one per line, hex."""
        return self._hash.hexdigest()

    def lines(self, on_bytes: Advance = ignore) -> Iterator[Line]:
        """The events as records; blank lines are not events.

        Raises:
            InputError: the file cannot be read.
        """
        for chunk in self.chunks(on_bytes):
            events = [event for _, event in chunk]
            self._hash.update(b"\n".join(events) + b"\n")
            first, self.count = self.count, self.count + len(events)
            if self._has_beats:
                yield from starmap(line_of, enumerate(events, first))
            else:
                yield from map(Line, range(first, self.count), events)

    def chunks(self, on_bytes: Advance = ignore) -> Iterator[list[tuple[int, bytes]]]:
        """The events, each with the line in which it ends, or its number in a list.

        Raises:
            InputError: the file cannot be read.
        """
        with (
            self._readable(),
            opened(self.source, is_gzip=self._is_gzip) as (raw, file),
            closing(self._events(file)) as events,
        ):
            for chunk in chunked(events, CHUNK, lambda event: len(event[1])):
                yield chunk
                on_bytes(raw.tell() if raw.seekable() else 0)

    def is_in_lines(self) -> bool:
        """Whether each event is a line of its own, so that the file can be read in blocks of lines.

        Raises:
            InputError: the file cannot be read.
        """
        with self._readable(), opened(self.source, is_gzip=self._is_gzip) as (_, file):
            self.form = self._form(file)
        return self.form is FileForm.LINES

    def blocks(self, kind: Any, on_bytes: Advance = ignore) -> Iterator[Sequence[Record]]:
        """The events of a file in lines, the same as those of `lines`, in blocks of `kind`, the class of the kernel.

        Raises:
            InputError: the file cannot be read.
        """
        for _, block in self.whole_lines(on_bytes):
            first = self.count
            found, joined, _ = kind.lines(block, first)
            if self._has_beats and has_beat(block):
                found = [line_of(first + number, event) for number, event in enumerate(joined.split(b"\n")[:-1])]
            self._hash.update(joined)
            self.count += len(found)
            yield found

    def whole_lines(self, on_bytes: Advance = ignore) -> Iterator[tuple[int, bytes]]:
        """Blocks of a file in lines, each cut at the end of a line, with the number of its first line.

        Raises:
            InputError: the file cannot be read.
        """
        number = 1
        with self._readable(), opened(self.source, is_gzip=self._is_gzip) as (raw, file):
            for block in blocks_of(file):
                yield number, block
                number += block.count(b"\n")
                on_bytes(raw.tell() if raw.seekable() else 0)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except (OSError, EOFError, zlib.error) as error:
            raise self._unreadable(error) from None

    def check_opens(self) -> None:
        """Refuse a file that cannot be opened, or whose name says gzip and that is not, without reading a record.

        Where presence is protected, nothing more may decide whether anything is charged: a gzipped file begins alike
        whatever its records are, and what comes later may be due to one of them.

        Raises:
            InputError: it is missing, no file, may not be read, or is not gzip.
        """
        try:
            with Path(self.source).open("rb") as file:
                if self._is_gzip and file.read(len(GZIP)) != GZIP:
                    raise gzip.BadGzipFile("not gzip")
        except OSError as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: Exception) -> InputError:
        reason, remedy = unreadable(error, ".jsonl or .jsonl.gz" if self._is_lines else ".jsonl or .csv")
        return InputError(f"{self.path}: cannot be read ({reason}); {remedy}")

    @property
    def _is_gzip(self) -> bool | None:
        return self.path.lower().endswith(".gz") if self._is_lines else None

    def _form(self, file: BinaryIO) -> FileForm:
        if self._is_lines:
            return FileForm.LINES
        head = b"" if self.source == "-" else cast(io.BufferedReader, file).peek(LOOKED_AT)[:LOOKED_AT]
        return form_of(head, self.path, named=self._named)

    def _events(self, file: BinaryIO) -> Generator[tuple[int, bytes]]:
        form = self.form = self._form(file)
        if form is FileForm.TABLE:
            yield from self._rows(file)
        elif form is FileForm.VALUES:
            self.places = "record"
            yield from JsonValues(file, self.path)
        elif form in (FileForm.FEED, FileForm.FEEDS):
            require(f"{self.path}: a GTFS-realtime feed", "geo")
            from shoal.agents.input.feed import Feed  # protobuf: other files should not wait for it

            self.places = "record"
            yield from Feed(file, self.path, with_lengths=form is FileForm.FEEDS)
        else:
            yield from events_in(lines_of(file), 1)

    def _rows(self, file: BinaryIO) -> Iterator[tuple[int, bytes]]:
        self.is_table = True
        csv.field_size_limit(LONGEST_CELL)
        text = io.TextIOWrapper(file, "utf-8-sig", errors="surrogateescape", newline="")
        lines, began = TableLines(text), 1
        used = {path for metric in self._metrics for path in _fields(metric)}
        ended = []

        def after_last() -> Iterator[str]:
            ended.append(True)
            yield AFTER_LAST

        try:
            first = next(lines, "")
            delimiter = delimiter_of(first, used, usual=self._delimiter)
            rows = csv.reader(chain([first], lines, after_last()), delimiter=delimiter)
            header = self.header = [_replaced(name) for name in next(rows, [])]
            if len(set(header)) != len(header):
                places = [place for place, name in enumerate(header, 1) if header.count(name) > 1]
                raise InputError(f"{self.path}: the header names a column twice (columns {places}); rename one")
            faults = [missing_columns(header, _fields(metric)) for metric in self._metrics]
            self.fault = None if None in faults else next(iter(faults), None)
            names = [(b"%s:" % orjson.dumps(name), name in self._numeric, name in used) for name in header]
            began, lines.taken = rows.line_num + 1, 0
            for row in rows:
                if ended and row != [AFTER_LAST]:
                    raise InputError(f"{self.path}: row {began} is not CSV (a quote is not closed); correct the file")
                if row and not ended:
                    yield rows.line_num, self._event(names, row, rows.line_num)
                began, lines.taken = rows.line_num + 1, 0
        except RowTooLong:
            raise InputError(
                f"{self.path}: row {began} has more than {LONGEST:,} characters, maybe since a quote is not closed; "
                "correct the file"
            ) from None
        except csv.Error as error:
            raise InputError(f"{self.path}: row {rows.line_num} is not CSV ({error}); correct the file") from None
        finally:
            text.detach()  # who opened the file closes it

    def _event(self, names: list[tuple[bytes, bool, bool]], row: list[str], number: int) -> bytes:
        if any(row[len(names) :]):
            return orjson.dumps(
                list(map(_replaced, row))
            )  # its cells are shifted, for example by a decimal comma; bound refuses a list
        cells = []
        for (name, numeric, is_used), cell in zip(names, row, strict=False):
            if cell != "":
                if not numeric and len(cell) > MAX_CELL:
                    raise InputError(f"{self.path}: row {number} is not CSV (a quote is not closed); correct the file")
                number_text = json_number(cell) if numeric else None
                cells.append(name + (_json(cell, is_used=is_used) if number_text is None else number_text.encode()))
        return b"{%s}" % b",".join(cells)


def events_in(file: Iterable[bytes], first: int) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, each with its number, which is `first` for the first line."""
    for number, line in enumerate(file, first):
        event = line.rstrip(b"\r\n")
        if event.strip():
            yield number, event


def _json(cell: str, *, is_used: bool) -> bytes:
    """A cell as a JSON text.

    If it is no UTF-8 and a metric uses it, it stays as it is, and bound refuses the record, as it does in JSON lines:
    replacing the wrong bytes could make one user of two.
    """
    try:
        return orjson.dumps(cell)
    except orjson.JSONEncodeError:
        if is_used:
            return json.dumps(cell, ensure_ascii=False).encode("utf-8", "surrogateescape")
        return orjson.dumps(_replaced(cell))


def _replaced(text: str) -> str:
    """The text with what is no UTF-8 replaced; only for what no metric uses."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _fields(metric: Metric) -> set[str]:
    """The fields without which a metric can use no event."""
    return {*metric.protected, *metric.pattern.values()}


def _named(path: str) -> tuple[FileForm | None, str]:
    """The form that a file's name tells, and the delimiter of a table's cells."""
    name = path.lower().removesuffix(".gz")
    if path == "-":
        return None, ","
    if name.endswith(JSON_NAMES):
        return FileForm.LINES, ","
    if name.endswith(FEED_NAMES):
        return FileForm.FEED, ","
    for ending, delimiter in TABLE_NAMES.items():
        if name.endswith(ending):
            return FileForm.TABLE, delimiter
    raise InputError(
        f"{path}: unknown kind of file; name a .jsonl, .json, .csv, .tsv or .pb file (any .gz), or - for standard input"
    )


def unreadable(error: Exception, names: str = ".jsonl or .csv") -> tuple[str, str]:
    """Why a file cannot be read, and what to do; never a byte of it."""
    if isinstance(error, EOFError):
        return "its gzip data is cut off", "copy or make it again"
    if isinstance(error, gzip.BadGzipFile | zlib.error):
        return "its name or its first bytes say gzip, and its data is not gzip", "copy or make it again"
    return getattr(error, "strerror", None) or type(error).__name__, f"name an existing {names} file"


@contextmanager
def opened(path: str, *, is_gzip: bool | None = None) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """The file itself, whose position shows the progress, and its content, unpacked if its first bytes say gzip.

    is_gzip: whether to unpack it, whatever its first bytes are.
    """
    if path == "-":
        yield sys.stdin.buffer, sys.stdin.buffer
        return
    with Path(path).open("rb") as raw:
        if raw.seekable():
            raw.seek(0)  # on macOS a file that is opened as /dev/fd/N goes on where N is
        head = raw.peek(len(GZIP))[: len(GZIP)]
        if head == GZIP if is_gzip is None else is_gzip:
            with gzip.open(raw) as unpacked:
                yield raw, cast(BinaryIO, unpacked)
        elif is_gzip is None and head and path.lower().endswith(".gz"):
            raise gzip.BadGzipFile("not gzip")
        else:
            yield raw, raw


def size_of(path: str) -> int | None:
    """Bytes of the file, for a progress bar."""
    return Path(path).stat().st_size if path != "-" and Path(path).is_file() else None
