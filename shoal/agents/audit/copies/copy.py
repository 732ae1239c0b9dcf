"""Writes a copy of the audit log, opens one, and checks one.

A copy of either database is a SQLite file with the schema and all rows of the log: it needs no program of a database,
every check of a log reads it, and it can be restored into either database. It is written beside its place, checked
there, and renamed when it is in order, so a file of that name is never half a copy.
"""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from sqlalchemy import URL, Connection, delete, func, insert, select, text
from sqlalchemy.exc import SQLAlchemyError

from shoal.agents.audit.database import Damaged, NoLog, NotMigrated, Unavailable
from shoal.agents.audit.key_file import sync_folder
from shoal.agents.audit.ledger import Ledger
from shoal.agents.audit.verify import BATCH, Finding, verify
from shoal.mechanisms.words import many
from shoal.models.errors import AuditError, InputError, LedgerError
from shoal.models.tables import Table


def write_copy(log: Ledger, file: Path) -> int:
    """Write all rows of the log, as of one moment, into a new file of mode 0600; return its number of releases.

    Raises:
        InputError: the file is there already, or cannot be written.
        AuditError: the copy is not in order; no file is left.
    """
    try:
        if os.path.lexists(file):
            raise FileExistsError
        with TemporaryDirectory(prefix=f".{file.name}.", suffix=".part", dir=file.parent) as folder:
            part = Path(folder) / "copy.db"
            _fill(part, log)
            part.chmod(0o600)
            with open_copy(part, file) as copy:
                releases = refuse_faulty(copy, file, "no copy is made; run shoal audit verify CONFIG")
            with part.open("rb") as whole:
                os.fsync(whole.fileno())
            os.close(os.open(file, os.O_CREAT | os.O_EXCL, 0o600))  # a rename alone would replace a file
            part.replace(file)
        sync_folder(file.parent)
    except Unavailable as error:
        if _is_full(error):
            raise InputError(f"{file}: cannot be written (no room); make room, or choose another place") from None
        raise
    except FileExistsError:
        raise InputError(f"{file}: exists, and a copy is never overwritten; choose another name") from None
    except OSError as error:
        raise InputError(f"{file}: cannot be written ({error.strerror}); choose another place") from None
    return releases


def _is_full(error: Unavailable) -> bool:
    """Whether the disk of what is written is full; a log that is read needs no room."""
    code = getattr(getattr(error.__cause__, "orig", None), "sqlite_errorcode", None)
    return code == sqlite3.SQLITE_FULL


def _fill(part: Path, log: Ledger) -> None:
    with Ledger.open(URL.create("sqlite", database=str(part))) as copy:
        with log.database.read() as source, copy.database.write() as target:
            replace_rows(source, target)
    with closing(sqlite3.connect(part)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")  # one file, without -wal and -shm


def replace_rows(source: Connection, target: Connection) -> None:
    """Replace the rows of all tables by those of another log, in the caller's transactions."""
    tables = Table.metadata.sorted_tables
    for table in reversed(tables):
        target.execute(delete(table))
    for table in tables:
        for rows in source.execute(select(table).execution_options(yield_per=BATCH)).partitions():
            target.execute(insert(table), [dict(row._mapping) for row in rows])
        number = table.autoincrement_column
        if number is not None and target.dialect.name == "postgresql":  # where its sequence is at the old rows
            sequence = func.pg_get_serial_sequence(table.name, number.name)
            target.execute(select(func.setval(sequence, func.coalesce(func.max(number), 0) + 1, text("false"))))


@contextmanager
def open_copy(file: Path, name: Path | None = None) -> Iterator[Ledger]:
    """A copy, opened without writing to it or beside it; `name` is what messages call the file.

    A copy of an older version of shoal is migrated in a temporary folder.

    Raises:
        InputError: the file cannot be read, or migrated, or is a database in use.
        LedgerError: it is not a copy, is damaged, or is of a newer version.
    """
    _refuse_unreadable(file)
    with ExitStack() as stack:
        with naming(name or file):
            ledger = stack.enter_context(_opened(file, stack))
        yield ledger


def _opened(file: Path, stack: ExitStack) -> Ledger:
    parts = {"uri": "true", "mode": "ro", "immutable": "1"}
    try:
        return Ledger.open(
            URL.create("sqlite", database=f"file:{quote(str(file.absolute()))}", query=parts), migrate=False
        )
    except NotMigrated:
        older = shutil.copyfile(file, Path(stack.enter_context(TemporaryDirectory())) / "copy.db")
        return Ledger.open(URL.create("sqlite", database=str(older)))


def _refuse_unreadable(file: Path) -> None:
    try:
        file.open("rb").close()
    except OSError as error:
        raise InputError(
            f"{file}: cannot be read ({error.strerror}); name a copy that shoal audit backup made"
        ) from None
    side = Path(f"{file}-wal")
    if side.exists() and side.stat().st_size:
        raise InputError(
            f"{file}: is a database in use, for {side} has rows of it; name a copy that shoal audit backup made"
        )


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """Add the file's name to errors of the block, and report unreadable content as a damaged copy."""
    try:
        yield
    except Unavailable as error:
        raise InputError(f"{file}: cannot be read or migrated ({error}); make room, or set TMPDIR") from None
    except (NoLog, SQLAlchemyError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError):
        raise LedgerError(f"{file}: is not a copy of an audit log, or is damaged; use another copy") from None
    except LedgerError as error:
        raise LedgerError(f"{file}: {str(error).removeprefix('[audit] url: ')}") from None
    except OSError as error:  # of the folder for temporary files
        raise InputError(f"{file}: cannot be migrated ({error.strerror}); make room, or set TMPDIR") from None


def faults(copy: Ledger, file: Path) -> list[Finding]:
    """Findings about a copy in itself.

    Raises:
        LedgerError: the file is damaged.
    """
    with naming(file):
        with copy.database.read() as connection:
            if connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one() != "ok":
                raise Damaged("its pages contradict one another")
        return verify(copy)


def refuse_faulty(copy: Ledger, file: Path, remedy: str) -> int:
    """The number of releases in a copy that is in order.

    Raises:
        AuditError: it is not; the message has the first finding.
        LedgerError: it is damaged.
    """
    if found := faults(copy, file):
        more = f" (and {many(len(found) - 1, 'finding')} more)" if len(found) > 1 else ""
        raise AuditError(f"{file}: is not in order: {found[0].where}: {found[0].message}{more}; {remedy}")
    return copy.count_releases()
