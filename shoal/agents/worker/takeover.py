"""Takes over the partitions that the group has given to this worker, until they may run.

1. Fence: the old owner's producer is locked out, and its open transaction is aborted.
2. Learn the topics' ids: a topic that was deleted and created again has another one.
3. Settle the old owner's last transaction where Kafka forgot its marker, and wait until changelogs and releases are
   stable: nobody can write behind their ends any more.
4. Load the changelogs up to there, none of which may have lost of its beginning what is needed.
5. Ask where the sources begin and end: after 4, so that a state cannot be ahead of them.
6. Admit: restore each machine, find where it goes on, and have the domain judge it.
7. Find where the audit log goes on.

Several brokers are asked, one after the other, and another owner may come at any moment: a worker that was frozen wakes
up in the middle of this and finds ends that belong to another time. So a refusal of 2 to 7 counts only after two
checks: that this worker still owns what it judges, and that a second look, through new connections, finds the same.
"""

import asyncio
from collections.abc import Collection, Mapping
from typing import NamedTuple, Protocol

import orjson
import structlog
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError as ClientError
from aiokafka.errors import ProducerFenced
from faust.types.tuples import TP

from shoal.agents.kafka.changelog import Reader
from shoal.agents.kafka.reachability import Reach, may_pass, name_of
from shoal.agents.kafka.settings import AUDIT, RELEASE, KafkaSettings
from shoal.agents.kafka.topic_ids import STATE_KEY, TopicId, TopicIds
from shoal.agents.kafka.transactions import Writer
from shoal.agents.lost_records import cut_off, gap, unnamed
from shoal.agents.process_settings import giving_freed_memory_back
from shoal.agents.worker.partition import Partition
from shoal.models.errors import FailStop, KafkaError
from shoal.stream.deltas.record import PREFIX
from shoal.stream.machine import Domain, LastValues, Machine, Record, StagePartition
from shoal.stream.state_mark import MARK, REMEDY

log = structlog.get_logger("shoal.worker")

SECOND_LOOK = 1.0  # seconds before it


class Overtaken(Exception):
    """Another worker owns what was being taken over, or may own it."""


class Taken(NamedTuple):
    """The result of a takeover: partitions that may run, and offsets at which the audit log goes on."""

    partitions: dict[StagePartition, Partition]
    audit: dict[TP, int]


class OwnGroup(Protocol):
    """What a takeover asks of the consumer group."""

    def moved(self) -> bool:
        """Whether the group has revoked anything since the takeover began."""

    async def committed_offsets(self, tps: set[TP]) -> Mapping[TP, int | None]:
        """The group's offsets, None where there is none."""


class Loading:
    """A machine that takes its changelog, and what a takeover finds in it by the way."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._restoration = machine.restoring()
        self.is_log = not isinstance(self._restoration, LastValues)
        self.named: bytes | None = None  # the id of the topic that the state was made of
        self.mark: bytes | None = None
        self.transactions: list[tuple[int, int, int]] = []  # of a log: first record, first offset, cost
        self._begin: int | None = None  # the offset of the transaction that is being read
        self._is_first = True  # whether that transaction has no record of the log yet

    @property
    def is_empty(self) -> bool:
        return self._restoration.is_empty

    def take(self, key: bytes | None, value: bytes | None, offset: int) -> None:
        """Restore what the record at this offset says, and note where transactions begin and what they cost."""
        if self._begin is None:
            self._begin = offset
        if key == STATE_KEY:
            self.named = value
            return
        if key is not None and key.startswith(PREFIX) and self._is_first:
            self._is_first = False
            self.transactions.append((int.from_bytes(key[len(PREFIX) :], "big"), self._begin, 0))
        if key == MARK:
            self.mark = value
            if not self._is_first:
                cost: int = orjson.loads(value or b"{}")["cost"]
                self.transactions[-1] = (*self.transactions[-1][:2], cost)
            self._begin, self._is_first = None, True
        self._restoration.take(key, value)

    def done(self, changelog: TopicPartition, bounds: tuple[int, int]) -> None:
        """Complete the restoration after the last record of the changelog, which has these bounds.

        Raises:
            FailStop: the state is not whole.
        """
        if not self.is_log:
            check_beginning(changelog, bounds)
        self._restoration.done()
        if self._restoration.needs_beginning:
            check_beginning(changelog, bounds)


class Takeover:
    """One attempt to take places over, until it succeeds, is refused or is overtaken."""

    def __init__(
        self, settings: KafkaSettings, domain: Domain, topic_ids: TopicIds, reach: Reach, group: OwnGroup
    ) -> None:
        self._settings, self._domain, self._topic_ids = settings, domain, topic_ids
        self._reach, self._group = reach, group
        self._writers: dict[StagePartition, Writer] = {}

    async def take(self, partitions: Collection[StagePartition], audit: set[TP]) -> Taken:
        """Take them over; brokers that are away or not ready are waited for.

        Raises:
            FailStop: something is missing, or is not what it was.
            Overtaken: this worker may not be the owner any more; nothing is left behind.
        """
        if not partitions and not audit:
            return Taken({}, {})
        self._writers = {partition: Writer(self._settings, partition, self._reach) for partition in partitions}
        try:
            await asyncio.gather(*(writer.fence() for writer in self._writers.values()))  # 1
            taken = await self._look(audit)
        except Overtaken:
            await asyncio.gather(*(writer.give_up() for writer in self._writers.values()))
            raise
        self._reach.ready()
        return taken

    async def _look(self, audit: set[TP]) -> Taken:
        """Read everything, again if need be."""
        refused = False
        while True:
            try:
                async with Reader(self._settings) as reader:
                    await self._settle(reader)  # 3
                    partitions = await self._restore(reader)  # 2 to 6
                    return Taken(partitions, await self._audit_positions(reader, audit))  # 7
            except FailStop:
                await self._check_ownership()
                if refused:
                    raise
                refused = True
                await asyncio.sleep(SECOND_LOOK)
            except (KafkaError, ClientError, TimeoutError) as error:
                await self._wait(error)

    async def _wait(self, error: Exception) -> None:
        """Until it makes sense to try again what failed with this.

        Raises:
            KafkaError, ClientError: no waiting will help.
        """
        if not may_pass(error.__cause__ if isinstance(error, KafkaError) else error) and await self._reach.ask():
            raise error
        await self._reach.retry(error)

    async def _check_ownership(self) -> None:
        """Before anybody is accused.

        Raises:
            Overtaken: another owner came, or brokers cannot say.
        """
        if self._group.moved():
            raise Overtaken("the group has moved on")
        try:
            fenced = await asyncio.gather(*(writer.is_fenced() for writer in self._writers.values()))
        except (ClientError, TimeoutError) as error:
            if not may_pass(error):
                raise
            raise Overtaken("brokers cannot say who owns it") from error
        if any(fenced):
            names = ", ".join(str(partition) for partition, lost in zip(self._writers, fenced, strict=True) if lost)
            raise Overtaken(f"another worker owns {names} now")

    async def _settle(self, reader: Reader) -> None:
        """End what hangs: in a partition that may be written to by others too, their transactions do not mind.

        Raises:
            Overtaken: another owner came, or brokers went away in the midst of it.
        """
        written = {
            partition: [writer.changelog, *self._settings.outputs(partition)]
            for partition, writer in self._writers.items()
        }
        everything = {TopicPartition(*target) for targets in written.values() for target in targets}
        unended = set(await reader.with_open_transactions(everything))
        try:
            await asyncio.gather(*(
                self._writers[partition].settle([target for target in targets if target in unended])
                for partition, targets in written.items()
            ))  # fmt: skip
        except (ClientError, TimeoutError) as error:
            fenced = ProducerFenced in (type(error), type(error.__cause__))
            if not fenced and not may_pass(error):
                raise
            raise Overtaken(f"a transaction could not be settled: {name_of(error)}") from error

    async def _restore(self, reader: Reader) -> dict[StagePartition, Partition]:
        with giving_freed_memory_back():
            return await self._load(reader)

    async def _load(self, reader: Reader) -> dict[StagePartition, Partition]:
        topic_ids = await self._topic_ids.learn()  # 2
        logs = {partition: TopicPartition(*writer.changelog) for partition, writer in self._writers.items()}
        outputs = {
            partition: TopicPartition(self._settings.releases, partition.number)
            for partition in logs
            if partition.stage == RELEASE
        }
        stable = await reader.stable_bounds([*logs.values(), *outputs.values()])  # 3
        loads = {partition: Loading(self._domain.machine(partition)) for partition in logs}
        # 4
        await reader.load({tp: stable[tp] for tp in logs.values()}, {logs[p]: one.take for p, one in loads.items()})
        sources = await reader.bounds(TopicPartition(partition.topic, partition.number) for partition in logs)  # 5
        restored = {}
        for partition, writer in self._writers.items():
            written = [logs[partition], *(outputs[p] for p in (partition,) if p in outputs)]
            last = await reader.last_committed(written[-1], stable[written[-1]]) if partition in outputs else None
            for tp in written:
                writer.last_offsets[tp.topic, tp.partition] = stable[tp][1] - 1
            source = sources[TopicPartition(partition.topic, partition.number)]
            loading = loads.pop(partition)
            loading.done(logs[partition], stable[logs[partition]])
            restored[partition] = await self._admit(partition, loading, topic_ids, source, last)  # 6
        return restored

    async def _admit(
        self,
        partition: StagePartition,
        loading: "Loading",
        topic_ids: Mapping[str, TopicId],
        source: tuple[int, int],
        last: Record | None,
    ) -> Partition:
        writer, now = self._writers[partition], topic_ids[partition.topic]
        machine, named = loading.machine, loading.named
        if loading.mark is not None:
            named = await self._domain.pass_loss(partition, machine, loading.mark) or named
        writer.preface = [] if named and not loading.is_log else [(STATE_KEY, now.id.encode())]
        if machine.next_offset is not None and named is None:
            raise FailStop(unnamed(partition))
        if machine.next_offset is None:
            machine.start(source[0])
        position = machine.next_offset if machine.next_offset is not None else source[0]
        was, discreet = None if named is None else named.decode(), self._settings.hides_presence
        if lost := gap(partition, position, was, now.id, source, discreet=discreet):
            raise FailStop(f"{lost}; {self._domain.remedy(partition.topic)}")
        await self._domain.admit(partition, machine, last, fresh=loading.is_empty)
        part = Partition(self._settings, partition, machine, writer)
        part.begin(position, durable=not loading.is_empty)
        if loading.is_log:
            part.trimmer.restored(loading.transactions)
        return part

    async def _audit_positions(self, reader: Reader, tps: set[TP]) -> dict[TP, int]:
        if not tps:
            return {}
        committed = await self._group.committed_offsets(tps)
        bounds = await reader.bounds(TopicPartition(*tp) for tp in tps)
        positions = {}
        for tp in tps:
            offset, (first, end) = committed[tp], bounds[TopicPartition(*tp)]
            positions[tp] = first if offset is None else offset
            topic = StagePartition(AUDIT, tp.topic, tp.partition)
            if lost := gap(topic, positions[tp], None, "", (first, end), discreet=self._settings.hides_presence):
                raise FailStop(f"{lost}; {REMEDY}")
        return positions


def check_beginning(changelog: TopicPartition, bounds: tuple[int, int]) -> None:
    """Refuse a changelog whose beginning was cut off: compaction keeps the last value of each key where it was."""
    if bounds[0] > 0:
        raise FailStop(cut_off(changelog.topic, changelog.partition))
