"""Quix Streams with exactly-once: state in RocksDB, with a changelog.

python -m benchmarks.peers.quix BROKERS TOPIC PARTITIONS EVENTS FOLDER
"""

import os
import sys
from typing import Any

from benchmarks.peers.tally import Tally


def main(brokers: str, topic: str, events: int, folder: str) -> None:
    """Count and sum per user until so many events are in, and commit."""
    from quixstreams import Application

    app = Application(
        broker_address=brokers,
        consumer_group=f"quix-{os.getpid()}",
        auto_offset_reset="earliest",
        processing_guarantee="exactly-once",
        state_dir=folder,
        loglevel="ERROR",
    )
    tally, nothing = Tally(events), (0, 0.0)

    def add(event: dict[str, Any], state: Any) -> None:
        count, total = state.get("sums", nothing)
        changed = tally.add(count, total, event["value"])
        if changed is not None:
            state.set("sums", changed)
        if tally.is_done:
            app.stop()

    app.dataframe(app.topic(topic, value_deserializer="json")).update(add, stateful=True)
    app.run()
    tally.done()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[4]), sys.argv[5])
