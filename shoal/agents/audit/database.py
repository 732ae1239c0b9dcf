"""The database of the audit log, SQLite or PostgreSQL: its schema, and transactions that read or write.

Whoever opens a SQLite file to write makes and migrates it; what only reads, or looks, never does. PostgreSQL is
migrated by `shoal migrate` alone. Either way all steps are one transaction behind a lock, so several processes may come
at once.
"""

import os
import secrets
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, func, insert, inspect, make_url, select, text
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import StaticPool

from shoal.agents.audit.completeness import lost_rows
from shoal.migrations import versions
from shoal.models.errors import LedgerError
from shoal.models.extras import require
from shoal.models.tables import Log, MetricVersion, Owner, Table

BUSY_SECONDS = 30  # waiting for another process of this host to commit; its longest transaction takes a few seconds
MIGRATION_LOCK = 0x73686F616C  # "shoal", any number that no one else of the database locks
IN_MEMORY = URL.create("sqlite")  # for who asks what a log would say that is not there yet
NO_RIGHT = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)
PRIMARY = 0xFF  # of an extended error code of SQLite
INSUFFICIENT_PRIVILEGE = "42501"
REVISIONS = "v[0-9][0-9][0-9]_*.py"  # v010_tables.py makes revision 010


class Unavailable(LedgerError):
    """The database does not answer; what was asked for may or may not have happened, and may be asked again."""


class NotMigrated(LedgerError):
    """The schema is that of an older version, and who asks does not migrate it."""


class NoLog(LedgerError):
    """The database has no schema of an audit log."""


class Damaged(NoLog):
    """The file is not a SQLite database, or pages of it are damaged."""


def now() -> str:
    """The wall clock, for people to read: no release and no decision depends on it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Database:
    """An engine and its two kinds of transaction."""

    def __init__(self, url: str | URL, *, patience: float = BUSY_SECONDS) -> None:
        self.url = _read_url(url) if isinstance(url, str) else url
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        make = _sqlite if self.is_sqlite else _postgresql
        self._engine = make(self.url, patience)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that sees one state of the database and writes nothing."""
        with _reachable(self.url), self._engine.connect() as connection:
            if not self.is_sqlite:  # where each statement would see what was committed just before it
                connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that writes: all or nothing. In SQLite it is the only one from its first moment on."""
        with _reachable(self.url), self._engine.connect() as connection:
            with connection.execution_options(shoal_write=True).begin():
                yield connection

    def has_file(self) -> bool:
        """Whether the SQLite file is there, and somebody has written to it."""
        file = Path(str(self.url.database))
        return file.is_file() and file.stat().st_size > 0

    def close(self) -> None:
        self._engine.dispose()


def may_have_log(url: str) -> bool:
    """False where a log would be an SQLite file and there is none: whoever only asks makes no file by asking.

    >>> may_have_log("sqlite:///no-such.db"), may_have_log("postgresql://host/shoal")
    (False, True)
    """
    scheme, _, path = url.partition(":///")
    return scheme != "sqlite" or Path(path.partition("?")[0]).is_file()


def _read_url(url: str) -> URL:
    """Refuse URLs that are not of our databases, and name the driver."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise LedgerError("[audit] url is not a database URL; write sqlite:///FILE or postgresql://HOST/NAME") from None
    backend = parsed.get_backend_name()
    if backend in ("postgresql", "postgres"):
        require("[audit] url: PostgreSQL", "postgres")
        return parsed.set(drivername="postgresql+psycopg")
    if backend != "sqlite":
        raise LedgerError(f"[audit] url: {backend} is not supported; use sqlite:///FILE or postgresql://HOST/NAME")
    if parsed.database in (None, "", ":memory:"):
        raise LedgerError("[audit] url: an audit log must outlive its process; name a file, sqlite:///FILE")
    if not Path(str(parsed.database)).absolute().parent.is_dir():
        raise LedgerError(f"[audit] url: the folder of {parsed.database} does not exist; make it first")
    return parsed


def _sqlite(url: URL, patience: float) -> Engine:
    # One connection is a database in memory; whoever asks for another would find it empty.
    pool: dict[str, Any] = {"poolclass": StaticPool} if url == IN_MEMORY else {"pool_timeout": patience}
    engine = create_engine(url, hide_parameters=True, connect_args={"timeout": 0}, **pool)

    @event.listens_for(engine, "connect")
    def connect(connection: sqlite3.Connection, _record: Any) -> None:
        connection.isolation_level = None  # the driver opens no transactions; `begin` does
        if "immutable" not in url.query:  # a copy that is only read
            _use_wal(connection, patience)
        connection.execute(f"PRAGMA busy_timeout = {int(patience * 1000)}")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")  # a release is in the log before it is shown, power cut or not

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        write = connection.get_execution_options().get("shoal_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    return engine


def _use_wal(connection: sqlite3.Connection, patience: float) -> None:
    """Let readers work beside a writer. SQLite does not always wait its busy timeout for this change of mode; we do."""
    deadline = time.monotonic() + patience
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _postgresql(url: URL, patience: float) -> Engine:
    dead = {"connect_timeout": 10, "tcp_user_timeout": 20_000, "keepalives_idle": 10}  # a dead host is noticed
    return create_engine(url, hide_parameters=True, pool_pre_ping=True, pool_timeout=patience, connect_args=dead)


def refuse_unwritable(url: str) -> None:
    """Refuse a database into which a worker of this user could not write; nothing is written.

    Raises:
        LedgerError: the user may not write it, or the folder of a file that is not there yet.
        Unavailable: it does not answer.
    """
    database = Database(url)
    try:
        if not database.is_sqlite:
            with database.read() as connection:
                _refuse_lacking_rights(connection)
        elif database.has_file():
            with database.write():  # which begins as a writer
                pass
        elif why := _forbidden(database.url):
            raise LedgerError(why)
    finally:
        database.close()


def _refuse_lacking_rights(connection: Connection) -> None:
    """Refuse a role of PostgreSQL that lacks a right which workers need."""
    rights = [(name, right) for name in Table.metadata.tables for right in ("SELECT", "INSERT")]
    rights += [(model.__tablename__, "UPDATE") for model in (Log, MetricVersion, Owner)]
    for name, right in rights:
        if not connection.execute(select(func.has_table_privilege(name, right))).scalar_one():
            raise LedgerError(f"[audit] url: the database user may not {right} {name}, as a worker has to; GRANT it")


def _forbidden(url: URL) -> str | None:
    """Why this user cannot write a SQLite file, which takes its folder, too; None where the system would let it."""
    file = Path(str(url.database)).absolute()
    for path, right in ((file, os.R_OK | os.W_OK), (file.parent, os.R_OK | os.W_OK | os.X_OK)):
        if path.exists() and not os.access(path, right):
            return (
                f"[audit] url: this user may not write {path}, and a SQLite log takes a file and its folder; give it "
                "the right with chown or chmod, or run as its owner"
            )
    return None


@contextmanager
def _reachable(url: URL) -> Iterator[None]:
    """Turn every way in which a database can be away into one error; our own faults stay what they are."""
    try:
        yield
    except PoolTimeoutError as error:
        raise Unavailable("audit log: all connections are busy") from error
    except DBAPIError as error:
        code = getattr(error.orig, "sqlite_errorcode", None)
        if code is not None and code & PRIMARY in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            raise Damaged(
                "[audit] url: the file is no SQLite database, or damaged; run shoal audit restore CONFIG FILE"
            ) from error
        first = (str(error.orig).strip().splitlines() or [type(error.orig).__name__])[0]
        if code is not None and code & PRIMARY in NO_RIGHT and (why := _forbidden(url)):
            raise LedgerError(why) from error
        if getattr(error.orig, "sqlstate", None) == INSUFFICIENT_PRIVILEGE:
            raise LedgerError(f"[audit] url: the database user lacks a right ({first}); GRANT it") from error
        away = isinstance(error, OperationalError | InterfaceError) or error.connection_invalidated
        if not away or code == sqlite3.SQLITE_ERROR:
            raise
        raise Unavailable(f"audit log: the database does not answer ({first})") from error


def bring_to_head(database: Database, *, migrate: bool) -> str:
    """Bring the schema to the one this code knows, if `migrate`, and check that it is; return the log's id."""
    with database.read() as connection:
        found = _revision(connection)
        if found == revisions()[-1]:
            return log_id(connection)
    if not migrate:
        raise _not_migrated(found)
    with database.write() as connection:
        make_schema(connection)
        return log_id(connection)


def make_schema(connection: Connection) -> None:
    """Bring the schema to the one this code knows, in the caller's transaction; a log that is made gets a random id."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": MIGRATION_LOCK})
    current = _revision(connection)  # of now: another process may have been here first
    if current != revisions()[-1]:
        from shoal.agents.audit.migration import upgrade  # a quarter of what a command imports, and seldom needed

        upgrade(connection)
    if current is None:
        connection.execute(insert(Log).values(one=1, id=secrets.token_hex(16), created=now()))


def _not_migrated(found: str | None) -> LedgerError:
    """What only reads changes no schema, not even that of a SQLite file: workers of an older version may write it."""
    remedy = "run `shoal migrate CONFIG`"
    if found is None:
        return NoLog(f"[audit] url: schema not migrated: {remedy}")
    return NotMigrated(
        f"[audit] url: schema not migrated, it is of an older version of shoal ({found}, not {revisions()[-1]}); stop "
        f"workers of that version, then {remedy}"
    )


def log_id(connection: Connection) -> str:
    """The log's random id.

    Raises:
        LedgerError: it is gone.
    """
    id_ = connection.execute(select(Log.id)).scalar_one_or_none()
    if id_ is None:
        raise lost_rows("log", "its id is gone, to which keys and topics are bound")
    return id_


@cache
def revisions() -> tuple[str, ...]:
    """The revisions of the schema that this version knows, oldest first, by the names of their files."""
    return tuple(sorted(file.name[1:4] for file in Path(*versions.__path__).glob(REVISIONS)))


def _revision(connection: Connection) -> str | None:
    """The schema's revision, as alembic keeps it; refused when only newer code knows it."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    current: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
    if current is not None and current < revisions()[0]:
        raise LedgerError(
            f"[audit] url: the schema ({current}) is that of a version before the first release; begin with a new log "
            "and a new key"
        )
    if current is not None and current not in revisions():
        raise LedgerError(f"[audit] url: the schema ({current}) is newer than this shoal; install the newer version")
    return current
