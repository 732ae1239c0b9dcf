"""The ledger and audit log, as the rest of shoal uses them: every method is one SQL transaction.

Synchronous: callers on an event loop use threads. A database that is away raises `Unavailable`, which may be retried,
for every method is idempotent; any other `LedgerError` is a refusal that stays one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from sqlalchemy import Connection, select

from shoal.agents import audit_log, budget, registration
from shoal.agents.audit_log import Appended, Equivocation, Group, Head, MissingSeq, StreamEnded
from shoal.agents.budget import BudgetReport
from shoal.agents.database import Database, Unavailable, bring_to_head
from shoal.agents.registration import Agreement, Registration, Request, ended_when, version_name
from shoal.models.errors import LedgerError
from shoal.models.exact import exact_text
from shoal.models.log import ENDED, RETIRED, MetricVersion

__all__ = [
    "Agreement",
    "Appended",
    "BudgetReport",
    "End",
    "Equivocation",
    "Group",
    "Head",
    "Ledger",
    "MissingSeq",
    "Registration",
    "StreamEnded",
    "Unavailable",
]


@dataclass(frozen=True)
class End:
    """The end of a file: its last tick closed `at`, and no other input may follow under this version."""

    metric: str
    version: int
    at: str
    input_digest: str


class Ledger:
    """One audit log, open."""

    def __init__(self, database: Database, log_id: str) -> None:
        self.database = database
        self.log_id = log_id

    @classmethod
    def open(cls, url: str, *, migrate: bool | None = None) -> Self:
        """Open a log, and migrate its schema: None does so for SQLite alone, as every command but `migrate` wants."""
        database = Database(url)
        try:
            return cls(database, bring_to_head(database, migrate=database.is_sqlite if migrate is None else migrate))
        except BaseException:
            database.close()
            raise

    def close(self) -> None:
        """Close all connections; the next use opens them again."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def register(
        self,
        app: str,
        registrations: Sequence[Registration],
        *,
        budget_epsilon: Fraction,
        budget_delta: Fraction,
        key_fingerprint: str,
        partitions: Mapping[str, int] | None = None,
        unit: str = "user",
        file_run: bool = False,
    ) -> Agreement:
        """Register what is new and charge it; refuse whatever differs from what is registered."""
        request = Request(
            app, registrations, budget_epsilon, budget_delta, key_fingerprint, partitions or {}, unit, file_run
        )
        with self.database.write() as connection:
            return registration.register(connection, request)

    def check(
        self,
        app: str,
        registrations: Sequence[Registration],
        *,
        budget_epsilon: Fraction,
        budget_delta: Fraction,
        key_fingerprint: str,
        partitions: Mapping[str, int] | None = None,
        unit: str = "user",
        file_run: bool = False,
    ) -> Agreement:
        """What `register` would do now; nothing is written."""
        request = Request(
            app, registrations, budget_epsilon, budget_delta, key_fingerprint, partitions or {}, unit, file_run
        )
        with self.database.read() as connection:
            return registration.examine(connection, request)

    def versions(self, app: str) -> list[MetricVersion]:
        """The registered versions of an app, detached rows: state, end and all."""
        with self.database.read() as connection:
            return [row for row in registration.versions(connection) if row.app == app]

    def partitions(self, app: str) -> dict[str, int]:
        """Partitions of the topics that an app's workers have read; none of them for file runs alone."""
        with self.database.read() as connection:
            return registration.known_partitions(connection, app)

    def append(
        self, app: str, rows: Iterable[bytes], *, activations: Iterable[bytes] = (), ends: Iterable[End] = ()
    ) -> Appended:
        """Write releases, and what belongs to them, in one transaction; repeats are compared and skipped.

        Raises:
            Equivocation: an id has two values; nothing of its group is written, everything else is.
            MissingSeq: a release came too early; `.waiting` holds the rows to append again, all others are written.
            StreamEnded: the version's stream ended and this is a new release of it.
        """
        with self.database.write() as connection:
            done = audit_log.append_releases(connection, app, rows)
            others = audit_log.append_activations(connection, app, activations)
            done.faults += others.faults
            for end in ends if not done.faults else ():
                _end(connection, app, end)
        done.raise_faults()
        return done

    def append_activations(self, app: str, rows: Iterable[bytes]) -> Appended:
        """Write activations; repeats are compared and skipped, two values for one are an `Equivocation`."""
        with self.database.write() as connection:
            done = audit_log.append_activations(connection, app, rows)
        done.raise_faults()
        return done

    def heads(self, app: str) -> dict[Group, Head]:
        """The last release of every (metric, version, group): its seq and chain digest."""
        with self.database.read() as connection:
            return audit_log.heads(connection, app)

    def release(self, app: str, metric: str, version: int, group: str | None, seq: int) -> bytes | None:
        """A release as it was published."""
        place = Group(metric, version, group or "")
        with self.database.read() as connection:
            stored = audit_log.published(connection, app, {place: (seq, seq)}).get(place, [])
        return next((one.body.encode() for one in stored if one.seq == seq), None)

    def end(self, app: str, metric: str, version: int, at: str, input_digest: str) -> None:
        """Write down the end of a file; its repetition is welcome, another input is refused."""
        with self.database.write() as connection:
            _end(connection, app, End(metric, version, at, input_digest))

    def retire(self, app: str, metric: str, version: int) -> None:
        """Take a version out of use for good; its charge stays."""
        with self.database.write() as connection:
            registration.lock(connection)
            _version(connection, app, metric, version)
            registration.set_state(connection, app, metric, version, RETIRED)

    def budget_report(self) -> BudgetReport | None:
        """The budget and all its charges; None before the first registration."""
        with self.database.read() as connection:
            return budget.report(connection)

    def raise_budget(self, epsilon: Fraction, delta: Fraction) -> BudgetReport:
        """Raise the budget, and log that it was; the same again is nothing new."""
        with self.database.write() as connection:
            registration.lock(connection)
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
            return BudgetReport(epsilon, delta, book.unit, book.charges)


def _version(connection: Connection, app: str, metric: str, version: int) -> MetricVersion:
    for row in registration.versions(connection):
        if (row.app, row.metric, row.version) == (app, metric, version):
            return row
    raise LedgerError(f"{version_name(metric, version)} is not registered under app {app!r}; register it first")


def _end(connection: Connection, app: str, end: End) -> None:
    connection.execute(select(MetricVersion.version).where(MetricVersion.app == app).with_for_update(key_share=True))
    row = _version(connection, app, end.metric, end.version)
    if row.state == RETIRED:
        raise LedgerError(f"{version_name(end.metric, end.version)} is retired; raise its version")
    if row.state == ENDED and (row.ended_at, row.input_digest) != (end.at, end.input_digest):
        raise LedgerError(
            f"{version_name(end.metric, end.version)} ended {ended_when(row)} with another input; raise its version"
        )
    told = {"ended_at": end.at, "input_digest": end.input_digest}
    registration.set_state(connection, app, end.metric, end.version, ENDED, **told)
