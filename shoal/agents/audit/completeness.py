"""Detects an audit log that has lost rows: a missing row must never be read as one that never was.

Without its budget a ledger would forget what is charged; without its releases a file run would find nothing published.
So the tables are compared with one another, and a log that lost rows of one is refused until it is restored. A log that
lost rows of all tables alike looks like an old backup: `FILE.used` beside the key detects that.
"""

from collections.abc import Iterator
from typing import Any

import orjson
from sqlalchemy import Connection, and_, exists, select

from shoal.agents.audit.turns import lost_turns
from shoal.models.errors import LedgerError
from shoal.models.parameters import person_in, topic_in
from shoal.models.tables import (
    WORKERS,
    ActivationRow,
    Budget,
    BudgetChange,
    MetricVersion,
    Owner,
    PartitionCount,
    Person,
    ReleaseRow,
)


def check_whole(connection: Connection) -> None:
    """Hold the tables against each other.

    Raises:
        LedgerError: one of them has lost rows.
    """
    for table, reason in losses(connection):
        raise lost_rows(table, reason)


def lost_rows(table: str, reason: str) -> LedgerError:
    """The error about a table that has lost rows."""
    return LedgerError(
        f"[audit] url: table {table} of the audit log has lost rows: {reason}; restore the log as it was, or start "
        "anew with another log, another key and another [kafka] app"
    )


def losses(connection: Connection) -> Iterator[tuple[str, str]]:
    """Each table that lost rows, and what shows it."""
    budget, changes, versions, owners = (
        connection.execute(select(table).limit(1)).first() is not None
        for table in (Budget.one, BudgetChange.number, MetricVersion.version, Owner.version)
    )
    if not budget and (versions or changes):
        yield "ledger_budget", "metric versions are charged, and to no budget"
    if budget and not changes:
        yield "budget_change", "there is a budget, and no record of how it came"
    if budget and not versions:
        yield "metric_version", "there is a budget, and nothing was ever charged to it"
    yield from _missing_partners(connection)
    if (lost := lost_turns(connection)) is not None:
        yield "turn", lost
    if (topic := _nameless_topic(connection)) is not None:
        yield "person", f"metrics count people of topic {topic}, and no field names a person there"
    for table, column in ((ReleaseRow, Owner.releases), (ActivationRow, Owner.activations)):
        if (row := connection.execute(_without_rows(table, column)).first()) is not None:
            yield (
                str(table.__tablename__),
                f'{row.rows} are due of metric "{row.metric}" version {row.version}, and none is there',
            )


def _missing_partners(connection: Connection) -> Iterator[tuple[str, str]]:
    """Each version has an owner, and the topic of one that workers own has been read."""
    names = ("app", "metric", "version")
    same = and_(*(getattr(MetricVersion, name) == getattr(Owner, name) for name in names))
    named = select(MetricVersion.metric, MetricVersion.version)
    if (row := connection.execute(named.where(~exists().where(same)).limit(1)).first()) is not None:
        yield "owner", f'metric "{row.metric}" version {row.version} has no owner'
    named = select(Owner.metric, Owner.version)
    if (row := connection.execute(named.where(~exists().where(same)).limit(1)).first()) is not None:
        yield "metric_version", f'metric "{row.metric}" version {row.version} has an owner and is not registered'
    read = {tuple(row) for row in connection.execute(select(PartitionCount.app, PartitionCount.topic))}
    owned = select(Owner.app, Owner.metric, Owner.version, MetricVersion.parameters).join(MetricVersion, same)
    for app, metric, version, parameters in connection.execute(owned.where(Owner.kind == WORKERS)):
        if (app, topic_in(orjson.loads(parameters))) not in read:
            yield "partition_count", f'workers own metric "{metric}" version {version}, and no partitions are noted'


def _nameless_topic(connection: Connection) -> str | None:
    """A topic of which a version counts people, and whose user field is not noted; None if there is none."""
    noted = {*connection.scalars(select(Person.topic))}
    for parameters in connection.scalars(select(MetricVersion.parameters)):
        for topic in person_in(orjson.loads(parameters)):
            if topic not in noted:
                return topic
    return None


def _without_rows(table: Any, column: Any) -> Any:
    """Select versions of which a table must have rows, and has none."""
    same = [getattr(table, name) == getattr(Owner, name) for name in ("app", "metric", "version")]
    due = select(Owner.metric, Owner.version, column.label("rows")).where(column > 0)
    return due.where(~exists().where(and_(*same))).limit(1)
