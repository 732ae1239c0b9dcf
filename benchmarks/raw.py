"""The reference: a loop that reads, parses and adds up, and writes nothing; prints JSON.

python -m benchmarks.raw BROKERS TOPIC PARTITIONS EVENTS
"""

import asyncio
import gc
import json
import sys
import time

import orjson
from aiokafka import AIOKafkaConsumer, TopicPartition


async def main(brokers: str, topic: str, partitions: int, events: int) -> None:
    """Read all events once; print time as JSON."""
    gc.set_threshold(100_000, 50, 1000)  # as workers do
    consumer = AIOKafkaConsumer(
        bootstrap_servers=brokers,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=1 << 20,
    )
    await consumer.start()
    consumer.assign([TopicPartition(topic, partition) for partition in range(partitions)])
    await consumer.seek_to_beginning()
    loads, seen = orjson.loads, 0
    state: dict[bytes, list[float]] = {}
    wall, cpu = time.perf_counter(), time.process_time()
    while seen < events:
        for records in (await consumer.getmany(timeout_ms=1000, max_records=20_000)).values():
            for record in records:
                event = loads(record.value)
                found = state.get(record.key)
                if found is None:
                    state[record.key] = [1, event["value"]]
                else:
                    found[0] += 1
                    found[1] += event["value"]
            seen += len(records)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    await consumer.stop()
    print(json.dumps({"events": seen, "seconds": wall, "cpu": cpu}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
