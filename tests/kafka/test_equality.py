"""Whatever the number of partitions and workers, Kafka holds the bytes that `shoal run` makes of the same events."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.deployment import SHARP_METRIC, STEP_METRICS, Deployment
from tests.support.kafka import Kafka
from tests.support.people import visits

METRICS: tuple[dict[str, Any], ...] = (
    {"name": "daily", "every": "1d"},
    {"name": "full", "algorithm": "full", "every": "1h", "epsilon": 400, "users": 40, "failure": 0.5, "withheld": True},
    {"name": "city", "group": "city", "every": "6h", "max_groups_per_user": 1, "withheld": True},
    SHARP_METRIC,
    *STEP_METRICS,
    {"name": "spread", "statistic": "variance", "step": "6h", "decay": {"kind": "window", "length": "2d"}},
)


@pytest.mark.parametrize(
    ("partitions", "workers"),
    [(1, 1), (8, 3), pytest.param(1, 3, marks=pytest.mark.long), pytest.param(8, 1, marks=pytest.mark.long)],
)
def test_partitions_and_workers_change_no_byte(kafka: Kafka, tmp_path: Path, partitions: int, workers: int) -> None:
    with Deployment(kafka, tmp_path, *METRICS, sources={"events": partitions}, partitions=partitions) as shoals:
        # given two weeks of events, and what `shoal run` makes of them
        events = visits(4_000, step=300)
        shoals.oracle.run(events)
        # when workers share the partitions
        for _ in range(workers):
            shoals.worker()
        shoals.produce(events, end=True)
        # then every release is the same, in Kafka and in SQL, and levels, a clip range and an octave were activated
        shoals.expect_equality()
        activated = {(metric, level) for _, metric, _, _, level, *_ in shoals.oracle.log()[1]}
        assert {("full", 2), ("sharp", 7), ("sharp", 10)} <= activated
        # and the variance was of something
        variances = [one["value"] for one in map(json.loads, shoals.oracle.releases()) if one["metric"] == "spread"]
        assert len(set(variances)) > 2  # with any key: most are clamped to an end of the range
        shoals.stop_all()


def test_a_release_per_contribution_follows_the_log_of_one_partition(kafka: Kafka, tmp_path: Path) -> None:
    metrics = (
        {"name": "each", "every": "contribution"},
        {"name": "each-city", "every": "contribution", "group": "city", "algorithm": "full", "epsilon": 300},
        {"name": "each-sharp", "every": "contribution", "algorithm": "sharp", "epsilon": 400, "users": 12},
        {"name": "hourly"},
    )
    with Deployment(kafka, tmp_path, *metrics, sources={"events": 1}, partitions=3) as shoals:
        events = visits(1_500)
        shoals.oracle.run(events)
        for _ in range(2):
            shoals.worker()
        # when events come while the workers change places
        feeding = shoals.produce_slowly(events, seconds=5)
        shoals.workers[0].wait_owns(1)
        shoals.workers[0].stop()
        feeding.join()
        # then each contribution has its release, as in a file
        shoals.expect_equality()
        shoals.stop_all()
