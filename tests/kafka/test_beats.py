"""Where presence is protected, ticks close by beats: on Kafka as in a file that has them in the same places."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import orjson

from tests.support.deployment import Deployment
from tests.support.kafka import Kafka
from tests.support.people import START, visits

DAY = 86_400
PRESENT: dict[str, Any] = {
    "relation": "add-remove", "algorithm": "two-sided", "step": "6h", "lateness": "1h",
    "start": "2001-09-09", "end": "2001-09-16",
}  # fmt: skip
METRICS: tuple[dict[str, Any], ...] = (
    PRESENT | {"name": "mean"},
    PRESENT | {"name": "city", "statistic": "sum", "group": "city", "groups": ["A", "B", "C", "Z"]},
    PRESENT | {"name": "weekly", "step": "1d", "decay": {"kind": "window", "length": "3d"}, "late": "drop"},
)


def with_beats(events: list[bytes]) -> list[bytes]:
    """A beat after every 100 events, half an hour after the last of them."""
    found = []
    for number, raw in enumerate(events, 1):
        found.append(raw)
        if number % 100 == 0:
            moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(orjson.loads(raw)["at"] + 1800))
            found.append(orjson.dumps({"shoal-beat": moment}))
    return found


def test_kills_change_no_release_of_what_goes_by_beats(kafka: Kafka, tmp_path: Path) -> None:
    with Deployment(kafka, tmp_path, *METRICS, sources={"events": 3}, partitions=3) as shoals:
        # given a week of events, with beats among them
        events = with_beats(visits(2_000, step=300))
        shoals.oracle.run(events)
        # when workers share the partitions, and one is killed while they come
        workers = [shoals.worker("a"), shoals.worker("b")]
        workers[0].wait_owns()
        feeding = shoals.produce_slowly(events, seconds=4)
        time.sleep(1.5)
        workers[0].kill()
        shoals.worker("a")
        feeding.join()
        # then the releases are those of the file run, at every step of every key
        shoals.expect_equality()
        assert len(shoals.oracle.releases()) == 28 * 5 + 7
        # and no transaction has releases of two times
        stamps = [record.timestamp for record in kafka.read_committed(f"{shoals.app}.releases")]
        assert min(stamps) >= (START - START % DAY) * 1000
        assert max(stamps) <= (START + 8 * DAY) * 1000
        shoals.stop_all()


def test_a_beater_moves_the_clock_until_it_is_stopped(kafka: Kafka, tmp_path: Path) -> None:
    # given a metric that began a while ago, of which no event came
    begun = time.strftime("%Y-%m-%dT%H:00:00Z", time.gmtime(time.time() - 7200))
    metric = PRESENT | {"name": "m", "step": "1h", "start": begun, "lateness": "0s"}
    del metric["end"]
    with Deployment(kafka, tmp_path, metric, sources={"events": 2}, partitions=2) as shoals:
        shoals.worker()
        # when somebody beats
        command = [sys.executable, "-m", "shoal", "beat", str(shoals.config)]
        beater = subprocess.Popen([*command, "--every", "1s"], stderr=subprocess.PIPE, env=os.environ, text=True)
        try:
            # then the hours that are over are released, though nothing came
            shoals.wait_releases(2)
        finally:
            beater.send_signal(signal.SIGTERM)
            _, said = beater.communicate(timeout=30)
        assert (beater.returncode, said.splitlines()[-1]) == (0, "shoal: beats stopped")
        assert {orjson.loads(one)["seq"] for one in shoals.releases()} >= {1, 2}
        shoals.stop_all()
