"""Releases written to a file, one after the other, so that they need not fit into memory."""

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import BinaryIO

from shoal.agents.reading.csv_text import csv_chunks
from shoal.agents.reading.releases import check_metrics, check_seen, entries_in
from shoal.agents.reading.selection import Selection
from shoal.agents.reading.source import Source
from shoal.models.extras import require
from shoal.models.releases.record import Release


class Format(StrEnum):
    """What releases are written as."""

    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"


class Export:
    """Writes the wanted releases of a source; `written` counts them."""

    def __init__(self, source: Source, wanted: Selection, say: Callable[[str], None]) -> None:
        self._source, self._wanted, self._say = source, wanted, say
        self._names: set[str] = set()
        self.written = 0

    def write(self, file: BinaryIO, form: Format, *, guarded: bool = True) -> None:
        """Write them.

        Raises:
            ShoalError: the source cannot be read, or a metric is not there.
        """
        check_metrics(self._source, self._wanted)
        writers: dict[Format, Callable[[], None]] = {
            Format.CSV: lambda: file.writelines(csv_chunks(self._releases(), guarded=guarded)),
            Format.JSONL: lambda: file.writelines(raw.rstrip(b"\r\n") + b"\n" for raw, _ in self._entries()),
            Format.PARQUET: lambda: self._write_parquet(file),
        }
        writers[form]()
        if not self.written:
            check_seen(self._source, self._wanted, self._names)

    def _write_parquet(self, file: BinaryIO) -> None:
        from shoal.agents.reading.frames import write_parquet

        write_parquet(self._releases(), file)

    def _releases(self) -> Iterator[Release]:
        return (release for _, release in self._entries())

    def _entries(self) -> Iterator[tuple[bytes, Release]]:
        for raw, record in entries_in(self._source, warn=self._say):
            if isinstance(record, Release):
                self._names.add(record.metric)
                if self._wanted.has(record):
                    self.written += 1
                    yield raw, record


def ready(form: Format) -> None:
    """Refuse a form whose packages are not installed, before anything is read.

    Raises:
        MissingExtra: so it is.
    """
    if form is Format.PARQUET:
        require("--format parquet", "arrow")
