"""What idle partitions cost: bytes of the topics without an event, and for each step of one partition; prints JSON.

python -m benchmarks.idle [--seconds 20] [--steps 5]

One worker, four source partitions and two of the contributions, ticks of an hour. All partitions have events at first;
then nobody has, and then one of them goes on, an hour at a time, while the others are idle. Sizes are those of the log
files. The figures per year are computed from them, for eight partitions of each, of which one has events.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import orjson

from shoal.stream.partitioning import PARTITIONERS
from tests.support.deployment import Deployment
from tests.support.kafka import Kafka, Record

HOUR, START = 3_600, 1_000_000_800
SOURCES, HOMES = 4, 2
HOURS_A_YEAR = 8_766


def size(kafka: Kafka, app: str) -> dict[str, int]:
    """Bytes in the log files of each kind of topic."""
    kinds = {
        "contributions": "contributions-*",
        "changelogs": "*changelog-*",
        "releases": "releases-*",
    }
    return {
        kind: sum(file.stat().st_size for file in (kafka.data / "log").glob(f"{app}.{pattern}/*.log"))
        for kind, pattern in kinds.items()
    }


def settled(kafka: Kafka, app: str, seconds: float = 4.0) -> dict[str, int]:
    """The sizes once they have not changed for so long."""
    before, since = size(kafka, app), time.monotonic()
    while time.monotonic() - since < seconds:
        time.sleep(0.2)
        now = size(kafka, app)
        if now != before:
            before, since = now, time.monotonic()
    return before


def grown(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """The difference."""
    return {kind: after[kind] - before[kind] for kind in after}


def measure(seconds: float, steps: int) -> dict[str, object]:
    """Run, and measure."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Kafka() as kafka,
        Deployment(kafka, Path(folder), sources={"events": SOURCES}, partitions=HOMES, idle_after="1s") as shoals,
    ):
        worker = shoals.worker()
        worker.wait_owns(SOURCES + HOMES)

        def event(hour: int, who: int) -> bytes:
            return orjson.dumps({"who": f"p{who}", "at": START + hour * HOUR, "x": 7})

        shoals.produce(event(0, who) for who in range(40))
        before = settled(kafka, shoals.app)
        time.sleep(seconds)
        silent = grown(before, size(kafka, shoals.app))
        before = settled(kafka, shoals.app)
        home = PARTITIONERS["murmur2"]
        one = next(who for who in range(40) if home(f"p{who}".encode(), SOURCES) == 0)
        for hour in range(1, steps + 1):
            record = Record(f"p{one}".encode(), event(hour, one), partition=0)
            kafka.produce(shoals.topic(), [record])
            settled(kafka, shoals.app)
        stepped = grown(before, size(kafka, shoals.app))
        worker.stop()
    a_step = stepped["contributions"] / steps  # a clock record and three idle ones, in each of two partitions
    a_record = a_step / (SOURCES * HOMES)
    return {
        "seconds_without_events": seconds,
        "bytes_without_events": silent,
        "bytes_a_step": {kind: round(value / steps) for kind, value in stepped.items()},
        "bytes_an_idle_record": round(a_record),
        "a_year_of_8_by_8_without_events": 0 if not any(silent.values()) else "more than nothing",
        "a_year_of_8_by_8_hourly_with_one_busy": round(a_record * 7 * 8 * HOURS_A_YEAR),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--steps", type=int, default=5)
    said = parser.parse_args()
    print(json.dumps(measure(said.seconds, said.steps)))
