"""Faust as it comes: one agent, one table, a changelog record per event.

python -m benchmarks.peers.stock_faust BROKERS TOPIC PARTITIONS EVENTS FOLDER
"""

import os
import sys
from typing import Any

from benchmarks.peers.tally import Tally


def main(brokers: str, topic: str, partitions: int, events: int, folder: str) -> None:
    """Count and sum per user until so many events are in."""
    import faust

    app = faust.App(
        f"stock-{os.getpid()}",
        broker=f"kafka://{brokers}",
        store="memory://",
        datadir=folder,
        topic_partitions=partitions,
        consumer_auto_offset_reset="earliest",
    )
    source = app.topic(topic, value_type=bytes, value_serializer="json")
    table: Any = app.Table("sums", default=lambda: [0, 0.0], partitions=partitions)
    tally = Tally(events)

    @app.agent(source)
    async def add_up(stream: Any) -> None:
        async for event in stream:
            user = event["user"]
            count, total = table[user]
            changed = tally.add(count, total, event["value"])
            if changed is not None:
                table[user] = list(changed)
            if tally.is_done:
                await app.producer.flush()
                await app.consumer.commit()
                tally.done()
                os._exit(0)

    sys.argv[1:] = ["worker", "--without-web", "--loglevel", "error"]
    app.main()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
