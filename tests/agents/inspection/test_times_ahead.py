"""How far a wrong clock can push each metric, by who stamps the records and by the metric's own limit."""

from typing import Any

import pytest

from shoal.agents.inspection.times_ahead import (
    AFTER,
    DIFFERENCE,
    UNLIMITED,
    in_words,
    pushes,
    times_expected_ahead,
    unlimited,
)
from shoal.models.config.file import Config
from tests.privacy.attended import present
from tests.stream.simulation import config

BROKERS = {"message.timestamp.type": "LogAppendTime", AFTER: "3600000"}
NEW = {"message.timestamp.type": "CreateTime", AFTER: "3600000"}  # the defaults of Kafka 4
OLD = {"message.timestamp.type": "CreateTime", AFTER: str(UNLIMITED), DIFFERENCE: str(UNLIMITED)}
TIMED = {"every": "10m"}


def lines(cfg: Config, settings: dict[str, str]) -> list[str]:
    return list(in_words(pushes(cfg, {"events": settings})))


def ahead(cfg: Config, settings: dict[str, str]) -> list[float | None]:
    """Seconds for each metric; None: unlimited."""
    return [push.fields()["ahead"] for push in pushes(cfg, {"events": settings})]


def untimed(**more: Any) -> dict[str, Any]:
    return {"time": None, **more}


def test_where_brokers_stamp_records_each_metric_has_its_own_limit():
    cfg = config(TIMED, {"every": "30s"}, {"every": "1d"}, untimed())
    assert ahead(cfg, BROKERS) == [600, 300, 3600, 0]
    assert lines(cfg, BROKERS) == [
        "topic events, metric m0: a wrong clock pushes event time ahead by 10m at most (LogAppendTime)",
        "topic events, metric m1: a wrong clock pushes event time ahead by 5m at most (LogAppendTime)",
        "topic events, metric m2: a wrong clock pushes event time ahead by 1h at most (LogAppendTime)",
        "topic events, metric m3: a wrong clock pushes no event time ahead (LogAppendTime)",
    ]


def test_where_producers_stamp_records_their_limit_is_added_to_it():
    assert ahead(config(TIMED, untimed()), NEW) == [4200, 3600]
    assert lines(config(TIMED, TIMED), NEW) == [
        f"topic events: a wrong clock pushes event time ahead by 70m at most (CreateTime, {AFTER})"
    ]


@pytest.mark.parametrize(
    ("settings", "limit"),
    [
        ({}, None),  # older than 0.10.1
        ({DIFFERENCE: "1500"}, 1.5),  # older than 3.6
        ({DIFFERENCE: str(UNLIMITED)}, None),
        ({DIFFERENCE: "1000", AFTER: str(UNLIMITED)}, 1),  # from 3.6 on, the newer one decides where it is set
        ({DIFFERENCE: "1000", AFTER: "2000"}, 2),
        ({AFTER: "2000"}, 2),
        ({AFTER: str(UNLIMITED)}, None),
    ],
)
def test_the_limit_of_producers_is_that_of_the_brokers_version(settings, limit):
    assert ahead(config(untimed()), settings) == [limit]


def test_beats_are_limited_by_half_an_hour_and_the_smallest_max_ahead():
    assert ahead(present({"max_ahead": "1h"}), BROKERS) == [1800]
    assert ahead(present({"max_ahead": "1h"}, {"max_ahead": "10m"}), BROKERS) == [600, 600]
    assert ahead(present({"max_ahead": "1h", "time": None}), NEW) == [1800 + 3600]


def test_without_a_limit_the_warning_has_the_command_that_sets_one():
    def warning(cfg: Config, settings: dict[str, str]) -> str:
        assert lines(cfg, settings) == []
        (text,) = unlimited(pushes(cfg, {"events": settings}), cfg)
        return text

    command = "kafka-configs --bootstrap-server localhost:9092 --alter --entity-type topics --entity-name events"
    assert warning(config(TIMED, TIMED), OLD) == (
        f"topic events: a wrong clock pushes event time ahead without limit (CreateTime, {AFTER}); run {command} "
        "--add-config message.timestamp.type=LogAppendTime"
    )
    # but the timestamps of a metric without `time` are its event times
    assert warning(config(TIMED, untimed()), OLD).endswith(f"{command} --add-config {AFTER}=3600000")
    assert warning(config(untimed()), {DIFFERENCE: str(UNLIMITED)}).endswith(f"--add-config {DIFFERENCE}=3600000")


def test_of_a_topic_whose_configuration_is_not_known_nothing_is_said():
    assert pushes(config(TIMED), {}) == []


def test_a_max_ahead_above_its_default_is_warned_of():
    cfg = config({"every": "10m", "max_ahead": "30d"}, {"every": "10m", "max_ahead": "9m"}, untimed(max_ahead="30d"))
    assert times_expected_ahead(cfg.metrics) == [
        'metric "m0": max_ahead is 30d, above its default of 10m: one fast clock closes ticks that much early; leave '
        "it out unless times lie ahead by nature, as in bookings"
    ]
    assert times_expected_ahead(present({"max_ahead": "30d"}).metrics) == []  # beats have a limit of their own
