"""Faust as it comes: one agent, one table, a changelog record per event; prints JSON.

python -m benchmarks.stock BROKERS TOPIC PARTITIONS EVENTS
"""

import json
import os
import sys
import tempfile
import time
from typing import Any

import faust


def main(brokers: str, topic: str, partitions: int, events: int) -> None:
    """Count and sum per user until so many events are in; print time as JSON."""
    app = faust.App(
        f"stock-{os.getpid()}",
        broker=f"kafka://{brokers}",
        store="memory://",
        datadir=tempfile.mkdtemp(),
        topic_partitions=partitions,
        consumer_auto_offset_reset="earliest",
    )
    source = app.topic(topic, key_type=bytes, key_serializer="raw", value_type=bytes, value_serializer="json")
    table: Any = app.Table("sums", default=lambda: [0, 0.0], partitions=partitions)
    seen, began, cpu = 0, 0.0, 0.0

    @app.agent(source)
    async def add_up(stream: Any) -> None:
        nonlocal seen, began, cpu
        async for user, event in stream.items():
            if not seen:
                began, cpu = time.perf_counter(), time.process_time()
            count, total = table[user]
            table[user] = [count + 1, total + event["value"]]
            seen += 1
            if seen == events:
                wall, cpu = time.perf_counter() - began, time.process_time() - cpu
                result = {"events": seen, "seconds": wall, "cpu": cpu}
                print("\n" + json.dumps(result), file=sys.__stdout__, flush=True)
                os._exit(0)

    sys.argv[1:] = ["worker", "--without-web", "--loglevel", "error"]
    app.main()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
