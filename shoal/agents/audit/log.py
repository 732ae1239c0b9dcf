"""The published releases, in chains, and activations; each is written once.

All writing is idempotent, because the stream delivers again after a crash: a repeat is compared and skipped. Nothing is
written past a gap, and nothing of a group in which one id has two values. The rest is written; then the fault is raised
with the rows that were left out.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import orjson
from sqlalchemy import BigInteger, ColumnElement, Connection, Select, Text, and_, func, insert, select, text

from shoal.agents.audit import owners
from shoal.agents.audit.rows import NewRelease, insert_releases
from shoal.models.digests import FIRST, chain
from shoal.models.errors import AuditError
from shoal.models.records import activation_name
from shoal.models.releases.record import Activation, Record, Release, record_of
from shoal.models.tables import ENDED, RETIRED, ActivationRow, Label, ReleaseRow, escape
from shoal.models.times import iso
from shoal.models.version import VersionId

Kind = TypeVar("Kind", bound=Record)
REMEDY = "repeat it with the input that it was made from, or raise the version of the metric"
ASKED = {  # rows out of a JSON array of [app, metric, version, group, first, last], numbered from 0
    "sqlite": """
        SELECT key AS number, json_extract(value, '$[0]') AS app, json_extract(value, '$[1]') AS metric,
               json_extract(value, '$[2]') AS version, json_extract(value, '$[3]') AS "group",
               json_extract(value, '$[4]') AS first, json_extract(value, '$[5]') AS last
        FROM json_each(:asked)""",
    "postgresql": """
        SELECT number - 1 AS number, one ->> 0 AS app, one ->> 1 AS metric, (one ->> 2)::bigint AS version,
               one ->> 3 AS "group", (one ->> 4)::bigint AS first, (one ->> 5)::bigint AS last
        FROM json_array_elements(CAST(:asked AS json)) WITH ORDINALITY AS row(one, number)""",
}


class Group(NamedTuple):
    """The group whose releases form a chain; '' for a metric without groups."""

    version: VersionId
    group: str

    def __str__(self) -> str:
        return f'{self.version} group "{self.group}"' if self.group else str(self.version)


class Head(NamedTuple):
    """The last release of a group; seq 0 before the first."""

    seq: int
    hash: bytes


class LoggedRelease(NamedTuple):
    """A release as the log has it."""

    seq: int
    body: str
    hash: bytes


class Unwritten(AuditError):
    """Some rows of a batch were not written; all others were."""

    def __init__(self, message: str, group: Group, waiting: Sequence[bytes] = (), written: int = 0) -> None:
        super().__init__(message)
        self.group = group
        self.waiting = tuple(waiting)  # rows behind a gap: append them again once the missing one is there
        self.written = written


class Equivocation(Unwritten):
    """Two values for one release id, or for one activation. Waiting does not help."""


class StreamEnded(Unwritten):
    """A new release of a version whose stream a file run has ended."""


class NotOwner(Unwritten):
    """A new release or activation of a version that another publishes."""


class MissingSeq(Unwritten):
    """A release arrived before one that precedes it."""

    def __init__(self, group: Group, expected: int, got: int) -> None:
        message = f"{group}: release {got} came while {expected} is missing in the audit log; later ones wait for it"
        super().__init__(message, group)
        self.expected = expected
        self.got = got


@dataclass
class Appended:
    """The result of appending a batch."""

    written: int = 0
    repeated: int = 0
    faults: list[Unwritten] = field(default_factory=list)
    waiting: list[bytes] = field(default_factory=list)

    def raise_faults(self) -> None:
        """Raise the worst fault, if any: equivocation before a gap."""
        for fault in sorted(self.faults, key=lambda fault: isinstance(fault, MissingSeq)):
            fault.waiting, fault.written = tuple(self.waiting), self.written
            raise fault


def append_releases(connection: Connection, app: str, rows: Iterable[bytes], run: str | None = None) -> Appended:
    """Write releases, given as their exact bytes, into the caller's transaction.

    A file run gives its id, and adds only to versions that it owns. Without one, they are in Kafka already.
    """
    batch: dict[Group, list[tuple[int, str, str, str]]] = {}
    for row, release in read_records(rows, Release):
        place = batch.setdefault(group_of(app, release), [])
        place.append((release.seq, row.decode(), release.id, iso(release.time)))
    done = Appended()
    new: list[NewRelease] = []
    closed = _lock_versions(connection, app, batch, run)
    ranges = {group: (min(releases)[0], max(releases)[0]) for group, releases in batch.items()}
    stored = published(connection, ranges)
    for group in sorted(batch):
        try:
            added = _continue(group, sorted(batch[group]), stored.get(group, []), done)
            if added:
                closed.refuse(group)
            new += added
        except Unwritten as fault:
            done.faults.append(fault)
    if new:
        insert_releases(connection, new)
        owners.count(connection, releases=(row.version for row in new))
    done.written = len(new)
    return done


def _continue(
    group: Group, releases: list[tuple[int, str, str, str]], stored: list[LoggedRelease], done: Appended
) -> list[NewRelease]:
    """Rows that lengthen the chain of a group; repeats are compared, and what is behind a gap waits."""
    if len(releases) == len(stored) == 1 and releases[0][0] == stored[0].seq + 1:
        return [_next(group, releases[0], stored[0].hash)]  # the usual case: neither a repeat nor a gap
    known = {one.seq: one.body for one in stored}
    digests = {0: FIRST} | {one.seq: one.hash for one in stored}
    rows: list[NewRelease] = []
    waiting: list[bytes] = []
    repeated = 0
    for release in releases:
        seq, body, *_ = release
        if seq in known:
            if known[seq] != body:
                raise Equivocation(f"{group}: release {seq} has two values; the log keeps the first: {REMEDY}", group)
            repeated += 1
        elif seq - 1 in digests and not waiting:
            rows.append(_next(group, release, digests[seq - 1]))
            known[seq], digests[seq] = body, rows[-1].hash
        else:
            waiting.append(body.encode())
            if len(waiting) == 1:
                done.faults.append(MissingSeq(group, max(one for one in digests if one < seq) + 1, seq))
    done.repeated += repeated
    done.waiting += waiting
    return rows


def _next(group: Group, release: tuple[int, str, str, str], before: bytes) -> NewRelease:
    """The row of a release whose predecessor has this hash."""
    seq, body, name, at = release
    return NewRelease(*group, seq, name, at, body, before, chain(before, body.encode()))


@dataclass(frozen=True)
class _Closed:
    """Versions of which this writer may add nothing new."""

    ended: set[VersionId]
    of_others: dict[VersionId, str]  # and why

    def refuse(self, group: Group) -> None:
        """Raise if nothing new of this group may be written."""
        if group.version in self.ended:
            raise StreamEnded(
                f"{group}: the stream ended and this input goes on; raise its version, which is charged again "
                "(runs that are to go on need --open from the first one on)",
                group,
            )
        if (reason := self.of_others.get(group.version)) is not None:
            raise NotOwner(f"{group}: {reason}; nothing new is written", group)


def _lock_versions(connection: Connection, app: str, groups: Iterable[Group], run: str | None) -> _Closed:
    """Lock a batch's versions, so that appends to one follow one another and none changes its owner."""
    wanted = {group.version for group in groups}
    states = owners.lock_versions(connection, wanted)
    for version in sorted(wanted - states.keys()):
        raise AuditError(f"{version} is not registered under app {app!r}; nothing is written")
    ended = {version for version, state in states.items() if state == ENDED}
    if run is None:
        return _Closed(ended, {})
    retired = {version: "it is retired; raise its version" for version, state in states.items() if state == RETIRED}
    return _Closed(ended, retired | owners.of_others(connection, app, wanted, run))


def published(connection: Connection, ranges: dict[Group, tuple[int, int]]) -> dict[Group, list[LoggedRelease]]:
    """Stored releases of each group between first - 1 and last, in order; where there are none, its head."""
    releases_by_group: dict[Group, list[LoggedRelease]] = {}
    asked = list(ranges)
    for number, seq, body, digest in connection.execute(_between(connection.dialect.name, ranges)).all():
        if seq is not None:
            releases_by_group.setdefault(asked[number], []).append(LoggedRelease(seq, body, digest))
    for group, (first, _) in ranges.items():
        if group not in releases_by_group and first > 1 and (last := head(connection, group)):
            releases_by_group[group] = [last]
    return {group: sorted(releases) for group, releases in releases_by_group.items()}


def bodies(connection: Connection, names: Iterable[tuple[Group, int]]) -> dict[tuple[Group, int], str]:
    """The releases of a batch, by group and seq, as the log has them; those that it lacks are left out."""
    ranges: dict[Group, tuple[int, int]] = {}
    for group, seq in names:
        first, last = ranges.get(group, (seq, seq))
        ranges[group] = (min(first, seq), max(last, seq))
    stored = published(connection, ranges) if ranges else {}
    return {(group, release.seq): release.body for group, releases in stored.items() for release in releases}


def _between(dialect: str, ranges: dict[Group, tuple[int, int]]) -> Select[*tuple[Any, ...]]:
    """The query for all groups at once; where there is nothing, its seq is null.

    The groups are one JSON parameter, for thousands of parameters take a second to compile. The outer join keeps
    SQLite, which cannot know how few they are, from going through the releases first.
    """
    rows = [[*group.version, escape(group.group), *ends] for group, ends in ranges.items()]
    asked = text(ASKED[dialect]).bindparams(asked=orjson.dumps(rows).decode())
    wanted = asked.columns(
        number=BigInteger, app=Text, metric=Text, version=BigInteger, group=Label, first=BigInteger, last=BigInteger
    ).cte("asked")
    table = ReleaseRow.__table__.c
    columns = (wanted.c.app, wanted.c.metric, wanted.c.version, wanted.c.group)
    same = [table[column.key] == column for column in columns]
    between = (table.seq >= wanted.c.first - 1, table.seq <= wanted.c.last)
    return select(wanted.c.number, table.seq, table.body, table.hash).join_from(
        wanted, ReleaseRow.__table__, and_(*same, *between), isouter=True
    )


def head(connection: Connection, group: Group) -> LoggedRelease | None:
    """The last release of a group."""
    wanted = select(ReleaseRow.seq, ReleaseRow.body, ReleaseRow.hash).where(*_of(ReleaseRow, group))
    row = connection.execute(wanted.order_by(ReleaseRow.seq.desc()).limit(1)).one_or_none()
    return LoggedRelease(row.seq, row.body, row.hash) if row else None


def _of(table: type[ReleaseRow] | type[ActivationRow], group: Group) -> list[ColumnElement[bool]]:
    """The conditions by which a group's rows are chosen."""
    names = (table.app, table.metric, table.version, table.group)
    return [name == part for name, part in zip(names, (*group.version, group.group), strict=True)]


def heads(connection: Connection, app: str) -> dict[Group, Head]:
    """The last release of every group."""
    columns = (ReleaseRow.app, ReleaseRow.metric, ReleaseRow.version, ReleaseRow.group)
    last = (
        select(*columns, func.max(ReleaseRow.seq).label("seq"))
        .where(ReleaseRow.app == app)
        .group_by(*columns)
        .subquery()
    )
    same = and_(*(column == last.c[column.key] for column in (*columns, ReleaseRow.seq)))
    rows = connection.execute(select(*columns, ReleaseRow.seq, ReleaseRow.hash).join(last, same))
    return {Group(VersionId.of(row), row.group): Head(row.seq, row.hash) for row in rows}


def append_activations(connection: Connection, app: str, rows: Iterable[bytes], run: str | None = None) -> Appended:
    """Write activations, given as their exact bytes, into the caller's transaction."""
    done = Appended()
    new: dict[tuple[Group, int], dict[str, Any]] = {}
    read = [(row.decode(), begun) for row, begun in read_records(rows, Activation)]
    closed = _lock_versions(connection, app, {group_of(app, begun) for _, begun in read}, run)
    for body, begun in read:
        group, level = group_of(app, begun), begun.number
        stored = new[group, level]["body"] if (group, level) in new else activation(connection, group, level)
        try:
            if stored is None:
                closed.refuse(group)
                columns = {"at": iso(begun.time), "prior": orjson.dumps(begun.around).decode(), "body": body}
                new[group, level] = {**group.version._asdict(), "group": group.group, "level": level, **columns}
            elif stored == body:
                done.repeated += 1
            else:
                message = f"{group}: the {activation_name(level)} has two values; the log keeps the first: {REMEDY}"
                raise Equivocation(message, group)
        except Unwritten as fault:
            done.faults.append(fault)
    if new:
        connection.execute(insert(ActivationRow), list(new.values()))
        owners.count(connection, activations=(group.version for group, _ in new))
    done.written = len(new)
    return done


def activation(connection: Connection, group: Group, level: int) -> str | None:
    """An activation as it was published."""
    wanted = select(ActivationRow.body).where(*_of(ActivationRow, group), ActivationRow.level == level)
    return connection.execute(wanted).scalar_one_or_none()


def activated(connection: Connection, app: str) -> set[tuple[Group, int]]:
    """Group and level of all activations."""
    columns = (ActivationRow.app, ActivationRow.metric, ActivationRow.version, ActivationRow.group, ActivationRow.level)
    rows = connection.execute(select(*columns).where(ActivationRow.app == app))
    return {(Group(VersionId.of(row), row.group), row.level) for row in rows}


def read_records(rows: Iterable[bytes], kind: type[Kind]) -> Iterator[tuple[bytes, Kind]]:
    """Each row with the release or activation in it.

    Raises:
        AuditError: a row is of another kind.
    """
    for row in rows:
        record = record_of(row)
        if not isinstance(record, kind):
            raise AuditError("a record is neither release nor activation; someone else writes into shoal's topics")
        yield row, record


def group_of(app: str, record: Record) -> Group:
    """The chain a record of an app belongs to."""
    return Group(VersionId(app, record.metric, record.version), record.group or "")
