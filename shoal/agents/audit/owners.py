"""Who alone may add to a metric version's stream: file runs, or the workers of the app.

The owner is fixed when the version is registered, for the version's life. Of file runs, the last one that registered
may add; an older one may only repeat what is published. An owner is a row without a time: it needs no renewal, so a
database that is away stops no owner. The row is read in the SQL transaction that writes, behind the lock of the version
under which it changes. It also counts the rows that the log must have, so that lost rows are not taken for releases
that never were.

`continuation.py` keeps a file run that owns a version to one stream, `shoal/stream/guard.py` workers.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, Update, insert, select, tuple_, update

from shoal.models.tables import WORKERS, MetricVersion, Owner
from shoal.models.version import VersionId

NOBODY = "nobody owns it"
NEWER_RUN = "another `shoal run` has taken it over since; wait for that one to end, or start this one again"


@dataclass(frozen=True)
class Ownership:
    """The owner of a version, as the ledger has it."""

    kind: str
    run: str
    releases: int
    activations: int

    @property
    def by_workers(self) -> bool:
        return self.kind == WORKERS


def owners(connection: Connection, app: str | None = None) -> dict[VersionId, Ownership]:
    """The owners of all versions of an app, or of every app."""
    wanted = select(*Owner.__table__.columns)
    rows = connection.execute(wanted if app is None else wanted.where(Owner.app == app))
    return {VersionId.of(row): Ownership(row.kind, row.run, row.releases, row.activations) for row in rows}


def of_others(connection: Connection, app: str, wanted: Iterable[VersionId], run: str) -> dict[VersionId, str]:
    """Reason why a file run may not add, by version; versions that it owns are left out."""
    known = owners(connection, app)
    return {
        version: NEWER_RUN if version in known else NOBODY
        for version in wanted
        if version not in known or known[version].run != run
    }


def lock_versions(connection: Connection, wanted: Iterable[VersionId]) -> dict[VersionId, str]:
    """Lock these versions until the transaction ends, and return their states; unregistered ones are left out."""
    columns = (MetricVersion.app, MetricVersion.metric, MetricVersion.version)
    chosen = select(*columns, MetricVersion.state).where(tuple_(*columns).in_(set(wanted))).order_by(*columns)
    return {VersionId.of(row): row.state for row in connection.execute(chosen.with_for_update(key_share=True))}


def own(connection: Connection, version: VersionId, kind: str, run: str) -> None:
    """Insert the owner of a new version; `run` is the id of the file run, '' for workers."""
    key = {"app": version.app, "metric": version.metric, "version": version.version}
    connection.execute(insert(Owner).values(**key, kind=kind, run=run, releases=0, activations=0))


def hand_to(connection: Connection, versions: Iterable[VersionId], run: str) -> None:
    """Make a file run the only one that may add to these versions of file runs."""
    versions = list(versions)
    lock_versions(connection, versions)
    for version in versions:
        connection.execute(_change(version).values(run=run))


def count(connection: Connection, *, releases: Iterable[VersionId] = (), activations: Iterable[VersionId] = ()) -> None:
    """Add the rows just written to the counters of their versions."""
    for version, rows in sorted(Counter(releases).items()):
        connection.execute(_change(version).values(releases=Owner.releases + rows))
    for version, rows in sorted(Counter(activations).items()):
        connection.execute(_change(version).values(activations=Owner.activations + rows))


def _change(version: VersionId) -> Update:
    app, metric, number = version
    return update(Owner).where(Owner.app == app, Owner.metric == metric, Owner.version == number)
