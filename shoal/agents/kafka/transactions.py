"""One Kafka transaction per outbox, written by the only producer that may write for a partition.

Outputs, changed state and next offset are committed together or not at all. A fenced producer, a topic that was created
again and a record that is too large end the worker. A transaction that does not commit in time, because brokers are
away or slow, is given up. The state in memory is then ahead of what is committed, and it is unknown whether the
transaction will be committed after all. So the partition has to be taken over again, as if by another worker, which
decides that. Until then nothing may be written, and no new producer may take the id: it could fence the rightful owner.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Any

import structlog
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.errors import (
    IllegalOperation,
    KafkaTimeoutError,
    LeaderNotAvailableError,
    NodeNotReadyError,
    OffsetOutOfRangeError,
    PolicyViolationError,
    ProducerFenced,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
    for_code,
)
from aiokafka.errors import KafkaError as ClientError
from aiokafka.protocol.admin import DeleteRecordsRequest

from shoal.agents.kafka import fast_records
from shoal.agents.kafka.client_errors import refusal_of
from shoal.agents.kafka.last_transaction import NONE_SINCE, LastTransaction, last_transaction
from shoal.agents.kafka.reachability import Reach, may_pass, name_of
from shoal.agents.kafka.settings import KafkaSettings
from shoal.models.errors import FailStop
from shoal.stream.machine import Headers, Outbox, StagePartition
from shoal.stream.state_mark import REMEDY

log = structlog.get_logger("shoal.worker")

LEAST_BYTES = 1 << 18  # of a log are deleted at a time,
SHARE = 4  # and at least one part in so many of what remains
FRAME = 1_000  # bytes of a transaction, approximately, beyond its cost: mark, the topic's id, frames of records
MAX_REQUEST = 1_048_576 - 4_096  # what brokers take by default, less the request's own bytes
STOP_LIMIT = 5.0
START_LIMIT = 20.0  # a broker that takes the connection and then says nothing is one to try again, perhaps another one

Target = tuple[str, int]


class TransactionGivenUp(FailStop):
    """A transaction did not commit in time: its partition's state is not to be used any more."""


async def _in_time(start: Awaitable[None]) -> None:
    """Wait for a producer that starts.

    Raises:
        ClientError: brokers refuse, or are not ready.
    """
    try:
        await asyncio.wait_for(start, START_LIMIT)
    except (
        AssertionError
    ) as error:  # the client's way to say that a broker, which wakes up, does not name any broker yet
        raise NodeNotReadyError from error


class Writer:
    """The transactional producer of one partition."""

    def __init__(self, settings: KafkaSettings, partition: StagePartition, reach: Reach) -> None:
        self.partition = partition
        self.changelog = (settings.changelog(partition.stage, partition.topic), partition.number)
        self.last_offsets: dict[Target, int] = {}  # the highest offset known in each partition written to
        # Written to the changelog before the next outbox; to a log before each, since its beginning is deleted.
        self.preface: list[tuple[bytes, bytes | None]] = []
        self.changelog_began = 0  # offset at which the last transaction's part of the changelog begins, or a lower one
        self.kernel: Any = None  # the kernel's class of batches to be written; None: aiokafka fills them
        self._settings, self._reach = settings, reach
        self._name = settings.transactional_id(*partition)
        self._producer: AIOKafkaProducer | None = None
        self._before: LastTransaction | None = None  # of the old owner

    async def fence(self) -> None:
        """Lock the old owner out, abort what it left open, and wait until the coordinator has done so."""
        while self._producer is None:
            producer = self._new_producer()
            try:
                await _in_time(self._start(producer))
                self._producer = producer
            except (ClientError, TimeoutError) as error:
                await abandon(producer)
                if not may_pass(error) and await self._reach.ask():
                    raise
                await self._reach.retry(error)

    async def _start(self, producer: AIOKafkaProducer) -> None:
        """Start a producer; before it locks the old owner out, ask how that one's last transaction ended.

        An attempt that failed may have locked the old owner out, or may not: it may have gone on since.
        """
        await producer.client.bootstrap()
        last = await last_transaction(producer.client, self._name)
        if self._before is None or (last is not None and last.state != NONE_SINCE):
            self._before = last
        await producer.start()

    async def settle(self, partitions: Collection[Target]) -> None:
        """End the old owner's last transaction where its marker is missing, as it ended elsewhere.

        An empty transaction writes a marker into each of these partitions, which nobody notices where nothing hangs.
        What the coordinator does not remember is aborted. If that was wrong, numbers of messages or releases show it,
        and the worker that finds them ends.

        Raises:
            ProducerFenced: another producer has taken this one's id.
            ClientError: brokers are away or not ready.
        """
        if self._before is None or not partitions:
            return
        producer = self._started
        await producer.begin_transaction()
        for topic, number in partitions:
            producer._txn_manager.maybe_add_partition_to_txn(TopicPartition(topic, number))
        ends = producer.commit_transaction if self._before.committed else producer.abort_transaction
        await asyncio.wait_for(ends(), START_LIMIT)

    async def is_fenced(self) -> bool:
        """Ask the coordinator whether another producer has taken this one's id.

        Raises:
            ClientError: brokers that are away or not ready cannot say.
        """
        last = await asyncio.wait_for(last_transaction(self._started.client, self._name), START_LIMIT)
        own = self._started._txn_manager
        return last is None or (last.producer_id, last.producer_epoch) != (own.producer_id, own.producer_epoch)

    def _new_producer(self) -> AIOKafkaProducer:
        s = self._settings
        return AIOKafkaProducer(
            **s.connect(self._name.removeprefix(f"{s.app}.")),
            transactional_id=self._name,
            transaction_timeout_ms=int(s.transaction_timeout * 1000),
            request_timeout_ms=int(s.request_timeout * 1000),
            max_batch_size=s.max_batch_bytes,
            retry_backoff_ms=50,
            acks="all",
        )

    async def write(self, outbox: Outbox) -> None:
        """Commit an outbox. When this returns, it is in the log; when it raises, the state is ahead of the log.

        Raises:
            TransactionGivenUp: the partition has to be taken over anew. After any other error the worker must end.
        """
        rounds = self._build(outbox)  # before the transaction begins: an open one holds readers back
        task = asyncio.ensure_future(self._transaction(rounds))
        try:
            await self._limited(task)
            if outbox.log is None:
                self.preface = []
        except ProducerFenced:
            raise
        except TransactionalIdAuthorizationFailed as error:  # which does not name it where a transaction ends
            raise TransactionalIdAuthorizationFailed(self._name) from error
        except ClientError as error:
            if isinstance(error.__cause__, ProducerFenced):
                raise error.__cause__ from None
            if may_pass(error):
                raise TransactionGivenUp(f"{self.partition}: a transaction failed: {name_of(error)}") from error
            raise

    async def _limited(self, task: asyncio.Future[None]) -> None:
        """Wait for the transaction, for at most `flush_limit` seconds in which this process ran.

        Time for which the process was frozen does not count: it must first hear whether it was fenced meanwhile, and
        the broker's answer may be there already.
        """
        waited = 0.0
        while not task.done():
            await asyncio.wait({task}, timeout=1.0)
            waited += 1.0
            if waited >= self._settings.flush_limit and not task.done():
                task.cancel()
                limit, state = self._settings.flush_limit, "away" if self._reach.away else "slow"
                raise TransactionGivenUp(
                    f"{self.partition}: broker {state}; a transaction did not commit within {limit:.0f} s"
                )
        await task

    def _build(self, outbox: Outbox) -> list[list[tuple[Any, Target]]]:
        """Batches in rounds with at most one batch per partition; a round is sent when the one before it is out."""
        contents: dict[Target, Iterable[tuple[bytes | None, bytes | None, Headers]]] = {**outbox.records}
        if outbox.changelog:
            contents[self.changelog] = ((key, value, []) for key, value in (*self.preface, *outbox.changelog))
        rounds: list[list[tuple[Any, Target]]] = []
        for target, records in contents.items():
            try:
                stamp = None if target == self.changelog else outbox.stamp
                batches = fast_records.build_batches(self._started, records, MAX_REQUEST, stamp, self.kernel)
            except FailStop as error:
                raise FailStop(f"{self.partition}: to {target[0]}[{target[1]}]: {error}") from None
            for number, batch in enumerate(batches):
                if number == len(rounds):
                    rounds.append([])
                rounds[number].append((batch, target))
        return rounds

    @property
    def _started(self) -> AIOKafkaProducer:
        if self._producer is None:
            raise RuntimeError("write before fence")
        return self._producer

    async def _transaction(self, rounds: list[list[tuple[Any, Target]]]) -> None:
        producer = self._started
        await producer.begin_transaction()
        sent = [(await self._send(batch, target), target) for batches in rounds for batch, target in batches]
        began = [self.last_offsets.get(self.changelog, -1) + 1]
        for future, target in sent:  # each must be awaited: aiokafka commits although a batch failed
            offset = (await future).offset
            self._check_offset(target, offset)
            if target == self.changelog:
                began.append(offset)
        self.changelog_began = max(began[:2])  # if the first batch's offset is unknown, -1: after the last known one
        await producer.commit_transaction()

    async def _send(self, batch: Any, target: Target) -> Awaitable[Any]:
        while True:
            try:
                future: Awaitable[Any] = await self._started.send_batch(batch, target[0], partition=target[1])
            except KafkaTimeoutError:  # the batch before it is not out yet, and this one was not taken
                continue
            except IllegalOperation as error:
                raise refusal_of(self._started, error) from error
            return future

    def _check_offset(self, target: Target, offset: int) -> None:
        """Refuse an offset that does not grow: the topic was deleted and made again, and earlier state is gone."""
        if offset < 0:
            return  # a repeated send whose first answer was lost: the broker has it and no longer knows where
        if offset <= self.last_offsets.get(target, -1):
            topic = f"{target[0]}[{target[1]}]"
            raise FailStop(
                # No offset: that of a changelog depends on values.
                f"{self.partition}: {topic} was made anew, or lost records in an unclean leader election: it gave an "
                f"offset that was written before; {REMEDY}"
            )
        self.last_offsets[target] = offset

    async def delete_changelog(self, before: int) -> None:
        """Delete the changelog's records before this offset.

        Raises:
            ClientError: the broker refuses, or is away.
        """
        if self._producer is None or before < 0:  # without a producer another owner deletes; -1 would delete all
            return
        topic, number = self.changelog
        client = self._producer.client
        await asyncio.wait_for(self._producer.partitions_for(topic), START_LIMIT)  # before the first transaction, too
        leader = client.cluster.leader_for_partition(TopicPartition(topic, number))
        if leader is None or leader < 0:
            raise LeaderNotAvailableError
        request = DeleteRecordsRequest([(topic, [(number, before)])], int(START_LIMIT * 1000))
        answer = await asyncio.wait_for(client.send(leader, request), START_LIMIT)
        for _, partitions, *_ in answer.topics:
            for _, _, code, *_ in partitions:
                if code:
                    raise for_code(code)

    async def stop(self) -> None:
        """Close connections; an open transaction, if any, is aborted by the next owner."""
        if self._producer is not None:
            await stop_quietly(self._producer.stop)
            self._producer = None

    async def give_up(self) -> None:
        """Close connections without sending anything more: what is not sent yet must not be sent later."""
        if self._producer is not None:
            producer, self._producer = self._producer, None
            await abandon(producer)


class Trimmer:
    """Deletes the records of one changelog partition that no successor needs, if it is a log (`shoal/stream/deltas/`).

    A transaction says which record is the first that is needed. When the next one is committed, and there is much
    before that record, the broker is asked to delete it. That may fail, and is then done the next time: a takeover
    reads what was not deleted, and ignores it. It needs the right to delete, and brokers that allow it; without, the
    log grows, and the worker says so once. How much there is to delete is measured by what transactions cost, not by
    their bytes, which depend on values: nothing that a worker does or says may depend on these. Costs do tell how many
    events came, so if presence is protected a takeover asks whether the worker may delete, and later it says nothing.
    """

    def __init__(self, writer: "Writer", *, hides_presence: bool = False) -> None:
        self._writer, self._hides_presence = writer, hides_presence
        self._known: deque[tuple[int, int, int]] = deque()  # needed transactions: first record, first offset, cost
        self._needs = 0  # the first record that the last commit needs
        self._needed = 0  # cost of the needed transactions
        self._dead = 0  # cost of those before them that are not deleted
        self._task: asyncio.Task[None] | None = None
        self.is_denied = False

    def restored(self, transactions: Iterable[tuple[int, int, int]]) -> None:
        """Note the transactions that a takeover read: (first record, first offset, cost) of each."""
        self._known.extend((first, offset, cost + FRAME) for first, offset, cost in transactions)
        self._needed = sum(cost for _, _, cost in self._known)
        if self._hides_presence:
            self._task = asyncio.create_task(self._delete(0, is_said=True))  # deletes nothing, and is refused alike

    def committed(self, outbox: Outbox) -> None:
        """Note a committed transaction, and delete what is no longer needed if it is much."""
        if outbox.log is None:
            return
        cost = outbox.log.cost + FRAME  # the frame counts even without accounts, for such logs grow, too
        self._known.append((outbox.log.first, self._writer.changelog_began, cost))
        self._needed += cost
        # What the commit before this one needs is decisive: only now is it certain that its marker is in all
        # partitions. A transaction is dead once the one after it begins at or before the first record needed; until
        # then a part of it may be needed.
        needs, self._needs = self._needs, outbox.log.needs
        while len(self._known) > 1 and self._known[1][0] <= needs:
            _, _, gone = self._known.popleft()
            self._needed, self._dead = self._needed - gone, self._dead + gone
        is_busy = self._task is not None and not self._task.done()
        if self._dead >= max(LEAST_BYTES, self._needed // SHARE) and not is_busy and not self.is_denied:
            self._dead = 0
            self._task = asyncio.create_task(self._delete(self._known[0][1], is_said=not self._hides_presence))

    async def _delete(self, before: int, *, is_said: bool) -> None:
        try:
            await self._writer.delete_changelog(before)
        except (ClientError, TimeoutError, OSError) as error:
            # A leader that was just elected, and does not know yet how far the others are, answers "out of range".
            if may_pass(error) or isinstance(error, OffsetOutOfRangeError):
                return  # the next time this is deleted, too
            self.is_denied = True
            topic, partition = self._writer.changelog
            if is_said:
                reason = f"{_refusal(error)}; until then it grows"
                log.warning("not_trimmed", topic=topic, partition=partition, reason=reason)

    async def stop(self) -> None:
        """Leave it to the next owner."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})


def _refusal(error: Exception) -> str:
    """What to do where a broker does not delete records, now or later."""
    match error:
        case TopicAuthorizationFailedError():
            return "Kafka denies Delete on it: grant it with kafka-acls"
        case PolicyViolationError():
            return "its cleanup.policy is not delete: run the command that `shoal check` names"
    return f"the broker refuses to delete records ({name_of(error)}): ask who runs it to allow DeleteRecords"


async def abandon(producer: AIOKafkaProducer) -> None:
    """Stop a producer without sending what it has yet to send."""
    producer._closed = True
    sender = producer._sender.sender_task
    if sender is not None:
        sender.cancel()
    await stop_quietly(producer.client.close)  # ends the requests that the sender waits for
    if sender is not None:
        await asyncio.wait({sender}, timeout=STOP_LIMIT)


async def stop_quietly(stop: Callable[[], Awaitable[object]]) -> None:
    """Stop a client; brokers that are away do not hold it up."""
    with contextlib.suppress(ClientError, TimeoutError, OSError):
        await asyncio.wait_for(stop(), STOP_LIMIT)
