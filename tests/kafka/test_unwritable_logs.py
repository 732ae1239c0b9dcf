"""A worker whose log nobody takes any more goes on with its work, and says later how many lines were lost."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson

from tests.support import nursery
from tests.support.deployment import Deployment
from tests.support.kafka import Kafka
from tests.support.people import visits


@contextmanager
def worker_that_logs_to(log: Path, shoals: Deployment) -> Iterator[nursery.Process]:
    """A worker whose log is a file that is opened for writing alone."""
    with log.open("wb", buffering=0) as errors, Path(os.devnull).open("wb") as output:
        process = nursery.start("worker", shoals.config, output=output, errors=errors)
    try:
        yield process
    finally:
        process.kill()


def test_a_worker_whose_log_is_on_a_full_disk_releases_and_ends_well(kafka: Kafka, tmp_path: Path) -> None:
    with Deployment(kafka, tmp_path) as shoals, worker_that_logs_to(Path("/dev/full"), shoals) as worker:
        shoals.produce(visits(200), end=True)
        shoals.wait_releases(1)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(100) == 0


def test_a_worker_whose_reader_has_gone_releases_and_tells_the_next_reader(kafka: Kafka, tmp_path: Path) -> None:
    with Deployment(kafka, tmp_path) as shoals:
        # given a worker whose log is a pipe that nobody reads any more
        log = tmp_path / "log"
        os.mkfifo(log)
        reader = os.open(log, os.O_RDONLY | os.O_NONBLOCK)
        with worker_that_logs_to(log, shoals) as worker:
            os.close(reader)
            # then it works
            shoals.produce(visits(200), end=True)
            shoals.wait_releases(1)
            # and when there is a reader again, it says what that one has missed
            with log.open("rb") as again:
                worker.send_signal(signal.SIGTERM)
                assert worker.wait(100) == 0
                lost, *_, stopped = map(orjson.loads, again.read().splitlines())
        assert (lost["event"], lost["reason"], stopped["event"]) == ("log_lines_lost", "Broken pipe", "stopped")
        assert lost["lines"] >= 2  # what it runs on, and what it owns
