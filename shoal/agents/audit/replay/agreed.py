"""Reads from the ledger what the replay of an app needs: partition counts, and the versions to replay.

Fails if there is nothing in Kafka to replay, or if the configuration lacks an active metric.
"""

from collections.abc import Iterator, Mapping

from sqlalchemy import select

from shoal.agents.audit.session import Session, refuse_absent, registration_of
from shoal.models.config.file import Config
from shoal.models.errors import AuditError
from shoal.models.tables import ACTIVE, ENDED, RETIRED, MetricVersion, PartitionCount

Versions = frozenset[tuple[str, int]]


class Agreed:
    """What the ledger says of one configuration."""

    def __init__(self, session: Session) -> None:
        app = session.config.kafka.app
        rows = {(row.metric, row.version): row for row in session.ledger.versions(app)}
        self.counts = _partition_counts(session, app)
        if not self.counts:
            raise AuditError(_nothing_in_kafka(session, has_run=bool(rows)))
        configured = [(metric.name, metric.version) for metric in session.config.metric]
        absent = [name for name, row in rows.items() if row.state == ACTIVE and name not in configured]
        refuse_absent(session, absent)
        self.retired: Versions = frozenset(name for name, row in rows.items() if row.state == RETIRED)
        self.active: Versions = frozenset(name for name in configured if name in rows and rows[name].state == ACTIVE)
        metrics = tuple(metric for metric in session.config.metric if (metric.name, metric.version) in self.active)
        self.config: Config = session.config.model_copy(update={"metric": metrics})  # only what is replayed
        self.left_out = list(_left_out(rows, configured))
        self.differences = list(_differences(session, rows, self.config))


def _partition_counts(session: Session, app: str) -> dict[str, int]:
    """Partition counts as registered; a run over a file registers none."""
    wanted = select(PartitionCount.topic, PartitionCount.partitions).where(PartitionCount.app == app)
    with session.ledger.database.read() as connection:
        return {row.topic: row.partitions for row in connection.execute(wanted)}


def _nothing_in_kafka(session: Session, *, has_run: bool) -> str:
    app = session.config.kafka.app
    if not has_run:
        return f"{session.path}: app {app!r} has released nothing yet; start a worker first"
    return (
        f"{session.path}: app {app!r} has run over files only, and replay needs Kafka, the topics of a worker; to "
        f"repeat a run: shoal run {session.path} --input FILE --output OTHER, which compares every byte with the log"
    )


def _left_out(rows: Mapping[tuple[str, int], MetricVersion], configured: list[tuple[str, int]]) -> Iterator[str]:
    for (metric, version), row in rows.items():
        name = f'metric "{metric}" version {version}'
        if row.state == RETIRED:
            yield f"{name} is retired; its releases are not replayed"
        elif row.state == ENDED:
            yield f"{name} is of a file; repeat it with `shoal run`, which compares every byte"
    for metric, version in configured:
        if (metric, version) not in rows:
            yield f'metric "{metric}" version {version} is not registered yet'


def _differences(
    session: Session, rows: Mapping[tuple[str, int], MetricVersion], config: Config
) -> Iterator[tuple[str, str]]:
    """Kind and message where key or parameters are not the registered ones: no release will be confirmed."""
    for metric in config.metric:
        row = rows[metric.name, metric.version]
        name = f'metric "{metric.name}" version {metric.version}'
        if row.key_fingerprint != session.key.fingerprint:
            yield "key", f"{name} is registered with key {row.key_fingerprint}; this is {session.key.fingerprint}"
        if row.digest != registration_of(session.config, metric).digest:
            yield "parameters", f"{name} is registered with other parameters"
