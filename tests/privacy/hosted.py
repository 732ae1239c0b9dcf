"""A worker as it is seen from outside, without brokers: all partitions of a topic, and all that may be looked at.

`Hosted` drives the machines and partitions of a real worker in the order that a test says, hands their transactions on,
and after each keeps what an operator sees: /metrics, /health, /ready, /readyz, which sources are held back, how many
records a transaction writes to each topic, and how messages are numbered. `texts` adds what a worker says when a
message is lost, or comes twice.
"""

import itertools
import time
from collections.abc import Coroutine, Iterable
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

from prometheus_client import CollectorRegistry, generate_latest

from shoal.agents.audit.budget import BudgetReport
from shoal.agents.kafka.fail_stop import describe
from shoal.agents.kafka.settings import BOUND, RELEASE, KafkaSettings
from shoal.agents.kafka.transactions import Writer
from shoal.agents.lane import Lane, lane_of_environment
from shoal.agents.worker import outbox as machines
from shoal.agents.worker.conditions import report
from shoal.agents.worker.health import Health
from shoal.agents.worker.host import Host
from shoal.agents.worker.outbox import BoundMachine, ReleaseMachine
from shoal.agents.worker.partition import Partition
from shoal.agents.worker.readiness import Readiness
from shoal.agents.worker.stages import Stages
from shoal.agents.worker.timings import Timings
from shoal.agents.worker.web import Metrics
from shoal.models.config.file import Config
from shoal.models.errors import FailStop
from shoal.models.records import Message
from shoal.stream.file_run import Line, beat_line
from shoal.stream.machine import Machine, Outbox, StagePartition
from shoal.stream.release import ReleasePartition
from shoal.stream.topic import TopicPlan, plan_topic
from tests.stream.simulation import SECRET, STAMP, apply

IDLE_AFTER = 10**6
BUDGET = BudgetReport(Fraction(4), Fraction(0), "user", ())


def compiled(cfg: Config, sources: int = 1, homes: int = 1, topic: str = "events") -> TopicPlan:
    """The plan of a topic with so many partitions."""
    return plan_topic(cfg, topic, SECRET, source_partitions=sources, contributions_partitions=homes)


class Hosted:
    """A worker that owns everything."""

    def __init__(self, plan: TopicPlan, *others: TopicPlan, looks: bool = True, lane: Lane | None = None) -> None:
        """Unless it `looks`, /metrics and the like are not asked: that is what takes most of the time.

        Source partitions are numbered through, those of the first topic first.
        """
        homes = plan.contributions_partitions
        self.plan, self._others, self._looks = plan, others, looks
        self._places = [
            StagePartition(BOUND, each.topic, number)
            for each in (plan, *others)
            for number in range(each.source_partitions)
        ]
        sources = len(self._places)
        self.settings = KafkaSettings("localhost:9", "shoal", partitions=homes)
        self.health = Health()
        self.health.running = True
        self.discreet = plan.protects_presence
        self.budget = BUDGET
        self.lane = lane_of_environment() if lane is None else lane
        self.machines: dict[StagePartition, Any] = {}
        self.seen: list[Any] = []
        self.logs: list[list[Line]] = [[] for _ in range(homes)]  # of contributions
        self.releases: list[bytes] = []
        self.activations: list[bytes] = []
        self.dead_letters: list[bytes] = []
        self._domain = cast(Stages, self)
        self._host = cast(Host, self._as_host())
        self._changelogs: dict[StagePartition, dict[bytes, bytes]] = {}
        self._wall = 0
        self._events: list[list[Line]] = [[] for _ in range(sources)]
        self._metrics = CollectorRegistry()
        # Seconds pass in looks, so that two worlds are looked at in the same moments.
        clocks = itertools.count().__next__, itertools.count(10**9).__next__
        self._readiness = Readiness(self._host, self._domain, *clocks)
        self._metrics.register(Metrics(self._readiness))
        for stage, count in ((BOUND, sources), (RELEASE, homes)):
            for partition in range(count):
                self._take_over(self._partition(stage, partition))

    def _as_host(self) -> SimpleNamespace:
        """What the web server asks of a host that has joined its group and reaches everything."""
        reached = SimpleNamespace(away=False, feeds={})
        states = {"stopping": False, "accepting": True, "app": None, "reach": reached, "sink": reached}
        timings = Timings(self.settings, self._time)
        return SimpleNamespace(partitions={}, on_owned=[], settings=self.settings, timings=timings, **states)

    def _time(self) -> float:
        """Wall time in seconds."""
        return self._wall / 1000

    @property
    def plans(self) -> dict[str, TopicPlan]:
        """As a worker's domain has them."""
        return {plan.topic: plan for plan in (self.plan, *self._others)}

    @property
    def unknown(self) -> dict[str, dict[str, str]]:
        """What of each topic the kernel lacks."""
        return {place.topic: machine.unknown for place, machine in self.machines.items() if place.stage == BOUND}

    @property
    def withheld(self) -> set[str]:
        """As a worker's domain says it."""
        machines = [machine for partition, machine in self.machines.items() if partition.stage == RELEASE]
        return {label for machine in machines for label in machine.withheld}

    def _partition(self, stage: str, number: int) -> StagePartition:
        return self._places[number] if stage == BOUND else StagePartition(stage, self.settings.contributions, number)

    def _take_over(self, partition: StagePartition) -> None:
        machine: BoundMachine | ReleaseMachine
        if partition.stage == BOUND:
            machine = BoundMachine(
                self.settings, self.plans[partition.topic], partition.number, kernel=self.lane.module
            )
        else:
            plans = self.plans.values()
            machine = ReleaseMachine(self.settings, plans, partition.number, idle_after=IDLE_AFTER)
        state = self._changelogs.setdefault(partition, {})
        machine.restore(state)
        if machine.next_offset is None:
            machine.start(0)
        writer = cast(Writer, SimpleNamespace(write=lambda outbox: self._write(partition, outbox), changelog_began=0))
        self.machines[partition] = machine
        self._host.partitions[partition] = part = Partition(self.settings, partition, cast(Machine, machine), writer)
        # How long it took is not a function of anything here.
        part.on_committed = lambda outbox, _: self._host.timings.committed(partition, outbox, 0.0)

    # ---------------------------------------------------------------- what is done

    def act(self, action: str, where: int, amount: int) -> None:
        """Go on with one of the partitions, or lose it and take it over again."""
        stage = RELEASE if "release" in action else BOUND
        count = len(self.logs) if stage == RELEASE else len(self._events)
        partition = self._partition(stage, where % count)
        if action.startswith("crash"):
            self._take_over(partition)
        elif stage == BOUND:
            self.bound(where % count, amount)
        else:
            self.release(partition.number, amount)

    def produce(self, user: str, raw: bytes) -> None:
        """One event, to its user's partition."""
        log = self._events[self.plan.partition_of(user.encode(), self.plan.source_partitions)]
        log.append(Line(len(log), raw, timestamp=STAMP))

    def end(self, iso_time: bytes) -> None:
        """A clock record for every source partition."""
        for log in self._events:
            log.append(Line(len(log), None, timestamp=STAMP, headers=(("shoal-clock", iso_time),)))

    def beat(self, time: int) -> None:
        """A beat in every source partition; `time` in microseconds."""
        for log in self._events:
            log.append(beat_line(len(log), time)._replace(timestamp=STAMP))

    def deploy(self, plan: TopicPlan) -> None:
        """Take all partitions over with another plan of the first topic, as a worker that is started again does."""
        self.plan = plan
        for partition in list(self.machines):
            self._take_over(partition)

    def bound(self, number: int, amount: int) -> None:
        """Take in so many events at most, and commit; if there are none, the partition is idle."""
        self._wall += 1500  # milliseconds: what is said now is old after the next of these
        partition = self._partition(BOUND, number)
        machine, log = self.machines[partition], self._events[number]
        records = log[machine.next_offset : machine.next_offset + amount]
        if records:
            machine.process(records, records[-1].offset + 1)
        else:
            machine.idle(self._wall)
        self._commit(partition)

    def release(self, number: int, amount: int) -> None:
        """Take in so many messages at most, close what is due, and commit."""
        partition = self._partition(RELEASE, number)
        machine, log = self.machines[partition], self.logs[number]
        records = log[machine.next_offset : machine.next_offset + amount]
        if records:
            machine.process(records, records[-1].offset + 1)
        while machine.pending():
            machine.work()
            self._commit(partition)
        self._commit(partition)

    def drain(self) -> None:
        """Everything to the end."""
        for partition, log in enumerate(self._events):
            while self.machines[self._partition(BOUND, partition)].next_offset < len(log):
                self.bound(partition, 7)
        for _ in range(2):  # what is kept for open slots is sent when there is nothing more
            for partition in range(len(self._events)):
                self.bound(partition, 1)
        for partition in range(len(self.logs)):
            self.release(partition, 10**9)

    def _commit(self, partition: StagePartition) -> None:
        self.look()
        clock = SimpleNamespace(time=lambda: self._wall / 1000, perf_counter=time.perf_counter)
        with patch.object(machines, "time", clock):
            _at_once(self._host.partitions[partition]._commit_all())
        self.look()

    async def _write(self, partition: StagePartition, outbox: Outbox) -> None:
        apply(self._changelogs[partition], outbox.changelog)
        self.seen.append((str(partition), outbox.next_offset, outbox.events))
        kept = {self.settings.releases: self.releases, self.settings.activations: self.activations}
        kept[self.settings.dead_letters] = self.dead_letters
        for (topic, number), records in outbox.records.items():
            self.seen.append((topic, number, [key for key, _, _ in records]))
            if topic in kept:
                kept[topic] += [value for _, value, _ in records]
                continue
            log = self.logs[number]
            log += [Line(len(log) + index, value) for index, (_, value, _) in enumerate(records)]
            numbers = [Message.decode(value) for _, value, _ in records]
            self.seen.append([(one.topic, one.partition, one.number, one.offset) for one in numbers])

    # ---------------------------------------------------------------- what is seen

    def ahead(self) -> set[StagePartition]:
        """As a worker's domain says it."""
        return Stages.ahead(self._domain)

    def look(self) -> None:
        """What the web server says now, and what the host would hold back."""
        if self._looks:
            self.seen += [generate_latest(self._metrics), self.health.ready, self.health.alarms, sorted(self.ahead())]
            self.seen += [self._readiness.reasons(), report(self._readiness)]

    @property
    def messages(self) -> int:
        """How many went to the contributions topic."""
        return sum(map(len, self.logs))

    @property
    def woke_late(self) -> int:
        """Samples that came after their tick, as the machines that are there now have counted them."""
        return sum(machine.counters["woke_late"] for machine in self.machines.values())

    def texts(self) -> list[str]:
        """What a successor says to contributions of which one is lost, one is twice, or the first come again."""
        found = []
        for home, log in enumerate(self.logs):
            found += self._said(home, [line for line in log if line.offset != len(log) // 2])
            found += self._said(home, [line for line in log for _ in range(1 + (line.offset == len(log) // 2))])
            found += self._said(home, [*log, *log[:1]])
        return found

    def _said(self, home: int, log: Iterable[Line]) -> list[str]:
        release = ReleasePartition(self.plans.values(), home, idle_after=IDLE_AFTER)
        release.start(0)
        records = [line._replace(offset=offset) for offset, line in zip(itertools.count(), log)]
        release.process(records, len(records))
        try:
            while release.pending():
                release.work()
                release.take()
        except FailStop as error:
            return [describe(error, "release")]
        return [f"repeated: {release.counters['repeated_messages']}, lead: {release._waiting.count}"]


def _at_once(work: Coroutine[Any, Any, object]) -> None:
    """Run what has nothing to wait for."""
    try:
        work.send(None)
    except StopIteration:
        return
    raise AssertionError("it waited")
