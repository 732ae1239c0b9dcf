"""A history of one topic: right and wrong times, versions that are raised with and without a restart, and kills.

`History` plays its steps on a cluster without Kafka, and keeps a plain list of all records. What each version must
release follows from that list alone: a file run, or a cluster that nothing disturbs, over the records that are not too
far ahead, from where the version began; in front of them stands where its clock was then.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import orjson

from shoal.models.config.file import Config
from shoal.models.records import BEAT_HEADER, CLOCK_HEADER
from shoal.models.times import iso
from shoal.stream.file_run import FileRun, Line
from shoal.stream.state_mark import MARK
from shoal.stream.topic import TopicPlan, plan_topic
from tests.privacy.attended import SECOND, present
from tests.stream.simulation import SECRET, Cluster, event

HOMES = 2
BEGIN, STEP, STEPS = 1000, 10, 6  # seconds; STEPS of metrics that protect presence
Version = tuple[str, int]  # name and version of a metric


class Sent(NamedTuple):
    """A record of a source partition; times in seconds."""

    header: str  # "" of an event
    raw: bytes | None
    time: int
    stamp: int

    def line(self, offset: int, *, is_dated: bool = True) -> Line:
        headers = ((self.header, iso(self.time * SECOND).encode()),) if self.header else ()
        return Line(offset, self.raw, timestamp=self.stamp * 1000 if is_dated else -1, headers=headers)


_PLANS: dict[Any, TopicPlan] = {}


def compiled_once(config: Config, sources: int, homes: int) -> TopicPlan:
    """The plan of a configuration; most histories have the same few."""
    key = sources, homes, *((repr(metric), metric.parts.source.epoch) for metric in config.metric)
    if key not in _PLANS:
        _PLANS[key] = plan_topic(config, "events", SECRET, source_partitions=sources, contributions_partitions=homes)
    return _PLANS[key]


class History:
    """A topic under way, and what is known of it."""

    def __init__(self, config: Config, sources: int) -> None:
        self.config, self.sources = config, sources
        self.now = self.latest_stamp = BEGIN
        self.epoch = 0
        self.records: list[list[Sent]] = [[] for _ in range(sources)]
        self.cluster = Cluster(config, sources, HOMES, compiled_once(config, sources, HOMES))
        self.configs: dict[Version, Config] = {}  # of each version ever, that metric alone
        self.began: dict[Version, list[int]] = {}
        self._clock_began: dict[tuple[str, int], list[int]] = {}
        self._begin([0] * sources)

    @property
    def versions(self) -> list[Version]:
        """Those that are there now."""
        return [(metric.name, metric.version) for metric in self.config.metric]

    # ---------------------------------------------------------------- steps

    def play(self, steps: Iterable[tuple[Any, ...]]) -> None:
        """All steps, then the end of all open ticks."""
        for name, *arguments in steps:
            if name in ("bound", "release", "crash_bound", "crash_release"):
                self.cluster.act(name, *arguments)
            else:
                getattr(self, name)(*arguments)
        self.now += 40
        self.clock(None, 0, False)
        self.beat(None, 0, False)
        self.cluster.drain()

    def true(self, user: str, step: int) -> None:
        """An event of now."""
        self.now += step
        self._event(user, self.now, self.now)

    def late(self, user: str, back: int) -> None:
        self._event(user, self.now - back, self.now)

    def jump(self, user: str, ahead: int, is_wrong: bool) -> None:
        """An event that is ahead; its stamp, too, if that is wrong."""
        self._event(user, self.now + ahead, self.now + ahead * is_wrong)

    def ramp(self, user: str, steps: int, step: int) -> None:
        """Events of which each is a little ahead of the one before, while stamps stay behind."""
        for number in range(1, steps + 1):
            self._event(user, self.now + number * step, self.now)

    def clock(self, where: int | None, ahead: int, is_wrong: bool) -> None:
        """A clock record in a partition, or in all."""
        self._everywhere(where, Sent(CLOCK_HEADER, None, self.now + ahead, self.now + ahead * is_wrong))

    def beat(self, where: int | None, ahead: int, is_wrong: bool) -> None:
        """A beat in a partition, or in all."""
        self._everywhere(where, Sent(BEAT_HEADER, None, self.now + ahead, self.now + ahead * is_wrong))

    def deploy(self, raised: Sequence[int], is_restarted: bool) -> None:
        """Raise some metrics, where it is so after a restart of the topic's clocks, and start all workers again."""
        self.epoch += is_restarted
        names = {self.config.metric[number % len(self.config.metric)].name for number in raised}
        newer = self._raised(names)
        self.config = newer.in_epochs({newer.id_of(one.parts): self.epoch for one in newer.metric if one.name in names})
        before = {f"{name}/{version}" for name, version in self.began}
        labels = {f"{metric.name}/{metric.version}" for metric in newer.metric}
        self.cluster.cfg = self.config
        plan = compiled_once(self.config, self.sources, HOMES)
        self.cluster.plan = replace(plan, retired=frozenset(before - labels), added=frozenset(labels - before))
        for index in range(self.sources):
            self.cluster.crash_bound(index)
        for index in range(HOMES):
            self.cluster.crash_release(index)
        self._begin([orjson.loads(one.changelog.get(MARK, b'{"offset":0}'))["offset"] for one in self.cluster.sources])

    def _raised(self, names: set[str]) -> Config:
        """The configuration with the next version of these metrics."""
        metrics = [
            one.model_copy(update={"version": one.version + 1}) if one.name in names else one
            for one in self.config.metric
        ]
        return self.config.model_copy(update={"metric": tuple(metrics)})

    def _begin(self, offsets: list[int]) -> None:
        for metric in self.config.metric:
            version = metric.name, metric.version
            if version not in self.began:
                self.began[version] = offsets
                self.configs[version] = self.config.model_copy(update={"metric": (metric,)})
                self._clock_began.setdefault(self._clock_of(version), offsets)

    def _clock_of(self, version: Version) -> tuple[str, int]:
        """What names the clock of a version: what it says of time, and its epoch."""
        (metric,) = self.configs[version].metrics
        source = metric.source
        return f"{source.lateness} {source.late} {source.max_ahead} {metric.protects_presence}", source.epoch

    def _event(self, user: str, time: int, stamp: int) -> None:
        raw = event(user, time % 5 / 4, time, g=f"g{time % 3}")
        self._send(self.cluster.plan.partition_of(user.encode(), self.sources), Sent("", raw, time, stamp))

    def _everywhere(self, where: int | None, sent: Sent) -> None:
        for index in range(self.sources) if where is None else [where % self.sources]:
            self._send(index, sent)

    def _send(self, index: int, sent: Sent) -> None:
        log = self.cluster.sources[index].log
        log.append(sent.line(len(log)))
        self.records[index].append(sent)
        self.latest_stamp = max(self.latest_stamp, sent.stamp)

    # ---------------------------------------------------------------- what must be

    def found(self) -> dict[tuple[str, int, str], list[bytes]]:
        """Releases of each metric version and group, in the order of their publication."""
        return by_group(release for home in self.cluster.homes for release in home.releases)

    def expected(self, version: Version) -> dict[tuple[str, int, str], list[bytes]]:
        """Those of a version that nothing disturbs, to the end of the records."""
        config = self.configs[version]
        logs = [self._accepted(version, index) for index in range(self.sources)]
        if self.sources == 1:
            lines = [sent.line(offset, is_dated=False) for offset, sent in enumerate(logs[0])]
            outputs = FileRun(compiled_once(config, 1, 1)).outputs(lines, end=False)
            return by_group(release for output in outputs for release in output.made)
        alone = Cluster(config, self.sources, HOMES, compiled_once(config, self.sources, HOMES))
        for source, log in zip(alone.sources, logs, strict=True):
            source.log += [sent.line(offset) for offset, sent in enumerate(log)]
        alone.drain()
        return by_group(release for home in alone.homes for release in home.releases)

    def _accepted(self, version: Version, index: int) -> list[Sent]:
        """The records of a version that are not too far ahead, and before them one that tells where its clock was."""
        (metric,) = self.configs[version].metric
        records, begin = self.records[index], self.began[version][index]
        most, lateness = metric.parts.source.max_ahead // SECOND, metric.lateness // SECOND
        taken = [one for one in records[begin:] if one.time - one.stamp <= most]
        heard = records[self._clock_began[self._clock_of(version)][index] : begin]
        times = [one.time + lateness * (one.header == CLOCK_HEADER) for one in heard if one.time - one.stamp <= most]
        return [Sent(BEAT_HEADER, None, max(times), max(times)), *taken] if times else taken

    def check(self) -> None:
        """Each version has released what it must, no tick twice, and none later than the latest stamp allows."""
        found = self.found()
        for version in self.began:
            mine = {key: made for key, made in found.items() if key[:2] == version}
            expected = self.expected(version)
            if version in self.versions:
                assert mine == expected, version
            else:  # it ended somewhere
                assert {key: expected.get(key, [])[: len(made)] for key, made in mine.items()} == mine, version
            (metric,) = self.configs[version].metric
            limit = iso((self.latest_stamp + metric.parts.source.max_ahead // SECOND) * SECOND)
            for made in mine.values():
                times = [orjson.loads(release)["at"] for release in made]
                assert times == sorted(set(times))
                assert times[-1] <= limit
        assert {key[:2] for key in found} <= self.began.keys()


class PresentHistory(History):
    """One of metrics that protect presence, in one partition: all are raised at once, with a start that is to come."""

    def __init__(self, metrics: Sequence[dict[str, Any]]) -> None:
        self._metrics = metrics
        super().__init__(self._starting(BEGIN + 20, 1), 1)

    def _starting(self, start: int, version: int) -> Config:
        times = {"start": iso(start * SECOND), "end": iso((start + STEPS * STEP) * SECOND), "version": version}
        return present(*(metric | times for metric in self._metrics))

    def deploy(self, raised: Sequence[int], is_restarted: bool) -> None:
        super().deploy(range(len(self._metrics)), is_restarted)

    def _raised(self, names: set[str]) -> Config:
        first, *_ = self.versions
        is_restarted = self.config.metrics[0].source.epoch != self.epoch
        heard = [] if is_restarted else self.records[0][self._clock_began[self._clock_of(first)][0] :]
        last = max([self.now, *(one.time for one in heard if self._is_beat(one))])
        return self._starting((last // STEP + 2) * STEP, first[1] + 1)

    def _is_beat(self, sent: Sent) -> bool:
        """Whether it is a beat that all clocks take."""
        most = min(metric.parts.source.max_ahead for metric in self.config.metric) // SECOND
        return sent.header == BEAT_HEADER and sent.time - sent.stamp <= most

    def _accepted(self, version: Version, index: int) -> list[Sent]:
        """The records of a version from its first beat on: the first one that has reached its start."""
        (metric,) = self.configs[version].metrics
        begin, ahead = self.began[version][index], metric.source.max_ahead // SECOND
        records = [
            one
            for one in self.records[index][begin:]
            if self._is_beat(one) or (not one.header and one.time - one.stamp <= ahead)
        ]
        if version[1] == 1:
            return records
        start = (metric.start or 0) // SECOND
        first = next((number for number, one in enumerate(records) if one.header and one.time >= start), len(records))
        return records[first:]


def by_group(releases: Iterable[bytes]) -> dict[tuple[str, int, str], list[bytes]]:
    found = defaultdict(list)
    for release in releases:
        said = orjson.loads(release)
        found[said["metric"], said["version"], said["group"] or ""].append(release)
    return dict(found)
