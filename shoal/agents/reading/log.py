"""Releases in the audit log, a thousand at a time; nothing is written, made or migrated."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import orjson
from sqlalchemy import Connection, select

from shoal.agents.audit.database import Database, bring_to_head
from shoal.agents.reading.source import Found
from shoal.models.errors import LedgerError
from shoal.models.parameters import length_in
from shoal.models.tables import ActivationRow, MetricVersion, ReleaseRow
from shoal.models.version import VersionId

AT_ONCE = 1_000  # rows that are fetched together


class AuditLog:
    """The releases of one app."""

    def __init__(self, url: str, app: str | None) -> None:
        """Look which apps there are.

        Raises:
            LedgerError: there is no log, it does not answer, its schema is another, or the app is not in it.
        """
        self._url = url
        self.lengths: dict[VersionId, int] = {}
        with _opened(url) as database, database.read() as connection:
            self.app = _chosen(connection, app)
            versions = select(MetricVersion.metric, MetricVersion.version, MetricVersion.parameters)
            for metric, version, parameters in connection.execute(versions.where(MetricVersion.app == self.app)):
                if (length := length_in(orjson.loads(parameters))) is not None:
                    self.lengths[VersionId(self.app, metric, version)] = length

    def records(self) -> Iterator[Found]:
        """All releases: by metric, version and group, each in order."""
        keys = (ReleaseRow.metric, ReleaseRow.version, ReleaseRow.group, ReleaseRow.seq)
        wanted = select(*keys, ReleaseRow.body).where(ReleaseRow.app == self.app).order_by(*keys)
        with _opened(self._url) as database, database.read() as connection:
            for row in connection.execution_options(yield_per=AT_ONCE).execute(wanted):
                yield f"{row.metric} version {row.version} group {row.group!r} release {row.seq}", row.body.encode()

    def activations(self) -> Iterator[Found]:
        """All activations: by metric, version and group."""
        keys = (ActivationRow.metric, ActivationRow.version, ActivationRow.group, ActivationRow.level)
        wanted = select(*keys, ActivationRow.body).where(ActivationRow.app == self.app).order_by(*keys)
        with _opened(self._url) as database, database.read() as connection:
            for row in connection.execution_options(yield_per=AT_ONCE).execute(wanted):
                yield f"{row.metric} version {row.version} group {row.group!r} activation", row.body.encode()


@contextmanager
def _opened(url: str) -> Iterator[Database]:
    """The database, if there is a log in it."""
    with closing(Database(url)) as database:
        file = database.url.database
        if database.is_sqlite and not Path(str(file)).is_file():
            raise LedgerError(
                f"[audit] url: {file} does not exist; name an audit log that workers or `shoal run` wrote"
            )
        bring_to_head(database, migrate=False)
        yield database


def _chosen(connection: Connection, app: str | None) -> str:
    apps = sorted(connection.execute(select(MetricVersion.app).distinct()).scalars())
    if app is None and len(apps) == 1:
        return apps[0]
    named = ", ".join(apps)
    if not apps:
        raise LedgerError("audit log: no metric is registered in it, so that there is no release; start a worker first")
    if app is None:
        raise LedgerError(f"audit log: it has several apps; name one of: {named}")
    if app not in apps:
        raise LedgerError(f"audit log: it has no app {app!r}; name one of: {named}")
    return app
