"""The releases of which `shoal window` is asked: in the audit log's SQL, or in a file. Neither needs a key."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import Connection, select

from shoal.agents.audit import log
from shoal.agents.audit.database import Database, bring_to_head
from shoal.agents.audit.log import Group
from shoal.agents.input.release_file import release_lines
from shoal.mechanisms.linear.statistic import LinearStatistic
from shoal.mechanisms.parts.metric import Metric
from shoal.models.errors import InputError, LedgerError
from shoal.models.releases.record import Activation, Release, record_of
from shoal.models.tables import ReleaseRow
from shoal.models.version import VersionId
from shoal.stream.any_window import History, with_nodes

NAMED = 5  # groups in an error


@dataclass(frozen=True)
class Wanted:
    """One group's releases: those that a window is asked of."""

    app: str
    parts: Metric
    mechanism: LinearStatistic
    group: str  # "" without one

    @property
    def key(self) -> Group:
        return Group(VersionId(self.app, self.parts.name, self.parts.version), self.group)

    def history(self, where: str, count: int, read: Callable[[int], Release]) -> History:
        return History(self.parts, self.mechanism, f"{where}: {self.key}", count, read)

    def nothing(self, where: str, versions: Iterable[int], groups: Iterable[str]) -> InputError:
        """The error that there are none, with what there is instead."""
        others, named = sorted(set(versions) - {self.parts.version}), sorted(groups)
        remedy = "name the place that the metric was released into"
        if named:
            remedy = f"it has groups: {', '.join(named[:NAMED])}{', ...' if len(named) > NAMED else ''}"
        elif others:
            remedy = f"there are some of version {', '.join(map(str, others))}: name it in the configuration"
        return InputError(f"{where}: no release of {self.key}; {remedy}")


# ---------------------------------------------------------------- SQL


@contextmanager
def logged(url: str, wanted: Wanted) -> Iterator[History]:
    """The releases in the audit log, read as they are asked for; nothing is written, made or migrated.

    Raises:
        ShoalError: there is no log, or none of the releases is in it.
    """
    database = Database(url)
    try:
        file = database.url.database
        if database.is_sqlite and not Path(str(file)).is_file():
            raise LedgerError(f"[audit] url: {file} does not exist; name the audit log, or a file of releases: --input")
        bring_to_head(database, migrate=False)
        with database.read() as connection:
            last = log.head(connection, wanted.key)
            if last is None:
                raise _nothing_logged(connection, wanted)
            yield wanted.history("audit log", last.seq, lambda seq: _logged(connection, wanted, seq))
    finally:
        database.close()


def _logged(connection: Connection, wanted: Wanted, seq: int) -> Release:
    body = log.bodies(connection, [(wanted.key, seq)]).get((wanted.key, seq))
    if body is None:
        raise _missing(f"audit log: {wanted.key}", seq, "shoal audit verify CONFIG")
    try:
        return with_nodes(record_of(body.encode()))
    except ValueError as error:
        raise InputError(f"audit log: {wanted.key} release {seq}: {error}; shoal audit verify CONFIG") from None


def _nothing_logged(connection: Connection, wanted: Wanted) -> InputError:
    first = (ReleaseRow.app == wanted.app, ReleaseRow.metric == wanted.parts.name, ReleaseRow.seq == 1)
    rows = connection.execute(select(ReleaseRow.version, ReleaseRow.group).where(*first)).all()
    groups = {row.group for row in rows if row.version == wanted.parts.version}
    return wanted.nothing(f"audit log, app {wanted.app!r}", {row.version for row in rows}, groups)


def _missing(where: str, seq: int, remedy: str) -> InputError:
    return InputError(f"{where}: release {seq} is missing; {remedy}")


# ---------------------------------------------------------------- a file


def filed(path: str, wanted: Wanted, on_bytes: Callable[[int], None] = lambda _: None) -> History:
    """The releases in a file of JSON lines, in any order, among any others; `-` is stdin, `.gz` is unpacked.

    Raises:
        InputError: it cannot be read, or a release is missing.
    """
    releases = _FileReleases(path, wanted)
    for number, line in release_lines(path, on_bytes):
        releases.take(number, line)
    return releases.history()


@dataclass
class _FileReleases:
    path: str
    wanted: Wanted
    releases: dict[int, Release] = field(default_factory=dict)  # by seq
    versions: set[int] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)

    def take(self, number: int, line: bytes) -> None:
        """Keep a line if it is one of the releases."""
        record, wanted = record_of(line), self.wanted
        if record is None:
            raise self._bad(number, "it is no release")
        if record.metric != wanted.parts.name or isinstance(record, Activation):
            return
        self.versions.add(record.version)
        if record.version == wanted.parts.version:
            self.groups.add(record.group or "")
            if (record.group or "") == wanted.group:
                self._keep(number, record)

    def _keep(self, number: int, release: Release) -> None:
        try:
            known = self.releases.setdefault(release.seq, with_nodes(release))
        except ValueError as error:
            raise self._bad(number, str(error)) from None
        if known != release:
            raise self._bad(number, f"release {release.seq} has two values")

    def _bad(self, number: int, reason: str) -> InputError:
        return InputError(f"{self.path}: line {number}: {reason}; give releases as JSON lines, as they were published")

    def history(self) -> History:
        """The history, if no release is missing."""
        count = max(self.releases, default=0)
        if not count:
            raise self.wanted.nothing(self.path, self.versions, self.groups)
        if len(self.releases) < count:
            seq = next(seq for seq in range(1, count) if seq not in self.releases)
            raise _missing(f"{self.path}: {self.wanted.key}", seq, "give all from the first on")
        return self.wanted.history(self.path, count, self.releases.__getitem__)
