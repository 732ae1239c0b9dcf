"""Every record that workers write to Kafka fits its topic's schema, internal topics and all."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from shoal.models import schemas
from tests.models.schemas.records import changelog
from tests.support.deployment import Deployment
from tests.support.kafka import Kafka, Record
from tests.support.people import visits

METRICS: tuple[dict[str, Any], ...] = (
    {"name": "mean", "group": "city"},
    {"name": "sum", "statistic": "sum", "every": "1h", "group": "city"},
    {"name": "count", "statistic": "count", "every": "1h"},
    {"name": "full", "algorithm": "full", "epsilon": 900, "max_contributions": 40, "users": 60},
    {"name": "levels", "statistic": "distribution", "slot": "1h", "bins": 8, "unit": "user", "max_slots": 9},
    {"name": "places", "statistic": "mean", "slot": "1h", "group": "city", "unit": "user", "max_slots": 9},
)
VALIDATORS = {name: Draft202012Validator(json.loads(schemas.text(name))) for name in schemas.names()}


def fits(name: str, record: Any) -> None:
    problems = [error.message for error in VALIDATORS[name].iter_errors(record)]
    assert problems == [], (name, json.dumps(record)[:500])


@pytest.mark.slow
def test_every_record_of_every_topic_fits(kafka: Kafka, tmp_path: Path) -> None:
    with Deployment(kafka, tmp_path, *METRICS, sources={"events": 2}, partitions=2, epsilon=2000) as shoals:
        # given workers that have read events, and a record that is none
        shoals.worker()
        kafka.produce(shoals.topic(), [Record(b"", b"no event", None, 0)])
        shoals.produce(visits(400, step=120.0), end=True)
        shoals.oracle.run(visits(400, step=120.0))
        shoals.expect_equality()
        shoals.stop_all()
        app = shoals.app
        # then what they wrote is as the schemas say, but for accounts of users, which are binary
        for name in ("releases", "activations", "contributions", "dead-letters"):
            records = kafka.read_committed(f"{app}.{name}")
            assert records, name
            for record in records:
                fits(name, json.loads(record.value or b""))
        for name, topic in (("bound-changelog", f"bound.{shoals.topic()}"), ("release-changelog", "release")):
            records = kafka.read_committed(f"{app}.{topic}.changelog")
            read = [one for record in records for one in changelog(name, record.key or b"", record.value)]
            assert len(read) > 1, name
            for schema, held in read:
                fits(schema, held)
        # and keys are those of the page
        releases = kafka.read_committed(f"{app}.releases")
        for record in releases:
            said = json.loads(record.value or b"")
            assert record.key == f"{said['metric']}|{said['group'] or ''}".encode()
