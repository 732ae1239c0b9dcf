"""The ledger and audit log as the rest of shoal uses them: every method is one SQL transaction.

All methods block; callers on an event loop use threads. A database that is away raises `Unavailable`, after which the
call may be repeated, since every method is idempotent. Any other `LedgerError` is final.
"""

import secrets
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self

from sqlalchemy import Connection, select

from shoal.agents.audit import budget, log, owners, registration, turns
from shoal.agents.audit.budget import BudgetReport
from shoal.agents.audit.completeness import check_whole, lost_rows
from shoal.agents.audit.database import IN_MEMORY, Database, bring_to_head, now
from shoal.agents.audit.log import Appended, Group, Head, NotOwner
from shoal.agents.audit.owners import Ownership, Version
from shoal.agents.audit.registration import Agreement, Request, ended_when, version_name
from shoal.models.errors import LedgerError
from shoal.models.exact import exact_text
from shoal.models.losses import AcceptedLoss, Place
from shoal.models.tables import ENDED, RETIRED, MetricVersion


@dataclass(frozen=True)
class End:
    """The end of a file: its last tick closed `at`, and no other input may follow under this version."""

    metric: str
    version: int
    at: str
    input_digest: str


@dataclass(frozen=True)
class Standing:
    """The releases and activations that an app has published, and their owners, at one moment."""

    heads: dict[Group, Head]
    owners: dict[Version, Ownership]
    activated: set[tuple[Group, int]]  # group and level


class Ledger:
    """One audit log, open. A file run is known by the ledger that it opened: its id is `run`."""

    def __init__(self, database: Database, log_id: str) -> None:
        self.database = database
        self.log_id = log_id
        self.is_there = True  # False: what is only looked at does not exist
        self.run = secrets.token_hex(16)

    @classmethod
    def open(cls, url: str, *, migrate: bool | None = None) -> Self:
        """Open a log, and migrate its schema: None does so for SQLite alone, as every command but `migrate` wants."""
        database = Database(url)
        try:
            return cls(database, bring_to_head(database, migrate=database.is_sqlite if migrate is None else migrate))
        except BaseException:
            database.close()
            raise

    @classmethod
    def look(cls, url: str) -> Self:
        """Open a log without making or migrating it: an empty one in memory stands for a SQLite file to come.

        Raises:
            LedgerError: its schema is of another version.
        """
        database = Database(url)
        is_there = not database.is_sqlite or database.has_file()
        if not is_there:
            database.close()
            database = Database(IN_MEMORY)
        try:
            ledger = cls(database, bring_to_head(database, migrate=not is_there))
        except BaseException:
            database.close()
            raise
        ledger.is_there = is_there
        return ledger

    def close(self) -> None:
        """Close all connections; the next use opens them again."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def register(self, request: Request) -> Agreement:
        """Register what is new and charge it; refuse whatever differs from what is registered.

        Who registers owns the streams from then on: workers (with `partitions`) for good, a file run those of its topic
        until the next one.
        """
        with self.database.write() as connection:
            return registration.register(connection, replace(request, run=self.run if request.file_run else ""))

    def check(self, request: Request) -> Agreement:
        """What `register` would do now; nothing is written."""
        with self.database.read() as connection:
            return registration.examine(connection, request)

    def versions(self, app: str) -> list[MetricVersion]:
        """The registered versions of an app, as detached rows."""
        return [row for row in self.all_versions() if row.app == app]

    def all_versions(self) -> list[MetricVersion]:
        """The registered versions of every app, as detached rows."""
        with self.database.read() as connection:
            return registration.versions(connection)

    def known_versions(self, app: str) -> dict[Version, int | None]:
        """All versions, of any app, with the number of releases by file runs of this app; None: its workers own it."""
        with self.database.read() as connection:
            versions: dict[Version, int | None]
            versions = {(row.metric, row.version): 0 for row in registration.versions(connection)}
            mine = owners.owners(connection, app).items()
            return versions | {version: None if owner.by_workers else owner.releases for version, owner in mine}

    def standing(self, app: str) -> Standing:
        """What is published and who owns it: to be read after a registration, which settles that.

        Raises:
            LedgerError: the log has lost releases.
        """
        with self.database.read() as connection:
            ownerships = owners.owners(connection, app)
            heads = log.heads(connection, app)
            activated = log.activated(connection, app)
        logged = Counter[Version]()
        for group, head in heads.items():
            logged[group.metric, group.version] += head.seq
        for (metric, version), owner in sorted(ownerships.items()):
            if logged[metric, version] < owner.releases:
                due, name = owner.releases, version_name(metric, version)
                raise lost_rows("release", f"{due} are due of {name}, and {logged[metric, version]} are there")
        return Standing(heads, ownerships, activated)

    def published_by_workers(self, app: str) -> int:
        """How many releases the log has of versions that the app's workers own."""
        with self.database.read() as connection:
            return sum(one.releases for one in owners.owners(connection, app).values() if one.by_workers)

    def epochs(self, app: str) -> dict[str, int]:
        """Number of clock restarts of an app, by topic."""
        with self.database.read() as connection:
            return turns.epochs(connection, app)

    def restart_clock(self, app: str, topic: str, who: str) -> int:
        """Give versions to come of a topic's metrics the next epoch of its clocks; the epoch."""
        with self.database.write() as connection:
            registration.lock(connection)
            check_whole(connection)
            return turns.restart_clock(connection, app, topic, who, now())

    def losses(self, app: str) -> list[AcceptedLoss]:
        """The losses of sources that were accepted for an app, in order."""
        with self.database.read() as connection:
            return turns.losses(connection, app)

    def accept_loss(self, app: str, topic: str, places: Mapping[int, Place], who: str) -> list[AcceptedLoss]:
        """Accept losses of a source, by partition."""
        with self.database.write() as connection:
            registration.lock(connection)
            check_whole(connection)
            return turns.accept_loss(connection, app, topic, places, who, now())

    def partitions(self, app: str) -> dict[str, int]:
        """Partitions of the topics that an app's workers have read; empty after file runs alone."""
        with self.database.read() as connection:
            return registration.known_partitions(connection, app)

    def append(
        self,
        app: str,
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
            NotOwner: this is new, and of a version that another file run or workers own by now.
            Equivocation: an id has two values; nothing of its group is written, everything else is.
            MissingSeq: a release came too early; `.waiting` holds the rows to append again, all others are written.
            StreamEnded: the version's stream ended and this is a new release of it.
        """
        with self.database.write() as connection:
            done = log.append_releases(connection, app, rows, run)
            others = log.append_activations(connection, app, activations, run)
            done.faults += others.faults
            for end in ends if not done.faults else ():
                _end(connection, app, end, run)
        done.raise_faults()
        return done

    def append_activations(self, app: str, rows: Iterable[bytes]) -> Appended:
        """Write activations; repeats are compared and skipped, two values for one are an `Equivocation`."""
        with self.database.write() as connection:
            done = log.append_activations(connection, app, rows)
        done.raise_faults()
        return done

    def heads(self, app: str) -> dict[Group, Head]:
        """The last release of every (metric, version, group): its seq and chain digest."""
        with self.database.read() as connection:
            return log.heads(connection, app)

    def activation(self, app: str, group: Group, level: int) -> bytes | None:
        """An activation as it was published."""
        with self.database.read() as connection:
            stored = log.activation(connection, app, group, level)
        return None if stored is None else stored.encode()

    def made_again(
        self, app: str, made: Mapping[Version, set[int]] | None = None, *, partitions: int = 0
    ) -> dict[Version, Ownership]:
        """Note which contributions partitions have made file runs' releases again; return the present owners."""
        if made:
            with self.database.write() as connection:
                owners.note_made_again(connection, app, made, partitions)
        with self.database.read() as connection:
            return owners.owners(connection, app)

    def release(self, app: str, metric: str, version: int, group: str | None, seq: int) -> bytes | None:
        """A release as it was published."""
        key = Group(metric, version, group or "")
        with self.database.read() as connection:
            stored = log.published(connection, app, {key: (seq, seq)}).get(key, [])
        return next((release.body.encode() for release in stored if release.seq == seq), None)

    def retire(self, app: str, metric: str, version: int) -> None:
        """Take a version out of use for good; its charge stays."""
        with self.database.write() as connection:
            registration.lock(connection)
            _version(connection, app, metric, version)
            registration.set_state(connection, app, metric, version, RETIRED)

    def budget_report(self) -> BudgetReport | None:
        """The budget and all its charges; None before the first registration.

        Raises:
            LedgerError: the log has lost rows, so that its charges may be more than it says.
        """
        with self.database.read() as connection:
            check_whole(connection)
            return budget.report(connection)

    def raise_budget(self, epsilon: Fraction, delta: Fraction) -> BudgetReport:
        """Raise the budget, and log that; raising it to what it is changes nothing."""
        with self.database.write() as connection:
            registration.lock(connection)
            check_whole(connection)
            book = budget.report(connection)
            if book is None:
                raise LedgerError("the ledger has no budget yet: the first registration takes it from [privacy]")
            for name, old, new in (("epsilon", book.epsilon, epsilon), ("delta", book.delta, delta)):
                if new < old:
                    raise LedgerError(
                        f"a budget is only ever raised: {name} {exact_text(new)} is less than the {exact_text(old)} of "
                        "the ledger"
                    )
            if (epsilon, delta) != (book.epsilon, book.delta):
                budget.write_budget(connection, epsilon, delta)
            return replace(book, epsilon=epsilon, delta=delta)


def _version(connection: Connection, app: str, metric: str, version: int) -> MetricVersion:
    for row in registration.versions(connection):
        if (row.app, row.metric, row.version) == (app, metric, version):
            return row
    raise LedgerError(f"{version_name(metric, version)} is not registered under app {app!r}; register it first")


def _end(connection: Connection, app: str, end: End, run: str | None) -> None:
    connection.execute(select(MetricVersion.version).where(MetricVersion.app == app).with_for_update(key_share=True))
    row = _version(connection, app, end.metric, end.version)
    if row.state == RETIRED:
        raise LedgerError(f"{version_name(end.metric, end.version)} is retired; raise its version")
    if row.state == ENDED and (row.ended_at, row.input_digest) != (end.at, end.input_digest):
        raise LedgerError(
            f"{version_name(end.metric, end.version)} ended {ended_when(row)} with another input; raise its version"
        )
    version = (end.metric, end.version)
    if row.state != ENDED and run is not None and (others := owners.of_others(connection, app, [version], run)):
        raise NotOwner(f"{version_name(*version)}: {others[version]}; it is not ended", Group(*version, ""))
    registration.set_state(
        connection, app, end.metric, end.version, ENDED, ended_at=end.at, input_digest=end.input_digest
    )
