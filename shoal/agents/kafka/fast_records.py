"""All code that uses aiokafka's internals, behind a check of versions and names.

It makes the same records and batches about 1.6 times as fast: records remain the C objects that the parser made,
instead of becoming dataclasses, and batches are filled by the C builder directly. For topics that the kernel reads no
records are made at all; their batches are passed on as they came. What brokers answer is received where it stays
(`wire/connection.py`). A worker refuses to start with another version than the pinned one, with which this was checked.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from operator import attrgetter
from typing import Any, NamedTuple
from weakref import ref

import aiokafka.consumer.fetcher as fetcher
from aiokafka import AIOKafkaProducer, codec
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.producer.transaction_manager import TransactionManager
from aiokafka.record.default_records import DefaultRecordBatch
from aiokafka.record.legacy_records import LegacyRecordBatch
from faust.tables.manager import TableManager
from faust.transport.consumer import Consumer as FaustConsumer
from faust.transport.consumer import ConsumerThread, ThreadDelegateConsumer
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread

from shoal.agents.kafka.wire import connection
from shoal.models.errors import FailStop, KafkaError
from shoal.stream.kernel.batches import gathered
from shoal.stream.machine import Headers

AnyRecord = tuple[bytes | None, bytes | None, Headers]  # tombstones too

VERSIONS = {"faust-streaming": "0.15.3", "aiokafka": "0.14.0"}
RECORD_MEMORY = 256  # bytes of memory that a record takes without its value; 240 to 250 were measured
LOG_OVERHEAD, HEADER = 12, 61  # bytes of a batch: its offset and length, and all fields before its records
UNPACK = {1: codec.gzip_decode, 2: codec.snappy_decode, 3: codec.lz4_decode, 4: codec.zstd_decode}
RECORD_OVERHEAD = 128  # bytes of one record and its batch without key, value and headers; a generous bound

# Names of Faust and aiokafka that we override or call and that no public name replaces.
REQUIRED: tuple[tuple[type, str], ...] = (
    (AIOKafkaConsumerThread, "_create_worker_consumer"),
    (AIOKafkaConsumerThread, "_fetch_records"),
    (AIOKafkaConsumerThread, "_seek_wait"),
    (AIOKafkaConsumerThread, "_commit"),
    (AIOKafkaConsumerThread, "_ensure_consumer"),
    (ThreadDelegateConsumer, "_new_consumer_thread"),
    (ConsumerThread, "call_thread"),
    (FaustConsumer, "_to_message"),
    (FaustConsumer, "_add_gap"),
    (FaustConsumer, "force_commit"),
    (FaustConsumer, "perform_seek"),
    (FaustConsumer, "seek_to_committed"),
    (TableManager, "_update_channels"),
    (GroupCoordinator, "check_errors"),
    (GroupCoordinator, "reset_generation"),
    (GroupCoordinator, "request_rejoin"),
    (GroupCoordinator, "_do_heartbeat"),
    (GroupCoordinator, "_on_join_complete"),
    (TransactionManager, "maybe_add_partition_to_txn"),
    (fetcher.Fetcher, "_notify"),
    (fetcher.PartitionRecords, "_consumer_record"),
    (fetcher.PartitionRecords, "_unpack_records"),
    (fetcher.MemoryRecords, "next_batch"),
    (fetcher.FetchResult, "_update_position"),
    *connection.REQUIRED,
    (BatchBuilder, "append"),
    (BatchBuilder, "close"),
    (BatchBuilder, "closed"),
    (BatchBuilder, "record_count"),
    (BatchBuilder, "_set_producer_state"),
    (BatchBuilder, "_build"),
)


class _Raw:
    """A key deserializer that marks a consumer whose records are to stay as the parser made them.

    `batches`: topics whose batches are not parsed, each with the class of the kernel that reads them.
    """

    def __init__(self, batches: Mapping[str, Any]) -> None:
        self.batches = batches

    def __call__(self, value: bytes | None) -> bytes | None:
        return value


_VALUE = attrgetter("value")


def _same(_tp: object, record: Any) -> Any:
    return record


class _Undated(NamedTuple):
    """A record of message format 0, which has no time; -1 stands for none, as in the newer formats."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]] = ()
    timestamp: int = -1
    timestamp_type: int | None = None
    checksum: int | None = None


class _LegacyBatch:
    """A batch of message format 0 or 1."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __iter__(self) -> Iterator[Any]:
        for record in self._batch:
            is_dated = record.timestamp is not None
            yield record if is_dated else _Undated(record.offset, record.key, record.value)


class _MemoryRecords(fetcher.MemoryRecords):  # type: ignore[misc]  # aiokafka has no types
    """The batches of a fetch; knows the position of the last one that was read."""

    def __init__(self, raw: bytes) -> None:
        super().__init__(raw)
        self.raw, self.begin, self.end = raw, 0, 0

    def next_batch(self) -> Any:
        batch = super().next_batch()
        if batch is not None:
            self.begin = self.end
            self.end += LOG_OVERHEAD + int.from_bytes(self.raw[self.begin + 8 : self.begin + LOG_OVERHEAD])
        return _LegacyBatch(batch) if isinstance(batch, LegacyRecordBatch) else batch


class _PartitionRecords(fetcher.PartitionRecords):  # type: ignore[misc]
    """Hands out C records or whole batches to consumers that are marked by `_Raw`, and usual records to others."""

    def __init__(self, tp: Any, records: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(tp, records, *args, **kwargs)
        self.kind: Any = None
        if isinstance(self._key_deserializer, _Raw):
            self._consumer_record = _same
            self.kind = self._key_deserializer.batches.get(tp.topic)
        if self.kind is not None:
            self._records = _WholeBatches(records, self)


class _WholeBatches:
    """The batches of a fetch, each of which looks to aiokafka like a batch of one record, the whole batch."""

    def __init__(self, records: _MemoryRecords, owner: _PartitionRecords) -> None:
        self.has_next = records.has_next
        self._records = records
        self._owner = ref(owner)  # weak: a cycle would keep the bytes in memory until it is collected

    def next_batch(self) -> Any:
        batch = self._records.next_batch()
        return _WholeBatch(batch, self._records, self._owner) if isinstance(batch, DefaultRecordBatch) else batch


class _WholeBatch:
    """One batch. aiokafka still decides whether to read it: it must be intact, committed and no control batch."""

    def __init__(self, batch: Any, records: _MemoryRecords, owner: "ref[_PartitionRecords]") -> None:
        self._batch, self._owner = batch, owner
        self._place = records.raw, records.begin, records.end

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __next__(self) -> Any:
        return next(self._batch)

    def validate_crc(self) -> bool:
        """Check the checksum as aiokafka does, but with the processor's instruction for it, if it has one."""
        owner: Any = self._owner()  # is alive, since it is what calls this
        intact: bool = owner.kind.is_intact(*self._place)
        return intact

    def __iter__(self) -> Iterator[Any]:
        owner: Any = self._owner()
        whole = owner.kind.read(*self._place, self._unpacked(), owner.next_fetch_offset)
        if whole is None:
            yield from self._batch  # aiokafka reads it, and raises if it is broken
        elif len(whole):
            yield whole

    def _unpacked(self) -> bytes | None:
        """The unpacked records of a compressed batch; None if it is not compressed, or aiokafka must report a fault."""
        unpack = UNPACK.get(self._batch.compression_type)
        raw, begin, end = self._place
        try:
            return None if unpack is None else bytes(unpack(raw[begin + HEADER : end]))
        except Exception:
            return None


class _FetchResult(fetcher.FetchResult):  # type: ignore[misc]
    """What was fetched of one partition; counts the records of whole batches, so that `max_records` holds for them."""

    def getall(self, max_records: int | None = None) -> list[Any]:
        records: Any = self._partition_records
        if records is None or records.kind is None:
            found: list[Any] = super().getall(max_records)
            return found
        found, count = [], 0
        if not self.check_assignment(self._topic_partition):
            return found
        for one in records:
            found.append(one)
            count += len(one) if isinstance(one, records.kind) else 1
            if max_records is not None and count >= max_records:
                self._update_position()
                return found
        self._update_position()
        self._partition_records: Any = None
        return found


def installed() -> dict[str, str]:
    """The installed versions of the pinned packages."""
    return {package: version(package) for package in VERSIONS}


def verify() -> None:
    """Refuse to start with other versions, or if a name is missing that is needed here."""
    missing = [f"{owner.__module__}.{owner.__name__}.{name}" for owner, name in REQUIRED if not hasattr(owner, name)]
    here = ", ".join(f"{package} {number}" for package, number in installed().items())
    pinned = ", ".join(f"{package}=={number}" for package, number in VERSIONS.items())
    if missing:
        raise KafkaError(f"{here} lack {', '.join(missing)}; install {pinned}")
    if installed() != VERSIONS:
        raise KafkaError(f"{here} are not the versions that shoal was checked with; install {pinned}")


def consumer_arguments(batches: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Arguments that make an AIOKafkaConsumer hand out C records.

    batches: topics that are read in whole batches, each with the class of the kernel that reads them.
    """
    fetcher.PartitionRecords, fetcher.MemoryRecords, fetcher.FetchResult = (
        _PartitionRecords,
        _MemoryRecords,
        _FetchResult,
    )
    connection.use()
    return {"key_deserializer": _Raw(batches or {})}


def records_of(found: list[Any], kind: Any) -> tuple[Sequence[Any], int]:
    """The records that a fetch brought of one partition, and the memory that they take.

    kind: the class of whole batches, if the topic is read in such.
    """
    if kind is None:
        return found, memory_of(found)
    batches = gathered(found, kind)
    return batches, batches.nbytes


def limit_fetches(consumer: Any, size: int) -> None:
    """From the next fetch on, have a fetch bring at most `size` bytes of each partition, and wait for no more in all.

    A broker would wait in vain for more where a single partition has records.
    """
    consumer._fetcher._max_partition_fetch_bytes = consumer._fetcher._fetch_min_bytes = size


def look_again(consumer: Any) -> None:
    """Wake those who wait for records, to look at records fetched while their partition was held back."""
    for waiter in list(consumer._fetcher._fetch_waiters):
        consumer._fetcher._notify(waiter)


def memory_of(records: Sequence[Any]) -> int:
    """Bytes of memory that records take as Python objects; for small ones about five times their bytes in Kafka."""
    return len(records) * RECORD_MEMORY + sum(map(len, filter(None, map(_VALUE, records))))


def record_size(key: bytes | None, value: bytes | None, headers: Iterable[tuple[str, bytes]]) -> int:
    """An upper bound of the bytes that a record takes as the only one in its batch."""
    size = RECORD_OVERHEAD + len(key or b"") + len(value or b"")
    return size + sum(len(name.encode()) + len(content) + 10 for name, content in headers)


def _check_size(record: AnyRecord, limit: int) -> None:
    if record_size(*record) > limit:
        raise FailStop(f"a record is above the limit of {limit} bytes per record")


class _KernelBatch(BatchBuilder):  # type: ignore[misc]
    """A batch that the kernel has filled; it also computes the checksum, by an instruction of the processor."""

    def __init__(self, batch: Any) -> None:
        self._batch: Any = batch
        self._producer: tuple[int, ...] = (-1, -1, 0)
        self._built = b""
        self._relative_offset, self._closed = len(batch), True

    def _set_producer_state(self, *producer: int) -> None:
        self._producer = producer

    def _build(self) -> bytes:
        if self._batch is not None:
            self._built, self._batch = self._batch.finish(*self._producer), None
        return self._built

    def size(self) -> int:
        return len(self._built) if self._batch is None else int(self._batch.nbytes)


def build_batches(
    producer: AIOKafkaProducer, records: Iterable[AnyRecord], limit: int, stamp: int | None = None, kernel: Any = None
) -> list[Any]:
    """Put records into as many batches as needed, in order.

    stamp: their timestamp in milliseconds; None: the present time.
    kernel: its class of batches to be written, if there is one. It makes the bytes that aiokafka makes, and its batches
    can only be those of a transaction.

    Raises:
        FailStop: a record is above `limit` bytes.
    """
    now = int(time.time() * 1000) if stamp is None else stamp
    if kernel is None:
        return _fill(producer, records, limit, now)
    listed, batches, begin = list(records), [], 0
    for batch in kernel.fill(listed, now, producer._message_accumulator._batch_size):
        _check_size(listed[begin], limit)
        begin += len(batch)
        batches.append(_KernelBatch(batch))
    return batches


def _fill(producer: AIOKafkaProducer, records: Iterable[AnyRecord], limit: int, now: int) -> list[Any]:
    """Have aiokafka fill them, without `BatchBuilder.append`, which takes longer than the function that it wraps."""
    batches, count = list[Any](), 0
    batch = append = None
    for key, value, headers in records:
        if append is not None and append(count, now, key, value, headers) is not None:
            count += 1
            continue
        _check_size((key, value, headers), limit)
        if batch is not None:
            batch._relative_offset = count
            batch.close()
        batch = producer.create_batch()
        append = batch._builder.append
        batches.append(batch)
        append(0, now, key, value, headers)
        count = 1
    if batch is not None:
        batch._relative_offset = count
    return batches
