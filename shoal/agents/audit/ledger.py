"""The ledger and audit log as the rest of shoal uses them: every method is one SQL transaction.

All methods block; callers on an event loop use threads. A database that is away raises `Unavailable`, after which the
call may be repeated, since every method is idempotent. Any other `LedgerError` is final.
"""

import secrets
from dataclasses import replace
from fractions import Fraction
from typing import Self

from sqlalchemy import URL, func, select

from shoal.agents.audit import budget, owners, registration
from shoal.agents.audit.app_ledger import AppLedger
from shoal.agents.audit.budget import BudgetReport
from shoal.agents.audit.completeness import check_whole
from shoal.agents.audit.database import IN_MEMORY, Database, bring_to_head
from shoal.agents.audit.key_file import NoiseUse
from shoal.agents.audit.requests import Agreement, Request
from shoal.models.errors import LedgerError
from shoal.models.exact import exact_text
from shoal.models.tables import MetricVersion, ReleaseRow
from shoal.models.version import NoiseName, VersionId


class Ledger:
    """One audit log, open. A file run is known by the ledger that it opened: its id is `run`."""

    def __init__(self, database: Database, log_id: str) -> None:
        self.database = database
        self.log_id = log_id
        self.is_there = True  # False: what is only looked at does not exist
        self.run = secrets.token_hex(16)

    @classmethod
    def open(cls, url: str | URL, *, migrate: bool | None = None) -> Self:
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

        New versions belong to who registers, for life: to the workers of the app, or to file runs, of which the last
        one alone adds to them.
        """
        with self.database.write() as connection:
            return registration.register(connection, replace(request, run=self.run if request.file_run else ""))

    def check(self, request: Request) -> Agreement:
        """What `register` would do now; nothing is written."""
        with self.database.read() as connection:
            return registration.examine(connection, request)

    def of(self, app: str) -> AppLedger:
        """Part of this ledger that belongs to one app."""
        return AppLedger(self.database, app, self.run)

    def versions(self) -> list[MetricVersion]:
        """The registered versions of every app, as detached rows."""
        with self.database.read() as connection:
            return registration.versions(connection)

    def count_releases(self) -> int:
        """The number of releases of every app."""
        with self.database.read() as connection:
            return int(connection.execute(select(func.count()).select_from(ReleaseRow)).scalar_one())

    def persons(self) -> dict[str, str]:
        """The user field of each topic that names a person, by topic."""
        with self.database.read() as connection:
            return registration.persons(connection)

    def noise(self, fingerprint: str) -> dict[NoiseName, NoiseUse]:
        """Use of each noise of a key, given by its fingerprint, according to the log."""
        with self.database.read() as connection:
            held = owners.owners(connection)
            rows = registration.versions(connection)
        return {
            NoiseName(row.metric, row.version, row.digest): NoiseUse(row.app, owner.kind, owner.releases)
            for row in rows
            if row.key_fingerprint == fingerprint and (owner := held.get(VersionId.of(row))) is not None
        }

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
