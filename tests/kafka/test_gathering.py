"""Transactions that wait because no release needs them: what a worker has gathered, its successor reads again."""

import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from shoal.models.times import iso
from tests.kafka.test_beats import PRESENT
from tests.support.deployment import Deployment
from tests.support.kafka import Kafka
from tests.support.people import START, visits

HOUR = 3600
HOURLY: tuple[dict[str, Any], ...] = (
    {"name": "hourly"},
    {"name": "city", "group": "city"},
    {"name": "full", "algorithm": "full", "epsilon": 400, "users": 40, "failure": 0.5},
)
BY_BEATS: tuple[dict[str, Any], ...] = (
    PRESENT | {"name": "mean", "every": "1h"},
    PRESENT | {"name": "city", "every": "1h", "statistic": "sum", "group": "city", "groups": ["A", "B", "Z"]},
)


def at(hour: int, events: list[bytes]) -> list[bytes]:
    """Copies of events with their times moved by this many hours."""
    return [orjson.dumps((event := orjson.loads(raw)) | {"at": event["at"] + hour * HOUR}) for raw in events]


def beat(hour: int) -> bytes:
    """A beat after all events of an hour."""
    return orjson.dumps({"shoal-beat": iso((START + (hour + 2) * HOUR) * 10**6)})


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.long)])
@pytest.mark.parametrize("metrics", [HOURLY, BY_BEATS], ids=["values", "add-remove"])
def test_kills_within_long_waits_change_no_release(
    kafka: Kafka, tmp_path: Path, metrics: tuple[dict[str, Any], ...], kills: int
) -> None:
    with Deployment(kafka, tmp_path, *metrics, sources={"events": 3}, partitions=3) as shoals:
        # given events of which few enter a new hour, in portions
        by_beats = metrics is BY_BEATS
        hours = [
            [*at(hour, visits(60, step=50, seed=hour)), *([beat(hour)] if by_beats else [])]
            for hour in range(kills + 1)
        ]
        shoals.oracle.run([event for hour in hours for event in hour])
        worker = shoals.worker("a")
        worker.wait_owns(6)
        for hour in hours[:-1]:
            shoals.produce(hour, end=False)
            # when a worker is killed that has had time to process them, and is to gather for ten seconds
            time.sleep(1.5)
            worker.kill()
            worker = shoals.worker("a")
            worker.wait_owns(6)
        # then the releases are those of the file run
        shoals.produce(hours[-1], end=True)
        shoals.expect_equality()
        shoals.stop_all()
