"""Releases by metric and group, as columns for charts; older ones are thinned where there are too many.

Everything comes as bytes that somebody wrote, and nothing here fails because of them: what is no release is counted.
A series that is too long keeps every second release, then every fourth, and always its last: what is kept is what was
published, never an average of it.
"""

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from shoal.agents.reading.fields import (
    Part,
    inside,
    is_activation,
    is_release,
    item,
    number,
    object_of,
    part_of,
    parts_of,
)
from shoal.models.records import CLIP
from shoal.models.times import time_of_text
from shoal.models.version import VersionId

MOST_OF_ALL = 120_000  # releases kept of all groups together, about
MOST_OF_ONE, LEAST_OF_ONE = 4_000, 16
ACTIVATIONS = 200  # of a metric
FACTS = ("epsilon", "delta", "unit", "relation", "algorithm", "mechanism")
EXTRAS = ("withheld", "users", "dropped", "error", CLIP)  # of the last release of a group
OF_SLOTS = ("users", "error")  # of every release, where each is of a slot


@dataclass(slots=True)
class Release:
    """One release, read."""

    metric: str
    version: int
    group: str
    seq: int
    at: float  # seconds since 1970
    samples: float | None
    samples_sd: float | None  # None: the number is exact
    parts: list[Part]
    extras: dict[str, Any]

    def row(self) -> list[Any]:
        """As the page takes it."""
        return [
            self.metric, self.version, self.group, self.seq, self.at, self.samples, self.samples_sd, self.parts,
            self.extras,
        ]  # fmt: skip


@dataclass(slots=True)
class Series:
    """The releases of one group, in order."""

    seq: int = 0
    total: int = 0
    stride: int = 1
    rows: list[Release] = field(default_factory=list)

    def add(self, release: Release) -> None:
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

    def take(self, raw: bytes | None) -> Release | None:
        """Read a record; the release, if it is one that is new."""
        fields = object_of(raw)
        if fields is None:
            self.others["unreadable"] += 1
        elif (release := release_of(fields)) is not None:
            return self._take(release, fields)
        elif is_activation(fields):
            self._activate(fields)
        else:
            self.others["of another kind"] += 1
        return None

    def _take(self, release: Release, fields: dict[str, Any]) -> Release | None:
        facts = self.stated.setdefault(VersionId(self.app, release.metric, release.version), {})
        if not facts:
            facts |= {name: fields[name] for name in FACTS if _is_plain(fields.get(name))}
        metric = self._metric(release.metric, release.version)
        if metric is None:
            return None
        series = metric.groups.setdefault(release.group, Series())
        if release.seq <= series.seq:
            self.others["repeated"] += 1
            return None
        release.parts, names = parts_of(fields)
        metric.parts = names if len(names) > len(metric.parts) or metric.parts == [""] else metric.parts
        metric.facts = {name: fields[name] for name in FACTS if _is_plain(fields.get(name))}
        if (shown := _histogram(fields)) is not None:
            metric.distribution[release.group] = shown
        before = len(series.rows)
        series.add(release)
        self.releases += 1
        self._kept += len(series.rows) - before
        self._make_room(series)
        return release

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

    def _activate(self, fields: dict[str, Any]) -> None:
        version = fields.get("version", 1)
        metric = self._metric(fields["metric"], version if isinstance(version, int) else 1)
        if metric is not None:
            metric.activated += 1
            at = time_of_text(fields["at"]) or 0
            prior = fields.get("high" if fields.get("kind") == CLIP else "prior")
            metric.activations.append([
                _seconds(at), _label(fields.get("group")), number(fields.get("level")),
                fields.get("kind") if isinstance(fields.get("kind"), str) else None,
                prior if _is_numbers(prior) else None, number(fields.get("epsilon")),
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


def release_of(fields: dict[str, Any]) -> Release | None:
    """The release but for its parts; None if it lacks what every release has."""
    if not is_release(fields):
        return None
    exact = number(fields.get("samples"))
    samples = number(fields.get("count")) if exact is None else exact
    return Release(
        metric=fields["metric"], version=fields["version"], group=_label(fields["group"]), seq=fields["seq"],
        at=_seconds(time_of_text(fields["at"]) or 0), samples=samples,
        samples_sd=None if exact is not None else number(fields.get("count_sd")),
        parts=[], extras={name: fields[name] for name in EXTRAS if _is_small(fields.get(name))},
    )  # fmt: skip


def _histogram(fields: dict[str, Any]) -> list[Any] | None:
    """Shares of a distribution's bins, with their intervals."""
    value = fields["value"]
    if not isinstance(value, dict) or not isinstance(value.get("histogram"), list):
        return None
    low, high = (inside(fields.get(name), "histogram") for name in ("low", "high"))
    parts = [part_of(each, item(low, i), item(high, i)) for i, each in enumerate(value["histogram"])]
    return [list(side) for side in zip(*parts, strict=True)]


def _seconds(microseconds: int) -> float:
    whole, rest = divmod(microseconds, 1_000_000)
    return whole + rest / 1e6 if rest else whole


def _label(group: Any) -> str:
    return group if isinstance(group, str) else ""


def _is_plain(value: Any) -> bool:
    return isinstance(value, str) or number(value) is not None


def _is_small(value: Any) -> bool:
    """Whether it is a number, or an object of numbers."""
    whole = isinstance(value, dict) and all(number(each) is not None for each in value.values())
    return whole or number(value) is not None


def _is_numbers(value: Any) -> bool:
    return number(value) is not None or (
        isinstance(value, list) and all(each is None or number(each) is not None for each in value)
    )
