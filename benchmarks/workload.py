"""What the benchmarks feed: events of people with a skew, in time order, and configurations that read them."""

import asyncio
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from shoal.agents.audit import key_file
from shoal.agents.kafka import fast_records
from shoal.models.config.file import load
from shoal.stream.machine import Headers
from shoal.stream.partitioning import PARTITIONERS
from shoal.stream.topic import TopicPlan, plan_topic

FIRST = 1_700_000_000_000  # ms: the first event's time
SPAN = 10 * 24 * 3600 * 1000  # ms: from the first event to the last
CHUNK = 20_000
BATCH_BYTES = 900_000

CONFIG = """\
[kafka]
brokers = "{brokers}"
app = "{app}"

[audit]
url = "sqlite:///{app}.db"

[privacy]
key_file = "{app}.key"
"""
METRIC = """\
epsilon = 4.0

[[metric]]
name = "amount"
topic = "{topic}"
user = "user"
value = "value"
time = "at"
range = [0, 100]
epsilon = 1.0
max_contributions = 64
"""
MEAN = """\
statistic = "mean"
users = {users}
algorithm = "{algorithm}"
every = "{every}"
"""
SUM = """\
statistic = "sum"
every = "{every}"
decay = {{ kind = "window", length = "7d" }}
"""
WINDOW = "window"  # instead of an algorithm: a sum over a week


@dataclass(frozen=True)
class Workload:
    """So many events of so many users; a sixth of the values lie outside the range."""

    events: int
    users: int
    seed: int = 1
    skewed: bool = True  # otherwise every user once, and then users drawn evenly

    def chunks(self) -> Iterator[list[tuple[bytes, bytes]]]:
        """(user, event) pairs in time order; users with a skew: int(users * u**1.5) of a uniform u."""
        draw = np.random.default_rng(self.seed)
        for first in range(0, self.events, CHUNK):
            count = min(CHUNK, self.events - first)
            users = self._users(first, count, draw).tolist()
            values = (draw.random(count) * 120 - 10).round(2).tolist()
            times = (FIRST + np.arange(first, first + count) * SPAN // self.events).tolist()
            yield [
                (b"u%07d" % user, b'{"user":"u%07d","value":%.2f,"at":%d}' % (user, value, time))
                for user, value, time in zip(users, values, times, strict=True)
            ]

    def _users(self, first: int, count: int, draw: np.random.Generator) -> Any:
        if self.skewed:
            return (self.users * draw.random(count) ** 1.5).astype(int)
        each = np.arange(first, first + count)
        return (
            each
            if first + count <= self.users
            else np.where(each < self.users, each, draw.integers(self.users, size=count))
        )

    def write(self, path: Path) -> None:
        """As JSON lines."""
        with path.open("wb") as file:
            for chunk in self.chunks():
                file.writelines(event + b"\n" for _, event in chunk)

    async def produce(self, brokers: str, topic: str, partitions: int) -> None:
        """Into a new topic, each user in one partition."""
        await create_topic(brokers, topic, partitions)
        producer = AIOKafkaProducer(bootstrap_servers=brokers, max_batch_size=BATCH_BYTES, enable_idempotence=True)
        await producer.start()
        homes = {b"u%07d" % user: PARTITIONERS["murmur2"](b"u%07d" % user, partitions) for user in range(self.users)}
        for chunk in self.chunks():
            by_home: list[list[tuple[bytes | None, bytes | None, Headers]]] = [[] for _ in range(partitions)]
            for user, event in chunk:
                by_home[homes[user]].append((user, event, []))
            sent = [
                await producer.send_batch(batch, topic, partition=home)
                for home, records in enumerate(by_home)
                for batch in fast_records.build_batches(producer, records, BATCH_BYTES)
            ]
            await asyncio.gather(*sent)
        await producer.stop()


async def create_topic(brokers: str, topic: str, partitions: int) -> None:
    """A topic without replicas."""
    client = AIOKafkaAdminClient(bootstrap_servers=brokers)
    await client.start()
    await client.create_topics([NewTopic(topic, partitions, 1)])
    await client.close()


def configure(folder: Path, app: str, *, brokers: str = "", topic: str, users: int, algorithm: str, every: str) -> Path:
    """A configuration with a key and an audit log of its own."""
    path = folder / f"{app}.toml"
    text = CONFIG + METRIC + (SUM if algorithm == WINDOW else MEAN)
    path.write_text(text.format(brokers=brokers, app=app, topic=topic, users=users, algorithm=algorithm, every=every))
    key_file.new(folder / f"{app}.key")
    return path


def plan_alone(statistic: str, *, groups: int = 0, contributions_partitions: int = 1) -> TopicPlan:
    """The plan of the topic `events` without brokers, for a metric with these lines.

    `groups`: in how many groups a user of a mean counts; 0: there are none.
    """
    metric = METRIC.format(topic="events")
    if groups:
        metric = metric.replace("max_contributions", "max_per_group") + f'group = "group"\nmax_groups = {groups}\n'
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shoal.toml"
        path.write_text("[privacy]\n" + metric + statistic)
        config = load(path)
    return plan_topic(
        config, "events", bytes(32), source_partitions=1, contributions_partitions=contributions_partitions
    )
