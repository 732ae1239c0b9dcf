"""Deploys without Kafka: workers with old and new files, started, killed and stopped in any order, on real rules.

Real are the ledger with its log (SQLite), the domain of each worker, the sharing of partitions and the watch; topics
are lists, changelogs are what compaction leaves of them. A worker that a rule ends is started again by nobody but the
history's choices. Time goes on by a second with each of them, and every worker looks at the ledger when it has not for
five seconds; some workers get no answer from it once they run.

A history ends well if nobody was stuck at its end, nothing of a retired version was published later than one look
after its retirement, each version's releases are those of a run over a file of the events that it met (a retired
one's the first of them), all are in the log, and the contributions yield all of them again.
"""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from shoal.agents.audit import key_file, verify
from shoal.agents.audit.ledger import Ledger
from shoal.agents.audit.session import Session, former_topics
from shoal.agents.kafka.assignment import Claim, Member, share
from shoal.agents.kafka.settings import BOUND, KafkaSettings
from shoal.agents.kafka.topics import Verified
from shoal.agents.worker.deployment import LOOK_EVERY, Deployment
from shoal.agents.worker.health import Health
from shoal.agents.worker.outbox import BoundMachine, ReleaseMachine
from shoal.agents.worker.stages import Stages
from shoal.models.errors import FailStop, LedgerError
from shoal.models.records import CLOCK_HEADER, Message
from shoal.models.tables import ACTIVE, RETIRED
from shoal.models.times import iso
from shoal.models.version import VersionId
from shoal.stream.file_run import FileRun, Line
from shoal.stream.machine import Outbox, StagePartition
from shoal.stream.release import ReleasePartition
from shoal.stream.state_mark import MARK
from shoal.stream.topic import plan_topic
from tests.stream.simulation import STAMP, apply, event, order
from tests.support.versions import METRICS, File, config_of

SETTINGS = KafkaSettings("localhost:1", "shoal")
HOMES = 3
SOURCES = {"events": 2, "more": 3}
USERS = [f"user{number}" for number in range(8)]
EVERYTHING_ENDS = 3 * 420  # event time in seconds: after all events, and the end of a tick of every metric


@dataclass
class Worker:
    """A process: its file as it was when it started, and the machines of the partitions that it owns."""

    name: str
    file: File
    domain: Stages
    deployment: Deployment
    looked: int
    blind: bool  # it gets no answer from the ledger once it runs
    machines: dict[StagePartition, BoundMachine | ReleaseMachine] = field(default_factory=dict)
    claim: Claim = field(default_factory=Claim)

    @property
    def topics(self) -> frozenset[str]:
        s = SETTINGS
        return frozenset((*self.domain.sources, s.contributions, s.releases, s.activations))


class World:
    """Kafka, the ledger, the hosts with their files, and the workers on them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.choice = random.Random(seed)
        self.folder = folder
        self.key = key_file.new(folder / "shoal.key")
        self.ledger = Ledger.open(f"sqlite:///{folder}/shoal.db")
        self.logs: dict[tuple[str, int], list[Line]] = {}
        self.changelogs: dict[StagePartition, dict[bytes, bytes]] = {}
        self.last_release: dict[int, dict[str, bytes]] = {}
        self.released: list[tuple[int, bool, bytes]] = []  # when, by one that could look, what
        self.starts: dict[tuple[str, str, int], int] = {}  # label, topic, partition -> where the metric began
        self.retired_at: dict[str, int] = {}
        self.now, self.event_time, self.generation, self.number = 0, 100, 0, 0
        self.newest: File = {"a": 1}
        self.hosts: list[File] = [dict(self.newest) for _ in range(3)]
        self.workers: dict[int, Worker] = {}
        self.ends: Counter[str] = Counter()
        self.versions = Counter({"a": 1})

    # -- what happens

    def act(self) -> None:
        """One second."""
        self.now += 1
        kinds = ["work"] * 8 + ["produce"] * 3 + ["start", "start", "kill", "stop", "deploy", "deploy", "change"]
        match self.choice.choice(kinds):
            case "work":
                for _ in range(4):
                    self.work()
            case "produce":
                self.produce(self.choice.randint(1, 12))
            case "start":
                self.start(self.choice.randrange(len(self.hosts)))
            case "kill" | "stop" if self.workers:
                self.end(self.choice.choice(sorted(self.workers)), "stopped")
            case "deploy":
                self.hosts[self.choice.randrange(len(self.hosts))] = dict(self.newest)
            case "change":
                self.change()
        for host, worker in sorted(self.workers.items()):
            if self.now - worker.looked >= LOOK_EVERY and not worker.blind:
                self.look(host, worker)

    def change(self) -> None:
        """Somebody writes another file: adds a metric, raises a version, or retires a metric and takes it out."""
        kind = self.choice.choice(["add", "add", "raise", "retire"])
        if kind == "add" and (missing := sorted(METRICS.keys() - self.newest.keys())):
            name = self.choice.choice(missing)
            self.versions[name] += 1
            self.newest = self.newest | {name: self.versions[name]}
        elif kind == "raise":
            name = self.choice.choice(sorted(self.newest))
            self.versions[name] += 1
            self.newest = self.newest | {name: self.versions[name]}
        elif kind == "retire" and len(self.newest) > 1:
            name = self.choice.choice(sorted(self.newest))
            self.newest = {one: version for one, version in self.newest.items() if one != name}
            self.retire_all_but(self.newest.keys())
        if self.choice.random() < 0.3:  # the file is on a host, and has to be on the others yet
            self.hosts[self.choice.randrange(len(self.hosts))] = dict(self.newest)

    def retire_all_but(self, names: Iterable[str]) -> None:
        """`shoal budget --retire`, for each metric that is active and not one of these."""
        for row in self.ledger.of("shoal").versions():
            if row.metric not in names and row.state == ACTIVE:
                self.ledger.of("shoal").retire(VersionId.of(row))
        self.note_retired()

    def note_retired(self) -> None:
        for row in self.ledger.of("shoal").versions():
            if row.state == RETIRED:
                self.retired_at.setdefault(f"{row.metric}/{row.version}", self.now)

    def produce(self, count: int) -> None:
        """Events in order of time, each to its user's partition."""
        for _ in range(count):
            self.event_time += self.choice.randint(0, 3)
            topic, user = self.choice.choice(sorted(SOURCES)), self.choice.choice(USERS)
            group = self.choice.choice([{}, {"g": "x"}, {"g": "y"}])
            raw = event(user, self.choice.choice([0, 0.25, 1]), self.event_time, **group)
            plan = plan_topic(
                config_of({"a": 1}), "events", self.key.secret, source_partitions=1, contributions_partitions=1
            )
            self.append(topic, plan.partition_of(user.encode(), SOURCES[topic]), raw)

    def append(self, topic: str, partition: int, value: bytes | None, **more: Any) -> None:
        log = self.logs.setdefault((topic, partition), [])
        log.append(Line(len(log), value, timestamp=STAMP, **more))

    # -- workers

    def start(self, host: int) -> bool:
        """Start the host's worker, if it does not run: it registers, or is refused."""
        if host in self.workers:
            return True
        file = dict(self.hosts[host])
        session = Session(
            self.folder / f"host{host}.toml", config_of(file, self.folder / "shoal.key"), self.key, self.ledger
        )
        domain = Stages(session, SETTINGS, Health())
        counts = SOURCES | {SETTINGS.contributions: HOMES}
        try:
            domain.agree(Verified(counts))
        except LedgerError:
            self.ends["refused"] += 1
            return False
        self.note_retired()
        self.number += 1
        deployment = Deployment(session.path, session.config, self.ledger.of("shoal"))
        self.workers[host] = Worker(
            f"worker{self.number}", file, domain, deployment, self.now, blind=self.choice.random() < 0.15
        )
        self.rebalance()
        self.look(host, self.workers[host])
        return host in self.workers

    def end(self, host: int, why: str) -> None:
        self.ends[why] += 1
        del self.workers[host]
        self.rebalance()

    def look(self, host: int, worker: Worker) -> None:
        worker.looked = self.now
        try:
            worker.deployment.judge({VersionId.of(row): row.state for row in self.ledger.of("shoal").versions()})
        except FailStop:
            self.end(host, "watch")

    def rebalance(self) -> None:
        """Partitions are shared; a worker forgets what it has no more."""
        s = SETTINGS
        self.generation += 1
        topics = SOURCES | {name: HOMES for name in (s.contributions, s.releases, s.activations)}
        partitions = {topic: range(count) for topic, count in topics.items()}
        members = {one.name: Member(one.topics, one.claim) for one in self.workers.values()}
        shares = share(partitions, members, s.stage)
        for worker in self.workers.values():
            mine = shares[worker.name]
            worker.claim = Claim(self.generation, mine)
            kept = {StagePartition(s.stage(topic), topic, one) for topic, numbers in mine.items() for one in numbers}
            worker.machines = {partition: one for partition, one in worker.machines.items() if partition in kept}

    def owned(self) -> list[tuple[int, StagePartition]]:
        s = SETTINGS
        return [
            (host, StagePartition(s.stage(topic), topic, number))
            for host, worker in sorted(self.workers.items())
            for topic, numbers in sorted(worker.claim.owned.items())
            for number in numbers
            if s.stage(topic) != "audit"
        ]

    def work(self) -> None:
        """A worker does something in one of its partitions, and perhaps commits it."""
        if partitions := self.owned():
            host, partition = self.choice.choice(partitions)
            self.step(host, partition, self.choice.randint(1, 9), commits=self.choice.random() < 0.8)

    def step(self, host: int, partition: StagePartition, count: int, *, commits: bool = True) -> bool:
        """Process some records of a partition; whether there was something to do. A fail-stop ends the worker."""
        worker = self.workers[host]
        try:
            machine = self.machine(worker, partition)
            offset = machine.next_offset or 0
            records = self.logs.get((partition.topic, partition.number), [])[offset : offset + count]
            if records and not machine.pending():
                machine.process(records, records[-1].offset + 1)
            while machine.pending():
                machine.work(lambda: False)
            outbox = machine.outbox() if commits else None
        except FailStop:
            self.end(host, "fail_stop")
            return False
        if outbox is not None:
            self.commit(worker, partition, outbox)
        return bool(records)

    def machine(self, worker: Worker, partition: StagePartition) -> BoundMachine | ReleaseMachine:
        """Its state, restored if the partition is new to the worker."""
        if partition not in worker.machines:
            machine = worker.domain.machine(partition)
            machine.restore(self.changelogs.get(partition, {}))
            if machine.next_offset is None:
                machine.start(0)
            if isinstance(machine, ReleaseMachine):
                machine.check_last(self.last_release.get(partition.number))
            worker.machines[partition] = machine
        return worker.machines[partition]

    def commit(self, worker: Worker, partition: StagePartition, outbox: Outbox) -> None:
        """One transaction."""
        apply(self.changelogs.setdefault(partition, {}), outbox.changelog)
        if partition.stage == BOUND:
            mark = orjson.loads(self.changelogs[partition][MARK])
            for label, offset in mark["starts"].items():
                self.starts.setdefault((label, partition.topic, partition.number), offset)
        for (topic, number), records in outbox.records.items():
            for _, value, headers in records:
                self.append(topic, number, value, headers=tuple(headers))
            if topic == SETTINGS.releases:
                self.last_release[number] = dict(records[-1][2])
                self.released += [(self.now, not worker.blind, value) for _, value, _ in records]
            if topic in (SETTINGS.releases, SETTINGS.activations):  # the log is written by whoever, at once
                lines = self.logs[topic, number][-len(records) :]
                worker.domain.sink(topic, number, lines)

    # -- the end

    def finish(self) -> None:
        """Every host gets the newest file and is started; then all is done that there is to do."""
        for topic, count in SOURCES.items():
            for partition in range(count):
                self.append(topic, partition, None, headers=((CLOCK_HEADER, iso(EVERYTHING_ENDS * 10**6).encode()),))
        self.hosts = [dict(self.newest) for _ in self.hosts]
        self.retire_all_but(self.newest)  # what an older file brought back after it was retired
        older = [host for host, worker in sorted(self.workers.items()) if worker.file != self.newest]
        for host in older[:1]:
            self.end(host, "stopped")  # so that somebody registers the newest file
        for _ in range(2):  # those that run with an older file end, as soon as a worker has registered the newest
            for host in range(len(self.hosts)):
                assert self.start(host), "a worker with the newest file is refused"
            for host, worker in sorted(self.workers.items()):
                self.look(host, worker)
        stops = self.ends["fail_stop"]
        while any([self.step(host, partition, 1000) for host, partition in self.owned()]):
            assert self.ends["fail_stop"] == stops, "the newest file is stuck"
        assert self.ends["fail_stop"] == stops, "the newest file is stuck"

    def expect_all_well(self) -> None:
        """The laws of every history."""
        by_version: dict[str, list[bytes]] = {}
        for when, looked, value in self.released:
            fields = orjson.loads(value)
            label = f"{fields['metric']}/{fields['version']}"
            by_version.setdefault(label, []).append(value)
            retired = self.retired_at.get(label)
            late = retired is not None and when > retired + LOOK_EVERY
            assert not (late and looked), f"{label} is published too late"
        for row in self.ledger.of("shoal").versions():
            label = f"{row.metric}/{row.version}"
            expected, found = self.oracle(row.metric, row.version), sorted(by_version.get(label, []), key=order)
            if row.state == RETIRED:
                expected = firsts(expected, found)
            assert found == expected, label
        self.expect_log()
        self.expect_replay(by_version)

    def oracle(self, name: str, version: int) -> list[bytes]:
        """What a run over a file makes of the events that the version met."""
        file = {name: version}
        cfg = config_of(file)
        topic = cfg.metric[0].topic
        events = [
            (orjson.loads(line.value)["t"], partition, line.offset, line.value)
            for partition in range(SOURCES[topic])
            for line in self.logs.get((topic, partition), [])
            if line.value and line.offset >= self.starts.get((f"{name}/{version}", topic, partition), 10**9)
        ]
        plan = plan_topic(cfg, topic, self.key.secret, source_partitions=1, contributions_partitions=1)
        lines = [Line(number, raw) for number, (*_, raw) in enumerate(sorted(events))]
        last = iso((EVERYTHING_ENDS - 1) * 10**6)  # the end of a file closes the tick that this is in
        lines.append(Line(len(lines), None, headers=((CLOCK_HEADER, last.encode()),)))
        outputs = FileRun(plan).outputs(lines)
        return sorted((release.value for output in outputs for release in output.releases), key=order)

    def expect_log(self) -> None:
        values = [value for *_, value in self.released]
        findings = [*verify.verify(self.ledger), *verify.compare_topic(self.ledger.of("shoal"), values)]
        assert not findings, findings
        heads = self.ledger.of("shoal").heads()
        assert sum(head.seq for head in heads.values()) == len(values)

    def expect_replay(self, by_version: dict[str, list[bytes]]) -> None:
        """Contributions and key yield all releases of what is active again."""
        cfg = config_of(self.newest)
        rows = self.ledger.of("shoal").versions()
        retired = frozenset(f"{row.metric}/{row.version}" for row in rows if row.state == RETIRED)
        counts = self.ledger.of("shoal").partitions()
        plans = [
            plan_topic(cfg, topic, self.key.secret, source_partitions=SOURCES[topic], contributions_partitions=HOMES,
                       retired=retired)
            for topic in cfg.topics
        ]  # fmt: skip
        former = former_topics(counts, (*cfg.topics, SETTINGS.contributions))
        again: list[bytes] = []
        for home in range(HOMES):
            machine = ReleasePartition(plans, home, idle_after=10**9, durable=False, former=former)
            machine.start(0)
            for line in self.logs.get((SETTINGS.contributions, home), []):
                machine.receive(Message.decode(line.value or b""), line.offset)
                machine.work()
            found = machine.take()
            again += [release.value for release in found.releases] if found else []
        active = [f"{name}/{version}" for name, version in self.newest.items()]
        assert sorted(again, key=order) == sorted((v for one in active for v in by_version.get(one, [])), key=order)


def firsts(expected: Sequence[bytes], found: Iterable[bytes]) -> list[bytes]:
    """Of each group the first releases, as many as were found: a retired version's stream is cut off somewhere."""
    counts = Counter(orjson.loads(value)["group"] for value in found)
    return [value for value in expected if orjson.loads(value)["seq"] <= counts[orjson.loads(value)["group"]]]


def play(folder: Path, seed: int, seconds: int = 120) -> World:
    """One history from its first worker to its end."""
    world = World(folder, seed)
    try:
        world.start(0)
        for _ in range(seconds):
            world.act()
        world.finish()
        world.expect_all_well()
    finally:
        world.ledger.close()
    return world
