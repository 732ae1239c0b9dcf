"""Events in order of time: sorted on disk by SQLite, in bounded memory.

The sort is stable: events of one time stay in the order of the file, and so do those without a readable time, which
come last. The files have no names once they are opened, so that nothing of the events stays on disk, however the run
ends.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from shoal.agents.input.event_file import CHUNK, Advance, EventFile
from shoal.models.config.file import Config
from shoal.models.errors import ConfigError, InputError

CACHE_KIB = 65_536
LAST = 2**62  # later than every time


class SortedFile(EventFile):
    """The events of another file, in order of time: fill it, then iterate `lines`."""

    def __init__(self, file: EventFile, config: Config, topic: str, folder: Path) -> None:
        super().__init__(file.path, config, topic)
        self.source = file.source
        self._file = file
        self._sql = sqlite3.connect(folder / "events.db", isolation_level=None)
        self._sql.execute("PRAGMA journal_mode = OFF")  # it lives no longer than this run
        self._sql.execute("PRAGMA synchronous = OFF")
        self._sql.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        self._sql.execute("PRAGMA temp_store = FILE")
        self._sql.execute("CREATE TABLE event (at INTEGER NOT NULL, number INTEGER NOT NULL, body BLOB NOT NULL)")

    def fill(self, look: Callable[[int, bytes], int | None], on_bytes: Advance) -> None:
        """Take in the events; `look` finds an event's time.

        Raises:
            InputError: the file cannot be read, or the disk is full.
        """
        try:
            self._sql.execute("BEGIN")
            for chunk in self._file.chunks(on_bytes):
                rows = ((look(number, raw), number, raw) for number, raw in chunk)
                self._sql.executemany(
                    "INSERT INTO event VALUES (?, ?, ?)",
                    ((LAST if at is None else at, number, raw) for at, number, raw in rows),
                )
            self._sql.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._refused(error) from None
        self.places, self.fault, self.is_table = self._file.places, self._file.fault, self._file.is_table

    def is_in_lines(self) -> bool:
        """Not as it is sorted."""
        return False

    def chunks(self, on_bytes: Advance = lambda _: None) -> Iterator[list[tuple[int, bytes]]]:
        """The events in order, each with its line in the file."""
        try:
            rows = self._sql.execute("SELECT number, body FROM event ORDER BY at, rowid")
            while chunk := rows.fetchmany(CHUNK):
                yield chunk
        except sqlite3.Error as error:
            raise self._refused(error) from None

    def _refused(self, error: sqlite3.Error) -> InputError:
        return InputError(
            f"{self.path}: cannot be sorted ({type(error).__name__}: {error.args[0]}); make room for twice its size in "
            "the folder for temporary files, or name another one in TMPDIR"
        )

    def close(self) -> None:
        self._sql.close()


@contextmanager
def sorted_file(file: EventFile, config: Config, topic: str) -> Iterator[SortedFile]:
    """A file that can be filled; its place on disk is freed when the context or the process ends.

    Raises:
        ConfigError: the topic's metrics go by the times of several fields.
    """
    fields = sorted({metric.source.time or "" for metric in config.metrics_of(topic)})
    if len(fields) > 1:
        raise ConfigError(
            f"the metrics of topic {topic!r} take their times from {' and '.join(fields)}, and a file has one order: "
            "sort it yourself, or run each metric with a configuration of its own"
        )
    with TemporaryDirectory(prefix="shoal-sort-") as folder:
        events = SortedFile(file, config, topic, Path(folder))
    try:  # SQLite goes on with the deleted file
        yield events
    finally:
        events.close()
