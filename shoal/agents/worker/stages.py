"""The machines of a worker's stages: the statistics of one configuration, agreed with the ledger.

A machine is compared with Kafka and SQL before it may publish. Fails if the ledger refuses, if the state of a partition
that ever committed is missing, or if it disagrees with what was published.
"""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

import structlog
from aiokafka import TopicPartition

from shoal.agents.audit.budget import BudgetReport
from shoal.agents.audit.database import Unavailable
from shoal.agents.audit.handover import MadeAgain, VersionPartition, heads_by_home, levels_by_home
from shoal.agents.audit.log import Equivocation, Group, Head, MissingSeq
from shoal.agents.audit.session import Session, former_topics, refuse_absent
from shoal.agents.kafka.changelog import group_offsets
from shoal.agents.kafka.settings import BOUND, KafkaSettings
from shoal.agents.kafka.topics import Verified
from shoal.agents.lane import Lane, lane_of_environment, unknown_of
from shoal.agents.lost_records import accepted, changed_count, no_state, turn_of, way_on
from shoal.agents.worker.deployment import Deployment
from shoal.agents.worker.health import AUDIT, EQUIVOCATION, MISSING_RELEASE, Health
from shoal.agents.worker.outbox import BoundMachine, ReleaseMachine
from shoal.agents.worker.threads import in_thread
from shoal.models.errors import AuditError, FailStop, LedgerError
from shoal.models.losses import AcceptedLoss
from shoal.models.tables import RETIRED
from shoal.stream.guard import PublishedBefore
from shoal.stream.machine import Machine, Record, StagePartition
from shoal.stream.release import ReleasePartition
from shoal.stream.topic import TopicPlan, plan_topic

log = structlog.get_logger("shoal.audit")

ASK_EVERY = 1.0  # seconds between two looks at what other workers have made again


class Stages:
    """The domain of one worker: makes the machines of its stages, and judges them."""

    def __init__(self, session: Session, settings: KafkaSettings, health: Health, lane: Lane | None = None) -> None:
        self.lane = lane_of_environment() if lane is None else lane
        self.unknown: dict[str, dict[str, str]] = {}  # what of the rules of each topic the kernel does not know
        self.sources: Sequence[str] = session.config.topics
        self.health = health
        self.discreet = session.config.is_discreet  # shows nothing that tells how many events there are
        self.plans: dict[str, TopicPlan] = {}
        self.batches: Mapping[str, Any] = {}  # topics that the kernel reads
        self.new_batches: Any = getattr(self.lane.module, "NewBatch", None)
        self.budget: BudgetReport | None = None  # as the ledger had it when it was last asked
        # Weak: a partition that is given up takes its state with it.
        self.machines: WeakValueDictionary[StagePartition, BoundMachine | ReleaseMachine] = WeakValueDictionary()
        self._session = session
        self._settings = settings
        self._heads: dict[Group, Head] = {}
        self._former: dict[str, int] = {}
        self._homes: dict[int, dict[str, dict[str, int]]] = {}  # what those partitions have to make again
        self._made_again = MadeAgain(session.ledger, session.config.kafka.app, 0, {}, ())
        self._losses: list[AcceptedLoss] = []
        self._said: set[tuple[str, str]] = set()

    def agree(self, verified: Verified) -> None:
        """Register with the ledger, read it once, and compile the plans.

        Raises:
            LedgerError: it refuses, or has an active metric that this configuration lacks.
        """
        counts = {topic: verified.partitions[topic] for topic in (*self.sources, self._settings.contributions)}
        agreement = self._session.register(partitions=counts)
        refuse_absent(self._session, agreement.absent)
        self.budget = self._session.ledger.budget_report()
        self._losses = self._session.ledger.losses(self._settings.app)
        app = self._session.config.kafka.app
        rows = {f"{row.metric}/{row.version}": row for row in self._session.ledger.versions(app)}
        # Read after the registration: from then on no file run adds to what workers own.
        standing = self._session.ledger.standing(app)
        self._heads = standing.heads
        homes = counts[self._settings.contributions]
        versions = [(metric.name, metric.version) for metric in self._session.config.metric]
        self._made_again = MadeAgain(self._session.ledger, app, homes, standing.owners, versions)
        self._former = former_topics(self._session.ledger.partitions(app), counts)
        self.plans = {
            topic: plan_topic(
                self._session.config,
                topic,
                self._session.key.secret,
                source_partitions=counts[topic],
                contributions_partitions=counts[self._settings.contributions],
                retired=frozenset(label for label, row in rows.items() if row.state == RETIRED),
                added=frozenset(label for label, row in rows.items() if row.added),
            )
            for topic in self.sources
        }
        self.unknown = unknown_of(self.plans.values())
        self.batches = self._batches()
        self._homes = heads_by_home(self._heads, self.plans.values())
        # Of file runs: the log of workers may have an activation before its release.
        by_runs = [(group, level) for group, level in standing.activated if group[:2] in self._made_again.open]
        self._levels = levels_by_home(by_runs, self.plans.values())

    def machine(self, partition: StagePartition) -> BoundMachine | ReleaseMachine:
        log_id = self._session.ledger.log_id
        machine: BoundMachine | ReleaseMachine
        if partition.stage == BOUND:
            plan = self.plans[partition.topic]
            self._check_count(partition, plan.source_partitions)
            machine = BoundMachine(self._settings, plan, partition.number, log_id=log_id, kernel=self.lane.module)
        else:
            plan = next(iter(self.plans.values()))
            self._check_count(partition, plan.contributions_partitions)
            machine = ReleaseMachine(
                self._settings,
                self.plans.values(),
                partition.number,
                idle_after=self._session.config.kafka.idle_after,
                log_id=log_id,
                published=self._published,
                former=self._former,
                published_before=PublishedBefore(
                    self._homes.get(partition.number, {}),
                    self._is_clear,
                    self._activation,
                    self._levels.get(partition.number, {}),
                ),
            )
        self.machines[partition] = machine
        return machine

    def _batches(self) -> dict[str, Any]:
        """How the kernel has batches of the topics that it reads."""
        kernel = self.lane.module
        return {} if kernel is None else {topic: kernel.RecordBatch for topic, keys in self.unknown.items() if not keys}

    def _check_count(self, partition: StagePartition, partitions: int) -> None:
        if partition.number >= partitions:
            raise FailStop(changed_count(partition.topic, partition.number + 1, partitions))

    def _published(self, label: str, group: str, seq: int) -> bytes | None:
        """A release as the ledger held it when this worker started; SQL is asked only where state is behind it."""
        metric, _, version = label.rpartition("/")
        head = self._heads.get(Group(metric, int(version), group))
        if head is None or seq > head.seq:
            return None
        stored = self._session.ledger.release(self._session.config.kafka.app, metric, int(version), group or None, seq)
        if stored is None:
            raise FailStop(
                f"metric {label}: release {seq} is missing in the audit log, which goes on to {head.seq}; restore the "
                "log, for what was published under this key must be known"
            )
        return stored

    def _is_clear(self, label: str) -> bool:
        return self._made_again.is_clear(label)

    def _activation(self, label: str, group: str, level: int) -> bytes | None:
        metric, _, version = label.rpartition("/")
        key = Group(metric, int(version), group)
        return self._session.ledger.activation(self._session.config.kafka.app, key, level)

    async def watch(self) -> None:
        """Tell the ledger what this worker has made again of file runs' releases, until all workers have."""
        while self._made_again.open:
            try:
                await in_thread(self._made_again.ask, list(self._made()))
                self._say_withheld()
            except Unavailable as error:
                self._say("audit_log_away", "", f"{error}; waiting: what file runs published must be made again first")
            await asyncio.sleep(ASK_EVERY)

    def ask(self) -> None:
        """Tell it once, without a loop."""
        self._made_again.ask(list(self._made()))
        self._say_withheld()

    def _made(self) -> Iterator[VersionPartition]:
        for partition, machine in list(self.machines.items()):
            for metric, version in self._made_again.open:
                if isinstance(machine, ReleaseMachine) and machine.has_made_again(f"{metric}/{version}"):
                    yield VersionPartition((metric, version), partition.number)

    @property
    def withheld(self) -> set[str]:
        """Metrics whose new releases wait until all that is published is made again."""
        machines = [machine for machine in list(self.machines.values()) if isinstance(machine, ReleaseMachine)]
        return {label for machine in machines for label in machine.withheld}

    def _say_withheld(self) -> None:
        for label in sorted(self.withheld):
            reason = "file runs have published releases that are not all made again from the topic; new ones wait"
            self._say("withheld", label, reason + ". If the topic has another stream, raise the version")

    def _say(self, event: str, label: str, reason: str) -> None:
        if (event, label) not in self._said:
            self._said.add((event, label))
            log.warning(event, metric=label, reason=reason)

    async def ask_budget(self) -> None:
        """Read the budget and its charges again, which other apps may have changed; an away database keeps the last."""
        with contextlib.suppress(LedgerError):
            self.budget = await in_thread(self._session.ledger.budget_report)

    async def admit(
        self, partition: StagePartition, machine: Machine, last_release: Record | None, *, fresh: bool
    ) -> None:
        """Judge a restored machine: nothing may be missing, and what was published must be what its state says."""
        if fresh:
            await self._refuse_lost_state(partition)
        if isinstance(machine, ReleaseMachine):
            machine.check_last(None if last_release is None else dict(last_release.headers))
            self._compare_heads(machine)

    async def _refuse_lost_state(self, partition: StagePartition) -> None:
        """Refuse a partition without state that ever committed: its users would start again at count 0."""
        tp = TopicPartition(partition.topic, partition.number)
        offset = (await group_offsets(self._settings, [tp]))[tp]
        if offset is not None:
            raise FailStop(no_state(partition, offset))

    async def pass_loss(self, partition: StagePartition, machine: Machine, mark: bytes) -> bytes | None:
        """Have a machine go on behind the loss that was accepted for the state with this mark, if any.

        A database that is away is waited for only if the state knows of a loss that was accepted since it answered.
        """
        if not isinstance(machine, BoundMachine):
            return None
        while not await self._ask_losses() and turn_of(mark) not in {0, *(loss.id for loss in self._losses)}:
            await asyncio.sleep(ASK_EVERY)
        loss = accepted(self._losses, partition, mark, self._session.key.secret)
        if loss is None:
            return None
        machine.lose(loss)
        log.warning("loss_passed", reason=loss.words())
        return loss.place.topic_id.encode()

    async def _ask_losses(self) -> bool:
        """Read the accepted losses again; whether the database answers."""
        try:
            self._losses = await in_thread(self._session.ledger.losses, self._settings.app)
        except Unavailable:
            return False
        return True

    def remedy(self, topic: str) -> str:
        """What an operator can do if a topic lacks what a state has yet to read."""
        return way_on(self._session.path, topic, self.sources)

    def _compare_heads(self, state: ReleasePartition) -> None:
        for metric, group, seq, chain in state.heads():
            head = self._heads.get(Group(metric.section.name, metric.section.version, group))
            if head is not None and head.seq == seq and bytes(head.hash) != chain:
                raise FailStop(
                    f"metric {metric.label}: release {seq} in the audit log is not the one that the state "
                    "published; the log or the topics were changed: run `shoal audit verify`"
                )

    async def watch_deployment(self) -> None:
        """End the worker when another configuration is in use."""
        await Deployment(self._session.path, self._session.config, self._session.ledger).watch()

    def ahead(self) -> set[StagePartition]:
        """Source partitions to hold back: what they send would only wait. Pacing changes no byte."""
        return {
            StagePartition(BOUND, topic, partition)
            for machine in list(self.machines.values())
            if isinstance(machine, ReleaseMachine)
            for topic, partition in machine.ahead()
        }

    def sink(self, topic: str, partition: int, records: Sequence[Record]) -> None:
        """Write releases or activations to the audit log; alarms for what it refuses."""
        values = [record.value for record in records if record.value is not None]
        app = self._session.config.kafka.app
        try:
            if topic == self._settings.releases:
                self._session.ledger.append(app, values)
            else:
                self._session.ledger.append_activations(app, values)
        except MissingSeq as error:
            self.health.alarm(MISSING_RELEASE, str(error))
            raise Unavailable(str(error)) from None
        except Equivocation as error:
            self.health.alarm(EQUIVOCATION, str(error))
        except AuditError as error:
            self.health.alarm(AUDIT, str(error))
