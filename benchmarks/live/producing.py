"""Sends events at a rate and, given an app, measures the latency of its releases; prints JSON.

    python -m benchmarks.live.producing BROKERS TOPIC PARTITIONS RATE SECONDS [APP]

The first line is printed when sending begins, the second one at the end. A release is late by the time at which a
read_committed consumer has it less the end of its tick or, with a release per contribution, the time of the event.
"""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
from aiokafka import AIOKafkaConsumer

from benchmarks.live.rows import USERS
from benchmarks.speed.sender import receive, send

WARM = 6.0  # seconds of sending that are not measured


@asynccontextmanager
async def latest_of(brokers: str, app: str) -> AsyncIterator[AIOKafkaConsumer]:
    """A consumer of an app's releases from now on."""
    consumer = AIOKafkaConsumer(
        f"{app}.releases", bootstrap_servers=brokers, isolation_level="read_committed", auto_offset_reset="latest"
    )
    await consumer.start()
    for partition in consumer.assignment():
        await consumer.position(partition)
    yield consumer
    await consumer.stop()


async def produce(brokers: str, topic: str, partitions: int, rate: float, seconds: float) -> dict[str, Any]:
    """Send events, and return their number."""
    print(json.dumps({"begins": time.time()}), flush=True)
    return {"sent": await send(brokers, topic, partitions, USERS, rate, seconds)}


async def produce_and_receive(
    brokers: str, topic: str, partitions: int, rate: float, seconds: float, app: str
) -> dict[str, Any]:
    """Send events, and return their number with percentiles of the latency of releases."""
    async with latest_of(brokers, app) as consumer:
        done, warm = asyncio.Event(), time.time() + WARM
        receiving = asyncio.create_task(receive(consumer, done))
        sent = await produce(brokers, topic, partitions, rate, seconds)
        done.set()
        return sent | summary([latency for at, latency in await receiving if at > warm])


def summary(latencies: list[float]) -> dict[str, Any]:
    """The number of releases and percentiles of their latency, in seconds; no percentiles without releases.

    >>> summary([0.5, 0.25]), summary([])
    ({'releases': 2, 'p50': 0.375, 'p99': 0.4975}, {'releases': 0})
    """
    if not latencies:
        return {"releases": 0}
    p50, p99 = np.percentile(latencies, (50, 99)).tolist()
    return {"releases": len(latencies), "p50": p50, "p99": p99}


def main() -> None:
    """Send, and print."""
    brokers, topic, partitions, rate, seconds, *app = sys.argv[1:]
    given = (brokers, topic, int(partitions), float(rate), float(seconds))
    print(json.dumps(asyncio.run(produce_and_receive(*given, *app) if app else produce(*given))))


if __name__ == "__main__":
    main()
