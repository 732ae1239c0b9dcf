"""Restores the audit log from a copy: all rows of all tables at once, in one transaction of the database.

A SQLite file is changed by SQLite alone, so its -wal is never that of another file. Only a file that SQLite refuses is
set aside, with its -wal, under a name that ends with `.damaged`.
"""

from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import count
from pathlib import Path

from sqlalchemy import Connection, func, select, text
from sqlalchemy.exc import SQLAlchemyError

from shoal.agents.audit.copies.copy import replace_rows
from shoal.agents.audit.database import BUSY_SECONDS, Damaged, Database, NoLog, Unavailable, make_schema
from shoal.agents.audit.ledger import Ledger
from shoal.agents.audit.owners import owners
from shoal.mechanisms.words import many
from shoal.models.errors import LedgerError
from shoal.models.tables import ActivationRow, BudgetChange, MetricVersion, Person, ReleaseRow, Table, Turn
from shoal.models.version import VersionId

NOUNS: dict[type[Table], str] = {
    ActivationRow: "activation", MetricVersion: "metric version state", BudgetChange: "budget change",
    Person: "user field of a topic", Turn: "operator decision",
}  # fmt: skip


def lacking(copy: Ledger, url: str) -> list[str]:
    """Rows of the present audit log that a copy of it lacks, as phrases for the operator; none without a present log.

    Raises:
        Unavailable: the database does not answer.
    """
    try:
        with Ledger.look(url) as present:
            if not present.is_there:
                return []
            if present.log_id != copy.log_id:
                return [f"every row: the present log is {present.log_id}, and the copy is of log {copy.log_id}"]
            with present.database.read() as old, copy.database.read() as new:
                return [*_releases(old, new), *_rows(old, new)]
    except Unavailable:
        raise
    except (LedgerError, SQLAlchemyError, ValueError) as error:
        unread = isinstance(error, Damaged) or not isinstance(error, NoLog)
        reason = str(error).removeprefix("[audit] url: ").partition(";")[0]
        return [f"an unknown number of rows: the present log cannot be read ({reason})"] if unread else []


def _releases(old: Connection, new: Connection) -> Iterator[str]:
    """Releases that only the first log has, counted by owner: those of workers are in their topic, too."""
    held, by_kind = owners(old), {"workers": 0, "file runs": 0}
    columns = (ReleaseRow.app, ReleaseRow.metric, ReleaseRow.version, ReleaseRow.group)
    wanted = select(*columns, func.count().label("releases")).group_by(*columns)
    kept = {row[:-1]: row.releases for row in new.execute(wanted)}
    for row in old.execute(wanted):
        owner = held.get(VersionId.of(row))
        kind = "workers" if owner is not None and owner.by_workers else "file runs"
        by_kind[kind] += max(0, row.releases - kept.get(row[:-1], 0))
    yield from (f"{many(number, 'release')} of {kind}" for kind, number in by_kind.items() if number)


def _rows(old: Connection, new: Connection) -> Iterator[str]:
    """Rows of the other tables that only the first log has, or has with another state."""
    for table, noun in NOUNS.items():
        wanted = select(*table.__table__.columns)
        gone = {*map(tuple, old.execute(wanted))} - {*map(tuple, new.execute(wanted))}
        if gone:
            yield many(len(gone), noun)


def apps_of_workers(copy: Ledger, url: str) -> set[str]:
    """Apps whose workers publish into the copied log, or into the present one as far as it can be read."""
    apps = _apps(copy)
    with suppress(LedgerError, SQLAlchemyError, ValueError), Ledger.look(url) as present:
        apps |= _apps(present) if present.is_there else set()
    return apps


def _apps(log: Ledger) -> set[str]:
    with log.database.read() as connection:
        return {version.app for version, one in owners(connection).items() if one.by_workers}


def restore(copy: Ledger, url: str) -> Path | None:
    """Replace all rows of the log, or make it; a damaged SQLite file is set aside under the name that is returned."""
    aside = None
    with closing(Database(url)) as database:
        if database.is_sqlite and _is_damaged(database):
            aside = _set_aside(str(database.url.database))
    with closing(Database(url)) as database:
        _replace(copy, database)
    return aside


def _is_damaged(database: Database) -> bool:
    """Whether SQLite refuses the file, or finds pages in it that contradict one another."""
    try:
        with database.write() as connection:
            return str(connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one()) != "ok"
    except Damaged:
        return True


def _replace(copy: Ledger, database: Database) -> None:
    with copy.database.read() as source, database.write() as target:
        if not database.is_sqlite:
            target.execute(text(f"SET LOCAL lock_timeout = '{BUSY_SECONDS}s'"))
        make_schema(target)
        if not database.is_sqlite:  # whoever writes meanwhile waits, and meets the restored log
            names = map(target.dialect.identifier_preparer.format_table, Table.metadata.sorted_tables)
            target.execute(text(f"LOCK TABLE {', '.join(names)} IN EXCLUSIVE MODE"))
        replace_rows(source, target)


def _set_aside(file: str) -> Path:
    """Rename a SQLite file with its -wal; the new name."""
    names = (f"{file}.damaged{number or ''}" for number in count())
    aside = next(name for name in names if not Path(name).exists())
    for side in ("-shm", "-wal", ""):
        if Path(file + side).exists():
            Path(file + side).rename(aside + side)
    return Path(aside)
