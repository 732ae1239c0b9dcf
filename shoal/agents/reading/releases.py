"""`shoal.read`: releases from wherever they are, as records of Python and as tables."""

import os
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

from shoal.agents.reading.chart import html_of
from shoal.agents.reading.csv_text import csv_chunks
from shoal.agents.reading.frames import arrow_table, pandas_frame, polars_frame
from shoal.agents.reading.selection import Moment, Names, Selection, selection
from shoal.agents.reading.source import Found, MetricOf, Source
from shoal.agents.reading.sources import source_of
from shoal.models.errors import InputError
from shoal.models.printable import printable
from shoal.models.releases.digits import when
from shoal.models.releases.record import Activation, Release, record_of
from shoal.models.times import iso

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


NAMED = 12  # metrics in an error


class Releases(Sequence[Release]):
    """Releases in memory: in the order of their times, each once. Iterate over them, or take them as a table."""

    def __init__(self, releases: Iterable[Release], metric_of: MetricOf = lambda metric, version: None) -> None:
        self._releases = sorted(releases, key=_place)
        self._metric_of = metric_of

    def __len__(self) -> int:
        return len(self._releases)

    def __iter__(self) -> Iterator[Release]:
        return iter(self._releases)

    @overload
    def __getitem__(self, index: int) -> Release: ...
    @overload
    def __getitem__(self, index: slice) -> "Releases": ...
    def __getitem__(self, index: int | slice) -> "Release | Releases":
        """The release at a place, or those of a slice, in the order of time."""
        if isinstance(index, slice):
            return Releases(self._releases[index], self._metric_of)
        return self._releases[index]

    def __repr__(self) -> str:
        if not self._releases:
            return "<no releases>"
        first, last = (when(iso(each.time)) for each in (self._releases[0], self._releases[-1]))
        names = printable(", ".join(self.metrics))
        return f"<{len(self):,} releases of {names}, from {first} to {last}>"

    @property
    def metrics(self) -> list[str]:
        """The names of the metrics that these releases belong to, sorted."""
        return sorted({release.metric for release in self._releases})

    @property
    def groups(self) -> list[str]:
        """The names of all groups; of metrics without groups none."""
        return sorted({release.group for release in self._releases if release.group is not None})

    def only(
        self,
        metric: Names = None,
        group: Names = None,
        since: Moment = None,
        until: Moment = None,
        version: int | None = None,
    ) -> "Releases":
        """Some of them, chosen as in `shoal.read`."""
        wanted = selection(metric, group, since, until, version)
        return Releases(filter(wanted.has, self._releases), self._metric_of)

    def latest(self) -> "Releases":
        """The last release of every metric and group, of the newest version of the metric that is there."""
        newest: dict[str, int] = {}
        for release in self._releases:
            newest[release.metric] = max(release.version, newest.get(release.metric, 0))
        last = {(each.metric, each.group): each for each in self._releases if each.version == newest[each.metric]}
        return Releases(last.values(), self._metric_of)

    def to_html(self) -> str:
        """A chart of each metric with its noise, as HTML that needs nothing else; notebooks show it."""
        return html_of(self._releases, self._metric_of)

    _repr_html_ = to_html

    def to_arrow(self) -> "pyarrow.Table":
        """A row for each number, in Arrow; needs the extra `arrow`."""
        return arrow_table(self._releases)

    def to_polars(self) -> "polars.DataFrame":
        """The same in polars; needs the extra `polars`."""
        return polars_frame(self._releases)

    def to_pandas(self) -> "pandas.DataFrame":
        """The same in pandas; needs the extra `pandas`."""
        return pandas_frame(self._releases)

    def to_csv(self, path: str | os.PathLike[str], *, guarded: bool = True) -> None:
        """Write a row for each number. Without `guarded` texts stay as they are, for readers that run no formulas."""
        with Path(path).open("wb") as file:
            file.writelines(csv_chunks(self._releases, guarded=guarded))


def _place(release: Release) -> tuple[object, ...]:
    return release.at, release.metric, release.version, release.group or "", release.seq


@overload
def read(
    source: str | os.PathLike[str] | None = None,
    *,
    metric: Names = None,
    group: Names = None,
    since: Moment = None,
    until: Moment = None,
    version: int | None = None,
    brokers: str | None = None,
    topic: str | None = None,
    app: str | None = None,
    follow: Literal[False] = False,
) -> Releases: ...
@overload
def read(
    source: str | os.PathLike[str] | None = None,
    *,
    metric: Names = None,
    group: Names = None,
    since: Moment = None,
    until: Moment = None,
    version: int | None = None,
    brokers: str | None = None,
    topic: str | None = None,
    app: str | None = None,
    follow: Literal[True],
) -> Generator[Release, None, None]: ...
def read(
    source: str | os.PathLike[str] | None = None,
    *,
    metric: Names = None,
    group: Names = None,
    since: Moment = None,
    until: Moment = None,
    version: int | None = None,
    brokers: str | None = None,
    topic: str | None = None,
    app: str | None = None,
    follow: bool = False,
) -> Releases | Generator[Release, None, None]:
    """Read what was published; no key is needed, and nothing is written.

    source: a file of releases as `shoal run` writes it (JSON lines, plain or gzipped), a configuration (a name that
        ends with .toml: its releases topic, or without Kafka its audit log), or the URL of an audit log (sqlite:///FILE
        or postgresql://...). Without a source, `brokers` and `topic`.
    metric, group: only these; a name, or several.
    since, until: only releases of ticks that end after `since` and not after `until`; times are UTC.
    version: only this version of a metric; else all that there are.
    app: of an audit log with several apps, which.
    follow: of a topic, go on with each release as it is published, in an iterator without end.

    Raises:
        ShoalError: it cannot be read; the message says what, where and what to do.
    """
    wanted = selection(metric, group, since, until, version)
    found = source_of(None if source is None else os.fspath(source), brokers=brokers, topic=topic, app=app)
    check_metrics(found, wanted)
    if follow:
        return _followed(found, wanted)
    names: set[str] = set()
    releases = Releases(_each_once(found.name, _noting(releases_in(found), names), wanted), found.metric_of)
    if not releases:
        check_seen(found, wanted, names)
    return releases


def activations(
    source: str | os.PathLike[str] | None = None,
    *,
    metric: Names = None,
    group: Names = None,
    since: Moment = None,
    until: Moment = None,
    version: int | None = None,
    brokers: str | None = None,
    topic: str | None = None,
    app: str | None = None,
) -> list[Activation]:
    """What begins to count and when, by time; sources and choices are those of `read`.

    Raises:
        ShoalError: it cannot be read.
    """
    wanted = selection(metric, group, since, until, version)
    found = source_of(None if source is None else os.fspath(source), brokers=brokers, topic=topic, app=app)
    check_metrics(found, wanted)
    entries = entries_in(found, None if found.begun is None else found.begun())
    begun = {raw: record for raw, record in entries if isinstance(record, Activation) and wanted.has(record)}
    return sorted(begun.values(), key=lambda each: (each.at, each.metric, each.version, each.group or ""))


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=3)


def releases_in(source: Source, records: Iterator[Found] | None = None) -> Iterator[Release]:
    """All releases of a source, one by one. Activations among them are left out.

    Raises:
        ShoalError: it cannot be read. A line of a file, or a row of a log, that is no release is an error; of a topic,
            into which others may write, it is left out with a warning.
    """
    for _, record in entries_in(source, records):
        if isinstance(record, Release):
            yield record


def entries_in(
    source: Source, records: Iterator[Found] | None = None, warn: Callable[[str], None] = _warn
) -> Iterator[tuple[bytes, Release | Activation]]:
    """The same, with activations, and each with its bytes."""
    has_warned = False
    for place, raw in source.records() if records is None else records:
        record = record_of(raw, source.length_of)
        if raw is not None and record is not None:
            yield raw, record
        elif source.strict:
            raise InputError(f"{source.name}: {place} is no release; name a file of releases, as `shoal run` writes it")
        elif not has_warned:
            has_warned = True
            warn(f"shoal: note: {place}: a record is no release, and left out, as all that are none")


def _followed(source: Source, wanted: Selection) -> Generator[Release, None, None]:
    settings = source.settings
    if settings is None:
        raise InputError(
            f"{source.name}: only a topic can be followed; name a configuration with [kafka], or brokers and topic"
        )
    from shoal.agents.reading.topics import growing

    def releases() -> Generator[Release, None, None]:
        with closing(growing(settings, source.topic)) as records:
            yield from filter(wanted.has, releases_in(source, records))

    return releases()


def _noting(releases: Iterator[Release], names: set[str]) -> Iterator[Release]:
    for release in releases:
        names.add(release.metric)
        yield release


def _each_once(name: str, releases: Iterator[Release], wanted: Selection) -> Iterator[Release]:
    """What is wanted; the same release read twice, say from two files in one, is there once."""
    seen: dict[tuple[object, ...], Release] = {}
    for release in releases:
        if wanted.has(release):
            key = release.metric, release.version, release.group, release.seq
            known = seen.setdefault(key, release)
            if known is release:
                yield release
            elif known != release:
                raise InputError(f"{name}: release {release.id} has two values; name releases of one log")


def check_metrics(source: Source, wanted: Selection) -> None:
    """Refuse a metric that the configuration does not have."""
    known = {version.metric for version in source.metrics}
    unknown = wanted.metrics - known
    if known and unknown:
        raise _no_metric(source, unknown, known)


def check_seen(source: Source, wanted: Selection, names: set[str]) -> None:
    """Refuse a metric that is not there at all: it is a slip, where an empty table would look like an answer."""
    if names and wanted.metrics and not source.metrics and not wanted.metrics & names:
        raise _no_metric(source, wanted.metrics, names)


def _no_metric(source: Source, unknown: Iterable[str], known: set[str]) -> InputError:
    some = sorted(known)
    named = ", ".join(some[:NAMED]) + (", ..." if len(some) > NAMED else "")
    return InputError(f"{source.name}: no metric {', '.join(map(repr, sorted(unknown)))}; there are: {named}")
