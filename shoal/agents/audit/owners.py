"""Who alone may add to a metric version's stream: one file run or, from the first worker on, the workers of the app.

An owner is a row without a time: it needs no renewal, so a database that is away stops no owner. The row is read in the
SQL transaction that writes, behind the lock of the version under which it changes. A newer file run takes a version
over from an older one, and workers take it from both, for good; anyone else may only repeat what is published.

Workers that take over first reproduce what the log has, in all partitions of the contributions; the row lists the
partitions that have. It also counts the rows that the log must have, so that lost rows are not taken for releases that
never were.

`continuation.py` keeps a file run that owns a version to one stream, `shoal/stream/guard.py` workers.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import Connection, Row, Update, insert, select, tuple_, update

from shoal.models.tables import ALL_PARTITIONS, FILE_RUN, WORKERS, MetricVersion, Owner

Version = tuple[str, int]  # metric and version


@dataclass(frozen=True)
class Ownership:
    """The owner of a version, as the ledger has it."""

    kind: str
    run: str
    releases: int
    activations: int
    made_again: frozenset[int] | None  # partitions that have made again what file runs published; None: all have

    @property
    def by_workers(self) -> bool:
        return self.kind == WORKERS

    def refuses(self, run: str) -> str | None:
        """Why a file run may add nothing; None if it may."""
        if not self.by_workers and self.run == run:
            return None
        if self.by_workers:
            return "workers of this app publish it, and a file run may only repeat what they have published"
        return "another `shoal run` has taken it over since; let that one end, or start this one again"


def owners(connection: Connection, app: str) -> dict[Version, Ownership]:
    """The owners of all versions of an app."""
    wanted = select(*Owner.__table__.columns).where(Owner.app == app)
    return {(row.metric, row.version): _read(row) for row in connection.execute(wanted)}


def _read(row: Row[Any]) -> Ownership:
    made = None if row.made_again == ALL_PARTITIONS else frozenset(orjson.loads(row.made_again))
    return Ownership(row.kind, row.run, row.releases, row.activations, made)


def of_others(connection: Connection, app: str, wanted: Iterable[Version], run: str) -> dict[Version, str]:
    """Those of these versions to which a file run may add nothing, and why."""
    known = owners(connection, app)
    reasons = {version: known[version].refuses(run) if version in known else "nobody owns it" for version in wanted}
    return {version: reason for version, reason in reasons.items() if reason is not None}


def lock_versions(connection: Connection, app: str, wanted: Iterable[Version]) -> dict[Version, str]:
    """Lock these versions until the transaction ends, and return their states; unregistered ones are left out."""
    columns = (MetricVersion.metric, MetricVersion.version)
    mine = select(*columns, MetricVersion.state).where(MetricVersion.app == app).order_by(*columns)
    held = mine.where(tuple_(*columns).in_(set(wanted))).with_for_update(key_share=True)
    return {(row.metric, row.version): row.state for row in connection.execute(held)}


def take_over(
    connection: Connection,
    app: str,
    topics: Mapping[Version, str | None],
    read: Iterable[str],
    run: str,
    run_topic: str | None,
) -> None:
    """Make or change the owners of versions, each given with its topic, when they are registered.

    `read` are the topics of the app's workers, `run` the file run that registers, or '', and `run_topic` the topic that
    it reads, or None for all.
    """
    lock_versions(connection, app, topics)
    known, read = owners(connection, app), set(read)
    for version, topic in topics.items():
        before = known.get(version)
        mine = run if run_topic in (None, topic) else ""
        if before is None:
            key = {"app": app, "metric": version[0], "version": version[1], "releases": 0, "activations": 0}
            owner = {"kind": WORKERS, "run": ""} if topic in read else {"kind": FILE_RUN, "run": mine}
            connection.execute(insert(Owner).values(**key, **owner, made_again=ALL_PARTITIONS))
        elif before.kind == FILE_RUN and topic in read:
            made = "[]" if before.releases or before.activations else ALL_PARTITIONS
            connection.execute(_change(app, version).values(kind=WORKERS, run="", made_again=made))
        elif before.kind == FILE_RUN and mine:
            connection.execute(_change(app, version).values(run=mine))


def count(
    connection: Connection, app: str, *, releases: Iterable[Version] = (), activations: Iterable[Version] = ()
) -> None:
    """Count the rows that were written, each by its version, in the transaction that wrote them."""
    for version, rows in sorted(Counter(releases).items()):
        connection.execute(_change(app, version).values(releases=Owner.releases + rows))
    for version, rows in sorted(Counter(activations).items()):
        connection.execute(_change(app, version).values(activations=Owner.activations + rows))


def note_made_again(connection: Connection, app: str, made: Mapping[Version, set[int]], partitions: int) -> None:
    """Note which contributions partitions have made again what the log had; the last one completes the version."""
    lock_versions(connection, app, made)
    known = owners(connection, app)
    for version, new in made.items():
        before = known[version].made_again
        if before is not None and not new <= before:
            done = sorted(before | new)
            partitions_done = ALL_PARTITIONS if done == list(range(partitions)) else orjson.dumps(done).decode()
            connection.execute(_change(app, version).values(made_again=partitions_done))


def _change(app: str, version: Version) -> Update:
    return update(Owner).where(Owner.app == app, Owner.metric == version[0], Owner.version == version[1])
