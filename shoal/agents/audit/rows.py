"""Inserts rows of releases straight through the database driver, without building a dictionary for each.

They are in the order of COLUMNS, with text as the columns take it. Whoever calls has locked their versions and compared
them with what is there: a row that is there already breaks the primary key, and the transaction with it.
"""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection

from shoal.models.tables import escape
from shoal.models.version import VersionId

COLUMNS = '"app", "metric", "version", "group", "seq", "id", "at", "body", "previous_hash", "hash"'
INSERT = {
    name: f"INSERT INTO release ({COLUMNS}) VALUES ({', '.join([mark] * 10)})"  # noqa: S608  # our own names
    for name, mark in (("sqlite", "?"), ("postgresql", "%s"))
}


class NewRelease(NamedTuple):
    """A release that lengthens the chain of its group."""

    version: VersionId
    group: str
    seq: int
    id: str
    at: str
    body: str
    previous_hash: bytes
    hash: bytes


def insert_releases(connection: Connection, new: Sequence[NewRelease]) -> None:
    """Write them into the caller's transaction."""
    rows = [(*version, escape(group), seq, escape(name), *rest) for version, group, seq, name, *rest in new]
    connection.exec_driver_sql(INSERT[connection.dialect.name], rows)
