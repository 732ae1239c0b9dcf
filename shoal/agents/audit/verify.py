"""The part of an audit that needs no key: the log in itself, and the log against the releases topic.

The log in itself shows a changed, missing or doubled release inside a chain, and a ledger that does not add up. Only
the topic shows that the newest releases of a chain are missing, or were rewritten together with their digests. A log
that ends before the topic is merely behind: a note.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import orjson
from sqlalchemy import Connection, Row, select

from shoal.agents.audit import budget, registration
from shoal.agents.audit.app_ledger import AppLedger
from shoal.agents.audit.completeness import losses
from shoal.agents.audit.ledger import Ledger
from shoal.agents.audit.log import Group, bodies, group_of, read_records
from shoal.mechanisms.privacy.accounting import Loss
from shoal.mechanisms.spec import ADD_REMOVE, VALUES
from shoal.models.digests import FIRST, chain, parameters_digest
from shoal.models.exact import exact_text
from shoal.models.records import activation_name, release_id, with_level
from shoal.models.releases.record import Release
from shoal.models.tables import ActivationRow, Budget, BudgetChange, MetricVersion, ReleaseRow
from shoal.models.version import VersionId

BATCH = 5_000  # rows held at once


@dataclass(frozen=True)
class Finding:
    """One finding of an audit. `failure`: the log is not what it must be; otherwise a note."""

    kind: str
    where: str
    message: str
    failure: bool = True


def verify(ledger: Ledger) -> list[Finding]:
    """All findings that SQL alone can show, over every app of the log."""
    with ledger.database.read() as connection:
        findings = [*_lost_rows(connection), *_ledger_findings(connection), *_activation_findings(connection)]
        return findings + list(_chain_findings(connection))


def _lost_rows(connection: Connection) -> Iterator[Finding]:
    for table, reason in losses(connection):
        yield Finding("lost", f"table {table}", f"it has lost rows: {reason}")


def _ledger_findings(connection: Connection) -> Iterator[Finding]:
    book = budget.report(connection)
    if book is None:
        return
    limits = zip(("epsilon", "delta"), book.charged, (book.epsilon, book.delta), strict=True)
    for name, charged, limit in limits:
        if charged > limit:
            yield Finding("budget", "ledger", f"{name} {exact_text(charged)} is charged of {exact_text(limit)}")
    changes = select(BudgetChange.epsilon, BudgetChange.delta).order_by(BudgetChange.number.desc()).limit(1)
    last = connection.execute(changes).one_or_none()
    if last is not None and last != connection.execute(select(Budget.epsilon, Budget.delta)).one():
        yield Finding("budget", "ledger", "the budget is not what its last logged change made it")
    for row in registration.versions(connection):
        yield from _version_findings(row, book.relation)


def _version_findings(row: MetricVersion, counts_by: str) -> Iterator[Finding]:
    where = f'app "{row.app}" {VersionId.of(row)}'
    if parameters_digest(row.parameters) != row.digest:
        yield Finding("parameters", where, "the parameters are not those of the digest")
    if (counts_by, row.relation) == (ADD_REMOVE, VALUES):
        yield Finding("relation", where, f"it publishes who contributes, and the ledger counts by {ADD_REMOVE}")
    least = Loss(row.epsilon, row.delta).of_group(2 if (counts_by, row.relation) == (VALUES, ADD_REMOVE) else 1)
    if row.charge_epsilon < least.epsilon or row.charge_delta < least.delta:
        yield Finding("budget", where, "the charge is less than what the metric uses")


def _chain_findings(connection: Connection) -> Iterator[Finding]:
    """Walk every chain once, in order; a fault is told once, and the walk goes on from what the log says."""
    columns = ReleaseRow.__table__.columns
    order = [columns[name] for name in ("app", "metric", "version", "group", "seq")]
    rows = connection.execution_options(yield_per=BATCH).execute(select(*columns).order_by(*order))
    current, seq, digest = None, 0, FIRST
    for row in rows:
        if (group := Group(VersionId.of(row), row.group)) != current:
            current, seq, digest = group, 0, FIRST
        yield from _link_findings(row, seq, digest)
        seq, digest = row.seq, row.hash


def _link_findings(row: Row[Any], seq: int, digest: bytes) -> Iterator[Finding]:
    where = f'app "{row.app}" {Group(VersionId.of(row), row.group)} release {row.seq}'
    if row.seq == seq:
        yield Finding("equivocation", where, "one id has two values")
    elif row.seq != seq + 1:
        yield Finding("missing", where, f"{row.seq - seq - 1} before it are missing")
    elif row.previous_hash != digest:
        yield Finding("chain", where, "it does not follow the release before it")
    if chain(row.previous_hash, row.body.encode()) != row.hash:
        yield Finding("changed", where, "its bytes are not those of its digest")
    yield from _body_findings(row, where, ("seq", "id", "at"))
    if row.id != release_id(row.metric, row.version, row.group, row.seq):
        yield Finding("columns", where, "its id is not that of its metric, version, group and seq")


def _body_findings(row: Row[Any], where: str, names: tuple[str, ...]) -> Iterator[Finding]:
    try:
        body = with_level(orjson.loads(row.body))
        stated = {name: body.get(name) for name in ("metric", "version", *names)} | {"group": body.get("group") or ""}
    except (orjson.JSONDecodeError, AttributeError):
        stated = {}
    different = sorted(
        name for name in ("metric", "version", "group", *names) if stated.get(name) != row._mapping[name]
    )
    if different:
        yield Finding("columns", where, f"its bytes and its columns differ in {', '.join(different)}")


def _activation_findings(connection: Connection) -> Iterator[Finding]:
    for row in connection.execute(select(*ActivationRow.__table__.columns)):
        where = f'app "{row.app}" {Group(VersionId.of(row), row.group)} {activation_name(row.level)}'
        findings = list(_body_findings(row, where, ("level", "at")))
        yield from findings
        if not findings and orjson.dumps(with_level(orjson.loads(row.body)).get("prior")).decode() != row.prior:
            yield Finding("columns", where, "its bytes and its columns differ in prior")


def compare_topic(ledger: AppLedger, releases: Iterable[bytes]) -> list[Finding]:
    """Compare the log with the releases of the topic, each group's in order, as a read_committed reader gets them.

    The log is read first. What the topic gains meanwhile is behind, never missing, so workers may run.
    """
    topic = _TopicComparison(ledger)
    rest = iter(releases)
    while batch := list(islice(rest, BATCH)):
        topic.compare(batch)
    return topic.findings()


class _TopicComparison:
    """The comparison of one app's log with the topic."""

    def __init__(self, ledger: AppLedger) -> None:
        self.ledger, self.app = ledger, ledger.app
        of_workers = ledger.states_of_workers()  # what file runs publish is never in a topic
        self.heads = {group: head.seq for group, head in ledger.heads().items() if group.version in of_workers}
        self.reached: dict[Group, int] = {}
        self.faults: list[Finding] = []
        self.behind = 0

    def compare(self, batch: list[bytes]) -> None:
        """Look up a batch in the log, then take its releases one by one."""
        rows = [(group_of(self.app, each), each.seq, row.decode()) for row, each in read_records(batch, Release)]
        with self.ledger.database.read() as connection:
            logged = bodies(connection, ((group, seq) for group, seq, _ in rows))
        for group, seq, body in rows:
            self._take(group, seq, body, logged.get((group, seq)))

    def _take(self, group: Group, seq: int, body: str, logged: str | None) -> None:
        reached = self.reached.get(group, 0)
        if seq != reached + 1:
            wrong = "comes again" if seq <= reached else f"comes after {reached}"
            self._fail("topic", group, seq, f"{wrong} in the topic")
        if logged is None and seq <= self.heads.get(group, 0):
            self._fail("missing", group, seq, "is in the topic and missing in the log")
        elif logged is None:
            self.behind += 1
        elif logged != body:
            self._fail("changed", group, seq, "has another value in the topic than in the log")
        self.reached[group] = max(reached, seq)

    def _fail(self, kind: str, group: Group, seq: int, message: str) -> None:
        self.faults.append(Finding(kind, f'app "{self.app}" {group} release {seq}', f"it {message}"))

    def findings(self) -> list[Finding]:
        """All findings, with those that only the end of the topic shows."""
        for group, logged in self.heads.items():
            if self.reached.get(group, 0) < logged:
                self._fail("topic", group, logged, f"is in the log, and the topic ends at {self.reached.get(group, 0)}")
        if self.behind:
            message = f"the log is {self.behind} releases behind the topic"
            self.faults.append(Finding("behind", f'app "{self.app}"', message, failure=False))
        return self.faults
