"""Bytewax with a recovery store: snapshots in SQLite, an epoch of ten seconds, as it comes.

python -m benchmarks.peers.bytewax_flow BROKERS TOPIC PARTITIONS EVENTS FOLDER
"""

import sys
from pathlib import Path
from typing import Any

import orjson

from benchmarks.peers.tally import Tally


def main(brokers: str, topic: str, events: int, folder: str) -> None:
    """Count and sum per user until so many events are in, with a last snapshot."""
    import bytewax.operators as op
    from bytewax._bytewax import cli_main  # what `python -m bytewax.run` calls
    from bytewax.connectors.kafka import KafkaSource
    from bytewax.dataflow import Dataflow
    from bytewax.outputs import DynamicSink, StatelessSinkPartition
    from bytewax.recovery import RecoveryConfig, init_db_dir

    tally, nothing, loads = Tally(events), (0, 0.0), orjson.loads

    class Until(KafkaSource):  # type: ignore[misc]
        """The topic until enough events were seen, since a flow only ends with its sources."""

        def build_part(self, *given: Any) -> Any:
            part = super().build_part(*given)
            read = part.next_batch

            def next_batch() -> Any:
                if tally.is_done:
                    raise StopIteration
                return read()

            part.next_batch = next_batch
            return part

    class Nowhere(DynamicSink, StatelessSinkPartition):  # type: ignore[misc]
        """A flow needs an output."""

        def build(self, *_: object) -> Any:
            return self

        def write_batch(self, items: list[Any]) -> None: ...

    def keyed(message: Any) -> tuple[str, float]:
        event = loads(message.value)
        return event["user"], event["value"]

    def add(state: tuple[int, float] | None, value: float) -> tuple[tuple[int, float], None]:
        before = state or nothing
        return tally.add(*before, value) or before, None

    flow = Dataflow("bytewax")
    read = op.input("events", flow, Until([brokers], [topic], tail=True, batch_size=1000))
    sums = op.stateful_map("sums", op.map("keyed", read, keyed), add)
    op.output("nowhere", sums, Nowhere())
    init_db_dir(Path(folder), 1)
    cli_main(flow, recovery_config=RecoveryConfig(folder))
    tally.done()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[4]), sys.argv[5])
