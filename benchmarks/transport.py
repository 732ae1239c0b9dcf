"""Throughput of the Kafka layer with a toy machine, against a raw aiokafka loop, and the rate of restoring.

    python -m benchmarks.transport [--events 1000000] [--users 200000]

All in one run, on one embedded broker, which shares the machine: compare the ratios, not the rates.
"""

import argparse
import asyncio
import json
import signal
import tempfile
import time
from pathlib import Path

from aiokafka import AIOKafkaConsumer, TopicPartition

from shoal.agents.broker.process import Broker
from shoal.agents.kafka import fast_records
from shoal.agents.kafka.changelog import Reader
from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.process_settings import tune_garbage_collector
from tests.kafka.kafka_tools import Toy, produce

PARTITIONS = 4


async def raw(brokers: str, topic: str, events: int, fast: bool) -> float:
    """Events per second of a loop that only reads and adds up."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=brokers,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        **(fast_records.consumer_arguments() if fast else {}),
    )
    await consumer.start()
    consumer.assign([TopicPartition(topic, p) for p in range(PARTITIONS)])
    state: dict[bytes, list[int]] = {}
    seen, began = 0, time.perf_counter()
    while seen < events:
        for records in (await consumer.getmany(timeout_ms=1000, max_records=20_000)).values():
            seen += len(records)
            for record in records:
                pair = state.setdefault(record.key, [0, 0])
                pair[0] += 1
                pair[1] += int(record.value)
    rate = seen / (time.perf_counter() - began)
    await consumer.stop()
    return rate


async def wait_until_bound(toy: Toy, topic: str, events: int, group: str) -> None:
    """Return when the group's hint, which is behind the commits by a second at most, is at the end."""
    consumer = AIOKafkaConsumer(bootstrap_servers=toy.brokers, group_id=group, enable_auto_commit=False)
    await consumer.start()
    tps = [TopicPartition(topic, p) for p in range(PARTITIONS)]
    consumer.assign(tps)
    while sum([await consumer.committed(tp) or 0 for tp in tps]) < events:
        await asyncio.sleep(0.1)
    await consumer.stop()


def layer(brokers: str, app: str, topic: str, events: int, folder: Path) -> float:
    """Events per second of a worker, from owning its partitions to the last commit (known to within a second)."""
    toy = Toy(brokers, app, {}, PARTITIONS)
    toy.sources = {topic: PARTITIONS}
    with toy.worker(folder / f"{app}.log") as worker:
        worker.wait_owns(2 * PARTITIONS)
        began = time.perf_counter()
        asyncio.run(wait_until_bound(toy, topic, events, app))
        rate = events / (time.perf_counter() - began)
        worker.signal(signal.SIGTERM)
        worker.ends()
    return rate


async def restore(settings: KafkaSettings, topic: str) -> tuple[int, float]:
    """Changelog records and seconds to load them all."""
    async with Reader(settings) as reader:
        tps = [TopicPartition(settings.changelog("bound", topic), p) for p in range(PARTITIONS)]
        bounds = await reader.stable_bounds(tps)
        began = time.perf_counter()
        values: dict[bytes | None, bytes | None] = {}
        await reader.load(bounds, dict.fromkeys(tps, lambda key, value, _: values.update({key: value})))
        return sum(end - first for first, end in bounds.values()), time.perf_counter() - began


def main() -> None:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--users", type=int, default=200_000)
    options = parser.parse_args()
    tune_garbage_collector()
    with Broker() as broker, tempfile.TemporaryDirectory() as name:
        folder, brokers = Path(name), broker.bootstrap
        toy = Toy(brokers, "feed", {"events": PARTITIONS}, PARTITIONS)
        asyncio.run(produce(brokers, "events", PARTITIONS, options.events, options.users, 1))
        result = {
            "raw loop, fast records": asyncio.run(raw(brokers, "events", options.events, True)),
            "layer": layer(brokers, "layer", "events", options.events, folder),
            "raw loop, dataclass records": asyncio.run(raw(brokers, "events", options.events, False)),
        }
        records, seconds = asyncio.run(restore(KafkaSettings(brokers, "layer"), "events"))
        result |= {"restored records": records, "restored per second": records / seconds}
        del toy
    print(json.dumps({name: round(value) for name, value in result.items()}, indent=2))


if __name__ == "__main__":
    main()
