"""What the tests of the Kafka layer need: topics, events, workers as processes, and the exact verifier."""

import asyncio
import json
import time
import zlib
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from shoal.agents.kafka.topic_ids import STATE_KEY
from tests.kafka.toy_machine import MARK, ONE, PAIR
from tests.support import nursery

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


async def make_topics(brokers: str, counts: dict[str, int], **config: str) -> None:
    client = AIOKafkaAdminClient(bootstrap_servers=brokers)
    await client.start()
    try:
        topics = [NewTopic(name, count, 1, topic_configs=config) for name, count in counts.items()]
        await client.create_topics(topics)
    finally:
        await client.close()


async def produce(
    brokers: str, topic: str, partitions: int, events: int, users: int, seed: int, pause: float = 0
) -> None:
    """Events of users drawn with a skew, each user in one partition; `pause` seconds between chunks of 2,000."""
    draw = np.random.default_rng(seed)
    who, values = (users * draw.random(events) ** 1.5).astype(int), draw.integers(1, 1000, events)
    keys = [b"u%07d" % user for user in range(users)]
    home = [zlib.crc32(key) % partitions for key in keys]
    producer = AIOKafkaProducer(bootstrap_servers=brokers, max_batch_size=500_000, enable_idempotence=True)
    await producer.start()
    try:
        for first in range(0, events, 2_000):
            batches: dict[int, Any] = {}
            for user, value in zip(who[first : first + 2_000], values[first : first + 2_000], strict=True):
                batch = batches.setdefault(home[user], producer.create_batch())
                assert batch.append(timestamp=None, key=keys[user], value=b"%d" % value)
            sent = [await producer.send_batch(batch, topic, partition=p) for p, batch in batches.items()]
            await asyncio.gather(*sent)
            await asyncio.sleep(pause)
    finally:
        await producer.stop()


class Seen(NamedTuple):
    offset: int
    key: bytes
    value: bytes
    headers: dict[str, bytes]


async def read_all(brokers: str, topic: str, isolation: str = "read_committed") -> dict[int, list[Seen]]:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=brokers, isolation_level=isolation, auto_offset_reset="earliest", enable_auto_commit=False
    )
    await consumer.start()
    try:
        await consumer._client._wait_on_metadata(topic)
        tps = [TopicPartition(topic, p) for p in consumer.partitions_for_topic(topic) or ()]
        consumer.assign(tps)
        ends = await consumer.end_offsets(tps)
        await consumer.seek_to_beginning(*tps)
        found: dict[int, list[Seen]] = {tp.partition: [] for tp in tps}
        todo = {tp for tp in tps if await consumer.position(tp) < ends[tp]}
        while todo:
            for tp, records in (await consumer.getmany(*todo, timeout_ms=200)).items():
                found[tp.partition] += [Seen(r.offset, r.key, r.value, dict(r.headers)) for r in records]
            todo = {tp for tp in todo if await consumer.position(tp) < ends[tp]}
        return found
    finally:
        await consumer.stop()


class Toy:
    """One app of the toy domain on a broker."""

    def __init__(self, brokers: str, app: str, sources: dict[str, int], partitions: int = 8, **settings: Any) -> None:
        self.brokers, self.app, self.sources, self.partitions = brokers, app, sources, partitions
        self.settings = {"brokers": brokers, "app": app, "partitions": partitions, "session_timeout": 6.0} | settings
        run(make_topics(brokers, sources))

    def worker(self, log: Path, **options: Any) -> "Worker":
        settings = self.settings | options.pop("settings", {})
        return Worker({"settings": settings, "sources": list(self.sources), **options}, log)

    def produce(self, events: int, users: int = 20_000, seed: int = 1, pause: float = 0) -> None:
        run(self.produce_async(events, users, seed, pause))

    async def produce_async(self, events: int, users: int = 20_000, seed: int = 1, pause: float = 0) -> None:
        for number, (topic, count) in enumerate(self.sources.items()):
            await produce(self.brokers, topic, count, events // len(self.sources), users, seed + number, pause)

    def drained(self) -> bool:
        """Whether bound's and release's marks are at the ends of what they read."""
        return not self.differences(states_only=True)

    def behind(self) -> list[str]:
        """Source partitions whose state is not at the end."""
        return [where for where in self.differences(states_only=True) if "state of release" not in where]

    def wait_drained(self, limit: float = 60.0) -> None:
        end = time.monotonic() + limit
        while not self.drained():
            assert time.monotonic() < end, self.differences(states_only=True)
            time.sleep(0.3)

    def differences(self, states_only: bool = False) -> list[str]:
        """Everything in which Kafka differs from what the events say; nothing, if the layer is exact."""
        wrong = run(self._differences(states_only))
        if wrong and not states_only:  # a commit is final at once, and visible a moment later
            time.sleep(1)
            wrong = run(self._differences(states_only))
        return wrong

    async def _differences(self, states_only: bool) -> list[str]:
        wrong: list[str] = []
        expected: dict[tuple[bytes, int], list[bytes]] = {}
        for topic in self.sources:
            changelog = await read_all(self.brokers, f"{self.app}.bound.{topic}.changelog")
            for partition, events in (await read_all(self.brokers, topic)).items():
                states: dict[bytes, bytes] = {}
                sent = expected_contributions(topic, partition, events, states, self.partitions)
                expected.update(sent)
                if last_values(changelog[partition]) != states:
                    wrong.append(f"state of {topic}[{partition}]")
        contributions = await read_all(self.brokers, f"{self.app}.contributions")
        state = await read_all(self.brokers, f"{self.app}.release.changelog")
        for partition, records in contributions.items():
            mark = last_values(state[partition]).get(MARK)
            if records and (mark is None or PAIR.unpack(mark)[1] != len(records)):
                wrong.append(f"state of release {partition}: {mark and PAIR.unpack(mark)}, {len(records)}")
        return wrong if states_only or wrong else await self._outputs(contributions, expected)

    async def _outputs(
        self, contributions: dict[int, list[Seen]], expected: dict[tuple[bytes, int], list[bytes]]
    ) -> list[str]:
        wrong = []
        got: dict[tuple[bytes, int], list[bytes]] = {}
        for partition, records in contributions.items():
            for record in records:
                got.setdefault((record.headers["from"], partition), []).append(record.value)
        for name in sorted(expected.keys() | got.keys()):
            if expected.get(name, []) != got.get(name, []):
                extra = Counter(got.get(name, ())) - Counter(expected.get(name, ()))
                lost = Counter(expected.get(name, ())) - Counter(got.get(name, ()))
                wrong.append(f"contributions {name}: {extra.total()} too many, {lost.total()} lost")
        for partition, releases in (await read_all(self.brokers, f"{self.app}.releases")).items():
            must = [b"%d %b" % (n, r.value) for n, r in enumerate(contributions[partition], 1)]
            if [release.value for release in releases] != must:
                wrong.append(f"releases {partition}: {len(releases)}, must be {len(must)}")
        return wrong


def expected_contributions(
    topic: str, partition: int, events: Sequence[Seen], states: dict[bytes, bytes], partitions: int
) -> dict[tuple[bytes, int], list[bytes]]:
    pairs: dict[bytes, tuple[int, int]] = {}
    sent: dict[tuple[bytes, int], list[bytes]] = {}
    for event in events:
        count, total = pairs.get(event.key, (0, 0))
        count, total = pairs[event.key] = (count + 1, total + int(event.value))
        if count.bit_count() == 1:
            name = (f"{topic}/{partition}".encode(), zlib.crc32(event.key) % partitions)
            sent.setdefault(name, []).append(b"%b %d %d %d" % (event.key, count, total, event.offset))
    states.update({key: PAIR.pack(*pair) for key, pair in pairs.items()})
    if events:
        states[MARK] = ONE.pack(events[-1].offset + 1)
    return sent


def last_values(records: Sequence[Seen]) -> dict[bytes, bytes]:
    return {record.key: record.value for record in records if record.key != STATE_KEY}


class Worker:
    """A worker process; its output goes to a file."""

    def __init__(self, options: dict[str, Any], log: Path) -> None:
        self.log = log
        with log.open("ab") as output:
            self.process = nursery.start(json.dumps(options), output=output, module="tests.kafka.toy_worker")

    @property
    def text(self) -> str:
        return self.log.read_text("utf-8", "replace")

    def owned(self) -> list[str]:
        lines = [line for line in self.text.splitlines() if line.startswith("owns")]
        owned: list[str] = json.loads(lines[-1][5:].replace("'", '"')) if lines else []
        return owned

    def wait(self, until: Callable[["Worker"], bool], limit: float = 120.0) -> None:
        end = time.monotonic() + limit
        while not until(self):
            assert self.process.poll() is None, f"worker ended with {self.process.returncode}:\n{self.text[-3000:]}"
            assert time.monotonic() < end, self.text[-3000:]
            time.sleep(0.05)

    def wait_owns(self, count: int = 1, limit: float = 120.0) -> None:
        self.wait(lambda worker: len(worker.owned()) >= count, limit)

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def ends(self, limit: float = 90.0) -> int:
        return self.process.wait(limit)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
