"""A cluster without Kafka: partitions, messages, transactions and crashes as plain data, interleaved at will.

Each stage keeps what its committed transactions wrote: a changelog and an output log. A crash drops a machine and
restores a new one from the changelog, as a takeover does. Nothing here decides when; the test's choices do.
"""

import dataclasses
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import orjson

from shoal.mechanisms.parts.lengths import INSTANT
from shoal.mechanisms.statistic import PART_BITS, PART_MASK
from shoal.models.config.file import Config
from shoal.models.records import Message, Row
from shoal.models.times import iso
from shoal.stream.bound import BoundPartition
from shoal.stream.deltas.record import CLEARED, PREFIX, decode
from shoal.stream.file_run import FileRun, Line, beat_line
from shoal.stream.release import ReleasePartition
from shoal.stream.state_mark import MARK
from shoal.stream.topic import TopicPlan, plan_topic
from tests.support.entries import held_in
from tests.support.metric_keys import is_continual_mean, with_usual

SECRET = b"s" * 32
STAMP = 4_000_000_000_000  # a record timestamp beyond every event: no event is too far ahead
USUAL = {
    "topic": "events", "user": "u", "value": "x", "time": "t", "statistic": "mean", "range": (0, 1), "epsilon": 1,
    "max_contributions": 8, "grid": 16,
}  # fmt: skip
OF_MEANS = {"users": 4, "algorithm": "full", "every": "10s", "failure": "0.999"}  # what is usual of continual means


def config(*metrics: dict[str, Any], **kafka: Any) -> Config:
    """A configuration with the usual fields filled in, of those that a metric of its kind has."""
    named = [
        with_short_life(with_usual({"name": f"m{n}"} | metric, USUAL | (OF_MEANS if is_continual_mean(metric) else {})))
        for n, metric in enumerate(metrics)
    ]
    said = [{key: value for key, value in one.items() if value is not None} for one in named]
    return Config.model_validate({"privacy": {"epsilon": Fraction(100)}, "metric": said, "kafka": kafka})


def with_short_life(metric: dict[str, Any]) -> dict[str, Any]:
    """The metric with a life of an hour if it takes one: opening a counter for a year of short steps takes seconds."""
    is_sharp = metric.get("algorithm", "sharp") == "sharp" or metric.get("relation") == "add-remove"
    has_life = is_sharp and metric.get("every") != "contribution" and not metric.get("slot")
    return ({"life": "1h"} if has_life else {}) | metric


def event(user: str, value: float, time: int, **more: Any) -> bytes:
    return orjson.dumps({"u": user, "x": value, "t": time, **more})


def run_file(cfg: Config, events: Iterable[bytes]) -> list[bytes]:
    """What `shoal run` makes of the events."""
    plan = plan_topic(cfg, "events", SECRET, source_partitions=1, contributions_partitions=1)
    lines = (Line(offset, raw) for offset, raw in enumerate(events))
    return [release.value for output in FileRun(plan).outputs(lines) for release in output.releases]


@dataclasses.dataclass
class Source:
    """A source partition's log, and the bound stage on it."""

    log: list[Line]
    changelog: dict[bytes, bytes] = dataclasses.field(default_factory=dict)
    machine: BoundPartition | None = None


@dataclasses.dataclass
class Home:
    """A contributions partition's log, and the release stage on it."""

    log: list[Line] = dataclasses.field(default_factory=list)
    changelog: dict[bytes, bytes] = dataclasses.field(default_factory=dict)
    machine: ReleasePartition | None = None
    releases: list[bytes] = dataclasses.field(default_factory=list)
    last_headers: dict[str, bytes] | None = None


class Cluster:
    """All partitions of one topic and of contributions."""

    def __init__(self, cfg: Config, sources: int, homes: int, plan: TopicPlan | None = None) -> None:
        """`plan`: that of the configuration, where it is compiled already."""
        self.cfg = cfg
        self.plan: TopicPlan = plan or plan_topic(
            cfg, "events", SECRET, source_partitions=sources, contributions_partitions=homes
        )
        self.sources = [Source([]) for _ in range(sources)]
        self.homes = [Home() for _ in range(homes)]
        self.wall = 0
        self.kernel: Any = None

    def produce(self, events: Iterable[bytes]) -> None:
        """Each event to its user's partition, in order."""
        for raw in events:
            user = orjson.loads(raw)["u"]
            log = self.sources[self.plan.partition_of(user.encode(), len(self.sources))].log
            log.append(Line(len(log), raw, timestamp=STAMP))

    def end_last_ticks(self) -> None:
        """The clock records with which the last tick of every metric is complete, as `shoal produce --end` has them."""
        times = [orjson.loads(line.value)["t"] for source in self.sources for line in source.log if line.value]
        if times:
            latest = max(times) * 10**6
            ends = [(metric.length or INSTANT).end_after(latest) for metric in self.plan.metrics]
            self.end(iso(max(ends)).encode())

    def send(self, found: Iterable[tuple[str, int]], first: int, every: int = 0) -> int:
        """Events (user, seconds since the one before), with a beat after each of so many; returns the last time."""
        now = first
        for number, (user, step) in enumerate(found):
            now += step
            self.produce([event(user, number % 5 / 4, now)])
            if every and number % every == 0:
                self.beat(now)
        return now

    def beat(self, seconds: int) -> None:
        """A beat in each source partition."""
        for source in self.sources:
            source.log.append(beat_line(len(source.log), seconds * 10**6)._replace(timestamp=STAMP))

    def end(self, iso_time: bytes) -> None:
        """The clock records that close the last tick."""
        for source in self.sources:
            header = (("shoal-clock", iso_time),)
            source.log.append(Line(len(source.log), None, timestamp=STAMP, headers=header))

    def bound(self, index: int, count: int, *, idle: bool = False) -> None:
        """One committed transaction of the bound stage: at most `count` events, and whether there is nothing more."""
        source = self.sources[index]
        machine = self._bound_machine(index)
        offset = machine.next_offset or 0
        records = source.log[offset : offset + count]
        if records:
            machine.process(records, records[-1].offset + 1)
        if idle or not records:
            machine.idle(self.wall)
        self._commit_bound(source, machine)

    def _bound_machine(self, index: int) -> BoundPartition:
        source = self.sources[index]
        if source.machine is None:
            source.machine = BoundPartition(self.plan, index, kernel=self.kernel)
            source.machine.restore(source.changelog)
            if source.machine.next_offset is None:
                source.machine.start(0)
        return source.machine

    def _commit_bound(self, source: Source, machine: BoundPartition) -> None:
        bound = machine.take(self.wall)
        if bound is None:
            return
        apply(source.changelog, bound.changelog)
        for home, message in bound.messages:
            log = self.homes[home].log
            log.append(Line(len(log), message.encode()))

    def release(self, index: int, count: int, steps: int = 1_000_000) -> None:
        """One committed transaction of the release stage: at most `count` messages and `steps` pieces of work."""
        home = self.homes[index]
        machine = self._release_machine(index)
        offset = machine.next_offset or 0
        records = home.log[offset : offset + count]
        if records and not machine.pending():
            machine.process(records, records[-1].offset + 1)
        pieces = iter(range(steps))
        machine.work(lambda: next(pieces, None) is None)
        self._commit_release(home, machine)

    def _release_machine(self, index: int) -> ReleasePartition:
        home = self.homes[index]
        if home.machine is None:
            home.machine = ReleasePartition([self.plan], index, idle_after=self.cfg.kafka.idle_after)
            home.machine.restore(home.changelog)
            home.machine.check_last(home.last_headers)
            if home.machine.next_offset is None:
                home.machine.start(0)
        return home.machine

    def _commit_release(self, home: Home, machine: ReleasePartition) -> None:
        while (released := machine.take()) is not None:
            apply(home.changelog, released.changelog)
            for release in released.releases:
                home.releases.append(release.value)
                home.last_headers = dict(release.headers)

    def crash_bound(self, index: int) -> None:
        """Its state is gone, processed but uncommitted events with it."""
        self.sources[index].machine = None

    def crash_release(self, index: int) -> None:
        """Its state is gone, and what it had not committed."""
        self.homes[index].machine = None

    @classmethod
    def after(
        cls, cfg: Config, events: Iterable[bytes], sources: int, homes: int, schedule: Iterable[tuple[str, int, int]]
    ) -> "Cluster":
        """One that had these events to their last ticks, and machines that worked, crashed and recovered like that."""
        cluster = cls(cfg, sources, homes)
        cluster.produce(events)
        cluster.end_last_ticks()
        for action, where, amount in schedule:
            cluster.act(action, where, amount)
        cluster.drain()
        return cluster

    def act(self, action: str, where: int, amount: int) -> None:
        """One of what may happen, somewhere."""
        match action:
            case "bound":
                self.bound(where % len(self.sources), amount)
            case "release":
                self.release(where % len(self.homes), amount, steps=amount)
            case "crash_bound":
                self.crash_bound(where % len(self.sources))
            case "crash_release":
                self.crash_release(where % len(self.homes))

    def drain(self) -> None:
        """Run everything to its end."""
        for index in range(len(self.sources)):
            while (self._bound_machine(index).next_offset or 0) < len(self.sources[index].log):
                self.bound(index, 1000)
        for index in range(len(self.homes)):
            machine = self._release_machine(index)
            while machine.pending() or (machine.next_offset or 0) < len(self.homes[index].log):
                self.release(index, 1000)

    def releases(self) -> list[bytes]:
        """All releases, in the order of a file run."""
        found = [value for home in self.homes for value in home.releases]
        return sorted(found, key=order)


def rows_of(message: Message) -> list[tuple[str, Row]]:
    """Group and row of all that a message brings; of partials a row for each cell, without a pseudonym."""
    rows = [(key, row) for key, found in message.contributions.items() for row in found]
    for key, partials in message.partials.items():
        for start, flat in partials:
            cells = zip(flat[::3], flat[1::3], flat[2::3], strict=True)
            rows += [(key, (start, "", cell & PART_MASK, cell >> PART_BITS, *held)) for cell, *held in cells]
    return rows


def apply(changelog: dict[bytes, bytes], entries: Iterable[tuple[bytes, bytes | None]]) -> None:
    """What compaction leaves; of a log without what its mark does not need."""
    for key, value in entries:
        if value is None:
            changelog.pop(key, None)
        else:
            changelog[key] = value
    trim(changelog)


def trim(changelog: dict[bytes, bytes]) -> None:
    """Delete what a bound mark does not need, records of a format before included."""
    mark = orjson.loads(changelog.get(MARK, b"{}"))
    for key in [key for key in changelog if key != MARK] if mark.get("needs") else ():
        if not key.startswith(PREFIX) or int.from_bytes(key[len(PREFIX) :], "big") < mark["needs"]:
            del changelog[key]


def names_of(changelog: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """What a log holds, by tag, period and name: as a record for each name would."""
    found: dict[bytes, bytes] = {}
    for key, value in sorted(changelog.items()):
        for section in decode(key, value).sections() if key.startswith(PREFIX) else ():
            before = section.tag + section.period.to_bytes(8, "big", signed=True)
            if section.kind == CLEARED:
                for name in [name for name in found if name.startswith(before)]:
                    del found[name]
            held = held_in(section.entries, section.width)
            found |= {before + name: number for name, number in held}
    return found


def order(release: bytes) -> tuple[str, str, str, int]:
    found = orjson.loads(release)
    return found["at"], found["metric"], found["group"] or "", found["seq"]
