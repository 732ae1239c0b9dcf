"""The only module of the corpus that imports the package: machines in, bytes and texts out.

The corpus has a driver of its own, so that it stays the same when the tests' support changes, and all of it here, so
that a change of the package's modules is a change of one file.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from typer.testing import CliRunner

from shoal.agents.audit.replay.bound_again import BoundAgain
from shoal.agents.audit.replay.contributions import SentRows, compare
from shoal.agents.audit.replay.matching import (
    ActivationMatcher,
    ExpectedRecord,
    Findings,
    FoundRecord,
    ReleaseMatcher,
    name_of,
)
from shoal.agents.cli.main import app
from shoal.agents.lane import KERNEL, OFF, lane_named
from shoal.mechanisms.kinds import statistic_of
from shoal.mechanisms.linear.statistic import LinearStatistic
from shoal.models.config.decay import NEEDS
from shoal.models.config.file import Config
from shoal.models.config.forms import ALGORITHMS, STATISTICS
from shoal.models.records import Message
from shoal.models.times import time_of_text
from shoal.stream.bound import BoundPartition
from shoal.stream.file_run import FileRun, Line
from shoal.stream.group import Activated, GroupOutput, Released
from shoal.stream.parameters import parameters_of
from shoal.stream.partitioning import PARTITIONERS
from shoal.stream.release import ReleasePartition
from shoal.stream.topic import TopicPlan, plan_topic
from tests.golden.case import USUAL, Case
from tests.golden.events import Event, events_of

SECRET = b"a key of the golden corpus alone"
LOG = "golden"
TOPIC = "events"
SOURCES, HOMES = 2, 4
Lane = Literal["kernel", "twin"]
TWIN: Lane = "twin"
MARK, RECORD = b"\x00mark", b"\x00log"
Entry = tuple[bytes, bytes | None]  # of a changelog; None is a tombstone
Headers = tuple[tuple[str, bytes], ...]


def config_of(case: Case) -> Config:
    """The case's configuration, as a file would say it."""
    said = [{**USUAL, **metric} for metric in case.metrics]
    metrics = [{key: value for key, value in metric.items() if value is not None} for metric in said]
    tree = {"privacy": {"epsilon": Fraction(10**6)}, "metric": metrics, "kafka": {**case.kafka}}
    return Config.model_validate(tree)


def plan_of(config: Config, sources: int, homes: int) -> TopicPlan:
    """The configuration, compiled."""
    return plan_topic(config, TOPIC, SECRET, source_partitions=sources, contributions_partitions=homes)


def parameters(case: Case) -> dict[str, dict[str, str]]:
    """Of each metric the text whose digest names its noise; of decayed sums also the text that is digested in it."""
    config = config_of(case)
    found = {}
    for metric in config.metric:
        found[metric.name] = {"parameters": parameters_of(config, metric.parts)}
        mechanism = statistic_of(metric.parts)
        if isinstance(mechanism, LinearStatistic) and mechanism.chosen() is not None:
            found[metric.name]["sums"] = ", ".join(sums.shape() for sums in mechanism.decayed)
    return found


def offered() -> dict[str, set[str]]:
    """What a configuration may say, by key: every one of it needs a case."""
    return {
        "statistic": set(STATISTICS),
        "algorithm": set(ALGORITHMS),
        "decay": set(NEEDS),
        "partitioner": set(PARTITIONERS),
    }


# ---------------------------------------------------------------- a run over a file


@dataclass
class FileOutcome:
    """What a run over a file makes."""

    releases: list[bytes]
    activations: list[bytes]
    dead_letters: list[bytes]
    counters: dict[str, int]


def run_file(case: Case, lane: Lane = TWIN) -> FileOutcome:
    """The events that a file can have, to their end."""
    run = FileRun(plan_of(config_of(case), 1, 1), lane_named(lane).module)
    values = [event.value for event in events_of(case.stream) if event.in_files]
    outputs = list(run.outputs(Line(offset, value) for offset, value in enumerate(values)))
    return FileOutcome(
        [release.value for output in outputs for release in output.releases],
        [activation for output in outputs for activation in output.activations],
        [letter for output in outputs for letter in output.dead_letters],
        dict(sorted(run.counters.items())),
    )


# ---------------------------------------------------------------- a cluster


@dataclass
class Source:
    """A source partition, and what bound has committed."""

    log: list[Line] = field(default_factory=list)
    changelog: dict[bytes, bytes] = field(default_factory=dict)
    machine: BoundPartition | None = None


@dataclass
class Home:
    """A contributions partition, and what release has committed."""

    log: list[Line] = field(default_factory=list)
    changelog: dict[bytes, bytes] = field(default_factory=dict)
    machine: ReleasePartition | None = None
    last: Headers | None = None  # of its last release


@dataclass
class Written:
    """All that machines have written, in order."""

    messages: list[tuple[int, bytes]] = field(default_factory=list)
    releases: list[tuple[int, bytes, bytes, Headers]] = field(default_factory=list)  # home, key, value, headers
    activations: list[tuple[int, bytes, bytes]] = field(default_factory=list)
    dead_letters: list[bytes] = field(default_factory=list)
    bound_entries: list[tuple[int, Entry]] = field(default_factory=list)
    release_entries: list[tuple[int, Entry]] = field(default_factory=list)


class Cluster:
    """All partitions of the topic and of contributions; a transaction is committed whole, or lost with its machine."""

    def __init__(self, case: Case, end: str, lane: Lane) -> None:
        self.kernel = lane_named(lane).module
        self.config = config_of(case)
        self.plan = plan_of(self.config, SOURCES, HOMES)
        self.sources = [Source() for _ in range(SOURCES)]
        self.homes = [Home() for _ in range(HOMES)]
        self.written = Written()
        for event in events_of(case.stream):
            self._produce(event)
        for source in self.sources:
            header = "shoal-beat" if case.stream.beats else "shoal-clock"
            stamp = (time_of_text(end) or 0) // 1000
            source.log.append(Line(len(source.log), None, timestamp=stamp, headers=((header, end.encode()),)))

    def _produce(self, event: Event) -> None:
        home = (self.plan.partition_of(event.user, SOURCES) + event.astray) % SOURCES
        for source in self.sources if event.value is None and event.user == b"" else [self.sources[home]]:
            log = source.log
            log.append(Line(len(log), event.value, timestamp=event.stamp, headers=event.headers))

    # ---------------------------------------------------------------- bound

    def left(self, index: int) -> int:
        """Events that a source partition has still to give."""
        return len(self.sources[index].log) - self._offset(index)

    def _offset(self, index: int) -> int:
        return self._bound(index).next_offset or 0

    def _bound(self, index: int) -> BoundPartition:
        source = self.sources[index]
        if source.machine is None:
            source.machine = BoundPartition(self.plan, index, log_id=LOG, kernel=self.kernel)
            source.machine.restore(source.changelog)
            if source.machine.next_offset is None:
                source.machine.start(0)
        return source.machine

    def read(self, index: int, count: int, wall: int) -> None:
        """Process so many events, or none, if there are no more; nothing is committed."""
        machine, offset = self._bound(index), self._offset(index)
        records = self.sources[index].log[offset : offset + count]
        if records:
            machine.process(records, records[-1].offset + 1)
        else:
            machine.idle(wall)

    def commit_bound(self, index: int, wall: int) -> None:
        """One transaction of what was read."""
        taken = self._bound(index).take(wall)
        if taken is None:
            return
        self.written.dead_letters += taken.dead_letters
        self.written.bound_entries += [(index, entry) for entry in taken.changelog]
        _apply(self.sources[index].changelog, taken.changelog)
        _trim(self.sources[index].changelog, taken.needs)
        for number, message in taken.messages:
            home, value = self.homes[number], message.encode()
            home.log.append(Line(len(home.log), value))
            self.written.messages.append((number, value))

    def crash_bound(self, index: int) -> None:
        """Its machine is gone, with what it had not committed."""
        self.sources[index].machine = None

    # ---------------------------------------------------------------- release

    def _release(self, index: int) -> ReleasePartition:
        home = self.homes[index]
        if home.machine is None:
            machine = ReleasePartition([self.plan], index, idle_after=self.config.kafka.idle_after, log_id=LOG)
            machine.restore(home.changelog)
            machine.check_last(None if home.last is None else dict(home.last))
            if machine.next_offset is None:
                machine.start(0)
            home.machine = machine
        return home.machine

    def busy(self, index: int) -> bool:
        """Whether a home has something to do."""
        home, machine = self.homes[index], self._release(index)
        return machine.pending() or (machine.next_offset or 0) < len(home.log)

    def work(self, index: int, messages: int, pieces: int) -> None:
        """Take in so many messages, and do so many pieces of what they make due; nothing is committed."""
        home, machine = self.homes[index], self._release(index)
        begin = machine.next_offset or 0
        records = home.log[begin : begin + messages]
        if records and not machine.pending():
            machine.process(records, records[-1].offset + 1)
        counted = iter(range(pieces))
        machine.work(lambda: next(counted, None) is None)

    def commit_release(self, index: int) -> None:
        """Transactions of what was made: one, or where presence is protected one for each closing."""
        home, machine = self.homes[index], self._release(index)
        while (taken := machine.take()) is not None:
            self._commit_release(index, home, taken)

    def _commit_release(self, index: int, home: Home, taken: Released) -> None:
        self.written.release_entries += [(index, entry) for entry in taken.changelog]
        _apply(home.changelog, taken.changelog)
        self.written.activations += [(index, one.record_key, one.value) for one in taken.activations]
        for release in taken.releases:
            home.last = release.headers
            self.written.releases.append((index, release.record_key, release.value, release.headers))

    def crash_release(self, index: int) -> None:
        """Its machine is gone, with what it had not committed."""
        self.homes[index].machine = None


def _apply(changelog: dict[bytes, bytes], entries: Iterable[Entry]) -> None:
    """What compaction leaves."""
    for key, value in entries:
        if value is None:
            changelog.pop(key, None)
        else:
            changelog[key] = value


def _trim(changelog: dict[bytes, bytes], needs: int) -> None:
    """Delete what no successor needs: all before this record of bound's log."""
    needed = {MARK, *(key for key in changelog if key.startswith(RECORD) and key >= RECORD + needs.to_bytes(8, "big"))}
    for key in changelog.keys() - needed if needs else ():
        del changelog[key]


# ---------------------------------------------------------------- replay


def replay(cluster: Cluster) -> list[str]:
    """What an audit says that makes contributions again from the events, and releases from the contributions."""
    findings, messages = Findings(), [(home, Message.decode(value)) for home, value in cluster.written.messages]
    for partition in range(SOURCES):
        _replay_bound(cluster, partition, [one for one in messages if one[1].partition == partition], findings)
    confirmed = [_replay_release(cluster, index, messages, findings) for index in range(HOMES)]
    releases, activations = (sum(counts) for counts in zip(*confirmed, strict=True))
    told = [f"{one.kind}: {one.where}: {one.message}" for one in findings.all()]
    return [f"{releases} releases and {activations} activations confirmed", *told]


def _replay_bound(cluster: Cluster, index: int, messages: Sequence[tuple[int, Message]], findings: Findings) -> None:
    source = cluster.sources[index]
    mark = json.loads(source.changelog[MARK])
    again = BoundAgain(
        cluster.config, TOPIC, lambda config: plan_of(config, SOURCES, HOMES), index, mark, cluster.kernel
    )
    yielded, sent = ([SentRows(cluster.plan) for _ in range(HOMES)] for _ in range(2))
    for home, message in again.take(source.log[: mark["offset"]]):
        yielded[home].add(message)
    for home, message in messages:
        sent[home].add(message)
    for home in range(HOMES):
        compare(findings, f"{index} to {home}", cluster.plan, yielded[home], sent[home], again.promises().to(home))


def _replay_release(
    cluster: Cluster, index: int, messages: Iterable[tuple[int, Message]], findings: Findings
) -> tuple[int, int]:
    """How many of a home's releases and activations are what its contributions make."""
    machine = ReleasePartition(
        [cluster.plan], index, idle_after=cluster.config.kafka.idle_after, log_id=LOG, durable=False
    )
    machine.start(0)
    for home, message in messages:
        if home == index:
            machine.receive(message)
            while machine.pending():
                machine.work()
    mark = json.loads(cluster.homes[index].changelog.get(MARK, b"{}"))
    releases = ReleaseMatcher(
        "shoal", f"releases {index}", findings, frozenset(),
        end=10**9, count=mark.get("count", 0), chain=mark.get("chain", "00" * 32),
    )  # fmt: skip
    activations = ActivationMatcher("shoal", f"activations {index}", findings, frozenset(), 10**9)
    while (taken := machine.take()) is not None:
        releases.expect(_expected(taken.releases, "seq"))
        activations.expect(_expected(taken.activations, "level"))
    written = cluster.written
    releases.find(
        FoundRecord(0, key, value, headers) for home, key, value, headers in written.releases if home == index
    )
    activations.find(FoundRecord(0, key, value, ()) for home, key, value in written.activations if home == index)
    activations.finish(releases.finish(machine.published_count))
    return releases.confirmed, activations.confirmed


def _expected(made: Iterable[GroupOutput | Activated], number: str) -> Iterator[ExpectedRecord]:
    for one in made:
        name = name_of("shoal", one.value, number)
        assert name is not None
        yield ExpectedRecord(name, one.record_key, one.value)


# ---------------------------------------------------------------- commands


def command(*arguments: str) -> tuple[int, str]:
    """A command's exit code and what it prints."""
    result = CliRunner(env={KERNEL: OFF}).invoke(app, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout
