"""Sends events at a rate and times each until its release can be read; prints JSON.

    python -m benchmarks.speed.sender BROKERS TOPIC PARTITIONS APP USERS RATE SECONDS

An event's time is the microsecond of its sending, written with six decimals, and no two share one. With
`every = "contribution"` a release is `at` its event's time, so that its time of arrival less `at` is the latency.
"""

import asyncio
import json
import sys
import time
from collections import deque
from datetime import datetime
from typing import Any

import numpy as np
import orjson
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from shoal.stream.partitioning import PARTITIONERS

PACE = 0.005  # seconds between two looks at what is due
WARM_UP = 5.0  # seconds that do not count
PATIENCE = 30.0


async def send(brokers: str, topic: str, partitions: int, users: int, rate: float, seconds: float) -> int:
    """Send events as they fall due; how many."""
    draw, sent = np.random.default_rng(2), 0
    home = PARTITIONERS["murmur2"]
    producer = AIOKafkaProducer(bootstrap_servers=brokers, linger_ms=0, max_batch_size=100_000)
    await producer.start()
    began = time.time()
    pending: deque[Any] = deque()
    while (now := time.time()) < began + seconds:
        due = int((now - began) * rate) - sent
        for user in (users * draw.random(due) ** 1.5).astype(int).tolist():
            name = b"u%07d" % user
            at = time.time_ns() // 1000
            event = b'{"user":"%b","value":%d,"at":%d}' % (name, user % 100, at // 1000)
            pending.append(await producer.send(topic, event, partition=home(name, partitions)))
        sent += due
        while pending and pending[0].done():
            pending.popleft().result()
        await asyncio.sleep(PACE)
    await asyncio.gather(*pending)
    await producer.stop()
    return sent


async def receive(consumer: AIOKafkaConsumer, done: asyncio.Event) -> list[tuple[float, float]]:
    """(event time, latency) of every release, until nothing more comes."""
    found: list[tuple[float, float]] = []
    last = time.monotonic()
    while not done.is_set() or time.monotonic() - last < 3.0:
        fetched = await consumer.getmany(timeout_ms=500)
        now = time.time()
        for records in fetched.values():
            for record in records:
                at = datetime.fromisoformat(orjson.loads(record.value)["at"]).timestamp()
                found.append((at, now - at))
            last = time.monotonic()
    return found


async def main(brokers: str, topic: str, partitions: int, app: str, users: int, rate: float, seconds: float) -> None:
    """Measure, and print percentiles."""
    consumer = AIOKafkaConsumer(
        f"{app}.releases", bootstrap_servers=brokers, isolation_level="read_committed", auto_offset_reset="latest"
    )
    await consumer.start()
    for tp in consumer.assignment():
        await consumer.position(tp)
    done, began = asyncio.Event(), time.time()
    reading = asyncio.create_task(receive(consumer, done))
    sent = await send(brokers, topic, partitions, users, rate, seconds)
    done.set()
    found = await asyncio.wait_for(reading, PATIENCE)
    await consumer.stop()
    counted = [latency for at, latency in found if at > began + WARM_UP]
    p50, p99, most = np.percentile(counted, (50, 99, 100)).tolist()
    print(
        json.dumps(
            {"sent": sent, "rate": sent / seconds, "releases": len(counted), "p50": p50, "p99": p99, "max": most}
        )
    )


if __name__ == "__main__":
    asyncio.run(
        main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5]), *map(float, sys.argv[6:8]))
    )
