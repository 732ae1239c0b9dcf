"""A clock that is wrong is said, by how much, before Kafka refuses what it stamps."""

import time

import pytest
import structlog

from shoal.agents.kafka.broker_clock import clock_warnings, seconds_ahead
from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.worker.watch import Watching
from tests.agents.worker.test_watch import Stage
from tests.kafka.kafka_tools import run
from tests.support.kafka import Kafka


@pytest.mark.parametrize("wrong", [3 * 3600.0, -5 * 3600.0, 0.0])
def test_the_difference_is_that_of_the_clocks(kafka: Kafka, wrong: float) -> None:
    found = run(seconds_ahead(KafkaSettings(kafka.bootstrap, "app"), lambda: time.time() + wrong))
    assert found is not None
    assert abs(found - wrong) < 60  # however slow the machine is, it is not an hour


def test_what_cannot_be_asked_is_not_known() -> None:
    assert run(seconds_ahead(KafkaSettings("127.0.0.1:1", "app"))) is None
    assert clock_warnings(None) == []


def test_a_difference_is_said_in_hours_minutes_and_seconds() -> None:
    assert clock_warnings(59) == []
    (ahead,) = clock_warnings(3 * 3600 + 62)
    assert ahead.startswith("this host's clock is ahead of the broker's by 3:01:02; set it right")
    (behind,) = clock_warnings(-90)
    assert behind.startswith("this host's clock is behind the broker's by 0:01:30")


def test_a_worker_says_once_that_its_clock_is_wrong(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(KafkaSettings(kafka.bootstrap, "app"))
    watching, now = Watching(stage.readiness), time.time
    monkeypatch.setattr("shoal.agents.worker.watch.clock", lambda: now() + 7200)
    with structlog.testing.capture_logs() as said:
        run(watching.compare_clocks())
        run(watching.compare_clocks())
    assert [line["event"] for line in said] == ["clock"]
    assert "ahead of the broker's by 2:00:0" in said[0]["reason"]
