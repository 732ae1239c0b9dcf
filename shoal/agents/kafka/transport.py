"""Faust's Kafka transport with a few changes: whole batches, exact positions, read_committed.

In come fetches; out comes one Faust message per fetch and partition, whose value is a `Batch`. The host knows
positions; the group's offsets are only a hint for lag tools. Lost records, a group instance that is used twice, missing
authorisation and workers of another version end the worker. Brokers that are away are waited for.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import aiokafka
from aiokafka import TopicPartition
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.errors import (
    CorruptRecordException,
    GroupAuthorizationFailedError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    TopicAuthorizationFailedError,
    UnsupportedCodecError,
)
from aiokafka.errors import KafkaError as ClientError
from aiokafka.protocol.group import LeaveGroupRequest
from aiokafka.structs import OffsetAndMetadata
from faust.transport.drivers import aiokafka as faust_kafka
from faust.types.tuples import TP, ConsumerMessage
from mode.utils.futures import notify

from shoal.agents.kafka import fast_records
from shoal.agents.kafka.assignor import Assignor, GroupMember
from shoal.agents.kafka.client_errors import lost_records
from shoal.agents.kafka.fail_stop import fail_stop
from shoal.agents.kafka.idleness import Idleness
from shoal.agents.kafka.reachability import may_pass
from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.kafka.transactions import stop_quietly
from shoal.models.errors import FailStop
from shoal.stream.machine import Record

OFFSETS_LIMIT = 5.0  # seconds for the group's offsets
LEAVE_LIMIT = 1.0  # second
LOOK_EVERY = 1.0


class Batch(NamedTuple):
    """What one fetch brought from one partition."""

    start: int | None  # position before it; None if unknown
    end: int  # position after it, past control records and holes of compaction
    records: Sequence[Record]
    memory: int = 0  # bytes that the records take
    left: int = 0  # offsets after it in the partition when it was fetched


class Positions(Protocol):
    """The host, which knows where partitions are read."""

    settings: KafkaSettings
    batches: Mapping[str, Any]  # topics that are read in whole batches, each with the class of the kernel for them

    def positions(self, assigned: set[TP]) -> dict[TP, int]:
        """Offsets from which hosted partitions are read on."""

    def committed(self) -> dict[TP, int]:
        """First offsets that no durable result covers, for the group's hint."""

    def note(self, tp: TP) -> str:
        """The note to commit beside a partition's offset."""

    def held(self) -> set[TP]:
        """Partitions that must not be read now."""


class InstanceGuard:
    """Ends the worker when another one joins under the same group instance id.

    Kafka then gives the member's place to the newcomer and calls the old member unknown, which aiokafka answers by
    joining again, and so on for ever. A member that was heard a moment ago becomes unknown in no other way.
    """

    def __init__(self, coordinator: Any, settings: KafkaSettings) -> None:
        self._heartbeat, self._reset = coordinator._do_heartbeat, coordinator.reset_generation
        self._coordinator, self._settings = coordinator, settings
        self._heard = 0.0
        self._joined = coordinator._on_join_complete
        coordinator._on_join_complete = self._join
        coordinator._do_heartbeat, coordinator.reset_generation = self._beat, self._lost

    async def _beat(self) -> bool:
        heard = bool(await self._heartbeat())
        if heard:
            self._heard = time.monotonic()
        return heard

    async def _join(self, *args: Any) -> None:
        self._heard = time.monotonic()
        await self._joined(*args)

    def _lost(self) -> None:
        closing = self._coordinator._closing.done()
        if not closing and time.monotonic() - self._heard < self._settings.session_timeout / 2:
            name = self._settings.instance
            fail_stop(FailStop(f"instance {name} is in use by another worker; give each worker its own name"), "group")
        self._reset()


class BatchThread(faust_kafka.AIOKafkaConsumerThread):
    """The consumer's thread: fetches whole batches and knows where they begin and end."""

    consumer: "BatchConsumer"
    _assignor: Assignor

    def __post_init__(self) -> None:
        super().__post_init__()
        self.chain: dict[TopicPartition, int] = {}
        self._idleness = Idleness()
        self._joining: asyncio.Task[None] | None = None

    @property
    def _settings(self) -> KafkaSettings:
        return self.consumer.host.settings

    def _create_worker_consumer(self, _transport: object) -> aiokafka.AIOKafkaConsumer:
        s = self._settings
        self._assignor = Assignor(s.stage)
        return aiokafka.AIOKafkaConsumer(
            **s.connect("worker"),
            group_id=s.app,
            group_instance_id=s.instance,
            partition_assignment_strategy=[self._assignor],
            isolation_level="read_committed",
            enable_auto_commit=False,
            auto_offset_reset="none",  # every start seeks; records lost to retention are an error, not a gap
            max_poll_records=s.poll_records,
            max_poll_interval_ms=3_600_000,
            **s.fetching(),
            session_timeout_ms=int(s.session_timeout * 1000),
            heartbeat_interval_ms=int(s.session_timeout * 250),
            rebalance_timeout_ms=int(s.rebalance_timeout * 1000),
            **fast_records.consumer_arguments(self.consumer.host.batches),
        )

    async def on_start(self) -> None:
        """Connect; brokers that went away since they were asked last are waited for."""
        while True:
            try:
                await super().on_start()
                return
            except (ClientError, TimeoutError) as error:
                if not may_pass(error):
                    raise
                await stop_quietly(self._ensure_consumer().stop)
                await asyncio.sleep(1.0)

    async def subscribe(self, topics: Any) -> None:
        """Subscribe, and from then on handle assignments and guard the instance id."""
        coordinator = self._ensure_consumer()._coordinator
        if isinstance(coordinator, GroupCoordinator):
            GroupMember(coordinator, self._assignor, self._settings)
        await super().subscribe(topics)
        if self._settings.instance is not None and isinstance(coordinator, GroupCoordinator):
            InstanceGuard(coordinator, self._settings)
        self._joining = asyncio.create_task(self._watch_group())

    async def _watch_group(self) -> None:
        """Check the group now and then: without partitions nothing is fetched, which would show its errors."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            if not self.assignment():
                try:
                    await self.call_thread(self._look_at_group)
                except ClientError as error:
                    fail_stop(error, "group")

    async def _look_at_group(self) -> None:
        self._check_group(self._ensure_consumer())

    async def _fetch_records(
        self, consumer: Any, active_partitions: set[TP], timeout: float | None = None, max_records: int | None = None
    ) -> dict[TP, list[Any]]:
        try:
            self._check_group(consumer)
            fetched = await super()._fetch_records(consumer, active_partitions, timeout, max_records)
        except ClientError as error:
            return await self._refused(error)
        batches = {}
        for tp, records in fetched.items():  # nothing was awaited since the fetch: the position is that of its end
            end = await consumer.position(tp)
            found, memory = fast_records.records_of(records, self.consumer.host.batches.get(tp.topic))
            left = (consumer.highwater(tp) or end) - end
            batches[tp] = [Batch(self.chain.get(tp), end, found, memory, left)]
            self.chain[tp] = end
        return batches

    def _check_group(self, consumer: Any) -> None:
        """Take errors out of the group's coordinator, which waits until somebody does; Faust never does."""
        try:
            consumer._coordinator.check_errors()
        except (GroupAuthorizationFailedError, TopicAuthorizationFailedError):
            raise
        except ClientError:
            if consumer._coordinator._coordination_task.done():
                raise
            consumer._coordinator.request_rejoin()  # after such an error there are no heartbeats until the next join

    async def _refused(self, error: ClientError) -> dict[TP, list[Any]]:
        match error:
            case OffsetOutOfRangeError():
                fail_stop(lost_records(error), "reading")
            case NoOffsetForPartitionError():
                return {}  # found before the first seek
            case GroupAuthorizationFailedError() | TopicAuthorizationFailedError():
                fail_stop(error, "reading")
            case CorruptRecordException() | UnsupportedCodecError():  # the same batch would come again for ever
                fail_stop(error, "reading")
        coordinator = self._ensure_consumer()._coordinator
        if coordinator._coordination_task.done():
            fail_stop(error, "group")
        await asyncio.sleep(0.1)
        return {}

    async def _seek_wait(self, consumer: Any, partitions: Mapping[TP, int]) -> None:
        await super()._seek_wait(consumer, partitions)
        self.chain.update(partitions)

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        """Give the group its hint. Results never depend on it, so a failure is no error."""
        try:
            note = self.consumer.host.note
            wanted = {TopicPartition(*tp): OffsetAndMetadata(offset, note(tp)) for tp, offset in offsets.items()}
            await asyncio.wait_for(self._ensure_consumer().commit(wanted), 5.0)
        except (ClientError, TimeoutError):
            return False
        return True

    def limit_fetches(self, size: int) -> None:
        """Have a fetch bring at most `size` bytes of each partition, or a larger batch, and wait for no more."""
        fast_records.limit_fetches(self._ensure_consumer(), size)

    def look_again(self) -> None:
        """Have a fetch that waits look at partitions that were held back: aiokafka may have their records already."""
        self.thread_loop.call_soon_threadsafe(fast_records.look_again, self._ensure_consumer())

    def rejoin(self) -> None:
        """Have the group assign partitions again; may be called from any thread."""
        self.thread_loop.call_soon_threadsafe(self._rejoin)

    def _rejoin(self) -> None:
        coordinator = self._ensure_consumer()._coordinator
        if isinstance(coordinator, GroupCoordinator):
            coordinator.request_rejoin()

    async def leave(self) -> None:
        """Leave the group, just before the process ends: otherwise it would wait until the session expires.

        A member with an instance name keeps its place. Leaving is a courtesy, given up if it fails or takes too long.
        """
        if self._settings.instance is None:
            with contextlib.suppress(ClientError, TimeoutError):
                await asyncio.wait_for(self.call_thread(self._leave), LEAVE_LIMIT)

    async def _leave(self) -> None:
        coordinator = self._ensure_consumer()._coordinator
        if isinstance(coordinator, GroupCoordinator) and coordinator.member_id:
            # The request alone: the coordinator's own way of leaving waits for a rebalance that may be under way.
            await coordinator._send_req(LeaveGroupRequest(coordinator.group_id, coordinator.member_id))

    async def committed_offsets(self, tps: set[TP]) -> dict[TP, int | None]:
        """The group's offsets; None where there is none."""
        return dict(await self.call_thread(self._committed_offsets, tps))

    async def _committed_offsets(self, tps: set[TP]) -> dict[TP, int | None]:
        consumer = self._ensure_consumer()
        return {tp: await consumer.committed(TopicPartition(*tp)) for tp in tps}

    async def commits(self, topics: set[str]) -> dict[TP, tuple[int, str]]:
        """What owners committed for all partitions of these topics: offset and note."""
        return dict(await self.call_thread(self._commits, topics))

    async def _commits(self, topics: set[str]) -> dict[TP, tuple[int, str]]:
        consumer = self._ensure_consumer()
        wanted = [TopicPartition(topic, p) for topic in topics for p in consumer.partitions_for_topic(topic) or ()]
        commits = await asyncio.wait_for(consumer._coordinator.fetch_committed_offsets(wanted), OFFSETS_LIMIT)
        return {TP(tp.topic, tp.partition): (commit.offset, commit.metadata or "") for tp, commit in commits.items()}

    @property
    def generation(self) -> int:
        """Generation of the group; below 1 until it is joined."""
        consumer = self._consumer
        return -1 if consumer is None else int(getattr(consumer._coordinator, "generation", -1))

    def ends(self) -> dict[tuple[str, int], int]:
        """High watermarks as of the last fetches, for partitions that have been fetched."""
        consumer, ends = self._ensure_consumer(), {}
        for tp in self.assignment():
            with contextlib.suppress(ClientError, AssertionError, AttributeError, KeyError):  # just revoked
                end = consumer.highwater(TopicPartition(*tp))
                if end is not None:
                    ends[tp.topic, tp.partition] = int(end)
        return ends

    async def idle(self, tps: set[TP]) -> dict[TP, tuple[int, int]]:
        """For those of these partitions that are idle: (end of the last batch handed out, wall time in ms)."""
        return dict(await self.call_thread(self._idle, tps))

    async def _idle(self, tps: set[TP]) -> dict[TP, tuple[int, int]]:
        consumer, idle = self._ensure_consumer(), {}
        for tp in tps & self.assignment():
            key = TopicPartition(*tp)
            if key not in self.chain:
                continue
            position = await consumer.position(key)
            responded = consumer.last_poll_timestamp(key)
            wall = self._idleness.at(key, position, consumer.highwater(key), responded)
            if wall is not None:
                idle[tp] = (self.chain[key], wall)
        return idle

    def verify_event_path(self, now: float, tp: TP) -> None:
        """The host has its own watchdog."""


class BatchConsumer(faust_kafka.Consumer):
    """Faust's consumer, with positions from the host and without acknowledgements."""

    host: Positions
    _thread: BatchThread

    def _new_consumer_thread(self) -> BatchThread:
        return BatchThread(self, loop=self.loop, beacon=self.beacon)

    def _to_message(self, tp: TP, batch: Any) -> ConsumerMessage:
        last = batch.records[-1]
        generation = self.app.consumer_generation_id
        return ConsumerMessage(
            tp.topic, tp.partition, last.offset, last.timestamp / 1000.0, 0, [], None, batch, None, 0, 0, TP(*tp),
            generation_id=generation,
        )  # fmt: skip

    async def seek_to_committed(self) -> dict[TP, int]:
        """Seek to where the host is. Faust calls this after each rebalance, before it reads on."""
        positions = self.host.positions(self.assignment())
        if positions:
            await self._thread.seek_wait(positions)
        return positions

    async def seek_one(self, tp: TP, offset: int) -> None:
        await self._thread.seek_wait({tp: offset})

    async def force_commit(self, topics: object = None, start_new_transaction: bool = True) -> bool:
        """Commit the offsets of what is durable, as a hint."""
        known, assigned = self._committed_offset, self.assignment()
        offsets = {tp: n for tp, n in self.host.committed().items() if tp in assigned and known[tp] != n}
        if not offsets or not await self._commit(offsets):
            return False
        known.update(offsets)
        return True

    def resume_partitions(self, tps: Any) -> None:
        """Resume all but those that the host holds back."""
        super().resume_partitions(set(tps) - self.host.held())
        self._thread.look_again()

    def on_buffer_drop(self, tp: TP) -> None:
        """Resume a partition because Faust's queue has room again, unless the host holds it back."""
        if tp not in self.host.held():
            super().on_buffer_drop(tp)

    def ack(self, message: Any) -> bool:
        """Note an acknowledgement, which means nothing: the offset in the state is what counts."""
        message.acked = True
        self._unacked_messages.discard(message)
        notify(self._waiting_for_ack)
        return True

    async def _add_gap(self, tp: TP, offset_from: int, offset_to: int) -> None:
        """Ignore gaps, which control records and compaction leave."""

    async def verify_all_partitions_active(self) -> None:
        """The host has its own watchdog."""


class SilentProducer(faust_kafka.Producer):
    """Faust's own producer, which nothing uses: it never connects."""

    async def on_start(self) -> None: ...
    async def on_stop(self) -> None: ...
    async def flush(self) -> None: ...


def transport_for(host: Positions) -> Callable[..., faust_kafka.Transport]:
    """A Faust transport class whose consumers take positions from this host."""
    consumer = type("HostedConsumer", (BatchConsumer,), {"host": host, "__module__": __name__})
    members = {"Consumer": consumer, "Producer": SilentProducer, "__module__": __name__}
    return type("HostedTransport", (faust_kafka.Transport,), members)
