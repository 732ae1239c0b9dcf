"""Compares the audit log with the releases and activations that contributions and key yield.

The log is read before the topics, so that it is behind them and never ahead while workers run.
"""

from collections.abc import Sequence
from hashlib import blake2b

from sqlalchemy import select

from shoal.agents.audit.app_ledger import AppLedger
from shoal.agents.audit.log import Group, bodies
from shoal.agents.audit.replay.matching import ExpectedRecord, Findings
from shoal.models.records import activation_name
from shoal.models.tables import ActivationRow
from shoal.models.version import VersionId

BATCH = 5_000  # releases looked up at once


class Logged:
    """The audit log's releases and activations of some metric versions."""

    def __init__(self, ledger: AppLedger, versions: frozenset[VersionId], findings: Findings) -> None:
        self._ledger, self._findings = ledger, findings
        self._heads = {group: head.seq for group, head in ledger.heads().items() if group.version in versions}
        self._reached: dict[Group, int] = {}
        self._waiting: list[ExpectedRecord] = []
        self._activations = _activations(ledger, versions)
        self._behind = self._activations_behind = 0

    def releases(self, records: Sequence[ExpectedRecord]) -> None:
        """Compare releases, each group's in order."""
        self._waiting += records
        if len(self._waiting) >= BATCH:
            self._compare()

    def _compare(self) -> None:
        with self._ledger.database.read() as connection:
            logged = bodies(connection, (record.name for record in self._waiting))
        for name, _, value in self._waiting:
            self._take(*name, value, logged.get(name))
        self._waiting.clear()

    def _take(self, group: Group, seq: int, value: bytes, logged: str | None) -> None:
        self._reached[group] = seq
        where = f"audit log {group} release {seq}"
        if logged is None and seq <= self._heads.get(group, 0):
            self._findings.add("missing", where, "contributions and key yield it; the log lacks it")
        elif logged is None:
            self._behind += 1
        elif logged.encode() != value:
            self._findings.add("changed", where, "the log has another value than contributions and key yield")

    def activations(self, records: Sequence[ExpectedRecord], *, must: bool) -> None:
        """Compare activations; `must`: the audit stage says that it has written them."""
        for name, _, value in records:
            where = f"audit log {name[0]} {activation_name(name[1])}"
            logged = self._activations.pop(name, None)
            if logged is not None and logged != _digest(value):
                self._findings.add("changed", where, "the log has another value than contributions and key yield")
            elif logged is None and must:
                self._findings.add("missing", where, "contributions and key yield it; the log lacks it")
            elif logged is None:
                self._activations_behind += 1

    def finish(self, *, complete: bool) -> None:
        """Report what is left; `complete`: everything was recomputed."""
        self._compare()
        if complete:
            for group, last in self._heads.items():
                if self._reached.get(group, 0) < last:
                    message = "it is in the log; contributions and key do not yield it"
                    self._findings.add("forged", f"audit log {group} release {last}", message)
            for group, level in self._activations:
                message = "it is in the log; contributions and key do not yield it"
                self._findings.add("forged", f"audit log {group} {activation_name(level)}", message)
        for count, what in ((self._behind, "releases"), (self._activations_behind, "activations")):
            if count:
                message = f"it is {count} {what} behind the topic"
                self._findings.add("behind", "audit log", message, failure=False)


def _activations(ledger: AppLedger, versions: frozenset[VersionId]) -> dict[tuple[Group, int], bytes]:
    """The digest of every activation in the log."""
    columns = (
        ActivationRow.app,
        ActivationRow.metric,
        ActivationRow.version,
        ActivationRow.group,
        ActivationRow.level,
        ActivationRow.body,
    )
    with ledger.database.read() as connection:
        rows = connection.execution_options(yield_per=BATCH).execute(
            select(*columns).where(ActivationRow.app == ledger.app)
        )
        return {
            (Group(VersionId.of(row), row.group), row.level): _digest(row.body.encode())
            for row in rows
            if VersionId.of(row) in versions
        }


def _digest(value: bytes) -> bytes:
    return blake2b(value, digest_size=16).digest()
