"""What a worker says of event time that is ahead of the brokers': the gauge, and a line for each episode."""

from types import SimpleNamespace
from typing import Any

import pytest
import structlog

from shoal.agents.kafka.settings import BOUND, KafkaSettings
from shoal.agents.lane import lane_of_environment
from shoal.agents.worker.outbox import BoundMachine
from shoal.agents.worker.readiness import Readiness
from shoal.agents.worker.watch import Watching
from shoal.models.config.file import Config
from shoal.models.records import CLOCK_HEADER
from shoal.models.times import iso
from shoal.stream.file_run import Line
from shoal.stream.machine import StagePartition
from tests.agents.worker.test_watch import Stage
from tests.privacy.hosted import compiled
from tests.stream.simulation import config, event

NOW = 1_000_000  # seconds
HOURLY = {"every": "1h", "algorithm": "naive"}


class Observed:
    """Source partitions of one topic in a worker whose wall clock is set by the test."""

    def __init__(self, cfg: Config, sources: int = 2) -> None:
        self.cfg, self.now, self.stage = cfg, float(NOW), Stage()
        self.plan = compiled(cfg, sources)
        self.machines = [self._machine(number) for number in range(sources)]
        for number, machine in enumerate(self.machines):
            machine.start(0)
            self._own(number, machine)
        self.readiness = Readiness(self.stage.host, self.stage.domain, wall=lambda: self.now)
        self.watching = Watching(self.readiness)

    def _machine(self, number: int) -> BoundMachine:
        kernel = lane_of_environment().module
        return BoundMachine(KafkaSettings("b:1", "app"), self.plan, number, kernel=kernel)

    def _own(self, number: int, machine: Any) -> None:
        place = StagePartition(BOUND, "events", number)
        self.stage.host.partitions[place] = SimpleNamespace(machine=machine, processed=0)
        self.machines[number] = machine

    def take_over(self, number: int) -> None:
        """As a worker that restores the partition from its changelog."""
        taken = self.machines[number].take(0)
        assert taken is not None
        machine = self._machine(number)
        machine.restore({key: value for key, value in taken.changelog if value is not None})
        self._own(number, machine)

    def send(self, *times: int, to: int = 0, header: str = "") -> None:
        """A slice of events, or of clock records, of these times in seconds, stamped with the wall time."""
        machine, stamp = self.machines[to], int(self.now * 1000)
        first = machine.next_offset or 0
        user = next(u for u in map(str, range(99)) if self.plan.partition_of(u.encode(), len(self.machines)) == to)
        lines = [
            Line(offset, None, timestamp=stamp, headers=((header, iso(time * 10**6).encode()),))
            if header
            else Line(offset, event(user, 0.5, time), timestamp=stamp)
            for offset, time in enumerate(times, first)
        ]
        machine.process(lines, first + len(lines))

    def shown(self) -> dict[str, float]:
        return {metric: one.seconds for metric, one in self.readiness.times_ahead().items()}

    def said(self) -> list[str]:
        with structlog.testing.capture_logs() as lines:
            self.watching.look(0)
        assert {line["event"] for line in lines} <= {"event_time_ahead"}
        return [line["reason"] for line in lines]


def test_the_gauge_is_by_how_much_the_furthest_partition_is_ahead():
    worker = Observed(config(HOURLY, HOURLY | {"lateness": "10m"}))
    assert worker.shown() == {}
    worker.send(NOW - 500)
    assert worker.shown() == {"m0": 0.0, "m1": 0.0}
    worker.send(NOW + 900, to=1)
    assert worker.shown() == {"m0": 900.0, "m1": 300.0}  # what counts is when ticks close
    worker.now += 400
    assert worker.shown() == {"m0": 500.0, "m1": 0.0}
    # a host whose clock is ten minutes behind the brokers' is not misled
    worker.readiness.host_ahead = -600.0
    assert worker.shown() == {"m0": 0.0, "m1": 0.0}


def test_a_line_names_the_record_once_for_each_episode():
    worker = Observed(config(HOURLY))
    worker.send(*range(NOW - 80, NOW + 1))
    assert worker.said() == []
    worker.send(NOW + 49 * 60)
    worker.send(NOW + 5, NOW + 6)  # moves no clock any more
    assert worker.said() == [
        'event time of metric "m0" is ahead of the broker\'s by 49m: topic events, partition 0, offset 81; set its '
        "producer's clock right: for that long, events of the true time are late"
    ]
    worker.send(NOW + 50 * 60)
    assert worker.said() == []
    # and is written again once time has caught up
    worker.now += 50 * 60 - 60
    assert worker.said() == []
    worker.send(NOW + 3600, NOW + 3 * 3600 // 2)
    (line,) = worker.said()
    assert "partition 0, an offset from 85 to 86; set its producer's" in line


def test_a_minute_is_not_worth_a_line():
    worker = Observed(config(HOURLY))
    worker.send(NOW + 60)
    assert worker.said() == []
    worker.send(NOW + 61)
    assert len(worker.said()) == 1


def test_after_a_takeover_the_offset_is_known_as_one_before():
    worker = Observed(config(HOURLY))
    worker.send(NOW - 5, NOW + 600, NOW)
    worker.take_over(0)
    (line,) = worker.said()
    assert "by 10m: topic events, partition 0, an offset from 0 to 2;" in line


def test_a_clock_record_is_named_like_an_event():
    worker = Observed(config(HOURLY))
    worker.send(NOW + 1200, header=CLOCK_HEADER)
    (line,) = worker.said()
    assert "by 20m: topic events, partition 0, offset 0;" in line


@pytest.mark.parametrize(("ahead", "lines"), [("30d", 0), ("30m", 1)])
def test_times_that_the_file_expects_ahead_are_not_worth_a_line(ahead, lines):
    """As those of bookings; a smaller `max_ahead` than the default expects none."""
    worker = Observed(config(HOURLY | {"max_ahead": ahead}))
    worker.send(NOW + 1700)
    assert worker.shown() == {"m0": 1700.0}
    assert len(worker.said()) == lines
