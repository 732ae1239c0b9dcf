"""One app's part of an audit log: its versions, what they published, and decisions about its topics.

Every method is one SQL transaction, and idempotent, as those of `Ledger`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection

from shoal.agents.audit import log, owners, registration, turns
from shoal.agents.audit.completeness import check_whole, lost_rows
from shoal.agents.audit.database import Database, now
from shoal.agents.audit.log import Appended, Group, Head, NotOwner
from shoal.agents.audit.owners import Ownership
from shoal.models.errors import LedgerError
from shoal.models.losses import AcceptedLoss, Place
from shoal.models.tables import ENDED, RETIRED, MetricVersion
from shoal.models.version import VersionId


@dataclass(frozen=True)
class End:
    """The end of a file: its last tick closed `at`, and no other input may follow under this version."""

    version: VersionId
    at: str
    input_digest: str


@dataclass(frozen=True)
class Standing:
    """The releases and activations that an app has published, and their owners, at one moment."""

    heads: dict[Group, Head]
    owners: dict[VersionId, Ownership]
    activated: set[tuple[Group, int]]  # group and level


@dataclass(frozen=True)
class AppLedger:
    """Versions, releases, activations and turns of one app in an audit log."""

    database: Database
    app: str
    run: str  # id of the file run that this process would be

    def versions(self) -> list[MetricVersion]:
        """The registered versions, as detached rows."""
        with self.database.read() as connection:
            return [row for row in registration.versions(connection) if row.app == self.app]

    def states_of_workers(self) -> dict[VersionId, str]:
        """The state of each version that workers own."""
        with self.database.read() as connection:
            held = owners.owners(connection, self.app)
            rows = {VersionId.of(row): row.state for row in registration.versions(connection)}
        return {version: rows[version] for version, owner in held.items() if owner.by_workers}

    def standing(self) -> Standing:
        """Heads of groups, owners and activations of the app in one read; to be called after registering.

        Raises:
            LedgerError: the log has lost releases or activations.
        """
        with self.database.read() as connection:
            ownerships = owners.owners(connection, self.app)
            heads = log.heads(connection, self.app)
            activated = log.activated(connection, self.app)
        released = Counter[VersionId]()
        for group, head in heads.items():
            released[group.version] += head.seq
        counted = Counter(group.version for group, _ in activated)
        for version, owner in sorted(ownerships.items()):
            for table, due, there in (
                ("release", owner.releases, released[version]),
                ("activation", owner.activations, counted[version]),
            ):
                if there < due:
                    raise lost_rows(table, f"{due} are due of {version}, and {there} are there")
        return Standing(heads, ownerships, activated)

    def published_by_workers(self) -> int:
        """Number of releases in the log of versions that workers own."""
        with self.database.read() as connection:
            return sum(one.releases for one in owners.owners(connection, self.app).values() if one.by_workers)

    def epochs(self) -> dict[str, int]:
        """Number of clock restarts, by topic."""
        with self.database.read() as connection:
            return turns.epochs(connection, self.app)

    def restart_clock(self, topic: str, who: str) -> int:
        """Record a clock restart of a topic, and return the epoch of versions to come."""
        with self.database.write() as connection:
            registration.lock(connection)
            check_whole(connection)
            return turns.restart_clock(connection, self.app, topic, who, now())

    def losses(self) -> list[AcceptedLoss]:
        """The losses of sources that were accepted, in order."""
        with self.database.read() as connection:
            return turns.losses(connection, self.app)

    def accept_loss(self, topic: str, places: Mapping[int, Place], who: str) -> list[AcceptedLoss]:
        """Accept losses of a source, by partition."""
        with self.database.write() as connection:
            registration.lock(connection)
            check_whole(connection)
            return turns.accept_loss(connection, self.app, topic, places, who, now())

    def partitions(self) -> dict[str, int]:
        """Partitions of the topics that workers have read; empty after file runs alone."""
        with self.database.read() as connection:
            return registration.known_partitions(connection, self.app)

    def append(
        self,
        rows: Iterable[bytes],
        *,
        activations: Iterable[bytes] = (),
        ends: Iterable[End] = (),
        run: str | None = None,
    ) -> Appended:
        """Write releases, and what belongs to them, in one transaction; repeats are compared and skipped.

        A file run gives its id: it may add to what it owns alone. What workers publish is in Kafka already, and comes
        without one.

        Raises:
            NotOwner: this is new, and of a version that another file run owns by now.
            Equivocation: an id has two values; nothing of its group is written, everything else is.
            MissingSeq: a release came too early; `.waiting` holds the rows to append again, all others are written.
            StreamEnded: the version's stream ended and this is a new release of it.
        """
        with self.database.write() as connection:
            done = log.append_releases(connection, self.app, rows, run)
            others = log.append_activations(connection, self.app, activations, run)
            done.faults += others.faults
            for end in ends if not done.faults else ():
                _end(connection, end, run)
        done.raise_faults()
        return done

    def append_activations(self, rows: Iterable[bytes]) -> Appended:
        """Write activations; repeats are compared and skipped, two values for one are an `Equivocation`."""
        with self.database.write() as connection:
            done = log.append_activations(connection, self.app, rows)
        done.raise_faults()
        return done

    def heads(self) -> dict[Group, Head]:
        """The last release of every group: its seq and chain digest."""
        with self.database.read() as connection:
            return log.heads(connection, self.app)

    def activation(self, group: Group, level: int) -> bytes | None:
        """Body of an activation in the log; None if the log lacks it."""
        with self.database.read() as connection:
            stored = log.activation(connection, group, level)
        return None if stored is None else stored.encode()

    def release(self, group: Group, seq: int) -> bytes | None:
        """Body of a release in the log; None if the log lacks it."""
        with self.database.read() as connection:
            stored = log.bodies(connection, [(group, seq)]).get((group, seq))
        return None if stored is None else stored.encode()

    def retire(self, version: VersionId) -> None:
        """Take a version out of use for good; its charge stays."""
        with self.database.write() as connection:
            registration.lock(connection)
            _row(connection, version)
            registration.set_state(connection, version, RETIRED)


def ended_when(row: MetricVersion) -> str:
    """When a version's stream ended, as messages put it; without a time if no event of the input had one."""
    return f"at {row.ended_at}" if row.ended_at else "without an event that counted, and"


def _row(connection: Connection, version: VersionId) -> MetricVersion:
    for row in registration.versions(connection):
        if VersionId.of(row) == version:
            return row
    raise LedgerError(f"{version} is not registered under app {version.app!r}; register it first")


def _end(connection: Connection, end: End, run: str | None) -> None:
    version = end.version
    owners.lock_versions(connection, [version])
    row = _row(connection, version)
    if row.state == RETIRED:
        raise LedgerError(f"{version} is retired; raise its version")
    if row.state == ENDED and (row.ended_at, row.input_digest) != (end.at, end.input_digest):
        raise LedgerError(f"{version} ended {ended_when(row)} with another input; raise its version")
    if row.state != ENDED and run is not None:
        if others := owners.of_others(connection, version.app, [version], run):
            raise NotOwner(f"{version}: {others[version]}; it is not ended", Group(version, ""))
    registration.set_state(connection, version, ENDED, ended_at=end.at, input_digest=end.input_digest)
