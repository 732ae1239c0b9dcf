"""Releases by metric and group, as columns for charts; older ones are thinned where there are too many.

Everything comes as bytes that somebody wrote, and nothing here fails because of them: what is no release is counted.
A series that is too long keeps every second release, then every fourth, and always its last: what is kept is what was
published, never an average of it.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from shoal.models.records import CLIP
from shoal.models.releases.numbers import Part, item, number, part_of
from shoal.models.releases.record import Activation, Release, record_of
from shoal.models.version import VersionId

MOST_OF_ALL = 120_000  # releases kept of all groups together, about
MOST_OF_ONE, LEAST_OF_ONE = 4_000, 16
ACTIVATIONS = 200  # of a metric
FACTS = ("epsilon", "delta", "unit", "relation", "algorithm", "mechanism")
EXTRAS = ("withheld", "users", "dropped", "error", CLIP)  # of the last release of a group
OF_SLOTS = ("users", "error")  # of every release, where each is of a slot


class Row(NamedTuple):
    """Release as a row of the page; the page's program reads the fields by position."""

    metric: str
    version: int
    group: str  # "" without one
    seq: int
    at: float  # seconds since 1970
    samples: float | None
    samples_sd: float | None  # None: the number is exact
    parts: list[Part]
    extras: dict[str, Any]


@dataclass(slots=True)
class Series:
    """The releases of one group, in order."""

    seq: int = 0
    total: int = 0
    stride: int = 1
    rows: list[Row] = field(default_factory=list)

    def add(self, release: Row) -> None:
        """Keep the release; the one before it stays if it is on the stride."""
        if self.rows and (self.total - 1) % self.stride:
            self.rows.pop()
        self.rows.append(release)
        self.seq, self.total = release.seq, self.total + 1

    def thin(self, most: int) -> None:
        """Keep at most so many, and the last."""
        while len(self.rows) > max(most, 2):
            last, is_on_stride = self.rows[-1], (self.total - 1) % (2 * self.stride) == 0
            self.stride *= 2
            self.rows = self.rows[::2]
            if not is_on_stride and self.rows[-1] is not last:
                self.rows.append(last)

    def columns(self, parts: int) -> list[Any]:
        """Seq, total, stride, times, samples, their sd, values, lows and highs by part, extras: of the last, of all."""
        rows = self.rows
        noisy = any(row.samples_sd is not None for row in rows)
        each: list[Part] = [(None, None, None)] * parts
        padded = [row.parts + each[len(row.parts) :] for row in rows]
        of_slots = any("users" in row.extras for row in rows)
        return [
            self.seq,
            self.total,
            self.stride,
            [row.at for row in rows],
            [row.samples for row in rows],
            [row.samples_sd for row in rows] if noisy else None,
            [[[row[part][side] for row in padded] for side in range(3)] for part in range(parts)],
            rows[-1].extras,
            [[row.extras.get(name) for row in rows] for name in OF_SLOTS] if of_slots else None,
        ]


@dataclass(slots=True)
class Metric:
    """The newest version of a metric."""

    version: int
    facts: dict[str, Any] = field(default_factory=dict)
    parts: list[str] = field(default_factory=lambda: [""])
    groups: dict[str, Series] = field(default_factory=dict)
    activations: deque[list[Any]] = field(default_factory=lambda: deque(maxlen=ACTIVATIONS))
    activated: int = 0
    distribution: dict[str, Any] = field(default_factory=dict)  # by group: histogram of the last release

    @property
    def is_thinned(self) -> bool:
        """Whether a release of it is kept no more."""
        return any(series.stride > 1 for series in self.groups.values())


class Book:
    """All releases of one app that came, as far as they are kept."""

    def __init__(self, most: int = MOST_OF_ALL, most_of_one: int = MOST_OF_ONE, *, app: str = "") -> None:
        self.metrics: dict[str, Metric] = {}
        self.releases = 0
        self.others: Counter[str] = Counter()  # what was left out, by reason
        self.app = app
        self.stated: dict[VersionId, dict[str, Any]] = {}  # facts of all versions, older ones too
        self._most, self._most_of_one, self._kept = most, most_of_one, 0

    def take(self, raw: bytes | None) -> Row | None:
        """Read a record; its row, if it is a release that is new."""
        record = record_of(raw)
        if isinstance(record, Release):
            return self._take(record)
        if isinstance(record, Activation):
            self._activate(record)
        else:
            self.others["of another kind"] += 1
        return None

    def _take(self, release: Release) -> Row | None:
        name, version, group = release.metric, release.version, release.group or ""
        facts = self.stated.setdefault(VersionId(self.app, name, version), {})
        if not facts:
            facts |= _stated(release, FACTS)
        metric = self._metric(name, version)
        if metric is None:
            return None
        series = metric.groups.setdefault(group, Series())
        if release.seq <= series.seq:
            self.others["repeated"] += 1
            return None
        parts, names = release.parts()
        metric.parts = names if len(names) > len(metric.parts) or metric.parts == [""] else metric.parts
        metric.facts = facts
        if (shown := _histogram(release)) is not None:
            metric.distribution[group] = shown
        before = len(series.rows)
        row = _row(release, parts)
        series.add(row)
        self.releases += 1
        self._kept += len(series.rows) - before
        self._make_room(series)
        return row

    def _metric(self, name: str, version: int) -> Metric | None:
        """The metric, if this is its newest version; an older one is counted, and replaced where it was shown."""
        known = self.metrics.get(name)
        if known is None or version > known.version:
            if known is not None:
                self.others["of an older version"] += sum(series.total for series in known.groups.values())
                self._kept -= sum(len(series.rows) for series in known.groups.values())
            known = self.metrics[name] = Metric(version)
        elif version < known.version:
            self.others["of an older version"] += 1
            return None
        return known

    def _make_room(self, series: Series) -> None:
        """Thin what is too long by itself, or all if they are too many together."""
        if len(series.rows) > self._most_of_one:
            self._kept -= _thinned(series, self._most_of_one // 2)
        if self._kept > self._most:
            every = [each for metric in self.metrics.values() for each in metric.groups.values()]
            limit = max(LEAST_OF_ONE, max(len(each.rows) for each in every) // 2)
            self._kept -= sum(_thinned(each, limit) for each in every)
            self._most = max(self._most, 2 * self._kept)  # so many groups that each has its least already

    def _activate(self, record: Activation) -> None:
        metric = self._metric(record.metric, record.version)
        if metric is not None:
            metric.activated += 1
            metric.activations.append([
                _seconds(record.time), record.group or "", record.level, record.kind, record.around, record.epsilon,
            ])  # fmt: skip

    def tables(self) -> Iterator[dict[str, Any]]:
        """Yield what the page gets of every metric."""
        for name, metric in sorted(self.metrics.items()):
            yield {
                "name": name,
                "version": metric.version,
                "facts": metric.facts,
                "parts": metric.parts,
                "groups": {name: each.columns(len(metric.parts)) for name, each in sorted(metric.groups.items())},
                "activations": list(metric.activations),
                "activated": metric.activated,
                "distribution": metric.distribution,
            }


def _thinned(series: Series, most: int) -> int:
    before = len(series.rows)
    series.thin(most)
    return before - len(series.rows)


def _row(release: Release, parts: list[Part]) -> Row:
    samples, deviation = release.counted
    extras = {name: said for name, said in _stated(release, EXTRAS).items() if _is_small(said)}
    at = _seconds(release.time)
    return Row(release.metric, release.version, release.group or "", release.seq, at, samples, deviation, parts, extras)


def _stated(release: Release, names: Iterable[str]) -> dict[str, Any]:
    """The fields of these names that a release has."""
    return {name: said for name in names if name in release.fields and (said := getattr(release, name)) is not None}


def _histogram(release: Release) -> list[Any] | None:
    """Shares of a distribution's bins, with their intervals."""
    value = item(release.value, "histogram")
    if not isinstance(value, list):
        return None
    low, high = item(release.low, "histogram"), item(release.high, "histogram")
    parts = [part_of(each, item(low, i), item(high, i)) for i, each in enumerate(value)]
    return [list(side) for side in zip(*parts, strict=True)]


def _seconds(microseconds: int) -> float:
    whole, rest = divmod(microseconds, 1_000_000)
    return whole + rest / 1e6 if rest else whole


def _is_small(value: Any) -> bool:
    """Whether it is a number, or an object of numbers."""
    whole = isinstance(value, dict) and all(number(each) is not None for each in value.values())
    return whole or number(value) is not None
