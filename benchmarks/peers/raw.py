"""The reference: a loop that reads, parses and adds up, and writes nothing.

python -m benchmarks.peers.raw BROKERS TOPIC PARTITIONS EVENTS FOLDER
"""

import asyncio
import gc
import sys

import orjson

from benchmarks.peers.tally import Tally


async def main(brokers: str, topic: str, partitions: int, events: int) -> None:
    """Read so many events once."""
    from aiokafka import AIOKafkaConsumer, TopicPartition

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
    loads, tally = orjson.loads, Tally(events)
    state: dict[str, tuple[int, float]] = {}
    nothing = (0, 0.0)
    while not tally.is_done:
        for records in (await consumer.getmany(timeout_ms=1000, max_records=20_000)).values():
            for record in records:
                event = loads(record.value)
                user = event["user"]
                changed = tally.add(*state.get(user, nothing), event["value"])
                if changed is not None:
                    state[user] = changed
    tally.done(users=len(state))
    await consumer.stop()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
