"""Registers metric versions: each is registered once, charged once, and compared from then on."""

from dataclasses import asdict
from fractions import Fraction

from sqlalchemy import Connection, insert, select, update

from shoal.agents.audit import budget, owners
from shoal.agents.audit.completeness import check_whole
from shoal.agents.audit.database import now
from shoal.agents.audit.guards import AMOUNTS, Asked, refuse, replaced
from shoal.agents.audit.requests import Agreement, Registration, Request
from shoal.agents.audit.turns import epochs
from shoal.models.parameters import person_in, topic_in
from shoal.models.tables import ACTIVE, RETIRED, Log, MetricVersion, PartitionCount, Person
from shoal.models.version import VersionId


def examine(connection: Connection, request: Request) -> Agreement:
    """Compare with what is registered; say what is new. Raises `LedgerError` where anything differs."""
    return _agreement(connection, _asked(connection, request))


def register(connection: Connection, request: Request) -> Agreement:
    """Examine, and write what is new, behind a lock that lets one registration into the log at a time."""
    lock(connection)
    asked = _asked(connection, request)
    agreement = _agreement(connection, asked)
    if asked.book is None:
        amounts = (request.budget_epsilon, request.budget_delta)
        budget.write_budget(connection, *amounts, unit=request.unit, relation=request.counts_by)
    for version in agreement.retired:
        set_state(connection, version, RETIRED)
    registered = now()
    for new in agreement.charged:
        # How far workers had read by then depends on load: where presence is protected, it must decide nothing.
        added = topic_in(new.said) in asked.partitions
        connection.execute(insert(MetricVersion).values(**_row(new, request), added=added, registered=registered))
        owners.own(connection, new.id, request.owner, request.run)
    if request.run:
        owners.hand_to(connection, (each.id for each, _ in asked.old), request.run)
    _write_topics(connection, asked)
    return agreement


def _asked(connection: Connection, request: Request) -> Asked:
    check_whole(connection)
    return Asked(
        request=request,
        known={VersionId.of(row): row for row in versions(connection)},
        owners=owners.owners(connection),
        persons=persons(connection),
        partitions=known_partitions(connection, request.app),
        epochs=epochs(connection, request.app),
        book=budget.report(connection),
    )


def _agreement(connection: Connection, asked: Asked) -> Agreement:
    refuse(asked)
    active = sorted(name for name, row in asked.known.items() if name.app == asked.request.app and row.state == ACTIVE)
    retired = replaced(asked, active)
    named = {*(each.id for each in asked.request.registrations), *retired}
    absent = tuple(name for name in active if name not in named and asked.owners[name].by_workers)
    return Agreement(connection.execute(select(Log.id)).scalar_one(), tuple(asked.new), retired, absent)


def _write_topics(connection: Connection, asked: Asked) -> None:
    """Insert partition counts and user fields of topics that the log has not recorded."""
    for topic, partitions in asked.request.partitions.items():
        if topic not in asked.partitions:
            row = {"app": asked.request.app, "topic": topic, "partitions": partitions}
            connection.execute(insert(PartitionCount).values(row))
    named = {topic: field for each in asked.new for topic, field in person_in(each.said).items()}
    for topic in named.keys() - asked.persons.keys():
        connection.execute(insert(Person).values(topic=topic, user_field=named[topic]))


def lock(connection: Connection) -> None:
    """Wait until no one else changes the ledger (SQLite: its write transactions are alone anyway)."""
    connection.execute(select(Log.one).with_for_update())


def set_state(connection: Connection, version: VersionId, state: str, **end: str) -> None:
    """Retire a version, or end it (with `ended_at` and `input_digest`)."""
    app, metric, number = version
    where = (MetricVersion.app == app, MetricVersion.metric == metric, MetricVersion.version == number)
    connection.execute(update(MetricVersion).where(*where).values(state=state, **end))


def versions(connection: Connection) -> list[MetricVersion]:
    """All registered versions, of every app, as rows that belong to no session."""
    order = (MetricVersion.app, MetricVersion.metric, MetricVersion.version)
    rows = connection.execute(select(*MetricVersion.__table__.columns).order_by(*order))
    return [MetricVersion(**row._mapping) for row in rows]


def persons(connection: Connection) -> dict[str, str]:
    """The user field of each topic that names a person in the ledger."""
    return {row.topic: row.user_field for row in connection.execute(select(Person.topic, Person.user_field))}


def known_partitions(connection: Connection, app: str) -> dict[str, int]:
    """Partitions of the topics that an app's workers have read."""
    rows = connection.execute(select(PartitionCount.topic, PartitionCount.partitions).where(PartitionCount.app == app))
    return {row.topic: row.partitions for row in rows}


def _row(registration: Registration, request: Request) -> dict[str, object]:
    return {
        **asdict(registration),
        **{name: Fraction(getattr(registration, name)) for name in AMOUNTS},
        "key_fingerprint": request.key_fingerprint,
        "state": ACTIVE,
    }
