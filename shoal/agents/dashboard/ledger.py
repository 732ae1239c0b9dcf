"""Budget and audit, from the audit log: SELECT is all that it takes, and a log that does not exist yet is no fault."""

import asyncio
import time
from pathlib import Path
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from shoal.agents.audit.budget import BudgetReport
from shoal.agents.audit.ledger import Ledger
from shoal.agents.audit.verify import verify
from shoal.agents.dashboard.ending import aside
from shoal.agents.dashboard.live import Hub
from shoal.models.errors import ShoalError
from shoal.models.tables import ReleaseRow

EVERY = 5.0  # seconds between two looks at the budget
AUDIT_EVERY = 60.0  # seconds between two audits, which read all of the log ...
PART = 20  # ... or so many times as long as one takes
SHOWN = 5  # findings


class Auditor:
    """Looks at the audit log again and again."""

    def __init__(self, hub: Hub, url: str) -> None:
        self._hub, self._url = hub, url
        self._due = 0.0

    async def run(self) -> None:
        """Look for ever."""
        while True:
            try:
                self._hub.charged(await aside(self._budget))
                if time.monotonic() >= self._due:
                    found = await aside(self._audit)
                    self._due = time.monotonic() + max(AUDIT_EVERY, PART * found["took"])
                    self._hub.set("audit", found)
                self._hub.set("sql", {"why": None})
            except (ShoalError, SQLAlchemyError, OSError) as error:
                said = (
                    str(error) if isinstance(error, ShoalError) else "the audit log may not be read; SELECT is needed"
                )
                self._hub.set("sql", {"why": said})
            await asyncio.sleep(EVERY)

    def _budget(self) -> BudgetReport | None:
        return budget_of(self._url)

    def _audit(self) -> dict[str, Any]:
        began, at = time.monotonic(), round(time.time())
        with _opened(self._url) as ledger:
            failures = [f"{finding.where}: {finding.message}" for finding in verify(ledger) if finding.failure]
            with ledger.database.read() as connection:
                releases = connection.execute(select(func.count()).select_from(ReleaseRow)).scalar_one()
        return {
            "ok": not failures, "at": at, "took": time.monotonic() - began, "releases": releases,
            "findings": failures[:SHOWN], "failures": len(failures),
        }  # fmt: skip


class NoLog(ShoalError):
    """There is no audit log yet."""


def budget_of(url: str) -> BudgetReport | None:
    """The budget and all charges; None if nothing was ever registered.

    Raises:
        NoLog: there is no log.
        LedgerError: it does not answer, or its schema is another.
    """
    with _opened(url) as ledger:
        return ledger.budget_report()


def _opened(url: str) -> Ledger:
    """The ledger, if there is one: to look must not make it.

    Raises:
        LedgerError: it does not answer, or its schema is another.
        NoLog: there is none yet.
    """
    path = url.removeprefix("sqlite:///")
    if path != url and not Path(path).is_file():
        raise NoLog("there is no audit log yet; workers make it when they start")
    return Ledger.open(url, migrate=False)
