"""Periods and slots end on real topics, too: kills change no release, and the changelog forgets what is over."""

import time
from pathlib import Path
from typing import Any

import orjson

from shoal.stream.state_mark import MARK
from tests.stream.simulation import names_of
from tests.support.audit import audit, replay
from tests.support.backends import mostly
from tests.support.deployment import Deployment
from tests.support.kafka import Kafka
from tests.support.people import visits

METRICS: tuple[dict[str, Any], ...] = (
    {"name": "halves", "statistic": "sum", "every": "1h", "unit": "user-12h", "max_contributions": 2, "group": "city",
     "decay": {"kind": "window", "length": "1d"}},
    {"name": "late", "statistic": "mean", "every": "1h", "unit": "user-12h", "max_contributions": 3, "lateness": "18h",
     "decay": {"kind": "exponential", "half_life": "1d"}},
    {"name": "places", "statistic": "mean", "slot": "3h", "unit": "user-12h", "max_slots": 2, "group": "city",
     "max_per_group": 4, "algorithm": "array-averaging"},
    {"name": "spread", "statistic": "distribution", "slot": "12h", "max_contributions": 3, "bins": 8},
    {"name": "all", "statistic": "count", "every": "6h", "unit": "event", "max_contributions": None},
)  # fmt: skip
USERS = 60
HALF_A_DAY = 12 * 3600  # seconds


@mostly("kernel")
def test_kills_change_no_release_and_periods_leave_the_changelog(kafka: Kafka, tmp_path: Path, backend: str) -> None:
    with Deployment(kafka, tmp_path, *METRICS, sources={"events": 2}, partitions=2) as shoals:
        # given two weeks of visits, and what `shoal run` makes of them
        events = visits(4_000, step=300)
        shoals.oracle.run(events)
        # when the worker is killed again and again
        feeding = shoals.produce_slowly(events, seconds=6)
        for _ in range(3):
            worker = shoals.worker("one")
            worker.wait_owns(2)
            time.sleep(1)
            worker.kill()
        shoals.worker("one")
        feeding.join()
        # then the releases are the same
        shoals.expect_equality()
        shoals.stop_all()
        # and an audit confirms them all, from events and key
        assert audit("verify", shoals.config).ok
        assert replay(shoals.config).fields["confirmed"] == len(shoals.releases())
        # and of 28 periods the changelog has the accounts of the last ones, as its marks say
        state: dict[int, dict[bytes, bytes]] = {0: {}, 1: {}}
        for record in kafka.read_committed(f"{shoals.app}.bound.{shoals.topic()}.changelog"):
            state[record.partition][record.key or b""] = record.value or b""
        marks = [orjson.loads(part[MARK])["accounts"] for part in state.values()]
        alive = [len(names_of(part)) for part in state.values()]
        assert alive == [sum(map(sum, accounts.values())) for accounts in marks]
        halves, late, slots = USERS * 2, USERS * 3, USERS * (3 + 2 + 1 + 2 + 3)
        assert sum(alive) <= halves + late + slots, "of the last period; at most three of late; samples of open slots"
        # a log that was trimmed no longer tells how many there were, but the events do
        seen = {(event["who"], event["at"] // HALF_A_DAY) for event in map(orjson.loads, events)}
        assert len(seen) * len(("halves", "late", "spread")) > 5 * sum(alive)
        assert [accounts["all/1"] for accounts in marks] == [[0, 0], [0, 0]]
