"""What a worker has read and not processed takes a bounded number of bytes, however far a stage is behind."""

import signal
from pathlib import Path

from shoal.agents.kafka.fast_records import RECORD_MEMORY
from tests.kafka.kafka_tools import Toy, read_all, run
from tests.support.kafka import Kafka

SHARED = 100_000  # bytes for all inboxes: a few hundred records
FETCHED = 1_000  # records in one batch


def test_a_worker_whose_release_is_held_back_reads_no_more_than_its_share(kafka: Kafka, tmp_path: Path) -> None:
    # given a worker whose release commits nothing
    name, stalled = kafka.name("toy"), tmp_path / "stalled"
    stalled.touch()
    app = Toy(kafka.bootstrap, name, {f"{name}-clicks": 4}, 4)
    small = {"inbox_bytes": SHARED, "poll_records": FETCHED, "max_records": 2_000, "max_unflushed": 4_000}
    with app.worker(tmp_path / "w.log", stalled=str(stalled), settings=small) as worker:
        # when bound goes on, and sends many times what may wait
        app.produce(150_000)
        worker.wait(lambda _: not app.behind())
        sent = sum(map(len, run(read_all(app.brokers, f"{name}.contributions")).values()))
        held = [int(line.split()[1]) for line in worker.text.splitlines() if line.startswith("held")]
        # then each partition has taken in its share, a batch above it, and one that was on its way
        batch = FETCHED * (RECORD_MEMORY + 40)
        assert SHARED < max(held) <= SHARED + 8 * 2 * batch
        assert sent * RECORD_MEMORY > 2 * max(held)
        # and when release may go on, then nothing is lost
        stalled.unlink()
        app.wait_drained()
        worker.signal(signal.SIGTERM)
        assert worker.ends() == 0
    assert app.differences() == []
