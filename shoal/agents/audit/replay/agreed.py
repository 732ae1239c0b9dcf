"""Reads from the ledger what the replay of an app needs: partition counts, and the versions to replay.

Fails if there is nothing in Kafka to replay, or if the configuration lacks an active metric.
"""

from collections.abc import Collection, Iterator, Mapping

from shoal.agents.audit.session import Session, refuse_absent, registration_of
from shoal.models.config.file import Config
from shoal.models.errors import AuditError
from shoal.models.tables import ACTIVE, RETIRED, MetricVersion
from shoal.models.version import VersionId


class Agreed:
    """What the ledger says of one configuration."""

    def __init__(self, session: Session) -> None:
        ledger, config = session.app_ledger, session.config
        rows = {VersionId.of(row): row for row in ledger.versions()}
        states = ledger.states_of_workers()
        self.counts = ledger.partitions()
        if not self.counts:
            raise AuditError(_nothing_in_kafka(session, has_run=bool(rows)))
        configured = [config.id_of(metric) for metric in config.metrics]
        refuse_absent(session, [name for name, state in states.items() if state == ACTIVE and name not in configured])
        self.retired = frozenset(name for name, state in states.items() if state == RETIRED)
        self.active = frozenset(name for name in configured if states.get(name) == ACTIVE)
        metrics = tuple(section for section in config.metric if config.id_of(section.parts) in self.active)
        self.config: Config = config.model_copy(update={"metric": metrics})  # only what is replayed
        self.left_out = list(_left_out(rows, states, configured))
        self.differences = list(_differences(session, rows, self.config))


def _nothing_in_kafka(session: Session, *, has_run: bool) -> str:
    app = session.config.kafka.app
    if not has_run:
        return f"{session.path}: app {app!r} has released nothing yet; start a worker first"
    return (
        f"{session.path}: app {app!r} has run over files only, and replay needs Kafka, the topics of a worker; to "
        f"repeat a run: shoal run {session.path} --input FILE --output OTHER, which compares every byte with the log"
    )


def _left_out(
    rows: Collection[VersionId], states: Mapping[VersionId, str], configured: Collection[VersionId]
) -> Iterator[str]:
    for version in rows:
        if version not in states:
            yield f"{version} belongs to file runs; repeat it with `shoal run`, which compares every byte"
        elif states[version] == RETIRED:
            yield f"{version} is retired; its releases are not replayed"
    for version in configured:
        if version not in rows:
            yield f"{version} is not registered yet"


def _differences(
    session: Session, rows: Mapping[VersionId, MetricVersion], config: Config
) -> Iterator[tuple[str, str]]:
    """Kind and message where key or parameters are not the registered ones: no release will be confirmed."""
    for section in config.metric:
        name = config.id_of(section.parts)
        row = rows[name]
        if row.key_fingerprint != session.key.fingerprint:
            yield "key", f"{name} is registered with key {row.key_fingerprint}; this is {session.key.fingerprint}"
        if row.digest != registration_of(session.config, section).digest:
            yield "parameters", f"{name} is registered with other parameters"
