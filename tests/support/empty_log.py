"""The schema of an empty audit log in SQLite: made once by the migrations, then copied.

Alembic reads and takes six steps for each log, which costs more than most tests of commands. Logs that have a schema,
PostgreSQL and other processes are migrated as always.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Connection

from shoal.agents.audit import migration

_made: list[str] = []  # statements that make the schema


@contextmanager
def copied() -> Iterator[None]:
    """Copy the schema into each empty log that is opened within the block."""
    upgrade = migration.upgrade

    def upgrade_or_copy(connection: Connection, revision: str = "head") -> None:
        driver = connection.connection.dbapi_connection
        if revision != "head" or not isinstance(driver, sqlite3.Connection) or _tables(driver):
            upgrade(connection, revision)
        elif _made:
            for statement in _made:
                driver.execute(statement)
        else:
            upgrade(connection)
            _made.extend(statement for statement in driver.iterdump() if not statement.startswith(("BEGIN", "COMMIT")))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migration, "upgrade", upgrade_or_copy)
        yield


def _tables(driver: sqlite3.Connection) -> int:
    return int(driver.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
