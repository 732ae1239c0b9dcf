"""The machines of a worker's stages: the statistics of one configuration, agreed with the ledger.

A machine is compared with Kafka and SQL before it may publish. Fails if the ledger refuses, if the state of a partition
that ever committed is missing, or if it disagrees with what was published.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

import structlog
from aiokafka import TopicPartition

from shoal.agents.audit.budget import BudgetReport
from shoal.agents.audit.database import Unavailable
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
from shoal.mechanisms.kinds import kind_of
from shoal.models.errors import AuditError, FailStop, LedgerError
from shoal.models.losses import AcceptedLoss
from shoal.models.records import record_key
from shoal.models.tables import RETIRED
from shoal.models.version import VersionId
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
        self._losses: list[AcceptedLoss] = []

    def agree(self, verified: Verified) -> None:
        """Register with the ledger, read it once, and compile the plans.

        Raises:
            LedgerError: it refuses, or has an active metric that this configuration lacks.
        """
        counts = {topic: verified.partitions[topic] for topic in (*self.sources, self._settings.contributions)}
        agreement = self._session.register(partitions=counts)
        refuse_absent(self._session, agreement.absent)
        self.budget = self._session.ledger.budget_report()
        ledger = self._session.app_ledger
        self._losses = ledger.losses()
        rows = {VersionId.of(row).label: row for row in ledger.versions()}
        self._heads = ledger.standing().heads
        self._former = former_topics(ledger.partitions(), counts)
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
                published_before=PublishedBefore(self._homes.get(partition.number, {}), self._activation),
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
        key = self._group(label, group)
        head = self._heads.get(key)
        if head is None or seq > head.seq:
            return None
        stored = self._session.app_ledger.release(key, seq)
        if stored is None:
            raise FailStop(
                f"metric {label}: release {seq} is missing in the audit log, which goes on to {head.seq}; restore the "
                "log, for what was published under this key must be known"
            )
        return stored

    def _activation(self, label: str, group: str, level: int) -> bytes | None:
        return self._session.app_ledger.activation(self._group(label, group), level)

    def _group(self, label: str, group: str) -> Group:
        metric, _, version = label.rpartition("/")
        return Group(VersionId(self._settings.app, metric, int(version)), group)

    @property
    def withheld(self) -> set[str]:
        """Metrics whose new releases wait until all that is published is made again."""
        machines = [machine for machine in list(self.machines.values()) if isinstance(machine, ReleaseMachine)]
        return {label for machine in machines for label in machine.withheld}

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
            self._losses = await in_thread(self._session.app_ledger.losses)
        except Unavailable:
            return False
        return True

    def remedy(self, topic: str) -> str:
        """What an operator can do if a topic lacks what a state has yet to read."""
        return way_on(self._session.path, topic, self.sources)

    def _compare_heads(self, state: ReleasePartition) -> None:
        for metric, group, seq, chain in state.heads():
            head = self._heads.get(self._group(metric.label, group))
            if head is not None and head.seq == seq and bytes(head.hash) != chain:
                raise FailStop(
                    f"metric {metric.label}: release {seq} in the audit log is not the one that the state "
                    "published; the log or the topics were changed: run `shoal audit verify`"
                )

    async def watch_deployment(self) -> None:
        """End the worker when another configuration is in use."""
        await Deployment(self._session.path, self._session.config, self._session.app_ledger).watch()

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
        ledger = self._session.app_ledger
        try:
            if topic == self._settings.releases:
                ledger.append(values)
            else:
                ledger.append_activations(values)
        except MissingSeq as error:
            self.health.alarm(MISSING_RELEASE, str(error))
            raise Unavailable(str(error)) from None
        except Equivocation as error:
            self.health.alarm(EQUIVOCATION, str(error))
        except AuditError as error:
            self.health.alarm(AUDIT, str(error))


def heads_by_home(heads: Mapping[Group, Head], plans: Iterable[TopicPlan]) -> dict[int, dict[str, dict[str, int]]]:
    """For each contributions partition, by label: the last logged release of every group that it releases."""
    metrics = {metric.label: (plan, metric) for plan in plans for metric in plan.metrics}
    homes: dict[int, dict[str, dict[str, int]]] = {}
    for group, head in heads.items():
        label = group.version.label
        if label in metrics:
            plan, metric = metrics[label]
            # a shared statistic releases all groups in the partition of its metric
            key = record_key(metric.name, None if kind_of(metric.parts).shared else group.group)
            homes.setdefault(plan.home_of(key), {}).setdefault(label, {})[group.group] = head.seq
    return homes
