"""Producing events: what `shoal produce` and the demo send.

Each line becomes one record, keyed by its user, in the user's partition; a line without a usable user goes to
partition 0 without a key, where bound refuses it with its reason.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError
from aiokafka.errors import KafkaError as ClientError

from shoal.agents.kafka.client_errors import why_not
from shoal.agents.kafka.settings import KafkaSettings
from shoal.mechanisms.parts.metric import Metric
from shoal.models.config.file import Config
from shoal.models.errors import KafkaError
from shoal.models.events import Refusal, parse, time_reader, user_reader
from shoal.models.records import CLOCK_HEADER
from shoal.models.times import iso
from shoal.stream.file_run import Line, beat_line
from shoal.stream.partitioning import PARTITIONERS

IN_FLIGHT = 64  # batches
BATCH = 2_000  # events
STOP_LIMIT = 5.0  # seconds


class OpenTick(NamedTuple):
    """A tick that a clock record cannot close yet, since its end is too far ahead; times in microseconds."""

    metric: str
    end: int
    closes_from: int  # time from which the metric's clock takes the end


class Produced(NamedTuple):
    """Number of events sent, and the ticks that are still open at the end."""

    events: int
    open: list[OpenTick]


async def produce_file(
    settings: KafkaSettings, config: Config, topic: str, lines: Iterable[Line], *, end: bool, rate: float | None = None
) -> Produced:
    """Send the lines and, with `end`, what closes each metric's open tick. `rate` is in events a second.

    Raises:
        KafkaError: brokers or topic cannot be used.
    """
    try:
        async with producing(settings) as producer:
            sending = _Sending(producer, config, topic, await partitions_of(producer, topic))
            began = time.monotonic()
            for line in lines:
                await (sending.beat(line) if line.value is None else sending.send(line.value))
                if rate is not None and sending.count % 200 == 0:
                    await asyncio.sleep(max(0.0, began + sending.count / rate - time.monotonic()))
            still_open = await sending.finish() if end else []
            await sending.flush()
    except KafkaConnectionError:
        raise await why_not(settings) from None
    except ClientError as error:
        raise KafkaError(f"topic {topic}: {type(error).__name__}; look at the broker's log") from None
    return Produced(sending.count, still_open)


@asynccontextmanager
async def producing(settings: KafkaSettings) -> AsyncIterator[AIOKafkaProducer]:
    """A started producer, stopped after all records are sent; after a failure it has STOP_LIMIT to stop."""
    producer = AIOKafkaProducer(
        enable_idempotence=True, max_batch_size=settings.max_batch_bytes, linger_ms=5, **settings.connect("produce")
    )
    try:
        await producer.start()
        yield producer
    except BaseException:  # `stop` waits for brokers that are away, and would block Ctrl-C
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_LIMIT):
                await producer.stop()
        raise
    await producer.stop()


async def partitions_of(producer: AIOKafkaProducer, topic: str) -> int:
    """The number of a topic's partitions.

    Raises:
        KafkaError: there is no such topic.
    """
    await producer.client.force_metadata_update()
    partitions = producer.client.cluster.partitions_for_topic(topic)
    if not partitions:
        raise KafkaError(f"no topic {topic}; create it with `shoal topics`, or correct `topic` of the metric")
    return len(partitions)


class _Sending:
    """Batches per partition, and the latest event time seen."""

    def __init__(self, producer: AIOKafkaProducer, config: Config, topic: str, partitions: int) -> None:
        self.count = 0
        self._producer, self._topic, self._partitions = producer, topic, partitions
        self._metrics = config.metrics_of(topic)
        self._read_user = user_reader(self._metrics[0].source.user)  # of all metrics of a topic
        paths = {metric.source.time for metric in self._metrics if metric.source.time is not None}
        self._read_times = {path: time_reader(path) for path in paths}
        self._partition = PARTITIONERS[config.kafka.partitioner]
        self._homes: dict[bytes, int] = {}
        self._latest: dict[str, int] = {}
        self._waiting: list[list[tuple[bytes | None, bytes]]] = [[] for _ in range(partitions)]
        self._sent: list[asyncio.Future[object]] = []

    async def send(self, raw: bytes) -> None:
        key, home = self._place(raw)
        waiting = self._waiting[home]
        waiting.append((key, raw))
        self.count += 1
        if len(waiting) >= BATCH:
            await self._send(home)

    def _place(self, raw: bytes) -> tuple[bytes | None, int]:
        event = parse(raw)
        if isinstance(event, Refusal):
            return None, 0
        self._note_times(event, raw)
        user = self._read_user(event, raw)
        if isinstance(user, Refusal):
            return None, 0
        home = self._homes.get(user)
        if home is None:
            home = self._homes[user] = self._partition(user, self._partitions)
        return user, home

    def _note_times(self, event: dict[str, object], raw: bytes) -> None:
        for path, read in self._read_times.items():
            found = read(event, raw)
            if not isinstance(found, Refusal):
                self._latest[path] = max(found, self._latest.get(path, found))

    async def _send(self, home: int) -> None:
        waiting, self._waiting[home] = self._waiting[home], []
        batch = self._producer.create_batch()
        for key, value in waiting:
            if batch.append(key=key, value=value, timestamp=None) is None:
                self._sent.append(await self._producer.send_batch(batch, self._topic, partition=home))
                batch = self._producer.create_batch()
                if batch.append(key=key, value=value, timestamp=None) is None:
                    self._sent.append(await self._producer.send(self._topic, value, key, partition=home))
        if batch.record_count():
            self._sent.append(await self._producer.send_batch(batch, self._topic, partition=home))
        if len(self._sent) > IN_FLIGHT:
            done, self._sent = self._sent[:IN_FLIGHT], self._sent[IN_FLIGHT:]
            await asyncio.gather(*done)

    async def beat(self, line: Line) -> None:
        """Send a record without a value to every partition, between those before it and those after."""
        await self.flush()
        for home in range(self._partitions):
            headers = list(line.headers)
            self._sent.append(await self._producer.send(self._topic, None, b"", partition=home, headers=headers))
        await self.flush()

    async def finish(self) -> list[OpenTick]:
        """Send a clock record to every partition for the end of each metric's open tick; return those still open.

        Where presence is protected that is one beat, for the last before the metrics' end.
        """
        if self._metrics[0].protects_presence:
            await self.beat(beat_line(0, max((metric.end or 0) + metric.source.lateness for metric in self._metrics)))
            return []
        now = int(time.time() * 1e6)
        ticks = [tick for metric in self._metrics if (tick := self._open_tick(metric, now)) is not None]
        for end in sorted({tick.end for tick in ticks if tick.closes_from <= now}):
            await self.beat(Line(0, None, headers=((CLOCK_HEADER, iso(end).encode()),)))
        return [tick for tick in ticks if tick.closes_from > now]

    def _open_tick(self, metric: Metric, now: int) -> OpenTick | None:
        time_field = metric.source.time
        latest = now if time_field is None else self._latest.get(time_field)
        if latest is None:
            return None
        end = latest + 1 if metric.length is None else metric.length.end(metric.length.index(latest))
        return OpenTick(metric.name, end, end - metric.source.max_ahead)

    async def flush(self) -> None:
        for home in range(self._partitions):
            if self._waiting[home]:
                await self._send(home)
        await asyncio.gather(*self._sent)
        self._sent = []
